//! What the account was billed in the budget's window, and what is running up since: the one sum that
//! spend_report shows and the budget is held against.

use super::Tether;
use crate::cloud::{BilledSpan, CloudError};
use crate::domain::{BudgetWindow, Pod, Price, Usd};
use crate::plan::Spent;
use chrono::{DateTime, Utc};

/// The account's bill in one window.
pub(super) struct Bill {
    pub window: BudgetWindow,
    /// Start of the window, UTC.
    pub from: DateTime<Utc>,
    /// When it was looked at.
    pub to: DateTime<Utc>,
    /// Billed for pods, disks among it.
    pub pod_usd: Usd,
    /// Billed for disks of pods.
    pub disk_usd: Usd,
    /// Billed for network volumes.
    pub volume_usd: Usd,
    /// Estimate for pods on the bill now, since their last billed hour.
    pub running_usd: Usd,
    /// The sum of the rates that are on the bill now, as far as they are known.
    pub usd_per_hour_now: Usd,
    /// Records whose amount could not be read.
    pub unread: usize,
    /// Pods on the bill whose price or start is not known.
    pub unpriced: usize,
}

impl Bill {
    /// Everything together.
    pub(super) fn total(&self) -> Usd {
        self.pod_usd + self.volume_usd + self.running_usd
    }

    /// The sum as the budget takes it: a part of a sum is not the sum.
    pub(super) fn spent(&self) -> Spent {
        match (self.unread, self.unpriced) {
            (0, 0) => Spent::Known(self.total()),
            (0, pods) => {
                Spent::Unknown(format!("{pods} pods on the bill have no readable price or start"))
            }
            (records, _) => {
                Spent::Unknown(format!("{records} billing records have no readable amount"))
            }
        }
    }

    /// What the figures cover and what they do not.
    pub(super) fn covers(&self) -> String {
        let window = match self.window {
            BudgetWindow::Total => {
                "as far back as the provider's bill goes (asked for since 2022)".to_owned()
            }
            BudgetWindow::Month => "since the first of this month, UTC".to_owned(),
            BudgetWindow::Day => "since midnight, UTC".to_owned(),
        };
        let mut covers = format!(
            "The whole account, not only the vehicles, {window}. Billing lags by about an hour; for pods on the bill now the time since is estimated, for pods stopped within the last hour it is missing."
        );
        if self.unread > 0 {
            covers.push_str(&format!(
                " {} billing records had no readable amount and are not in the sum.",
                self.unread
            ));
        }
        if self.unpriced > 0 {
            covers.push_str(&format!(
                " {} pods on the bill have no readable price or start and are not in the estimate.",
                self.unpriced
            ));
        }
        covers
    }
}

/// One kind of bill: old buckets up to this month, hours since. Months in one go would hide how far
/// the bill has come, and hours of years are thousands of records.
fn joined(
    old: Vec<BilledSpan>,
    recent: Vec<BilledSpan>,
    from: DateTime<Utc>,
    cut: DateTime<Utc>,
) -> Vec<BilledSpan> {
    // The provider widens to whole buckets, so what begins outside belongs to the other part (I04).
    let old = old.into_iter().filter(|span| span.start < cut);
    let recent = recent.into_iter().filter(|span| span.start >= cut);
    old.chain(recent).filter(|span| span.end > from).collect()
}

impl Tether {
    /// Adds up the bill for an account that has these pods.
    ///
    /// # Errors
    /// When the bill cannot be read.
    pub(super) async fn bill(&self, pods: &[Pod]) -> Result<Bill, CloudError> {
        let window = self.config.limits.budget_window;
        let to = self.clock.now();
        let from = window.start(to);
        let cut = BudgetWindow::Month.start(to).max(from);
        let old_pods =
            async { if from < cut { self.cloud.pod_billing(from).await } else { Ok(Vec::new()) } };
        let old_volumes = async {
            if from < cut { self.cloud.volume_billing(from).await } else { Ok(Vec::new()) }
        };
        let (old_pods, recent_pods, old_volumes, recent_volumes) = tokio::join!(
            old_pods,
            self.cloud.pod_billing(cut),
            old_volumes,
            self.cloud.volume_billing(cut)
        );
        let billed = joined(old_pods?, recent_pods?, from, cut);
        let volumes = joined(old_volumes?, recent_volumes?, from, cut);
        let (mut running_usd, mut usd_per_hour_now, mut unpriced) = (Usd::ZERO, Usd::ZERO, 0);
        for pod in pods.iter().filter(|pod| pod.status.bills_compute()) {
            let price = match pod.price {
                Price::Unknown => self.catalog_price(pod).await,
                known => known,
            };
            let pod = Pod { price, ..pod.clone() };
            match running_up(&pod, &billed, from, to) {
                Some(usd) => running_usd = running_usd + usd,
                None => unpriced += 1,
            }
            if let Some(rate) = price.known() {
                usd_per_hour_now = usd_per_hour_now + rate.per_hour();
            }
        }
        Ok(Bill {
            window,
            from,
            to,
            pod_usd: billed.iter().filter_map(|span| span.total).sum(),
            disk_usd: billed.iter().filter_map(|span| span.total.and(span.disk)).sum(),
            volume_usd: volumes.iter().filter_map(|span| span.total).sum(),
            running_usd,
            usd_per_hour_now,
            unread: billed.iter().chain(&volumes).filter(|span| span.total.is_none()).count(),
            unpriced,
        })
    }
}

/// What a pod on the bill has run up in the window since its container was started or since its last
/// billed span ended, whichever is later; `None` when its price or its start is not known.
fn running_up(
    pod: &Pod,
    billed: &[BilledSpan],
    from: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Option<Usd> {
    let started = pod.started_at.or(pod.created_at)?.max(from);
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

    fn span(id: &str, start: &str, end: &str) -> BilledSpan {
        let total = Some(Usd::from_micros(690_000));
        BilledSpan { id: id.into(), start: at(start), end: at(end), total, disk: None }
    }

    /// I02, I04: billed hours are not estimated again, nor is what was before the window.
    #[test]
    fn time_that_is_billed_is_not_estimated_again() {
        let pod = Pod { started_at: Some(at("2026-07-03T10:00:00Z")), ..sample::pod() };
        let (from, now) = (at("2026-07-01T00:00:00Z"), at("2026-07-03T12:00:00Z"));
        let two_hours = Some(Usd::from_micros(1_380_000));
        let one_hour = Some(Usd::from_micros(690_000));
        assert_eq!(running_up(&pod, &[], from, now), two_hours);
        let hour = span("pod1", "2026-07-03T10:00:00Z", "2026-07-03T11:00:00Z");
        assert_eq!(running_up(&pod, &[hour], from, now), one_hour);
        let other = span("pod2", "2026-07-03T10:00:00Z", "2026-07-03T11:00:00Z");
        assert_eq!(running_up(&pod, &[other], from, now), two_hours);
        assert_eq!(running_up(&pod, &[], at("2026-07-03T11:00:00Z"), now), one_hour);
    }

    /// I04: the windows of both questions are widened to buckets; each span counts once.
    #[test]
    fn a_span_that_both_questions_answer_counts_once() {
        let june = span("pod1", "2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z");
        let july = span("pod1", "2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z");
        let hour = span("pod1", "2026-07-01T10:00:00Z", "2026-07-01T11:00:00Z");
        let before = span("pod1", "2026-06-30T23:00:00Z", "2026-07-01T00:00:00Z");
        let all = joined(
            vec![june.clone(), july],
            vec![before, hour.clone()],
            at("2022-01-01T00:00:00Z"),
            at("2026-07-01T00:00:00Z"),
        );
        assert_eq!(all, [june, hour]);
    }
}
