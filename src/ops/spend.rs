//! spend_report: what the provider billed, and what is running up since, in the budget's window.

use super::{CloudName, Tether};
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
    /// What the figures cover and what they do not.
    pub covers: String,
}

impl Tether {
    /// Adds up what the account was billed in the budget's window and what is running up.
    ///
    /// # Errors
    /// When pods or billing cannot be read: a part of a sum is not shown as the sum.
    pub async fn spend_report(&self) -> Result<SpendReport, Failure> {
        let bill = self.bill(&self.cloud.pods().await?).await?;
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
            covers: bill.covers(),
        })
    }
}
