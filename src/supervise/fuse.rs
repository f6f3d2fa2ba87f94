//! The laptop's fuse of a supervised run: armed or extended before anything is spent, left armed when
//! the run is ended from outside, called off once the pod was read back as off.

use super::options::Note;
use super::summary::Summary;
use crate::domain::{Pod, Vehicle};
use crate::error::Failure;
use crate::ops::Tether;
use chrono::{DateTime, Utc};

/// Has a fuse that outlives this run and fires no earlier than it is over.
pub(super) async fn arm(
    tether: &Tether,
    vehicle: &Vehicle,
    pod: &Pod,
    until: DateTime<Utc>,
    tell: &mut (dyn FnMut(Note) + Send),
) -> Result<(), Failure> {
    if let Some(armed) = tether.cover(vehicle, pod, until).await? {
        let record = &armed.record;
        tell(Note::Said(format!(
            "laptop's fuse: {}, process {}, fires at {}; {}",
            record.proof.in_words(),
            record.pid,
            record.fire_at.format("%Y-%m-%d %H:%M UTC"),
            record.at_risk(tether.clock().now())
        )));
    }
    Ok(())
}

/// Calls it off when the pod is off; else it stays armed and says so by being there.
pub(super) async fn call_off(
    tether: &Tether,
    vehicle: &Vehicle,
    summary: &Summary,
    tell: &mut (dyn FnMut(Note) + Send),
) {
    if summary.pod_may_still_be_running {
        return;
    }
    if let Err(failure) =
        tether.call_off(vehicle, "supervise stopped the pod and read it back").await
    {
        tell(Note::Said(format!("the fuse stays armed: {}", failure.message)));
    }
}
