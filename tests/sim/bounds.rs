//! What podtether says of the longest time for which a pod runs when nobody looks after it, held
//! against how long it truly did.

use super::pods::SimPod;
use chrono::{DateTime, TimeDelta, Utc};
use podtether::domain::{FuseName, FuseReport, FuseState, PodId, UnattendedBill};

/// One answer that gave a bound.
#[derive(Clone, Debug)]
struct Said {
    pod: PodId,
    run: usize,
    at: DateTime<Utc>,
    bound: TimeDelta,
    fuses: Vec<FuseName>,
    laptop_died: bool,
}

/// What a campaign says at its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Bounds that nobody's later deed made void.
    pub bounds: u64,
    /// Those that were held to: a fuse of theirs was there to act.
    pub held: u64,
    /// The longest time from a bound that was held to until the pod was off, in seconds.
    pub longest_sec: i64,
    /// The largest part of its bound that a pod ran, in thousandths, where a fuse was there to act and
    /// nothing was wrong with the provider.
    pub per_mille: i64,
    /// The longest time past a printed bound, whatever was wrong, in seconds.
    pub past_sec: i64,
    /// How often pods that were left alone were held against what the journal had committed.
    pub committed: u64,
    /// How many watches came to an end, by their exit code.
    pub watches: [u64; 6],
    /// How often they told people.
    pub pages: u64,
}

impl Figures {
    /// The worst of both.
    pub fn and(self, other: Self) -> Self {
        Self {
            bounds: self.bounds + other.bounds,
            held: self.held + other.held,
            longest_sec: self.longest_sec.max(other.longest_sec),
            per_mille: self.per_mille.max(other.per_mille),
            past_sec: self.past_sec.max(other.past_sec),
            committed: self.committed + other.committed,
            watches: std::array::from_fn(|code| self.watches[code] + other.watches[code]),
            pages: self.pages + other.pages,
        }
    }
}

/// The bounds that stand.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    said: Vec<Said>,
    given_up: Vec<String>,
    /// Whether pods that were left alone were held against what the journal had committed.
    pub was_committed: bool,
    /// How many watches came to an end, by their exit code.
    pub watches: [u64; 6],
    /// How often they told people.
    pub pages: u64,
    /// When something kept fuses from acting, from when to when: faults, sleep.
    held_up: Vec<(DateTime<Utc>, DateTime<Utc>)>,
}

/// What a fuse may need beyond what was wrong: its pauses between tries, and one cycle of them.
const AGAIN: TimeDelta = TimeDelta::seconds(900);
/// How the clocks of laptop and provider may round.
const ROUNDING: TimeDelta = TimeDelta::seconds(5);

impl Bounds {
    /// Somebody is about to change something, or has: what was said of this pod before is void.
    pub fn void(&mut self, pods: &[SimPod], name: &str) {
        let is_of = |id: &PodId| pods.iter().any(|pod| pod.id == *id && pod.name == name);
        self.said.retain(|said| !is_of(&said.pod));
        self.given_up.retain(|given_up| given_up != name);
    }

    /// An answer gave a bound, or said that there is none.
    pub fn said(
        &mut self,
        (pod, run): (PodId, usize),
        at: DateTime<Utc>,
        bill: &UnattendedBill,
        fuses: &[FuseReport],
    ) {
        self.said.retain(|said| said.pod != pod);
        let Some(seconds) = bill.seconds.and_then(|sec| i64::try_from(sec).ok()) else { return };
        let armed = fuses.iter().filter(|fuse| fuse.state == FuseState::Armed);
        let fuses = armed.map(|fuse| fuse.name).collect();
        let bound = TimeDelta::seconds(seconds);
        self.said.push(Said { pod, run, at, bound, fuses, laptop_died: false });
    }

    /// The laptop is gone, and with it its fuse.
    pub fn laptop_died(&mut self) {
        self.said.iter_mut().for_each(|said| said.laptop_died = true);
    }

    /// A fuse said that the pod may still bill.
    pub fn gave_up(&mut self, name: &str) {
        self.given_up.push(name.to_owned());
    }

    /// Something keeps fuses from acting.
    pub fn held_up(&mut self, from: DateTime<Utc>, until: DateTime<Utc>) {
        self.held_up.push((from, until));
    }

    /// By when what was to happen by then has happened, when something was wrong around that time and it
    /// needs `again` once that is over.
    pub fn excused(&self, mut by: DateTime<Utc>, again: TimeDelta) -> DateTime<Utc> {
        loop {
            let met = |(from, until): &&(DateTime<Utc>, DateTime<Utc>)| {
                *from - again <= by && by < *until + again
            };
            let Some((_, until)) = self.held_up.iter().find(met) else { return by };
            by = *until + again;
        }
    }

    /// Whether every pod of ours that was on the bill then has a bound that a fuse can keep.
    pub fn are_told_of_all(&self, pods: &[SimPod], at: DateTime<Utc>) -> bool {
        let is_told = |pod: &SimPod| {
            let keeps = |said: &Said| said.pod == pod.id && !said.laptop_died;
            !self.given_up.contains(&pod.name) && self.said.iter().any(keeps)
        };
        pods.iter().filter(|pod| pod.is_ours && pod.bills_at(at)).all(is_told)
    }

    /// What became of every bound; the first one that was broken, in words.
    pub fn judged(&self, pods: &[SimPod], now: DateTime<Utc>) -> (Figures, Option<String>) {
        let (mut figures, mut broken) = (Figures::default(), None);
        figures.committed = u64::from(self.was_committed);
        (figures.watches, figures.pages) = (self.watches, self.pages);
        for said in &self.said {
            let Some(pod) = pods.iter().find(|pod| pod.id == said.pod) else { continue };
            let Some(run) = pod.runs.get(said.run) else { continue };
            let by = said.at + said.bound;
            let end = run.ends.unwrap_or(now);
            if end <= said.at {
                continue;
            }
            figures.bounds += 1;
            figures.past_sec = figures.past_sec.max((end - by).num_seconds());
            let acts = |fuse: &&FuseName| match fuse {
                FuseName::Deadman => !said.laptop_died && !self.given_up.contains(&pod.name),
                FuseName::Watchdog | FuseName::AutoStop => true,
                // Whoever keeps watch may be killed; what it says then is checked by itself.
                FuseName::Supervise => false,
            };
            let Some(fuse) = said.fuses.iter().find(acts) else { continue };
            figures.held += 1;
            figures.longest_sec = figures.longest_sec.max((end - said.at).num_seconds());
            let latest = self.excused(by, AGAIN) + ROUNDING;
            if latest == by + ROUNDING {
                let part = (end - said.at).num_milliseconds() / said.bound.num_seconds().max(1);
                figures.per_mille = figures.per_mille.max(part);
            }
            if end > latest && now > latest {
                broken.get_or_insert(format!(
                    "{} was said at {} to be off within {} s by itself ({:?}), and was not at {end} though {fuse:?} was there",
                    pod.id, said.at, said.bound.num_seconds(), said.fuses
                ));
            }
        }
        (figures, broken)
    }
}
