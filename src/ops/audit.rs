//! audit: everything in the account that bills or may bill, and whose it is.

use super::grade::{Evidence, Grade};
use super::{CloudName, Tether};
use crate::cloud::BilledSpan;
use crate::domain::{Pod, PodId, PodStatus, Usd, UsdPerHour, Volume, VolumeId};
use crate::error::{Failure, StillBilling};
use crate::plan::NewPod;
use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// Whose a pod or volume is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// This vehicle declares its name.
    Vehicle(String),
    /// podtether created it, but no vehicle of this config declares its name: it is another
    /// project's, or its vehicle was renamed or removed.
    Marked,
    /// No vehicle's, and put up with by `strangers.tolerate`. It bills all the same.
    Tolerated,
    /// Nobody's that is known here.
    Stranger,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vehicle(name) => write!(f, "vehicle {name}"),
            Self::Marked => f.write_str("podtether's, of no vehicle here"),
            Self::Tolerated => f.write_str("a tolerated stranger"),
            Self::Stranger => f.write_str("a stranger"),
        }
    }
}

/// One pod.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AuditedPod {
    /// The provider's id.
    pub id: PodId,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub owner: Owner,
    /// The provider's word for its status.
    pub status: String,
    /// Whether its compute is, or must be taken to be, on the bill.
    pub bills: bool,
    /// Whether it has no network volume and is stopped: then it may have a disk of its own, which
    /// bills at rest and is not told.
    pub may_bill_at_rest: bool,
    /// What it bills for an hour now: 0 when stopped; missing when it bills at a price that is not
    /// told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_per_hour: Option<Usd>,
    /// Of a stopped pod: how much is known of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade: Option<Grade>,
    /// What that rests on, with source, time and age.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// When its present or last container was started, else when it was created, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
}

/// One network volume. It bills whether a pod is attached or not.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AuditedVolume {
    /// The provider's id.
    pub id: VolumeId,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub owner: Owner,
    /// Size in GB.
    pub size_gb: u32,
    /// Where it is.
    pub data_center: String,
    /// What it bills for a month, at rest or not.
    pub usd_per_month: Usd,
    /// The first time that it was billed in the last 90 days, UTC; missing when that is not told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
}

/// The answer of audit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Audit {
    /// Which cloud answered.
    pub cloud: CloudName,
    /// When it was read, UTC.
    pub at: DateTime<Utc>,
    /// Every pod of the account.
    pub pods: Vec<AuditedPod>,
    /// Every network volume of the account.
    pub volumes: Vec<AuditedVolume>,
    /// The sum of the hourly rates that are on the bill now, as far as they are told.
    pub usd_per_hour_now: Usd,
    /// The sum of what the network volumes bill for a month.
    pub usd_per_month_at_rest: Usd,
    /// Ids of what bills, or may, and no vehicle owns.
    pub unowned: Vec<String>,
    /// What the figures do not cover.
    pub covers: String,
}

/// How far back volumes are looked for in the bill.
const WINDOW: TimeDelta = TimeDelta::days(90);

impl Tether {
    /// Lists every pod and volume of the account with its owner.
    ///
    /// # Errors
    /// When pods or volumes cannot be listed: a part of an account is not shown as the account.
    pub async fn audit(&self) -> Result<Audit, Failure> {
        let at = self.clock.now();
        let (pods, volumes, billed) = tokio::join!(
            self.cloud.pods(),
            self.cloud.volumes(),
            self.cloud.volume_billing(at - WINDOW)
        );
        let unknown = |error| Failure::from(error).billing(StillBilling::Unknown);
        let (pods, volumes) = (pods.map_err(unknown)?, volumes.map_err(unknown)?);
        let mut covers = "Network volumes at their list price for standard storage. The disk of a stopped pod without a network volume may bill too and is in no sum; what is neither pod nor network volume is not covered.".to_owned();
        let billed = billed.unwrap_or_else(|error| {
            covers.push_str(&format!(" Since when volumes bill is not known: {error}."));
            Vec::new()
        });
        let is_stopped = |pod: &Pod| pod.status == PodStatus::Exited;
        let bills = match pods.iter().any(is_stopped) {
            true => Some(self.bills_since(None).await),
            false => None,
        };
        let pods: Vec<AuditedPod> = pods
            .iter()
            .filter(|pod| !pod.is_deleted())
            .map(|pod| match bills.as_ref().filter(|_| is_stopped(pod)) {
                Some(bills) => {
                    let (grade, evidence) = self.graded(pod, at, bills);
                    AuditedPod { grade: Some(grade), evidence, ..self.audited_pod(pod) }
                }
                None => self.audited_pod(pod),
            })
            .collect();
        let volumes: Vec<AuditedVolume> =
            volumes.iter().map(|volume| self.audited_volume(volume, &billed)).collect();
        let unpriced = pods.iter().filter(|pod| pod.usd_per_hour.is_none()).count();
        if unpriced > 0 {
            covers.push_str(&format!(" {unpriced} pods bill at a price that is not told."));
        }
        let is_owned = |owner: &Owner| matches!(owner, Owner::Vehicle(_));
        let unowned_pods =
            pods.iter().filter(|pod| (pod.bills || pod.may_bill_at_rest) && !is_owned(&pod.owner));
        let unowned_volumes = volumes.iter().filter(|volume| !is_owned(&volume.owner));
        Ok(Audit {
            cloud: self.cloud_name(),
            at,
            usd_per_hour_now: pods.iter().filter_map(|pod| pod.usd_per_hour).sum(),
            usd_per_month_at_rest: volumes.iter().map(|volume| volume.usd_per_month).sum(),
            unowned: unowned_pods
                .map(|pod| pod.id.0.clone())
                .chain(unowned_volumes.map(|volume| volume.id.0.clone()))
                .collect(),
            pods,
            volumes,
            covers,
        })
    }

    fn audited_pod(&self, pod: &Pod) -> AuditedPod {
        let mut vehicles = self.config.vehicles.iter();
        let owner = match vehicles.find(|vehicle| vehicle.pod_name == pod.name) {
            Some(vehicle) => Owner::Vehicle(vehicle.name.0.clone()),
            None if pod.env.contains_key(NewPod::NONCE_ENV) => Owner::Marked,
            None if self.config.tolerated_pods.contains(&pod.name) => Owner::Tolerated,
            None => Owner::Stranger,
        };
        let bills = pod.status.bills_compute();
        AuditedPod {
            id: pod.id.clone(),
            name: pod.name.clone(),
            owner,
            status: pod.status.to_string(),
            bills,
            may_bill_at_rest: !bills && pod.mounts.is_empty(),
            usd_per_hour: if bills { rate(pod) } else { Some(Usd::ZERO) },
            grade: None,
            evidence: Vec::new(),
            since: pod.started_at.or(pod.created_at),
        }
    }

    fn audited_volume(&self, volume: &Volume, billed: &[BilledSpan]) -> AuditedVolume {
        let mut vehicles = self.config.vehicles.iter();
        let owner = vehicles
            .find(|vehicle| vehicle.network_volume_name == volume.name)
            .map_or(Owner::Stranger, |vehicle| Owner::Vehicle(vehicle.name.0.clone()));
        let spans = billed.iter().filter(|span| span.id == volume.id.0);
        AuditedVolume {
            id: volume.id.clone(),
            name: volume.name.clone(),
            owner,
            size_gb: volume.size_gb,
            data_center: volume.data_center.0.clone(),
            usd_per_month: Volume::usd_per_month(volume.size_gb),
            since: spans.map(|span| span.start).min(),
        }
    }
}

/// The provider may report a pod that bills at 0 (runpod-python #438), which is no price.
fn rate(pod: &Pod) -> Option<Usd> {
    let rate = pod.price.known().map(UsdPerHour::per_hour);
    rate.filter(|usd| *usd > Usd::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Price, sample};

    /// A pod that bills at 0 by the provider's word has no price that can be believed.
    #[test]
    fn a_price_of_zero_on_the_bill_is_not_told() {
        let priced = |text| Pod { price: Price::from_decimal(text), ..sample::pod() };
        assert_eq!(rate(&priced("0.69")), Some(Usd::from_micros(690_000)));
        assert_eq!(rate(&priced("0")), None);
        assert_eq!(rate(&priced("NaN")), None);
    }
}
