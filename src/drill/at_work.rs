//! What a drill knows while it is at work.

use super::net::Net;
use super::pace::Pace;
use crate::domain::{
    Circumstances, DrillFuse, FuseReceipt, JobId, PodId, Usd, UsdPerHour, Vehicle,
};
use crate::ops::Tether;
use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;

/// A drill at work.
pub(super) struct Drill<'a> {
    pub tether: &'a Tether,
    pub vehicle: &'a Vehicle,
    pub pace: Pace,
    pub net: Net<'a>,
    pub rate: UsdPerHour,
    pub with: Circumstances,
    /// The pod, once it is known.
    pub pod: Option<PodId>,
    /// What was found so far.
    pub found: Vec<FuseReceipt>,
    /// A fuse on the pod that struck, whose traces the next boot reads.
    pub unread: Option<Unread>,
    /// How many notices of the watchdog lay on the volume when this boot began.
    pub notices: u64,
    /// Since when this boot is on the bill.
    pub on_since: Option<DateTime<Utc>>,
    pub spent: Usd,
    /// Somebody else has started the pod: it is not the drill's to stop.
    pub is_foreign: bool,
}

/// A strike that is not accounted for yet.
pub(super) struct Unread {
    pub strike: Strike,
    pub notices: u64,
    pub usd: Usd,
}

/// A fuse that was armed, and when the pod was read as off.
pub(super) struct Strike {
    pub fuse: DrillFuse,
    pub armed_at: DateTime<Utc>,
    pub due_at: DateTime<Utc>,
    pub off_at: DateTime<Utc>,
    pub job: Option<JobId>,
}

/// As chrono counts it; the longest there is for what does not fit.
pub(super) fn delta(time: Duration) -> TimeDelta {
    TimeDelta::from_std(time).unwrap_or(TimeDelta::MAX)
}
