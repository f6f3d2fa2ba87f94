//! One look at a pod: which pod answers over SSH, what it has and does, which jobs live, and how one job
//! is. The command, and the reading of its answer.

use super::jobs::{self, Answer, AnswerError, JobStatus, LiveJobsError};
use super::shell::ExecOutput;
use super::watchdog::WatchdogReport;
use crate::domain::{JobId, JobsSeen, LiveJob, PodId, RemoteCommand, scripts};
use std::time::Duration;

/// What lies at the volume's mount path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountKind {
    /// A device of its own, as a network volume is.
    Device,
    /// A link to a folder, as on a local pod.
    Symlink,
    /// A folder of the container disk: what is written there is gone at the first stop (D11).
    SameDevice,
    /// Nothing, or a mount that has gone stale.
    Missing,
    /// Nobody knows: the volume did not answer in time (E14).
    Unresponsive,
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
    /// Whether the driver told all it had to tell in time.
    pub gpu_answers: bool,
    /// What lies at the mount path.
    pub mount: MountKind,
    /// Whether the volume answered every question in time. What it did not answer is not known.
    pub volume_answers: bool,
    /// What stood in the way of a small file on the volume; `None` when it was not tried. An empty
    /// text is a success.
    pub write_fault: Option<String>,
    /// Free on the mount in bytes. On a network volume this is the pool's, not what was rented.
    pub mount_free: Option<u64>,
    /// Free on the container disk in bytes.
    pub disk_free: Option<u64>,
    /// Memory in use and memory there is, in bytes; the container's limit where it has one.
    pub memory: Option<(u64, u64)>,
    /// Whether rsync is there.
    pub has_rsync: bool,
    /// Time since the machine was booted, not the container.
    pub uptime: Option<Duration>,
    /// The volume's identity token, to be compared with ours before anything else is sent (F01).
    pub identity: Option<String>,
    /// What is known of its watchdog; `None` when it was not asked, or when its lines make no sense.
    pub watchdog: Option<Box<WatchdogReport>>,
}

/// What a look is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookAt<'a> {
    /// Where the network volume is mounted.
    pub mount: &'a str,
    /// The pod that should answer.
    pub pod: &'a PodId,
    /// Becomes the volume's identity when it has none and the pod says that it is `pod`.
    pub token: &'a str,
    /// How long volume and GPU are waited for; counted in whole seconds, at least one.
    pub patience: Duration,
    /// Whether to write a small file to the volume and remove it again.
    pub write: bool,
    /// The job to tell everything about.
    pub job: Option<JobLook<'a>>,
}

/// What to tell of a job's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobLook<'a> {
    /// The job.
    pub id: &'a JobId,
    /// The most of its log, in bytes.
    pub max_bytes: u32,
    /// From where on; its end when `None`.
    pub offset: Option<u64>,
}

/// What one look saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The pod.
    pub pod: PodProbe,
    /// The jobs that live, or why nobody can say.
    pub live_jobs: Result<Vec<JobId>, LiveJobsError>,
    /// The same jobs with what the end of each does to the pod, as far as the look told: of more than
    /// eight only the ids of the rest are known.
    pub live: Vec<LiveJob>,
    /// The job that was asked for.
    pub job: Option<JobStatus>,
}

/// The command of a look. Its answer may take [`look_answer_bytes`].
#[must_use]
pub fn look_command(at: &LookAt<'_>) -> RemoteCommand {
    RemoteCommand::script(scripts::POD_LOOK, arguments(at))
}

fn arguments(at: &LookAt<'_>) -> [String; 8] {
    let (id, max, offset) = at.job.map_or_else(
        || ("-".to_owned(), 0, None),
        |job| (job.id.to_string(), job.max_bytes, job.offset),
    );
    [
        if at.mount == "/" { at.mount } else { at.mount.trim_end_matches('/') }.to_owned(),
        at.pod.0.clone(),
        at.token.to_owned(),
        at.patience.as_secs().max(1).to_string(),
        if at.write { "write" } else { "read" }.to_owned(),
        id,
        max.to_string(),
        offset.map_or_else(|| "-".to_owned(), |offset| offset.to_string()),
    ]
}

/// How long a volume is waited for that shall show whose it is.
const WHO_PATIENCE: Duration = Duration::from_secs(5);

/// Asks a pod only who it is: no jobs, and nothing of a GPU that may be sick. The answer is read by
/// [`parse_look`]; what it leaves out is unknown there.
#[must_use]
pub fn who_command(mount: &str, pod: &PodId, token: &str) -> RemoteCommand {
    let patience = WHO_PATIENCE;
    let mut asked = arguments(&LookAt { mount, pod, token, patience, write: false, job: None });
    asked[4] = "who".to_owned();
    RemoteCommand::script(scripts::POD_LOOK, asked)
}

/// The longest answer to a look in bytes, to be kept whole: a cut answer is none.
#[must_use]
pub const fn look_answer_bytes(max_bytes: u32) -> usize {
    // Base64 makes four bytes of three. Beside the log come at most 4 KiB of leftovers, as they are
    // 64 KiB of meta.json, 8 KiB of it for each of eight live jobs, 12 KiB of the watchdog's, and short
    // lines, one for each live job.
    (max_bytes as usize + 8 * 1024).div_ceil(3) * 4 + 176 * 1024
}

/// Reads the answer to [`look_command`].
///
/// # Errors
/// [`AnswerError`] when it is not whole or makes no sense.
pub fn parse_look(output: &ExecOutput) -> Result<Look, AnswerError> {
    let answer = Answer::read(scripts::POD_LOOK.name, output)?;
    let pod = probe(&answer)?;
    let live_jobs = jobs::live_jobs(&answer, pod.volume_answers);
    let live = live_jobs.iter().flatten().map(|id| jobs::live_job(&answer, id)).collect();
    let job = jobs::job_status(&answer, pod.volume_answers)?;
    Ok(Look { pod, live_jobs, live, job })
}

impl Look {
    /// The live jobs with what their end does to the pod, or why nobody can say.
    #[must_use]
    pub fn jobs_seen(&self) -> JobsSeen {
        match &self.live_jobs {
            Ok(_) => JobsSeen::Known(self.live.clone()),
            Err(error) => JobsSeen::Unknown(error.to_string()),
        }
    }
}

fn probe(answer: &Answer) -> Result<PodProbe, AnswerError> {
    let volume_answers = answers(answer, "volume")?;
    let mount = match answer.get("mount") {
        Some("device") => MountKind::Device,
        Some("symlink") => MountKind::Symlink,
        Some("same_device") => MountKind::SameDevice,
        Some("missing") => MountKind::Missing,
        None if !volume_answers => MountKind::Unresponsive,
        _ => return Err(answer.senseless("mount")),
    };
    let write_fault = match answer.get("writable") {
        None => None,
        Some("yes") => Some(String::new()),
        Some(_) => {
            let said = answer.bytes("writable_b64")?.unwrap_or_default();
            let said = jobs::log_text::clean(&said, 300).trim().to_owned();
            Some(if said.is_empty() { "it takes no file".to_owned() } else { said })
        }
    };
    let gpus: Vec<Vec<&str>> =
        answer.all("gpu").map(|line| line.split(',').map(str::trim).collect()).collect();
    let bytes = |key| Ok(answer.number(key)?.map(|kib: u64| kib.saturating_mul(1024)));
    Ok(PodProbe {
        pod_id: answer.get("pod_id").map(|id| PodId(id.to_owned())),
        driver: gpus.first().and_then(|gpu| gpu.first()).map(|text| (*text).to_owned()),
        gpus: gpus.iter().map(|gpu| gpu_use(gpu)).collect(),
        gpu_answers: answers(answer, "gpu_state")?,
        mount,
        volume_answers,
        write_fault,
        mount_free: bytes("mount_free_kib")?,
        disk_free: bytes("disk_free_kib")?,
        memory: bytes("memory_used_kib")?.zip(bytes("memory_total_kib")?),
        has_rsync: answer.get("rsync") == Some("yes"),
        uptime: answer.number("uptime_s")?.map(Duration::from_secs),
        identity: answer.get("identity").map(str::to_owned),
        // A broken watchdog must not hide the pod.
        watchdog: WatchdogReport::read(answer).ok().map(Box::new),
    })
}

/// Whether the part under `key` came whole.
fn answers(answer: &Answer, key: &str) -> Result<bool, AnswerError> {
    match answer.get(key) {
        Some("answers") => Ok(true),
        Some("unresponsive") => Ok(false),
        _ => Err(answer.senseless(key)),
    }
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
