//! Proof that what answers at an address is our pod and that it is usable.

use super::Tether;
use crate::domain::{Pod, PodId, Vehicle};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::plan::LiveJobs;
use crate::pod::{self, ExecLimits, JobLook, Look, LookAt, PodProbe, Shell};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Bounds of a look at a pod.
pub(super) const LOOK: ExecLimits = ExecLimits {
    timeout: Duration::from_secs(12),
    stdout_bytes: 640 * 1024,
    stderr_bytes: 8 * 1024,
};

/// For a volume and a GPU that may take their time.
pub(super) const LONG: Duration = Duration::from_secs(8);
/// For an answer that must come within 5 s: what hangs is said to hang within 4 s.
pub(super) const SHORT: Duration = Duration::from_secs(3);

impl Tether {
    /// The shell of a pod. The first connection to a boot proves who answers before anything else.
    pub(crate) fn shell(&self, vehicle: &Vehicle, pod: &Pod) -> Result<Arc<dyn Shell>, Failure> {
        Ok(self.shells.of(vehicle, pod)?)
    }

    /// Asks the pod who it is and what it has.
    pub(super) async fn probe(&self, vehicle: &Vehicle, pod: &Pod) -> Result<PodProbe, Failure> {
        Ok(self.look(vehicle, pod, LONG, false, None).await?.pod)
    }

    /// One look at the pod: everything about it, and about a job, in one round trip. Volume and GPU
    /// are waited for as long as `patience`; `write` tries the volume with a small file.
    pub(super) async fn look(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        patience: Duration,
        write: bool,
        job: Option<JobLook<'_>>,
    ) -> Result<Look, Failure> {
        let shell = self.shell(vehicle, pod)?;
        let token = super::shells::volume_token(pod);
        let token = token.as_deref().unwrap_or("none");
        let mount = &vehicle.volume_mount_path;
        let command =
            pod::look_command(&LookAt { mount, pod: &pod.id, token, patience, write, job });
        let output = shell.run(&command, LOOK).await?;
        pod::parse_look(&output).map_err(|error| pod_failure(&error))
    }

    /// The pod by its id, as the provider tells it now.
    ///
    /// # Errors
    /// When the provider cannot be asked.
    pub async fn pod_by_id(&self, id: &PodId) -> Result<Option<Pod>, Failure> {
        let pod = self.cloud.pod(id).await?;
        self.note_off(pod.as_slice());
        Ok(pod)
    }
}

/// The jobs that live, as facts for a plan.
pub(super) fn live_jobs(look: &Look) -> LiveJobs {
    match &look.live_jobs {
        Ok(jobs) => LiveJobs::Known(jobs.clone()),
        Err(error) => LiveJobs::Unknown(error.to_string()),
    }
}

/// What a script of podtether said that podtether does not understand.
pub(super) fn pod_failure(error: &impl fmt::Display) -> Failure {
    Failure::new(
        FailureKind::PodCommand,
        error,
        "the pod answered something unexpected; try again, and look with exec_on_pod",
    )
    .billing(StillBilling::Yes)
    .retryable()
}
