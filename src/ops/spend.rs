//! spend_report: what the provider billed, and what is running up since.

use super::{CloudName, Tether};
use crate::cloud::{Balance, BilledSpan};
use crate::domain::{Pod, Usd};
use crate::error::Failure;
use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::Serialize;

/// The answer of spend_report.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SpendReport {
    /// Which cloud answered; the local one bills nothing.
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
    /// Estimate for pods on the bill, since their last billed hour.
    pub running_usd: Usd,
    /// Everything together.
    pub total_usd: Usd,
    /// limits.budget_usd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Usd>,
    /// Budget less total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_usd: Option<Usd>,
    /// The rates on the bill now, summed.
    pub usd_per_hour_now: Usd,
    /// The account's credit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balance_usd: Option<Usd>,
    /// Hours that the credit lasts at the present rate; missing at none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runway_hours: Option<f64>,
    /// Why the credit is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balance_unknown: Option<String>,
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
        let (pods, billed, volumes, balance) = tokio::join!(
            self.cloud.pods(),
            self.cloud.pod_billing(from),
            self.cloud.volume_billing(from),
            self.cloud.balance()
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
        let usd_per_hour_now: Usd =
            running.iter().filter_map(|pod| Some(pod.price.known()?.per_hour())).sum();
        let (balance_usd, balance_unknown) = match &balance {
            Balance::Known { usd, .. } => (Some(*usd), None),
            Balance::Unknown(why) => (None, Some(why.clone())),
        };
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
            usd_per_hour_now,
            balance_usd,
            runway_hours: runway_hours(&balance, usd_per_hour_now),
            balance_unknown,
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

/// How long the credit lasts, in hours with one decimal, rounded down. Of the account's own rate and
/// the sum of the pods the higher one counts: the provider may forget a part, and so may the list.
fn runway_hours(balance: &Balance, pods: Usd) -> Option<f64> {
    let Balance::Known { usd, per_hour, .. } = balance else { return None };
    let rate = per_hour.unwrap_or(Usd::ZERO).max(pods).micros();
    let tenths = i128::from(usd.micros().max(0)) * 10 / i128::from((rate > 0).then_some(rate)?);
    // What does not fit is longer than anybody asks for.
    u32::try_from(tenths).ok().map(|tenths| f64::from(tenths) / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::sample;

    #[test]
    fn the_runway_is_rounded_down_and_takes_the_higher_rate() {
        let credit = |micros, per_hour| Balance::Known {
            usd: Usd::from_micros(micros),
            per_hour: Option::map(per_hour, Usd::from_micros),
            limit: None,
        };
        for (balance, pods, hours) in [
            (credit(10_000_000, Some(690_000)), 0, Some(14.4)),
            (credit(10_000_000, Some(690_000)), 1_000_000, Some(10.0)),
            (credit(10_000_000, None), 1_000_000, Some(10.0)),
            (credit(-1, Some(1)), 0, Some(0.0)),
            (credit(10_000_000, Some(0)), 0, None),
            (credit(i64::MAX, Some(1)), 0, None),
            (Balance::Unknown(String::new()), 690_000, None),
        ] {
            assert_eq!(runway_hours(&balance, Usd::from_micros(pods)), hours, "{balance:?}");
        }
    }

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
