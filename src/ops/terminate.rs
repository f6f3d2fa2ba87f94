//! terminate_pod: delete the pod; the volume stays.

use super::gather::Needs;
use super::grade::{Evidence, Grade};
use super::{CloudName, Tether};
use crate::apply::{self, OffOutcome, StepOutcome};
use crate::domain::{Usd, Volume};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::plan;
use schemars::JsonSchema;
use serde::Serialize;

/// How far a terminate is known to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TerminateStatus {
    /// The pod was seen to be gone from the provider's lists.
    Terminated,
    /// The account has no pod of this name.
    NoPod,
}

/// The answer of terminate_pod.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TerminateAnswer {
    /// Which cloud answered.
    pub cloud: CloudName,
    /// For which vehicle.
    pub vehicle: String,
    /// How far it is.
    pub status: TerminateStatus,
    /// How much is known: `api_says` in every answer; a terminate that was not read back is a failure.
    pub grade: Grade,
    /// Every field with its source, time and age.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub evidence: Vec<Evidence>,
    /// What is so.
    pub message: String,
    /// What goes on billing each month: the network volume, which is never deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub still_bills_usd_per_month: Option<Usd>,
}

impl Tether {
    /// Deletes the vehicle's pod when `confirm` is exactly `terminate <pod_name>`.
    ///
    /// # Errors
    /// Refusals; and when the pod was not seen to go, which may bill.
    pub async fn terminate_pod(
        &self,
        vehicle: &str,
        confirm: &str,
    ) -> Result<TerminateAnswer, Failure> {
        let vehicle = self.vehicle(Some(vehicle))?;
        let facts = self.gather(Needs::default()).await?;
        let listed_at = self.clock.now();
        let approved = self.review(plan::terminate(&vehicle, true, confirm, &facts), &facts)?;
        let outcomes =
            apply::apply(&approved, &self.ports(&vehicle, None, None)).await.map_err(|error| {
                super::ensure::start_failure(error.error).billing(StillBilling::Unknown)
            })?;
        let unconfirmed = outcomes.iter().filter_map(StepOutcome::off).find(|off| !off.confirmed);
        if let Some(off) = unconfirmed {
            let message = super::stop::unconfirmed_message(off);
            let hint = "call again; stop_pod takes it off the bill";
            return Err(Failure::new(FailureKind::Unconfirmed, message, hint)
                .billing(StillBilling::Unknown)
                .retryable());
        }
        let monthly =
            self.volume_of(&vehicle).await.map(|volume| Volume::usd_per_month(volume.size_gb));
        let rest = monthly.map_or_else(String::new, |usd| {
            format!(" Its network volume stays and bills {usd} a month.")
        });
        let now = self.clock.now();
        let offs: Vec<&OffOutcome> = outcomes.iter().filter_map(StepOutcome::off).collect();
        let ours = facts.pods_named(&vehicle.pod_name);
        let evidence =
            ours.flat_map(|pod| super::stop::of_stop(pod, &offs, listed_at, now)).collect();
        let (status, said) = if outcomes.is_empty() {
            (TerminateStatus::NoPod, "There was no pod of this name.")
        } else {
            (TerminateStatus::Terminated, "The pod is gone from the provider's lists.")
        };
        Ok(TerminateAnswer {
            cloud: self.cloud_name(),
            vehicle: vehicle.name.0,
            status,
            grade: Grade::ApiSays,
            evidence,
            message: format!("{said}{rest}"),
            still_bills_usd_per_month: monthly,
        })
    }
}
