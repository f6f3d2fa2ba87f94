//! Looks at the bill of a pod that the API shows as stopped: the last grade of a stop.

use super::Tether;
use super::grade::{self, Billing, Evidence, Exit, Grade};
use crate::cloud::{BilledSpan, CloudError};
use crate::domain::Pod;
use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;

/// Older records come in days and say less: the provider is asked for hours up to 31 days back.
const BACK: TimeDelta = TimeDelta::days(30);

const SOURCE: &str = "GET /v2/billing/pods and /v2/billing/network-volumes";

/// The account's records of pods and of network volumes, or why they could not be read.
pub(super) type Bills = Result<(Vec<BilledSpan>, Vec<BilledSpan>), CloudError>;

impl Tether {
    /// The account's bill, in hours, from `since` on, at most a month back.
    pub(super) async fn bills_since(&self, since: Option<DateTime<Utc>>) -> Bills {
        let earliest = self.clock.now() - BACK;
        let since = since.map_or(earliest, |at| at.max(earliest));
        tokio::try_join!(self.cloud.pod_billing(since), self.cloud.volume_billing(since))
    }

    /// How much is known of the stop of a pod that was listed as stopped, within `time`.
    pub(super) async fn grade_of_stopped(
        &self,
        pod: &Pod,
        listed_at: DateTime<Utc>,
        time: Duration,
    ) -> (Grade, Vec<Evidence>) {
        let bills = self.bills_since(pod.started_at.or(pod.created_at));
        match tokio::time::timeout(time, bills).await {
            Ok(bills) => self.graded(pod, listed_at, &bills),
            Err(_) => {
                let now = self.clock.now();
                let late = Evidence::new("billing", "not told in time", SOURCE, now, now);
                (Grade::ApiSays, vec![self.listed(pod, listed_at), late])
            }
        }
    }

    /// The same from bills that were read.
    pub(super) fn graded(
        &self,
        pod: &Pod,
        listed_at: DateTime<Utc>,
        bills: &Bills,
    ) -> (Grade, Vec<Evidence>) {
        let now = self.clock.now();
        let exit = self.ledger.as_ref().and_then(|ledger| {
            let book = ledger.book().ok()?;
            let exit = book.last_exit(&pod.id)?;
            Some(Exit { after: exit.asked_at, by: exit.read_at })
        });
        let billing = match bills {
            Ok((pods, volumes)) => {
                grade::billing(&pod.id, pods, volumes, pod.started_at, exit, now)
            }
            Err(error) => Billing::NotYet(format!("it could not be read: {error}")),
        };
        let (grade, value) = match billing {
            Billing::Flat { until } => (
                Grade::BillingFlat,
                format!(
                    "no compute since the stop, known until {}",
                    until.format("%Y-%m-%d %H:%M UTC")
                ),
            ),
            Billing::NotYet(why) => (Grade::ApiSays, why),
            Billing::GoesOn { from } => (
                Grade::ApiSays,
                format!(
                    "COMPUTE WAS BILLED AFTER THE STOP, from {} on: look in the RunPod console",
                    from.format("%Y-%m-%d %H:%M UTC")
                ),
            ),
        };
        let billing = Evidence::new("billing", value, SOURCE, now, now);
        (grade, vec![self.listed(pod, listed_at), billing])
    }

    fn listed(&self, pod: &Pod, listed_at: DateTime<Utc>) -> Evidence {
        Evidence::new("status", &pod.status, "GET /v2/pods", listed_at, self.clock.now())
    }
}
