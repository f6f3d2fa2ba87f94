//! What the account was billed in the budget's window, and what is running up since: the one sum that
//! spend_report shows and the budget is held against.

use super::Tether;
use super::reckoning::{Reckoning, Stretch, Window, floor_hour, reckon};
use super::unexplained::{self, Known, Unexplained};
use crate::cloud::{BilledSpan, CloudError};
use crate::domain::{BudgetWindow, Pod, Price, Usd, UsdPerHour};
use crate::ledger::Book;
use crate::plan::Spent;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet};

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
    /// Estimate for pods on the bill now, in the hours that the bill does not show yet.
    pub running_usd: Usd,
    /// The same for pods that are off the bill again, by the journal's times.
    pub not_yet_usd: Usd,
    /// Settled time of pods of ours that the bill does not show: pod, expected, billed.
    pub missing: Vec<(String, Usd, Usd)>,
    /// The sum of the rates that are on the bill now, as far as they are known.
    pub usd_per_hour_now: Usd,
    /// Records whose amount could not be read.
    pub unread: usize,
    /// Pods on the bill whose price or start is not known.
    pub unpriced: usize,
    /// Billed for pods and not explained; without a journal nothing is explained or not.
    pub unexplained: Vec<Unexplained>,
    /// From when on the bill is explained.
    pub explained_from: Option<DateTime<Utc>>,
    /// The network volumes' records.
    pub volumes: Vec<BilledSpan>,
}

impl Bill {
    /// Everything together. A hole in the bill is no saving.
    pub(super) fn total(&self) -> Usd {
        self.pod_usd + self.volume_usd + self.running_usd + self.not_yet_usd + self.missing_usd()
    }

    /// What was expected and not billed.
    pub(super) fn missing_usd(&self) -> Usd {
        self.missing.iter().map(|(_, expected, billed)| expected.saturating_sub(*billed)).sum()
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
            "The whole account, not only the vehicles, {window}. Billing lags by about an hour; the time since is estimated for pods on the bill now, and for pods of ours that were stopped, by the journal."
        );
        match self.explained_from {
            Some(since) => covers.push_str(&format!(
                " The bill is explained from {} on; of the time before, the journal knows nothing.",
                since.format("%Y-%m-%d %H:%M UTC")
            )),
            None => covers.push_str(" Without a journal the bill is not explained, and what was stopped within the last hour is missing."),
        }
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

/// From when on the journal can explain the bill: the first whole bucket since it began.
fn explained_from(began: DateTime<Utc>, from: DateTime<Utc>, cut: DateTime<Utc>) -> DateTime<Utc> {
    let hour = floor_hour(began);
    let bucket = if hour >= cut { hour } else { BudgetWindow::Month.end(began).unwrap_or(cut) };
    bucket.max(from)
}

/// The times of one pod: the journal's, and for one on the bill that the journal does not know the
/// provider's. `None` when it is on the bill and its price or start is not known.
fn stretches(runs: &Book, id: &str, pod: Option<&Pod>, now: DateTime<Utc>) -> Option<Vec<Stretch>> {
    let pod = pod.filter(|pod| pod.status.bills_compute());
    let listed = pod.and_then(|pod| pod.price.known());
    let mut stretches = Vec::new();
    let (mut is_open, mut last_off) = (false, None);
    for run in runs.runs().iter().filter(|run| run.pod.0 == id) {
        is_open |= run.off.is_none();
        last_off = run.off.or(last_off);
        let Some(rate) = run.rate.map(UsdPerHour::new).or(listed) else {
            // Of what is off the bill the bill itself will tell.
            if run.off.is_some() {
                continue;
            } else {
                return None;
            };
        };
        let until = run.off.unwrap_or(now);
        let sure_until = if run.off.is_none() && pod.is_some() { now } else { run.seen };
        stretches.push(Stretch { rate, from: run.from, sure_until, until });
    }
    if let Some(pod) = pod.filter(|_| !is_open) {
        let from = pod.started_at.or(pod.created_at)?;
        let from = last_off.map_or(from, |off: DateTime<Utc>| from.max(off));
        stretches.push(Stretch { rate: listed?, from, sure_until: now, until: now });
    }
    Some(stretches)
}

impl Tether {
    /// Adds up the bill for an account that has these pods, beside what the journal knows.
    ///
    /// # Errors
    /// When the bill cannot be read.
    pub(super) async fn bill(&self, pods: &[Pod]) -> Result<Bill, CloudError> {
        // A journal that cannot be read refuses every spend by itself; a report goes on without it.
        let book = self.ledger.as_ref().and_then(|ledger| ledger.book().ok());
        let window = self.config.limits.budget_window;
        let to = self.clock.now();
        let from = window.start(to);
        // Hours also for the end of last month, as long as they are not settled.
        let cut = BudgetWindow::Month.start(to - TimeDelta::hours(3)).max(from);
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
        let began = book.as_ref().and_then(Book::began);
        let explained_from = began.map(|began| explained_from(began.at, from, cut));
        let mut bill = Bill {
            window,
            from,
            to,
            pod_usd: billed.iter().filter_map(|span| span.total).sum(),
            disk_usd: billed.iter().filter_map(|span| span.total.and(span.disk)).sum(),
            volume_usd: volumes.iter().filter_map(|span| span.total).sum(),
            running_usd: Usd::ZERO,
            not_yet_usd: Usd::ZERO,
            missing: Vec::new(),
            usd_per_hour_now: Usd::ZERO,
            unread: billed.iter().chain(&volumes).filter(|span| span.total.is_none()).count(),
            unpriced: 0,
            unexplained: Vec::new(),
            explained_from,
            volumes,
        };
        let pods = self.priced(pods).await;
        let window = Window { from, explained_from: explained_from.unwrap_or(to), to };
        let book = book.unwrap_or_default();
        let reckonings = bill.reckon(&pods, &billed, &book, window);
        if explained_from.is_some() {
            let known = self.known(&book, &pods, window.explained_from);
            bill.unexplained = unexplained::pods(&known, &billed, &reckonings);
        }
        Ok(bill)
    }

    /// What the bill is explained by.
    pub(super) fn known<'a>(
        &'a self,
        book: &'a Book,
        pods: &'a [Pod],
        since: DateTime<Utc>,
    ) -> Known<'a> {
        let of_each = self.config.vehicles.iter();
        let names = of_each.map(|vehicle| {
            let name = vehicle.name.0.as_str();
            (name, vehicle.pod_name.as_str(), vehicle.network_volume_name.as_str())
        });
        let tolerated = &self.config.tolerated_pods;
        Known { book, pods, declared: names.collect(), tolerated, since }
    }

    /// The pods, those on the bill with the catalog's price where they name none.
    async fn priced(&self, pods: &[Pod]) -> Vec<Pod> {
        let mut priced = pods.to_vec();
        for pod in priced.iter_mut().filter(|pod| pod.status.bills_compute()) {
            if pod.price == Price::Unknown {
                pod.price = self.catalog_price(pod).await;
            }
        }
        priced
    }
}

impl Bill {
    /// Compares every pod's bill with its times.
    fn reckon(
        &mut self,
        pods: &[Pod],
        billed: &[BilledSpan],
        book: &Book,
        window: Window,
    ) -> BTreeMap<String, Reckoning> {
        let on_the_bill = pods.iter().filter(|pod| pod.status.bills_compute());
        let ids: BTreeSet<&str> = on_the_bill
            .clone()
            .map(|pod| pod.id.0.as_str())
            .chain(book.runs().iter().map(|run| run.pod.0.as_str()))
            .collect();
        self.usd_per_hour_now =
            on_the_bill.filter_map(|pod| pod.price.known().map(UsdPerHour::per_hour)).sum();
        let mut reckonings = BTreeMap::new();
        for id in ids {
            let pod = pods.iter().find(|pod| pod.id.0 == id);
            let Some(stretches) = stretches(book, id, pod, self.to) else {
                self.unpriced += 1;
                continue;
            };
            let own: Vec<_> = billed.iter().filter(|span| span.id == id).collect();
            let reckoning = reckon(&stretches, &own, window);
            match pod.is_some_and(|pod| pod.status.bills_compute()) {
                true => self.running_usd = self.running_usd + reckoning.not_yet,
                false => self.not_yet_usd = self.not_yet_usd + reckoning.not_yet,
            }
            // A record whose amount cannot be read is no hole; the sum is unknown for it anyway.
            let is_read = own.iter().all(|span| span.total.is_some());
            if let Some((expected, came)) = reckoning.shortfall.filter(|_| is_read) {
                self.missing.push((id.to_owned(), expected, came));
            }
            reckonings.insert(id.to_owned(), reckoning);
        }
        reckonings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).unwrap().to_utc()
    }

    fn span(id: &str, start: &str, end: &str) -> BilledSpan {
        let total = Some(Usd::from_micros(690_000));
        BilledSpan { id: id.into(), start: at(start), end: at(end), total, disk: None }
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
