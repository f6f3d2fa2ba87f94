//! spend_report: what the provider billed, and what is running up since.

use super::{CloudName, Tether};
use crate::cloud::BilledSpan;
use crate::domain::{Pod, Usd};
use crate::error::Failure;
use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::Serialize;

/// The answer of spend_report.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SpendReport {
    /// Which cloud answered. The local cloud bills nothing real.
    pub cloud: CloudName,
    /// Start of the window, UTC.
    pub from: DateTime<Utc>,
    /// End of the window, UTC.
    pub to: DateTime<Utc>,
    /// Billed for compute of pods.
    pub compute_usd: Usd,
    /// Billed for disks of pods.
    pub disk_usd: Usd,
    /// Billed for network volumes.
    pub volume_usd: Usd,
    /// Estimate for pods on the bill now, since their last billed hour: rate × time.
    pub running_usd: Usd,
    /// Everything together.
    pub total_usd: Usd,
    /// limits.budget_usd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Usd>,
    /// Budget less total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_usd: Option<Usd>,
    /// The sum of the rates that are on the bill now.
    pub usd_per_hour_now: Usd,
    /// What the figures cover and what they do not.
    pub covers: String,
}

/// How far back the provider's billing is asked.
const WINDOW_DAYS: i64 = 30;

impl Tether {
    /// Adds up what the account was billed and what is running up.
    ///
    /// # Errors
    /// When pods or billing cannot be read: a part of a sum is not shown as the sum.
    pub async fn spend_report(&self) -> Result<SpendReport, Failure> {
        let to = self.clock.now();
        let from = to - TimeDelta::days(WINDOW_DAYS);
        let (pods, billed, volumes) = tokio::join!(
            self.cloud.pods(),
            self.cloud.pod_billing(from),
            self.cloud.volume_billing(from)
        );
        let (pods, billed, volumes) = (pods?, billed?, volumes?);
        let pod_total: Usd = billed.iter().filter_map(|span| span.total).sum();
        let disk_usd: Usd = billed.iter().filter_map(|span| span.total.and(span.disk)).sum();
        let volume_usd: Usd = volumes.iter().filter_map(|span| span.total).sum();
        let unread = billed.iter().chain(&volumes).filter(|span| span.total.is_none()).count();
        let running: Vec<&Pod> = pods.iter().filter(|pod| pod.status.bills_compute()).collect();
        let estimates: Vec<Usd> =
            running.iter().filter_map(|pod| running_up(pod, &billed, to)).collect();
        let unpriced = running.len() - estimates.len();
        let running_usd: Usd = estimates.into_iter().sum();
        let total_usd = pod_total + volume_usd + running_usd;
        let budget_usd = self.config.limits.budget_usd;
        let mut covers = format!(
            "The whole account, not only the vehicles, for {WINDOW_DAYS} days. Billing lags by about an hour; for pods on the bill now the time since is estimated, for pods stopped within the last hour it is missing."
        );
        if unread > 0 {
            covers.push_str(&format!(
                " {unread} billing records had no readable amount and are not in the sum."
            ));
        }
        if unpriced > 0 {
            covers.push_str(&format!(
                " {unpriced} pods on the bill have no readable price or start and are not in the estimate."
            ));
        }
        Ok(SpendReport {
            cloud: self.cloud_name(),
            from,
            to,
            compute_usd: pod_total.saturating_sub(disk_usd),
            disk_usd,
            volume_usd,
            running_usd,
            total_usd,
            budget_usd,
            remaining_usd: budget_usd.map(|budget| budget.saturating_sub(total_usd)),
            usd_per_hour_now: running
                .iter()
                .filter_map(|pod| Some(pod.price.known()?.per_hour()))
                .sum(),
            covers,
        })
    }
}

/// What a pod on the bill has run up since its container was started or since its last billed span
/// ended, whichever is later; `None` when its price or its start is not known.
fn running_up(pod: &Pod, billed: &[BilledSpan], now: DateTime<Utc>) -> Option<Usd> {
    let started = pod.started_at.or(pod.created_at)?;
    let billed_until = billed.iter().filter(|span| span.id == pod.id.0).map(|span| span.end).max();
    let since = billed_until.map_or(started, |end| end.max(started));
    Some(pod.price.known()?.cost_of((now - since).to_std().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::sample;

    fn at(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).unwrap().to_utc()
    }

    /// I02, I04: billed hours are not estimated again.
    #[test]
    fn time_that_is_billed_is_not_estimated_again() {
        let pod = Pod { started_at: Some(at("2026-07-03T10:00:00Z")), ..sample::pod() };
        let now = at("2026-07-03T12:00:00Z");
        assert_eq!(running_up(&pod, &[], now), Some(Usd::from_micros(1_380_000)));
        let span = BilledSpan {
            id: "pod1".into(),
            start: at("2026-07-03T10:00:00Z"),
            end: at("2026-07-03T11:00:00Z"),
            total: Some(Usd::from_micros(690_000)),
            disk: None,
        };
        assert_eq!(
            running_up(&pod, std::slice::from_ref(&span), now),
            Some(Usd::from_micros(690_000))
        );
        let other = BilledSpan { id: "pod2".into(), ..span };
        assert_eq!(running_up(&pod, &[other], now), Some(Usd::from_micros(1_380_000)));
    }
}
