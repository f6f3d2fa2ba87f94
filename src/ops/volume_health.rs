//! The volume before a job: is it one, does it answer, does it take a file, is there room.

use super::Tether;
use super::probe::{LONG, live_jobs};
use crate::domain::{JobsSeen, Pod, Vehicle};
use crate::plan::{LiveJobs, VolumeHealth};
use crate::pod::watchdog::WatchdogReport;
use crate::pod::{Look, MountKind};

/// What was seen of a pod before a job is launched on it.
pub(super) struct BeforeAJob {
    pub(super) live_jobs: LiveJobs,
    /// The same with what their end does to the pod.
    pub(super) jobs: JobsSeen,
    pub(super) health: VolumeHealth,
    /// `None` when nobody knows.
    pub(super) watchdog: Option<Box<WatchdogReport>>,
    /// Version of the NVIDIA driver.
    pub(super) driver: Option<String>,
}

impl Tether {
    /// What a launch must know of the pod, in one look. Whatever cannot be asked is unknown.
    pub(super) async fn before_a_job(&self, vehicle: &Vehicle, pod: &Pod) -> BeforeAJob {
        match self.look(vehicle, pod, LONG, true, None).await {
            Ok(look) => BeforeAJob {
                live_jobs: live_jobs(&look),
                jobs: look.jobs_seen(),
                health: health(vehicle, &look, self.cloud.is_local()),
                watchdog: look.pod.watchdog,
                driver: look.pod.driver,
            },
            Err(failure) => BeforeAJob {
                live_jobs: LiveJobs::Unknown(failure.message.clone()),
                jobs: JobsSeen::Unknown(failure.message.clone()),
                health: VolumeHealth::Unknown(failure.message),
                watchdog: None,
                driver: None,
            },
        }
    }
}

/// A local pod is no container: its mount is a link, or a folder of this machine.
fn health(vehicle: &Vehicle, look: &Look, is_local: bool) -> VolumeHealth {
    if !look.pod.volume_answers {
        return VolumeHealth::Unknown(format!(
            "it is unresponsive: it did not answer within {} s",
            LONG.as_secs()
        ));
    }
    let path = &vehicle.volume_mount_path;
    let no_volume = match look.pod.mount {
        MountKind::Missing | MountKind::Unresponsive => {
            Some(format!("there is no {path} on the pod, or its mount has gone stale"))
        }
        MountKind::SameDevice if !is_local => {
            Some(format!("{path} is on the container disk, which a stop wipes, not on a volume"))
        }
        MountKind::Device | MountKind::Symlink | MountKind::SameDevice => None,
    };
    VolumeHealth::Seen {
        no_volume,
        no_write: look.pod.write_fault.clone().filter(|fault| !fault.is_empty()),
        free: look.pod.mount_free,
    }
}

/// The health of a volume in a dry run, in words.
pub(super) fn told(vehicle: &Vehicle, health: &VolumeHealth) -> String {
    let room = match health {
        VolumeHealth::Seen { free: Some(free), .. } => {
            format!("{} GB free (the provider shows its pool, not the quota)", free / 1_000_000_000)
        }
        _ => "room for nobody knows how much".to_owned(),
    };
    format!(
        "The volume at {} answers, took a small file and has {room}.",
        vehicle.volume_mount_path
    )
}
