//! spend_report: what the provider billed, what is running up since and what is promised, in the
//! budget's window; and what of it nobody can explain.

use super::spent::Bill;
use super::unexplained::{self, Unexplained};
use super::{CloudName, Tether};
use crate::cloud::{Balance, CloudError};
use crate::domain::{BudgetWindow, Pod, PodId, Usd, Volume};
use crate::error::Failure;
use crate::ledger::Book;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

/// What may still be billed for something that was approved before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommittedLine {
    /// What for.
    pub what: String,
    /// What is left of its worst case.
    pub usd: Usd,
}

/// A pod of ours whose bill has holes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shortfall {
    /// Which.
    pub pod: String,
    /// What its times come to at least.
    pub expected_usd: Usd,
    /// What was billed for them.
    pub billed_usd: Usd,
}

/// A boot that was given up after boot_max_sec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedBootLine {
    /// Which vehicle's.
    pub vehicle: String,
    /// Which pod.
    pub pod: PodId,
    /// When it was asked to start, UTC.
    pub at: DateTime<Utc>,
    /// How long it was waited for.
    pub seconds: u64,
    /// What that cost; missing when the price was not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<Usd>,
}

/// The answer of spend_report.
///
/// Lists have no schema of their own: every conversation would carry it.
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
    /// Estimate for running pods since their last billed hour.
    pub running_usd: Usd,
    /// The same for own pods that are off again.
    pub not_yet_billed_usd: Usd,
    /// Own pods' cost that was not billed: no saving.
    pub expected_not_billed_usd: Usd,
    /// {pod, expected_usd, billed_usd}
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "list")]
    pub expected_not_billed: Vec<Shortfall>,
    /// All of these.
    pub total_usd: Usd,
    /// What launches and starts may still cost.
    pub committed_usd: Usd,
    /// {what, usd}
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "list")]
    pub committed: Vec<CommittedLine>,
    /// limits.budget_usd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Usd>,
    /// Budget less total and committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_usd: Option<Usd>,
    /// Billed, and explained by nothing of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unexplained_usd: Option<Usd>,
    /// {id, usd, why}
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "list")]
    pub unexplained: Vec<Unexplained>,
    /// {vehicle, pod, at, seconds, usd}
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "list")]
    pub failed_boots: Vec<FailedBootLine>,
    /// The rates on the bill now.
    pub usd_per_hour_now: Usd,
    /// The account's credit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balance_usd: Option<Usd>,
    /// Hours that the credit lasts at this rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runway_hours: Option<f64>,
    /// Why the credit is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balance_unknown: Option<String>,
    /// What the figures cover and what they do not.
    pub covers: String,
}

fn list(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "array"})
}

impl Tether {
    /// Adds up what the account was billed in the budget's window and what is running up.
    ///
    /// # Errors
    /// When pods or billing cannot be read: a part of a sum is not shown as the sum.
    pub async fn spend_report(&self) -> Result<SpendReport, Failure> {
        let billed = async {
            let pods = self.cloud.pods().await?;
            if let Some(ledger) = &self.ledger
                && let Err(error) = self.note_seen(ledger, &pods).await
            {
                tracing::warn!(%error, "what the account has could not be noted");
            }
            let bill = self.bill(&pods).await?;
            Ok::<_, CloudError>((pods, bill))
        };
        let (billed, balance, volumes) =
            tokio::join!(billed, self.cloud.balance(), self.cloud.volumes());
        let (pods, bill) = billed?;
        let book = self.ledger.as_ref().and_then(|ledger| ledger.book().ok());
        let (unexplained, mut covers) =
            self.explain(&bill, book.as_ref(), &pods, volumes.as_deref().ok());
        if self.ledger.is_some() && book.is_none() {
            covers.push_str(" The journal could not be read: nothing that is promised is known.");
        }
        if let Some(aside) = self.set_aside() {
            covers.push_str(&format!(" Note that {aside}."));
        }
        let book = book.unwrap_or_default();
        let committed: Vec<CommittedLine> = self
            .committed(&book)
            .into_iter()
            .map(|line| CommittedLine { usd: line.usd(), what: line.what })
            .collect();
        let committed_usd = committed.iter().map(|line| line.usd).sum();
        let failed_boots = book.failed_boots().iter().filter(|boot| boot.at >= bill.from);
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
            not_yet_billed_usd: bill.not_yet_usd,
            expected_not_billed_usd: bill.missing_usd(),
            expected_not_billed: bill.missing.iter().map(shortfall).collect(),
            total_usd,
            committed_usd,
            committed,
            budget_usd,
            remaining_usd: budget_usd
                .map(|budget| budget.saturating_sub(total_usd).saturating_sub(committed_usd)),
            unexplained_usd: unexplained
                .as_ref()
                .map(|lines| lines.iter().map(|line| line.usd).sum()),
            unexplained: unexplained.unwrap_or_default(),
            failed_boots: failed_boots
                .map(|boot| FailedBootLine {
                    vehicle: boot.vehicle.clone(),
                    pod: boot.pod.clone(),
                    at: boot.at,
                    seconds: boot.seconds,
                    usd: boot.usd,
                })
                .collect(),
            usd_per_hour_now: bill.usd_per_hour_now,
            balance_usd,
            runway_hours: runway_hours(&balance, bill.usd_per_hour_now),
            balance_unknown,
            covers,
        })
    }

    /// What of the bill nothing explains, the largest first, and what the figures cover.
    fn explain(
        &self,
        bill: &Bill,
        book: Option<&Book>,
        pods: &[Pod],
        volumes: Option<&[Volume]>,
    ) -> (Option<Vec<Unexplained>>, String) {
        let mut covers = bill.covers();
        let (Some(book), Some(since)) = (book, bill.explained_from) else { return (None, covers) };
        let mut lines = bill.unexplained.clone();
        match volumes {
            Some(volumes) => {
                let known = self.known(book, pods, since);
                lines.extend(unexplained::volumes(&known, &bill.volumes, volumes));
            }
            None => covers.push_str(" Network volumes could not be listed and are not explained."),
        }
        lines.sort_by_key(|line| std::cmp::Reverse(line.usd));
        (Some(lines), covers)
    }
}

fn shortfall((pod, expected, billed): &(String, Usd, Usd)) -> Shortfall {
    Shortfall { pod: pod.clone(), expected_usd: *expected, billed_usd: *billed }
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
