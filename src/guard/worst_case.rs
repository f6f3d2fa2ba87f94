//! What a plan costs at most, line by line, in whole micro-dollars that never wrap to small.
//!
//! The model, for a plan that puts a price on the bill or keeps it there:
//! - *A create or a start:* the boot up to `boot_max_sec`, then a pod that nobody watches.
//! - *A launch:* the job up to its ceiling and the kill grace, then what comes after it:
//!   supervise looks on for its backstop, captures and stops, each for as long as it may take; the
//!   pod's own auto-stop is counted until its last try; a job that is just left ends on a pod that
//!   nobody watches.
//! - *A campaign:* its links one after the other, then one end: whichever link it is that fails.
//! - *A pod that nobody watches* bills until the slowest fuse that was proven. Where none was, the
//!   true worst case has no end. A sum needs one, so it is counted for an allowance,
//!   `fuse.auto_arm_hours`: how long the config trusts a pod to itself. With `off` it is the longest
//!   that could be set, so that switching a fuse off never makes a plan look cheaper. The line says
//!   that the bill is open-ended.
//! - A proven fuse that is slower than supervise or auto-stop replaces them: they may fail too.
//! - *Storage:* every network volume, until the end of the budget's window; in a window without an
//!   end for the length of the plan, or of a reservation that is longer.

use crate::domain::{Ceiling, JobEnd, Price, Usd, UsdPerHour, Volume};
use crate::plan::{Change, Draft, Facts, Fuse, Intent, Step};
use std::fmt;
use std::time::Duration;

/// What a line of a worst case is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A pod on its way.
    Boot,
    /// The job and what is needed to end it.
    Job,
    /// A pod after its job, or before any.
    After,
    /// Network volumes.
    Storage,
}

/// One line of a worst case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it is for.
    pub part: Part,
    /// The same in words.
    pub label: String,
    /// How long it bills.
    pub time: Duration,
    /// What that costs.
    pub usd: Usd,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${} {} ({} s)", self.usd.to_decimal(), self.label, self.time.as_secs())
    }
}

/// The worst case of one plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorstCase {
    /// Its lines, in the order in which they would come.
    pub lines: Vec<Line>,
    /// Until when, from now, what stops the pod may wait though the job is over.
    not_before: Duration,
}

impl WorstCase {
    /// Everything together.
    #[must_use]
    pub fn total(&self) -> Usd {
        self.lines.iter().map(|line| line.usd).sum()
    }

    /// Its lines as texts, each with its amount and its seconds, and the sum; nothing when it has none.
    #[must_use]
    pub fn told(&self) -> Vec<String> {
        let sum = format!("= ${}", self.total().to_decimal());
        let sum = (!self.lines.is_empty()).then_some(sum);
        self.lines.iter().map(Line::to_string).chain(sum).collect()
    }

    /// What counts against `limits.max_usd_per_job`. Storage is no job's. Of a create or start only
    /// the boot counts: one that costs more than a job may leads to no job at all.
    #[must_use]
    pub fn of_the_job(&self) -> Self {
        let is_start = self.lines.iter().any(|line| line.part == Part::Boot);
        let counts = |part| match part {
            Part::Boot | Part::Job => true,
            Part::After => !is_start,
            Part::Storage => false,
        };
        let lines = self.lines.iter().filter(|line| counts(line.part)).cloned().collect();
        Self { lines, ..*self }
    }

    /// How long the pod may bill, from the first step on.
    #[must_use]
    pub fn pod_time(&self) -> Duration {
        self.time_of(|part| part != Part::Storage)
    }

    /// How much of that comes after the job, whenever it ends: one that ends early is followed by the
    /// whole time until a deadline.
    #[must_use]
    pub fn tail(&self) -> Duration {
        self.time_of(|part| part == Part::After).max(self.not_before)
    }

    fn time_of(&self, counts: impl Fn(Part) -> bool) -> Duration {
        let lines = self.lines.iter().filter(|line| counts(line.part));
        lines.fold(Duration::ZERO, |sum, line| sum.saturating_add(line.time))
    }

    /// The worst case of a draft: no lines when it spends nothing, `None` when its price is unknown.
    #[must_use]
    pub fn of(draft: &Draft, facts: &Facts) -> Option<Self> {
        let Some(price) = draft.adds else { return Some(Self::default()) };
        let Price::Known(rate) = price else { return None };
        let mut lines = Lines { rate, lines: Vec::new() };
        match &draft.intent {
            Intent::Launch { ceiling, end, .. } => lines.launch(*ceiling, *end, &facts.spend.fuse),
            Intent::Campaign { links, end, .. } => {
                lines.add(Part::Job, "all links, each for as long as it may take", *links);
                lines.then(*links, *end, &facts.spend.fuse);
            }
            _ => {
                lines.add(Part::Boot, "boot, up to boot_max_sec", draft.vehicle.boot_max);
                lines.unwatched(&facts.spend.fuse, Duration::ZERO);
            }
        }
        lines.storage(draft, facts);
        let not_before = match facts.spend.fuse {
            Fuse::Proven { not_before, .. } => not_before,
            Fuse::Unproven { .. } => Duration::ZERO,
        };
        Some(Self { lines: lines.lines, not_before })
    }
}

struct Lines {
    rate: UsdPerHour,
    lines: Vec<Line>,
}

impl Lines {
    fn add(&mut self, part: Part, label: impl Into<String>, time: Duration) {
        let usd = self.rate.cost_of(time);
        self.lines.push(Line { part, label: label.into(), time, usd });
    }

    fn launch(&mut self, ceiling: Ceiling, end: JobEnd, fuse: &Fuse) {
        self.add(Part::Job, "job, up to its ceiling", ceiling.duration());
        let grace = Duration::from_secs(u64::from(Ceiling::KILL_GRACE_SEC));
        self.add(Part::Job, "kill grace", grace);
        self.then(ceiling.duration().saturating_add(grace), end, fuse);
    }

    /// What comes after a job that was counted for `job`.
    fn then(&mut self, job: Duration, end: JobEnd, fuse: &Fuse) {
        match end {
            JobEnd::Left => self.unwatched(fuse, Duration::ZERO),
            JobEnd::AutoStop => {
                let label = match fuse {
                    Fuse::Proven { .. } => "the pod's own auto-stop, up to its last try",
                    Fuse::Unproven { .. } => {
                        "the pod's own auto-stop, up to its last try (no proven fuse comes after it)"
                    }
                };
                self.add(Part::After, label, JobEnd::AUTO_STOP_MAX);
                self.slower_fuse(fuse, JobEnd::AUTO_STOP_MAX);
            }
            JobEnd::Supervised { max_wait, backstop, capture, stop } => {
                let backstop = max_wait.map_or(backstop, |wait| wait.saturating_sub(job));
                self.add(Part::After, "supervise looks on", backstop);
                self.add(Part::After, "capture", capture);
                self.add(Part::After, "stop, up to its last try", stop);
                let own = backstop.saturating_add(capture).saturating_add(stop);
                self.slower_fuse(fuse, own);
            }
        }
    }

    fn unwatched(&mut self, fuse: &Fuse, counted: Duration) {
        match fuse {
            Fuse::Proven { .. } => self.slower_fuse(fuse, counted),
            Fuse::Unproven { allowance } => {
                let label = "unwatched: no fuse is proven, so the bill is open-ended; counted for fuse.auto_arm_hours";
                self.add(Part::After, label, *allowance);
            }
        }
    }

    /// What a proven fuse adds to an end that was counted for `counted` already.
    fn slower_fuse(&mut self, fuse: &Fuse, counted: Duration) {
        let Fuse::Proven { what, within, not_before } = fuse else { return };
        let sum = self.lines.iter().fold(Duration::ZERO, |sum, l| sum.saturating_add(l.time));
        let end_of_job = sum.saturating_sub(counted);
        let within = (*within).max(not_before.saturating_sub(end_of_job));
        if within > counted {
            let label = format!("until the slowest proven fuse, {what}");
            self.add(Part::After, label, within.saturating_sub(counted));
        }
    }

    fn storage(&mut self, draft: &Draft, facts: &Facts) {
        let length = self.lines.iter().fold(Duration::ZERO, |sum, l| sum.saturating_add(l.time));
        let reserved = facts.spend.committed.iter().map(|line| line.until).max();
        let length = length.max(reserved.unwrap_or_default());
        let (time, until) = match facts.spend.window_left {
            Some(left) => (left, "until the end of the budget's window"),
            None => (length, "for as long"),
        };
        let existing = facts.volumes.iter().map(|volume| (&volume.name, volume.size_gb));
        let created = draft.steps.iter().filter_map(|step| match step {
            Step::Cloud(Change::CreateVolume(volume)) => Some((&volume.name, volume.size_gb)),
            _ => None,
        });
        for (name, size_gb) in existing.chain(created) {
            let label = format!("network volume {name:?}, {size_gb} GB, {until}");
            let usd = Volume::rate(size_gb).cost_of(time);
            self.lines.push(Line { part: Part::Storage, label, time, usd });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ensure_draft, facts, launch_of, spend, with_pod};
    use super::*;
    use crate::plan::Spend;

    const HOUR: Duration = Duration::from_secs(3600);

    fn lines(draft: &Draft, facts: &Facts) -> Vec<(Part, u64, i64)> {
        let worst = WorstCase::of(draft, facts).unwrap();
        worst.lines.iter().map(|l| (l.part, l.time.as_secs(), l.usd.micros())).collect()
    }

    fn fused(fuse: Fuse) -> Facts {
        Facts { volumes: vec![], spend: Spend { fuse, ..spend() }, ..with_pod(|_| {}) }
    }

    fn proven(within: Duration) -> Facts {
        let what = "the laptop's fuse".into();
        fused(Fuse::Proven { what, within, not_before: Duration::ZERO })
    }

    #[test]
    fn a_create_counts_its_boot_the_hours_without_a_fuse_and_its_volume() {
        let none = Facts { volumes: vec![], ..facts() };
        let draft = ensure_draft(&none);
        let pod = [(Part::Boot, 900, 172_500), (Part::After, 10_800, 2_070_000)];
        let storage = (Part::Storage, 11_700, 18_961);
        assert_eq!(lines(&draft, &none), [pod[0], pod[1], storage]);
        // In a window that ends, storage is counted until then, for every volume of the account.
        let spend = Spend { window_left: Some(24 * HOUR), ..spend() };
        let two = Facts { volumes: facts().volumes, spend, ..none };
        let day = (Part::Storage, 86_400, 140_016);
        assert_eq!(lines(&draft, &two), [pod[0], pod[1], day, day]);
    }

    #[test]
    fn what_spends_nothing_has_no_lines_and_an_unknown_price_no_worst_case() {
        let running = with_pod(|_| {});
        assert_eq!(lines(&ensure_draft(&running), &running), []);
        let unpriced = Draft { adds: Some(Price::Unknown), ..launch_of(false, 1, JobEnd::Left) };
        assert_eq!(WorstCase::of(&unpriced, &running), None);
    }

    /// A fuse that was not proven ends no bill, so the time after the job is counted and named.
    #[test]
    fn a_job_that_is_left_is_counted_until_the_fuse_or_its_allowance() {
        let draft = launch_of(false, 3600, JobEnd::Left);
        let job = [(Part::Job, 3600, 690_000), (Part::Job, 60, 11_500)];
        let unproven = fused(Fuse::Unproven { allowance: 2 * HOUR });
        assert_eq!(lines(&draft, &unproven), [job[0], job[1], (Part::After, 7200, 1_380_000)]);
        let said = WorstCase::of(&draft, &unproven).unwrap().lines.remove(2).label;
        assert!(said.contains("open-ended"), "{said}");
        assert_eq!(lines(&draft, &proven(HOUR)), [job[0], job[1], (Part::After, 3600, 690_000)]);
    }

    /// A deadline counts from now: it adds to a job that is over before it, and to no other.
    #[test]
    fn a_fuse_that_waits_for_a_deadline_is_counted_until_it_and_not_beyond() {
        let after = |ceiling, not_before| {
            let fuse = Fuse::Proven { what: "watchdog".into(), within: HOUR, not_before };
            lines(&launch_of(false, ceiling, JobEnd::Left), &fused(fuse))[2..]
                .iter()
                .map(|line| line.1)
                .collect::<Vec<_>>()
        };
        assert_eq!(after(3600, 3 * HOUR), [3 * 3600 - 3660]);
        assert_eq!(after(2 * 3600, 3 * HOUR), [3600]);
        assert_eq!(after(3600, Duration::ZERO), [3600]);
        // A job that ends at once is followed by all of it.
        let fuse = Fuse::Proven { what: "watchdog".into(), within: HOUR, not_before: 3 * HOUR };
        let worst = WorstCase::of(&launch_of(false, 7200, JobEnd::Left), &fused(fuse)).unwrap();
        assert_eq!(worst.tail(), 3 * HOUR);
    }

    /// supervise and auto-stop may fail too: a slower fuse that was proven replaces them.
    #[test]
    fn a_jobs_own_end_is_counted_whole_and_a_slower_fuse_on_top() {
        let sec = Duration::from_secs;
        let supervised = |max_wait| JobEnd::Supervised {
            max_wait,
            backstop: sec(300),
            capture: HOUR,
            stop: sec(750),
        };
        let seconds = |end, facts: &Facts| -> Vec<u64> {
            let all = lines(&launch_of(false, 3600, end), facts);
            all.into_iter().filter(|line| line.0 == Part::After).map(|line| line.1).collect()
        };
        let unproven = fused(Fuse::Unproven { allowance: HOUR });
        assert_eq!(seconds(supervised(None), &unproven), [300, 3600, 750]);
        assert_eq!(seconds(supervised(Some(sec(4000))), &unproven), [340, 3600, 750]);
        assert_eq!(seconds(supervised(Some(sec(60))), &unproven), [0, 3600, 750]);
        assert_eq!(seconds(supervised(None), &proven(sec(4651))), [300, 3600, 750, 1]);
        assert_eq!(seconds(JobEnd::AutoStop, &unproven), [3800]);
        assert_eq!(seconds(JobEnd::AutoStop, &proven(HOUR)), [3800]);
        assert_eq!(seconds(JobEnd::AutoStop, &proven(2 * HOUR)), [3800, 3400]);
    }
}
