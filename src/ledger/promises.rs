//! Reservations: how long launched jobs may keep their pods on the bill. Pure.

use crate::domain::{PodId, Usd};
use chrono::{DateTime, TimeDelta, Utc};

/// What one launch has reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The intent that made it.
    pub(super) id: u64,
    /// Which vehicle's.
    pub vehicle: String,
    /// The pod.
    pub pod: PodId,
    /// The job.
    pub job: String,
    /// What the pod bills for an hour.
    pub rate: Usd,
    /// When it was made.
    pub at: DateTime<Utc>,
    /// When the pod is off the bill at the latest.
    pub until: DateTime<Utc>,
    /// How long the pod may bill after the job.
    pub tail: TimeDelta,
    /// Whether the job was seen to have ended: then only the time after it is reserved.
    pub has_ended: bool,
}

/// Every reservation that was not given back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Promises(pub(super) Vec<Promise>);

impl Promises {
    /// The job starts when its launch is through, so its time counts from there.
    pub(super) fn launched(&mut self, id: u64, at: DateTime<Utc>) {
        for promise in self.0.iter_mut().filter(|promise| promise.id == id && !promise.has_ended) {
            let late = (at - promise.at).max(TimeDelta::zero());
            promise.until = later(promise.until, late);
        }
    }

    pub(super) fn job_ended(&mut self, pod: &PodId, job: &str, at: DateTime<Utc>) {
        for promise in self.0.iter_mut().filter(|p| p.pod == *pod && p.job == job) {
            promise.until = promise.until.min(later(at, promise.tail));
            promise.has_ended = true;
        }
    }

    pub(super) fn launch_failed(&mut self, id: u64) {
        self.0.retain(|promise| promise.id != id);
    }

    pub(super) fn pod_is_off(&mut self, pod: &PodId) {
        self.0.retain(|promise| promise.pod != *pod);
    }
}

fn later(at: DateTime<Utc>, by: TimeDelta) -> DateTime<Utc> {
    at.checked_add_signed(by).unwrap_or(DateTime::<Utc>::MAX_UTC)
}
