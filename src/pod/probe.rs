//! Which pod answers over SSH and what it has: the command, and the reading of its answer.

use super::jobs::{Answer, AnswerError};
use super::shell::ExecOutput;
use super::watchdog::WatchdogReport;
use crate::domain::{PodId, RemoteCommand, scripts};
use std::time::Duration;

/// Why nothing is known about the pod.
pub type ProbeError = AnswerError;

/// What lies at the volume's mount path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountKind {
    /// A device of its own, as a network volume is.
    Device,
    /// A link to a folder, as on a local pod.
    Symlink,
    /// A folder of the container disk: what is written there is gone at the first stop (D11).
    SameDevice,
    /// Nothing.
    Missing,
}

/// Use of one GPU. `None` where the driver does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuUse {
    /// Busy share of the last moments, in percent.
    pub percent: Option<u32>,
    /// Memory in use, in MiB.
    pub used_mib: Option<u64>,
    /// Memory, in MiB.
    pub total_mib: Option<u64>,
}

/// What a pod says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodProbe {
    /// Its id; `None` while its start script has not told yet.
    pub pod_id: Option<PodId>,
    /// Version of the NVIDIA driver; `None` without a GPU or while it does not answer.
    pub driver: Option<String>,
    /// Its GPUs. A pod may come back with none.
    pub gpus: Vec<GpuUse>,
    /// What lies at the mount path.
    pub mount: MountKind,
    /// Free on the mount in bytes. On a network volume this is the pool's, not what was rented.
    pub mount_free: Option<u64>,
    /// Free on the container disk in bytes.
    pub disk_free: Option<u64>,
    /// Whether rsync is there.
    pub has_rsync: bool,
    /// Time since the machine was booted, not the container.
    pub uptime: Option<Duration>,
    /// The volume's identity token, to be compared with ours before anything else is sent (F01).
    pub identity: Option<String>,
    /// What is known of its watchdog; `None` when its lines make no sense.
    pub watchdog: Option<Box<WatchdogReport>>,
}

/// Asks a pod what it is and has. `token` becomes the volume's identity if it has none and the pod
/// says that it is `pod`.
#[must_use]
pub fn probe_command(mount: &str, pod: &PodId, token: &str) -> RemoteCommand {
    RemoteCommand::script(scripts::POD_PROBE, [mount, &pod.0, token])
}

/// Reads the answer to [`probe_command`].
///
/// # Errors
/// [`ProbeError`] when it is not whole or makes no sense.
pub fn parse_probe(output: &ExecOutput) -> Result<PodProbe, ProbeError> {
    let answer = Answer::read(scripts::POD_PROBE.name, output)?;
    let mount = match answer.get("mount") {
        Some("device") => MountKind::Device,
        Some("symlink") => MountKind::Symlink,
        Some("same_device") => MountKind::SameDevice,
        Some("missing") => MountKind::Missing,
        _ => return Err(answer.senseless("mount")),
    };
    let gpus: Vec<Vec<&str>> =
        answer.all("gpu").map(|line| line.split(',').map(str::trim).collect()).collect();
    let bytes = |key| Ok(answer.number(key)?.map(|kib: u64| kib.saturating_mul(1024)));
    Ok(PodProbe {
        pod_id: answer.get("pod_id").map(|id| PodId(id.to_owned())),
        driver: gpus.first().and_then(|gpu| gpu.first()).map(|text| (*text).to_owned()),
        gpus: gpus.iter().map(|gpu| gpu_use(gpu)).collect(),
        mount,
        mount_free: bytes("mount_free_kib")?,
        disk_free: bytes("disk_free_kib")?,
        has_rsync: answer.get("rsync") == Some("yes"),
        uptime: answer.number("uptime_s")?.map(Duration::from_secs),
        identity: answer.get("identity").map(str::to_owned),
        // A broken watchdog must not hide the pod.
        watchdog: WatchdogReport::read(&answer).ok().map(Box::new),
    })
}

/// A GPU line is `driver, percent, used, total`; a field may be `[N/A]`.
fn gpu_use(fields: &[&str]) -> GpuUse {
    let field = |at: usize| fields.get(at).and_then(|text| text.parse().ok());
    GpuUse {
        percent: fields.get(1).and_then(|text| text.parse().ok()),
        used_mib: field(2),
        total_mib: field(3),
    }
}
