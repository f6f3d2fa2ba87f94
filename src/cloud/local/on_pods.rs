//! Faults that happen on pods that run, as soon as they are switched on.

use super::document::{Pod, Status};
use super::faults::{FROZEN_VOLUME, FULL_DISK, PID_REUSED, REBOOT, STALE_MOUNT, WRAPPER_KILLED};
use super::lifecycle::Boot;
use super::pod::{Mishap, give_pids_away, kill_all, kill_wrapper};
use super::problem::Problem;
use super::twin::Twin;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether one of them is to begin or to end.
const PAUSE: Duration = Duration::from_millis(200);

impl Twin {
    /// Plays them for ever.
    pub async fn play_on_pods(self: &Arc<Self>) {
        loop {
            self.play_once().await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Brings every running pod into the condition that the faults say.
    pub async fn play_once(self: &Arc<Self>) {
        let pods = self.document().pods.clone();
        for pod in pods.iter().filter(|pod| pod.status == Status::Running && pod.ssh_port.is_some())
        {
            if let Err(problem) = self.play_on(pod).await {
                tracing::warn!(pod = pod.id, detail = problem.detail, "a fault did not happen");
            }
        }
    }

    async fn play_on(self: &Arc<Self>, pod: &Pod) -> Result<(), Problem> {
        let failed = |error| Problem::internal(&format!("the pod's folder: {error}"));
        let folder = self.folder(&pod.id);
        if let Some((link, volume)) = self.mounted(pod) {
            let (frozen, full, stale) = {
                let faults = self.faults();
                (faults.is_on(FROZEN_VOLUME), faults.is_on(FULL_DISK), faults.is_on(STALE_MOUNT))
            };
            let mishap = match (frozen, full) {
                (true, _) => Some(Mishap::Frozen),
                (false, true) => Some(Mishap::Full),
                (false, false) => None,
            };
            folder.set_mishap(mishap, &link, &volume).map_err(failed)?;
            let goal = if stale { volume.with_extension("stale") } else { volume.clone() };
            point(&link, &goal).map_err(failed)?;
            if self.faults().is_on(PID_REUSED) && self.take(PID_REUSED) {
                kill_all(&pod.id, &folder).await;
                give_pids_away(&volume, std::process::id());
            }
        }
        if self.faults().is_on(WRAPPER_KILLED) && kill_wrapper(&pod.id, &folder).await {
            self.take(WRAPPER_KILLED);
        }
        if self.faults().is_on(REBOOT) && self.take(REBOOT) {
            folder.reboot(&super::twin::fresh_id()).map_err(failed)?;
            let boot = self.change(|document| {
                let pod = document.pod_mut(&pod.id).ok_or_else(|| Problem::not_found("pod"))?;
                pod.boot += 1;
                pod.status = Status::Starting;
                pod.last_port = pod.ssh_port.take().or(pod.last_port);
                Ok(pod.boot)
            })?;
            self.begin(&pod.id, boot, Boot::InPlace);
        }
        Ok(())
    }

    fn take(&self, name: &str) -> bool {
        self.faults().happens(name)
    }

    /// Where the pod's volume is mounted and where it lies.
    fn mounted(&self, pod: &Pod) -> Option<(PathBuf, PathBuf)> {
        let mount = pod.mount.as_ref()?;
        Some((self.paths.mount_point(&mount.path)?, self.paths.volume(&mount.volume_id)))
    }
}

/// Has the link at `link` lead to `goal`; what is no link is left alone.
fn point(link: &Path, goal: &Path) -> std::io::Result<()> {
    match std::fs::read_link(link) {
        Ok(now) if now != goal => {
            std::fs::remove_file(link)?;
            std::os::unix::fs::symlink(goal, link)
        }
        _ => Ok(()),
    }
}
