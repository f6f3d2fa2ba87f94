//! What the view of a watch knows: gathered note by note, without a terminal and without a clock.

use crate::ops::{PodSight, WatchNote, WatchSight, WatchStatus};
use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;

/// More points than a curve is wide are halved: a run of a million iterations costs no memory.
const MOST_POINTS: usize = 4_096;

/// What is fixed over a watch.
#[derive(Clone, Debug)]
pub struct Fixed {
    /// The vehicle.
    pub vehicle: String,
    /// Whether the pod is on the local cloud.
    pub is_local: bool,
    /// Between two looks.
    pub interval: Duration,
    /// How long a log may be silent.
    pub stall: Duration,
}

/// Everything that is shown.
#[derive(Clone, Debug)]
pub struct Model {
    /// What is fixed.
    pub fixed: Fixed,
    /// The last status.
    pub status: Option<WatchStatus>,
    /// The last look.
    pub sight: Option<WatchSight>,
    /// The reward over the iterations, in order.
    pub curve: Vec<(u64, f64)>,
    /// What was said last, and when.
    pub said: Option<(DateTime<Utc>, String)>,
    /// The words of the page, once there is one.
    pub page: Option<String>,
    /// Where the run was first seen, to reckon how long it will take.
    first: Option<(DateTime<Utc>, u64)>,
}

impl Model {
    /// A view that knows nothing yet.
    #[must_use]
    pub const fn new(fixed: Fixed) -> Self {
        let (status, sight, said, page, first) = (None, None, None, None, None);
        Self { fixed, status, sight, curve: Vec::new(), said, page, first }
    }

    /// Takes a note of the watch.
    pub fn take(&mut self, note: WatchNote, now: DateTime<Utc>) {
        match note {
            WatchNote::Said(text) => self.said = Some((now, text)),
            WatchNote::Saw(sight) => {
                for (iteration, reward) in &sight.points {
                    self.point(*iteration, *reward);
                }
                self.sight = Some(*sight);
            }
            WatchNote::Round(status) => {
                if let Some(at) = status.iteration
                    && self.first.is_none_or(|(_, first)| at < first)
                {
                    self.first = Some((now, at));
                }
                self.status = Some(*status);
            }
            WatchNote::Page(verdict) => self.page = Some(verdict.to_string()),
            WatchNote::Ended => self.page = Some("done".to_owned()),
        }
    }

    /// A run that was resumed repeats iterations: what it replaces is forgotten.
    fn point(&mut self, iteration: u64, reward: f64) {
        if !reward.is_finite() {
            return;
        }
        let keep = self.curve.partition_point(|(at, _)| *at < iteration);
        self.curve.truncate(keep);
        self.curve.push((iteration, reward));
        if self.curve.len() > MOST_POINTS {
            let mut place = 0_usize;
            let last = self.curve.len() - 1;
            self.curve.retain(|_| {
                place += 1;
                (place - 1).is_multiple_of(2) || place - 1 == last
            });
        }
    }

    /// The pod, as it was last seen.
    #[must_use]
    pub fn pod(&self) -> Option<&PodSight> {
        self.sight.as_ref().map(|sight| &sight.pod)
    }

    /// What is left of the run: as its log says, else reckoned from how far it came while it was watched,
    /// and then with `true`.
    #[must_use]
    pub fn left(&self, now: DateTime<Utc>) -> Option<(Duration, bool)> {
        let sight = self.sight.as_ref()?;
        let since = (now - sight.at).to_std().unwrap_or_default();
        if let Some(eta) = sight.eta {
            // What the log said is as old as the log is silent.
            let age = since + sight.log_age.unwrap_or_default();
            return Some((eta.saturating_sub(age), false));
        }
        let status = self.status.as_ref()?;
        let (at, total) = (status.iteration?, status.total_iterations?);
        let (from, first) = self.first?;
        let done = u32::try_from(at.checked_sub(first).filter(|done| *done > 0)?).ok()?;
        let to_come = u32::try_from(total.saturating_sub(at.saturating_add(1))).ok()?;
        let took = (status.updated_at - from).to_std().ok()?;
        let left = took.checked_mul(to_come)? / done;
        Some((left.saturating_sub(since), true))
    }

    /// How long the log has been silent, by the pod's clock.
    #[must_use]
    pub fn silent(&self, now: DateTime<Utc>) -> Option<Duration> {
        let sight = self.sight.as_ref()?;
        Some(sight.log_age? + (now - sight.at).to_std().unwrap_or_default())
    }

    /// When the next look is due.
    #[must_use]
    pub fn next_look(&self, now: DateTime<Utc>) -> Option<Duration> {
        let last = self.status.as_ref()?.updated_at;
        let due = last + TimeDelta::from_std(self.fixed.interval).ok()?;
        Some((due - now).to_std().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Verdict;

    fn model() -> Model {
        let (interval, stall) = (Duration::from_secs(60), Duration::from_secs(600));
        Model::new(Fixed { vehicle: "rover".to_owned(), is_local: true, interval, stall })
    }

    #[test]
    fn a_run_that_was_resumed_replaces_what_it_repeats() {
        let mut model = model();
        for (at, reward) in [(1, 1.0), (2, 2.0), (3, f64::NAN), (4, 4.0), (2, 20.0), (3, 30.0)] {
            model.point(at, reward);
        }
        assert_eq!(model.curve, [(1, 1.0), (2, 20.0), (3, 30.0)]);
    }

    #[test]
    fn a_long_run_keeps_its_first_and_its_newest_point_and_costs_no_memory() {
        let mut model = model();
        for at in 0..100_000_u32 {
            model.point(u64::from(at), f64::from(at));
            assert_eq!(model.curve.last(), Some(&(u64::from(at), f64::from(at))));
        }
        assert!(model.curve.len() <= MOST_POINTS && model.curve.len() > MOST_POINTS / 4);
        assert_eq!(model.curve[0], (0, 0.0));
        assert!(model.curve.is_sorted_by(|one, other| one.0 < other.0));
    }

    #[test]
    fn a_page_is_kept_in_its_words() {
        let mut model = model();
        model.take(WatchNote::Page(Verdict::Lost { why: "gone".to_owned() }), DateTime::UNIX_EPOCH);
        assert_eq!(model.page.as_deref(), Some("lost contact: gone"));
        assert_eq!(model.left(DateTime::UNIX_EPOCH), None);
    }
}
