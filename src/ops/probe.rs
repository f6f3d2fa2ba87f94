//! Proof that what answers at an address is our pod and that it is usable.

use super::Tether;
use crate::domain::{Pod, PodId, Vehicle};
use crate::error::Failure;
use crate::plan::LiveJobs;
use crate::pod::{self, ExecLimits, PodProbe, Shell, jobs};
use std::sync::Arc;
use std::time::Duration;

/// Bounds of a look at a pod.
pub(super) const LOOK: ExecLimits = ExecLimits {
    timeout: Duration::from_secs(10),
    stdout_bytes: 512 * 1024,
    stderr_bytes: 8 * 1024,
};

impl Tether {
    /// The shell of a pod, without a proof of who answers.
    pub(crate) fn shell(&self, vehicle: &Vehicle, pod: &Pod) -> Result<Arc<dyn Shell>, Failure> {
        Ok(self.shells.of(vehicle, pod)?)
    }

    /// Asks the pod who it is and what it has.
    pub(super) async fn probe(&self, vehicle: &Vehicle, pod: &Pod) -> Result<PodProbe, Failure> {
        let shell = self.shell(vehicle, pod)?;
        // The volume's own id is the token: another pod with another volume cannot show it.
        let token = pod.mounts.first().map_or("none", |mount| mount.volume_id.0.as_str());
        let command = pod::probe_command(&vehicle.volume_mount_path, &pod.id, token);
        let output = shell.run(&command, LOOK).await?;
        pod::parse_probe(&output).map_err(|error| super::run_job::pod_failure(&error))
    }

    /// The pod by its id, as the provider tells it now.
    pub(crate) async fn pod_by_id(&self, id: &PodId) -> Result<Option<Pod>, Failure> {
        let pod = self.cloud.pod(id).await?;
        self.note_off(pod.as_slice());
        Ok(pod)
    }

    /// Which jobs live on the pod, or why nobody can say.
    pub(super) async fn live_jobs(&self, vehicle: &Vehicle, pod: &Pod) -> LiveJobs {
        let shell = match self.shell(vehicle, pod) {
            Ok(shell) => shell,
            Err(failure) => return LiveJobs::Unknown(failure.message),
        };
        let command = jobs::live_jobs_command(&vehicle.volume_mount_path);
        match shell.run(&command, LOOK).await {
            Ok(output) => match jobs::parse_live_jobs(&output) {
                Ok(live) => LiveJobs::Known(live),
                Err(error) => LiveJobs::Unknown(error.to_string()),
            },
            Err(error) => LiveJobs::Unknown(error.to_string()),
        }
    }
}
