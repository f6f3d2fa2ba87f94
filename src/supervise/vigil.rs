//! Lets others see that this run keeps watch: pod_status shows it as a fuse while its process lives.

use super::options::Note;
use super::summary::Summary;
use crate::domain::{PodId, Vehicle, Vigil};
use crate::ops::vigil::{self, Kept};
use std::io::ErrorKind;

/// Another process keeps the vigil of this job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken;

/// Begins to be seen. What keeps others from seeing it is told and holds up nothing.
///
/// # Errors
/// [`Taken`] when another process follows this job.
pub(super) async fn begin(
    summary: &Summary,
    vehicle: &Vehicle,
    pod: &PodId,
    tell: &mut (dyn FnMut(Note) + Send),
) -> Result<Option<Kept>, Taken> {
    let seen = Vigil {
        job_id: summary.job_id.clone().unwrap_or_default(),
        pod: pod.clone(),
        pid: summary.pid,
        started_at: summary.started_at,
        stops_by: summary.stops_by,
    };
    match vigil::keep(&seen, &vehicle.local_log_dir).await {
        Ok(kept) => Ok(Some(kept)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(Taken),
        Err(error) => {
            tell(Note::Said(format!("pod_status will not show this run as a fuse: {error}")));
            Ok(None)
        }
    }
}

/// Ends it in good order. A run that could not stop the pod leaves its file, and shows as dead.
pub(super) fn end(kept: Option<Kept>, summary: &Summary) {
    let is_done = !summary.pod_may_still_be_running || summary.spec.no_stop;
    if let Some(kept) = kept.filter(|_| is_done) {
        kept.end();
    }
}
