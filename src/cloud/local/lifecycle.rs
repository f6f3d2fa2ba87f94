//! A pod's life: boot in steps, stop, terminate, and going on after the daemon was killed.

use super::catalog;
use super::document::{Mount, Pod, Status};
use super::faults::{
    ENVIRONMENT_CUT, ENVIRONMENT_UNEXPORTED, LATE_ENVIRONMENT, NEVER_BOOTS, NO_PACKAGES,
    NO_PUBLIC_KEY, NO_RSYNC, NO_RUNPODCTL, OLD_DRIVER, OTHER_MACHINE, POD_CLOCK_AHEAD,
    POD_CLOCK_BEHIND, SLOW_BOOT, ZERO_GPUS,
};
use super::pod::{EnvironmentShape, Folder, Machine, OddPrograms, Sshd, SshdSetup, kill_all};
use super::problem::Problem;
use super::twin::Twin;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The driver of a host that is too old for what podtether's users run.
const OLD_DRIVER_VERSION: &str = "525.60.13";

/// How a pod comes to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boot {
    /// A new container: empty disk, new host key, new port.
    Fresh,
    /// The same container once more: its processes end, disk, host key and port stay.
    InPlace,
    /// The daemon was killed and the pod was not: everything stays.
    Recovered,
}

impl Twin {
    /// Boots a pod in the background. A later change of its boot number voids what is left to do.
    pub fn begin(self: &Arc<Self>, id: &str, boot: u64, kind: Boot) {
        let (twin, id) = (Arc::clone(self), id.to_owned());
        tokio::spawn(async move {
            if let Err(problem) = twin.boot(&id, boot, kind).await {
                tracing::error!(pod = id, detail = problem.detail, "pod did not boot");
            }
        });
    }

    async fn boot(&self, id: &str, boot: u64, kind: Boot) -> Result<(), Problem> {
        if kind == Boot::InPlace {
            let live = self.live(id);
            let mut sshd = live.lock().await;
            self.end_processes(id, &mut sshd).await;
        }
        if kind == Boot::Fresh {
            tokio::time::sleep(self.timing.provisioning).await;
        }
        // Asked before STARTING can be seen, so that who sees it may switch a fault off again.
        let (never, slow) = {
            let mut faults = self.faults();
            let booting = kind != Boot::Recovered;
            (booting && faults.happens(NEVER_BOOTS), faults.seconds(SLOW_BOOT).unwrap_or(0))
        };
        if kind == Boot::Fresh && !self.step(id, boot, |pod| pod.status = Status::Starting)? {
            return Ok(());
        }
        if kind != Boot::Recovered {
            if never {
                return Ok(());
            }
            tokio::time::sleep(self.timing.starting + Duration::from_secs(slow.into())).await;
        }
        let live = self.live(id);
        let mut sshd = live.lock().await;
        let now = self.clock.now();
        let prepared = self.document().pod(id).filter(|pod| pod.boot == boot).cloned();
        let Some(pod) = prepared else { return Ok(()) };
        self.prepare(&pod, kind)?;
        let running = |pod: &mut Pod| {
            pod.status = Status::Running;
            if kind != Boot::Recovered {
                pod.started_at = Some(now);
            }
        };
        if !self.step(id, boot, running)? {
            return Ok(());
        }
        if kind != Boot::Recovered {
            // RUNNING says nothing about SSH, here as there.
            drop(sshd);
            tokio::time::sleep(self.timing.ssh_after).await;
            sshd = live.lock().await;
        }
        if self.document().pod(id).is_none_or(|pod| pod.boot != boot) {
            return Ok(());
        }
        let server = self.serve_ssh(&pod, kind).await?;
        let port = server.as_ref().map(Sshd::port);
        *sshd = server;
        let late = self.faults().seconds(LATE_ENVIRONMENT);
        if late.is_none() {
            self.write_environment(&pod, port)?;
        }
        let current = self.step(id, boot, |pod| pod.ssh_port = port)?;
        if let Some(late) = late.filter(|_| current) {
            drop(sshd);
            tokio::time::sleep(Duration::from_secs(late.into())).await;
            let _whole = live.lock().await;
            if self.document().pod(id).is_some_and(|pod| pod.boot == boot) {
                self.write_environment(&pod, port)?;
            }
        }
        Ok(())
    }

    /// Changes a pod, unless it has been stopped or started again meanwhile.
    fn step(&self, id: &str, boot: u64, change: impl FnOnce(&mut Pod)) -> Result<bool, Problem> {
        self.change(|document| {
            let pod = document.pod_mut(id).filter(|pod| pod.boot == boot);
            Ok(pod.map(change).is_some())
        })
    }

    fn prepare(&self, pod: &Pod, kind: Boot) -> Result<(), Problem> {
        let folder = self.folder(&pod.id);
        let gpu = catalog::gpu(&pod.gpu_id);
        let (old, none, odd) = {
            let mut faults = self.faults();
            let ahead = faults.seconds(POD_CLOCK_AHEAD).map(i64::from);
            let behind = faults.seconds(POD_CLOCK_BEHIND).map(|seconds| -i64::from(seconds));
            let odd = OddPrograms {
                no_rsync: faults.happens(NO_RSYNC),
                no_packages: faults.happens(NO_PACKAGES),
                no_runpodctl: faults.happens(NO_RUNPODCTL),
                date_off_by: ahead.or(behind),
            };
            (faults.happens(OLD_DRIVER), faults.happens(ZERO_GPUS), odd)
        };
        let driver = if old { OLD_DRIVER_VERSION } else { catalog::driver(&pod.cuda) };
        let machine = Machine {
            gpu: pod.gpu_id.clone(),
            count: if none { 0 } else { pod.gpu_count },
            memory_mib: gpu.map_or(0, |gpu| gpu.memory_mib),
            driver: driver.to_owned(),
            cuda: pod.cuda.clone(),
        };
        let failed = |error| Problem::internal(&format!("pod folder not made: {error}"));
        if kind == Boot::Fresh {
            folder.wipe().map_err(failed)?;
            folder.forget_mishaps().map_err(failed)?;
        }
        folder.prepare(&self.program, &machine, odd).map_err(failed)?;
        let Some(mount) = &pod.mount else { return Ok(()) };
        let Some(link) = self.link(mount) else { return Ok(()) };
        self.unlink(mount);
        link.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
        std::os::unix::fs::symlink(self.paths.volume(&mount.volume_id), &link).map_err(|error| {
            Problem::internal(&format!("mount path {} not made: {error}", link.display()))
        })
    }

    async fn serve_ssh(&self, pod: &Pod, kind: Boot) -> Result<Option<Sshd>, Problem> {
        // As in the provider's images: no PUBLIC_KEY, no SSH server; no 22/tcp, no way to it.
        let keys = pod.env.get("PUBLIC_KEY").filter(|keys| !keys.trim().is_empty());
        let Some(keys) = keys.filter(|_| pod.ports.iter().any(|port| port == "22/tcp")) else {
            return Ok(None);
        };
        let setup = SshdSetup {
            pod_id: &pod.id,
            folder: self.folder(&pod.id),
            public_keys: if self.faults().happens(NO_PUBLIC_KEY) { "" } else { keys },
            port: match kind {
                Boot::Fresh => None,
                Boot::InPlace => pod.last_port,
                Boot::Recovered => pod.ssh_port,
            },
            port_to_avoid: pod.last_port.filter(|_| kind == Boot::Fresh),
            clock: Arc::clone(&self.clock),
            faults: self.shared_faults(),
        };
        Sshd::start(setup)
            .await
            .map(Some)
            .map_err(|error| Problem::internal(&format!("SSH server not started: {error}")))
    }

    fn write_environment(&self, pod: &Pod, port: Option<u16>) -> Result<(), Problem> {
        let strange = self.faults().happens(OTHER_MACHINE);
        let id = if strange { super::twin::fresh_id() } else { pod.id.clone() };
        let mut variables = vec![
            ("RUNPOD_POD_ID", id),
            ("RUNPOD_DC_ID", pod.data_center.clone()),
            ("RUNPOD_POD_HOSTNAME", format!("{}-{:08x}", pod.id, pod.boot)),
            ("RUNPOD_GPU_COUNT", pod.gpu_count.to_string()),
            ("RUNPOD_PUBLIC_IP", "127.0.0.1".to_owned()),
            ("RUNPOD_API_KEY", pod.key.clone()),
            ("CUDA_VERSION", pod.cuda.clone()),
            ("PODTETHER_API_URL", self.url.clone()),
        ];
        if let Some(port) = port {
            variables.push(("RUNPOD_TCP_PORT_22", port.to_string()));
        }
        if let Some(mount) = &pod.mount {
            variables.push(("RUNPOD_VOLUME_ID", mount.volume_id.clone()));
        }
        let shape = {
            let faults = self.faults();
            EnvironmentShape {
                ends_in: faults.is_on(ENVIRONMENT_CUT).then(|| pod.key.clone()),
                unexported: faults.is_on(ENVIRONMENT_UNEXPORTED),
            }
        };
        let own = variables.iter().map(|(name, value)| (*name, value.as_str()));
        let given = pod.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        self.folder(&pod.id)
            .write_environment(given.chain(own), shape)
            .map_err(|error| Problem::internal(&format!("rp_environment not written: {error}")))
    }

    /// Stops a pod: no process of it is left and its disk is empty when this returns.
    pub async fn stop(&self, id: &str) -> Result<(), Problem> {
        let live = self.live(id);
        let mut sshd = live.lock().await;
        let now = self.clock.now();
        let mount = self.change(|document| {
            let pod = document.pod_mut(id).ok_or_else(|| Problem::not_found("pod"))?;
            pod.status = Status::Exited;
            pod.boot += 1;
            pod.last_port = pod.ssh_port.take().or(pod.last_port);
            let mount = pod.mount.clone();
            document.end_pod_span(id, now);
            Ok(mount)
        })?;
        self.clear(id, &mut sshd, mount.as_ref()).await;
        Ok(())
    }

    /// Deletes a pod. Its volume stays, and so does the record of what ran on it.
    pub async fn terminate(&self, id: &str) -> Result<(), Problem> {
        let live = self.live(id);
        let mut sshd = live.lock().await;
        let now = self.clock.now();
        let mount = self.change(|document| {
            let position = document.pods.iter().position(|pod| pod.id == id);
            let position = position.ok_or_else(|| Problem::not_found("pod"))?;
            document.end_pod_span(id, now);
            Ok(document.pods.remove(position).mount)
        })?;
        self.clear(id, &mut sshd, mount.as_ref()).await;
        if let Err(error) = self.folder(id).remove() {
            tracing::warn!(pod = id, %error, "pod folder not removed");
        }
        self.forget(id);
        Ok(())
    }

    async fn clear(&self, id: &str, sshd: &mut Option<Sshd>, mount: Option<&Mount>) {
        self.end_processes(id, sshd).await;
        if let Some(mount) = mount {
            self.unlink(mount);
        }
        if let Err(error) = self.folder(id).wipe() {
            tracing::warn!(pod = id, %error, "container disk not wiped");
        }
        // A command that was accepted just before the end may have started meanwhile. From here on
        // none can: its home is gone.
        self.end_processes(id, sshd).await;
    }

    async fn end_processes(&self, id: &str, sshd: &mut Option<Sshd>) {
        if let Some(sshd) = sshd.take() {
            sshd.close();
        }
        let left = kill_all(id, &self.folder(id)).await;
        if left > 0 {
            tracing::warn!(pod = id, left, "processes of the pod are still there");
        }
    }

    fn link(&self, mount: &Mount) -> Option<PathBuf> {
        self.paths.mount_point(&mount.path)
    }

    /// Removes the link at a mount path; anything else that lies there is left alone.
    fn unlink(&self, mount: &Mount) {
        if let Some(link) = self.link(mount)
            && std::fs::symlink_metadata(&link).is_ok_and(|found| found.is_symlink())
            && let Err(error) = std::fs::remove_file(&link)
        {
            tracing::warn!(link = %link.display(), %error, "mount path not removed");
        }
    }

    pub fn folder(&self, id: &str) -> Folder {
        Folder::new(self.paths.pod(id))
    }

    /// Goes on with the pods of a daemon that was killed.
    pub fn recover(self: &Arc<Self>) {
        let pods = self.document().pods.clone();
        for pod in pods {
            match pod.status {
                Status::Exited => {}
                Status::Running => self.begin(&pod.id, pod.boot, Boot::Recovered),
                Status::Provisioning | Status::Starting => {
                    self.begin(&pod.id, pod.boot, Boot::Fresh);
                }
            }
        }
    }

    /// Stops every pod: no cloud, no bill, nothing left running on the user's machine.
    pub async fn stop_all(&self) {
        let pods = self.document().pods.clone();
        for pod in pods.iter().filter(|pod| pod.status != Status::Exited) {
            if let Err(problem) = self.stop(&pod.id).await {
                // Even when nothing can be written any more, nothing may be left running.
                tracing::error!(pod = pod.id, detail = problem.detail, "stop not recorded");
                let live = self.live(&pod.id);
                let mut sshd = live.lock().await;
                self.clear(&pod.id, &mut sshd, pod.mount.as_ref()).await;
            }
        }
    }
}
