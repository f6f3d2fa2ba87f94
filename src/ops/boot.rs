//! Which boots podtether started and has not seen usable yet. Only such a boot may be given up and
//! stopped when it takes too long: a pod that was usable once may carry a job, and a shell that does
//! not answer for a while is no reason to stop it.

use crate::domain::{PodId, Vehicle};
use crate::whole_file;
use chrono::{DateTime, Utc};
use std::path::PathBuf;

/// One start that podtether asked for.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Boot {
    /// The pod.
    pub pod: PodId,
    /// When it was asked to start.
    pub asked_at: DateTime<Utc>,
}

fn path(vehicle: &Vehicle) -> PathBuf {
    vehicle.local_log_dir.join(".podtether").join("boot.json")
}

/// Notes a start. A note that cannot be written only means that this boot is never given up by
/// itself; it is no reason to leave a started pod alone.
pub(super) fn note(vehicle: &Vehicle, boot: &Boot) {
    if let Err(error) = whole_file::replace(&path(vehicle), boot) {
        tracing::warn!(%error, vehicle = %vehicle.name, "the start of the pod could not be noted");
    }
}

/// The start of this pod that has not been seen usable yet.
pub(super) fn pending(vehicle: &Vehicle, pod: &PodId) -> Option<Boot> {
    let text = std::fs::read_to_string(path(vehicle)).ok()?;
    let boot: Boot = serde_json::from_str(&text).ok()?;
    (boot.pod == *pod).then_some(boot)
}

/// The pod was seen usable, or off: this boot is over and is not given up, whatever the pod does later
/// and whoever starts it next.
pub(super) fn over(vehicle: &Vehicle) {
    let _ = std::fs::remove_file(path(vehicle));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::sample;

    #[test]
    fn only_a_noted_boot_that_was_never_proven_is_pending() {
        let dir = tempfile::tempdir().unwrap();
        let vehicle = Vehicle { local_log_dir: dir.path().to_owned(), ..sample::vehicle() };
        let (ours, other) = (PodId("pod1".into()), PodId("pod2".into()));
        assert_eq!(pending(&vehicle, &ours), None);
        let boot = Boot { pod: ours.clone(), asked_at: DateTime::UNIX_EPOCH };
        note(&vehicle, &boot);
        assert_eq!(pending(&vehicle, &ours), Some(boot));
        assert_eq!(pending(&vehicle, &other), None);
        over(&vehicle);
        assert_eq!(pending(&vehicle, &ours), None);
    }
}
