//! When pods of ours were on the bill, as far as it was seen. Pure.

use crate::domain::{PodId, Usd};
use chrono::{DateTime, Utc};

/// One stretch of time for which a pod was on the bill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which vehicle's.
    pub vehicle: String,
    /// The pod.
    pub pod: PodId,
    /// What it billed for an hour, when that was known.
    pub rate: Option<Usd>,
    /// When it was asked to start, or was first seen on the bill.
    pub from: DateTime<Utc>,
    /// The last moment at which it was surely on the bill.
    pub seen: DateTime<Utc>,
    /// When it was first known to be off the bill; `None` while it may be on it.
    pub off: Option<DateTime<Utc>>,
    /// Whether podtether started it.
    pub is_ours: bool,
    /// Whether a list has shown it on the bill since.
    pub was_listed: bool,
}

/// Every run, in the order in which they began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Runs(pub(super) Vec<Run>);

impl Runs {
    fn open_mut(&mut self, pod: &PodId) -> Option<&mut Run> {
        self.0.iter_mut().rev().find(|run| run.pod == *pod && run.off.is_none())
    }

    /// podtether started it. A run that was never seen to end is over by then.
    pub(super) fn start(
        &mut self,
        vehicle: &str,
        pod: &PodId,
        rate: Option<Usd>,
        from: DateTime<Utc>,
    ) {
        self.end(pod, None, from);
        self.0.push(Run {
            vehicle: vehicle.to_owned(),
            pod: pod.clone(),
            rate,
            from,
            seen: from,
            off: None,
            is_ours: true,
            was_listed: false,
        });
    }

    /// It is off the bill. `sure` is the last moment at which it surely was on it.
    pub(super) fn end(&mut self, pod: &PodId, sure: Option<DateTime<Utc>>, off: DateTime<Utc>) {
        if let Some(run) = self.open_mut(pod) {
            run.seen = sure.map_or(run.seen, |sure| run.seen.max(sure)).min(off);
            run.off = Some(off);
        }
    }

    /// A list shows it on the bill. A container's start is believed within what is known: clocks
    /// differ, and a container that starts anew in a loop never left the bill.
    pub(super) fn listed(
        &mut self,
        vehicle: &str,
        pod: &PodId,
        rate: Option<Usd>,
        started_at: Option<DateTime<Utc>>,
        at: DateTime<Utc>,
    ) {
        if let Some(run) = self.open_mut(pod) {
            run.seen = run.seen.max(at);
            run.rate = rate.or(run.rate);
            run.was_listed = true;
            return;
        }
        let last_off = self.0.iter().rev().find(|run| run.pod == *pod).and_then(|run| run.off);
        let from = started_at.filter(|from| *from <= at).unwrap_or(at);
        let from = last_off.map_or(from, |off| from.max(off));
        self.0.push(Run {
            vehicle: vehicle.to_owned(),
            pod: pod.clone(),
            rate,
            from,
            seen: at.max(from),
            off: None,
            is_ours: false,
            was_listed: true,
        });
    }
}

/// Whether a word of the journal says that a pod is off the bill: the provider's, alone or at the
/// end of what was observed, or podtether's own for one that went from the lists.
pub(super) fn is_off(observed: &str) -> bool {
    let last = observed.rsplit(' ').next().unwrap_or_default();
    matches!(last, "EXITED" | "TERMINATED" | "gone")
}
