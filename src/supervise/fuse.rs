//! The laptop's fuse of a supervised run: armed or extended before anything is spent, left armed when
//! the run is ended from outside, called off once the run's stop was read back.

use super::options::Note;
use crate::domain::{Pod, Vehicle};
use crate::error::Failure;
use crate::ops::{FuseClaim, Tether};
use chrono::{DateTime, Utc};

/// Has a fuse that outlives this run and fires no earlier than it is over.
pub(crate) async fn arm(
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

/// Calls it off when it has nothing left to stop: because this run has asked for all of that, or else
/// because the account shows nothing of the vehicle on the bill. It stays armed otherwise, and also when
/// another session has armed or extended it since this run's last `claim`: one that was about to start
/// the pod again while this one read it back.
pub(crate) async fn call_off(
    tether: &Tether,
    vehicle: &Vehicle,
    asked_for_all: bool,
    claim: Option<&FuseClaim>,
    tell: &mut (dyn FnMut(Note) + Send),
) {
    if !asked_for_all && !tether.shows_nothing_on(vehicle).await {
        let why = "the account does not show that nothing of the vehicle bills";
        tell(Note::Said(format!("the laptop's fuse stays as it is: {why}")));
        return;
    }
    let why = "supervise read the pod back as off";
    if let Err(failure) = tether.call_off(vehicle, why, claim).await {
        tell(Note::Said(format!("the fuse stays armed: {}", failure.message)));
    }
}
