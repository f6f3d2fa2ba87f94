//! spend_report: what the provider billed, and what is running up since, in the budget's window.

use super::{CloudName, Tether};
use crate::cloud::Balance;
use crate::domain::{BudgetWindow, Usd};
use crate::error::Failure;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

/// The answer of spend_report.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SpendReport {
    /// Which cloud answered. The local cloud bills nothing real.
    pub cloud: CloudName,
    /// total, month or day.
    #[schemars(with = "String")]
    pub budget_window: BudgetWindow,
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
    /// Estimate for pods on the bill now, since their last billed hour.
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

impl Tether {
    /// Adds up what the account was billed in the budget's window and what is running up.
    ///
    /// # Errors
    /// When pods or billing cannot be read: a part of a sum is not shown as the sum.
    pub async fn spend_report(&self) -> Result<SpendReport, Failure> {
        let billed = async { self.bill(&self.cloud.pods().await?).await };
        let (bill, balance) = tokio::join!(billed, self.cloud.balance());
        let bill = bill?;
        let (balance_usd, balance_unknown) = match &balance {
            Balance::Known { usd, .. } => (Some(*usd), None),
            Balance::Unknown(why) => (None, Some(why.clone())),
        };
        let total_usd = bill.total();
        let budget_usd = self.config.limits.budget_usd;
        Ok(SpendReport {
            cloud: self.cloud_name(),
            budget_window: bill.window,
            from: bill.from,
            to: bill.to,
            compute_usd: bill.pod_usd.saturating_sub(bill.disk_usd),
            disk_usd: bill.disk_usd,
            volume_usd: bill.volume_usd,
            running_usd: bill.running_usd,
            total_usd,
            budget_usd,
            remaining_usd: budget_usd.map(|budget| budget.saturating_sub(total_usd)),
            usd_per_hour_now: bill.usd_per_hour_now,
            balance_usd,
            runway_hours: runway_hours(&balance, bill.usd_per_hour_now),
            balance_unknown,
            covers: bill.covers(),
        })
    }
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
}
