//! One pod's bill beside what the journal knows of it: what is not billed yet, what was expected and
//! did not come, and what nobody can explain. Pure.

use crate::cloud::BilledSpan;
use crate::domain::{Usd, UsdPerHour};
use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use std::time::Duration;

/// Billing is about an hour late (REST v2), and an hour is told when it is over: what is older than
/// this and not on the bill is missing.
const SETTLED_AFTER: TimeDelta = TimeDelta::hours(2);

/// A time for which a pod of ours bills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// What it bills for an hour.
    pub rate: UsdPerHour,
    /// Its beginning.
    pub from: DateTime<Utc>,
    /// Until when it surely was on the bill.
    pub sure_until: DateTime<Utc>,
    /// Until when it may have been.
    pub until: DateTime<Utc>,
}

impl Stretch {
    fn time(&self, until: DateTime<Utc>, from: DateTime<Utc>, to: DateTime<Utc>) -> Usd {
        let time = until.min(to) - self.from.max(from);
        self.rate.cost_of(time.to_std().unwrap_or_default())
    }
}

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Start of the budget's window.
    pub from: DateTime<Utc>,
    /// From here on the bill must be explained: the journal knows nothing of the time before it.
    pub explained_from: DateTime<Utc>,
    /// Now.
    pub to: DateTime<Utc>,
}

impl Window {
    /// The hour up to which the bill must have come.
    pub(super) fn settled(self) -> DateTime<Utc> {
        floor_hour(self.to - SETTLED_AFTER).max(self.from)
    }
}

/// Start of the hour.
pub(super) fn floor_hour(at: DateTime<Utc>) -> DateTime<Utc> {
    at.duration_trunc(TimeDelta::hours(1)).unwrap_or(at)
}

/// What the bill and the journal come to for one pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reckoning {
    /// Not billed yet, by the journal's times: the last hours.
    pub not_yet: Usd,
    /// Of settled hours: what was expected at least and what was billed, when that is too little.
    pub shortfall: Option<(Usd, Usd)>,
    /// What was billed and what explains it at most, when that is too little.
    pub excess: Option<(Usd, Usd)>,
}

/// Compares the billed spans of one pod with its stretches.
pub(super) fn reckon(stretches: &[Stretch], billed: &[&BilledSpan], window: Window) -> Reckoning {
    let Some(first) = stretches.iter().map(|stretch| stretch.from).min() else {
        return Reckoning::default();
    };
    let settled = window.settled();
    // Compute alone is expected by time: what a disk was billed, also one of a stopped pod, fills no hole
    // of it.
    let compute = |span: &BilledSpan| {
        Some(span.total?.saturating_sub(span.disk.unwrap_or(Usd::ZERO)).max(Usd::ZERO))
    };
    let sum = |counts: &dyn Fn(&BilledSpan) -> bool| -> Usd {
        billed.iter().filter(|span| counts(span)).filter_map(|span| compute(span)).sum()
    };
    let rate = stretches.iter().map(|stretch| stretch.rate).max();
    let tolerance = |expected: Usd, time: Duration| {
        let least = rate.map_or(Usd::ZERO, |rate| rate.cost_of(time));
        Usd::from_micros(expected.micros() / 100).max(least)
    };
    let recent = stretches.iter().map(|s| s.time(s.until, settled, window.to)).sum::<Usd>();
    let not_yet = recent.saturating_sub(sum(&|span| span.start >= settled)).max(Usd::ZERO);

    // Billing begins some minutes after a create was asked for; a quarter of an hour is no hole.
    let sure = stretches.iter().map(|s| s.time(s.sure_until, window.from, settled)).sum::<Usd>();
    let came = sum(&|span| span.start < settled && span.end > first);
    let is_short = sure.saturating_sub(came) > tolerance(sure, QUARTER);

    let known = |s: &Stretch| s.time(s.until, DateTime::<Utc>::MIN_UTC, window.to);
    let explained = stretches.iter().map(known).sum::<Usd>();
    let billed = sum(&|span| span.start >= window.explained_from);
    let is_excess = billed.saturating_sub(explained) > tolerance(explained, HOUR);
    Reckoning {
        not_yet,
        shortfall: is_short.then_some((sure, came)),
        excess: is_excess.then_some((billed, explained)),
    }
}

const QUARTER: Duration = Duration::from_secs(900);
const HOUR: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        format!("2026-07-{text}:00Z").parse().unwrap()
    }

    const RATE: i64 = 690_000;

    fn usd(micros: i64) -> Usd {
        Usd::from_micros(micros)
    }

    fn stretch(from: &str, sure_until: &str, until: &str) -> Stretch {
        let rate = UsdPerHour::new(usd(RATE));
        Stretch { rate, from: at(from), sure_until: at(sure_until), until: at(until) }
    }

    fn span(start: &str, micros: i64) -> BilledSpan {
        let (start, total) = (at(start), Some(usd(micros)));
        let end = start + TimeDelta::hours(1);
        BilledSpan { id: "pod1".into(), start, end, total, disk: None }
    }

    fn of(stretches: &[Stretch], billed: &[BilledSpan], from: &str, to: &str) -> Reckoning {
        let explained_from = at(from);
        let window = Window { from: at(from), explained_from, to: at(to) };
        reckon(stretches, &billed.iter().collect::<Vec<_>>(), window)
    }

    /// I02, I04: billed hours are not estimated again, nor is what was before the window.
    #[test]
    fn time_that_is_billed_is_not_estimated_again() {
        let run = [stretch("03T10:00", "03T12:00", "03T12:00")];
        let not_yet =
            |billed: &[BilledSpan], from: &str| of(&run, billed, from, "03T12:00").not_yet;
        assert_eq!(not_yet(&[], "01T00:00"), usd(2 * RATE));
        assert_eq!(not_yet(&[span("03T10:00", RATE)], "01T00:00"), usd(RATE));
        assert_eq!(not_yet(&[], "03T11:00"), usd(RATE));
        // A part of an hour is a part of it, and more than expected is no credit.
        assert_eq!(not_yet(&[span("03T10:00", RATE / 3)], "01T00:00"), usd(2 * RATE - RATE / 3));
        assert_eq!(not_yet(&[span("03T10:00", 9 * RATE)], "01T00:00"), Usd::ZERO);
    }

    /// I02: start, stop, start: the time between is on no bill and in no estimate.
    #[test]
    fn stopped_time_is_not_expected() {
        let runs = [
            stretch("03T10:00", "03T10:30", "03T10:30"),
            stretch("03T11:30", "03T12:00", "03T12:00"),
        ];
        assert_eq!(of(&runs, &[], "01T00:00", "03T12:00").not_yet, usd(RATE));
    }

    /// I04: a hole in the bill is said and is no saving.
    #[test]
    fn settled_time_that_is_not_on_the_bill_is_missing() {
        let run = [stretch("03T05:00", "03T08:00", "03T08:10")];
        let billed = [span("03T05:00", RATE), span("03T07:00", RATE)];
        let reckoning = of(&run, &billed, "01T00:00", "03T12:00");
        assert_eq!(reckoning.shortfall, Some((usd(3 * RATE), usd(2 * RATE))));
        assert_eq!((reckoning.not_yet, reckoning.excess), (Usd::ZERO, None));
        let whole = [billed[0].clone(), span("03T06:00", RATE), billed[1].clone()];
        assert_eq!(of(&run, &whole, "01T00:00", "03T12:00"), Reckoning::default());
        // A quarter of an hour is what a boot may take before it bills.
        let late = [span("03T05:00", RATE * 3 / 4), whole[1].clone(), whole[2].clone()];
        assert_eq!(of(&run, &late, "01T00:00", "03T12:00").shortfall, None);
        let later = [span("03T05:00", RATE * 3 / 4 - 1), whole[1].clone(), whole[2].clone()];
        assert!(of(&run, &later, "01T00:00", "03T12:00").shortfall.is_some());
    }

    /// I03: what disks were billed fills no hole in the bill of compute, and is no part of an estimate.
    #[test]
    fn a_disk_that_was_billed_is_no_compute() {
        let of_disk =
            |start: &str, micros| BilledSpan { disk: Some(usd(micros)), ..span(start, micros) };
        let run = [stretch("03T05:00", "03T08:00", "03T08:00")];
        let billed = [span("03T05:00", RATE), span("03T07:00", RATE), of_disk("03T08:00", RATE)];
        let reckoning = of(&run, &billed, "01T00:00", "03T12:00");
        assert_eq!(reckoning.shortfall, Some((usd(3 * RATE), usd(2 * RATE))));
        let run = [stretch("03T10:00", "03T12:00", "03T12:00")];
        let billed = [span("03T10:00", RATE), of_disk("03T10:00", RATE / 2)];
        assert_eq!(of(&run, &billed, "01T00:00", "03T12:00").not_yet, usd(RATE));
    }

    /// What was billed beyond an hour more than the pod was up is not explained by it.
    #[test]
    fn more_than_an_hour_too_much_is_not_explained() {
        let run = [stretch("03T05:00", "03T06:00", "03T06:00")];
        let billed = |micros| [span("03T05:00", RATE), span("03T06:00", micros)];
        let excess = |micros| of(&run, &billed(micros), "01T00:00", "03T12:00").excess;
        assert_eq!(excess(RATE), None);
        assert_eq!(excess(RATE + 1), Some((usd(2 * RATE + 1), usd(RATE))));
        // Of a long run it is one in a hundred.
        let long = [stretch("01T00:00", "11T10:00", "11T10:00")];
        let all = |micros| [span("01T00:00", 250 * RATE), span("02T00:00", micros)];
        assert_eq!(of(&long, &all(5 * RATE / 2), "01T00:00", "12T12:00").excess, None);
        assert!(of(&long, &all(5 * RATE / 2 + 1), "01T00:00", "12T12:00").excess.is_some());
    }

    /// What the journal cannot know it does not judge.
    #[test]
    fn what_was_billed_before_the_journal_began_needs_no_explanation() {
        let run = [stretch("03T05:00", "03T06:00", "03T06:00")];
        let old = [span("02T05:00", 90 * RATE), span("03T05:00", RATE)];
        let explained_from = at("03T05:00");
        let window = Window { from: at("01T00:00"), explained_from, to: at("03T12:00") };
        let reckoning = reckon(&run, &old.iter().collect::<Vec<_>>(), window);
        assert_eq!(reckoning, Reckoning::default());
    }
}
