//! What came home of a job: its exit code, its own record of the launch, and what its log says. Nothing
//! of it is believed beyond what it is: the pod wrote it.

use crate::domain::JobMeta;
use crate::pod::jobs::log_text;
use crate::runs::{ExitSeen, Numbers, is_folder_name, iterations_done};
use crate::training;
use crate::watch::metrics::MetricsParser;
use chrono::DateTime;
use std::io::Read as _;
use std::path::Path;

/// The longest log that is read for it, in bytes.
const LOG_MAX: u64 = 256 << 20;
/// The longest `meta.json` and the longest exit code that are read, in bytes.
const META_MAX: u64 = 4 << 20;
const CODE_MAX: u64 = 64;

/// What a log says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LogSays {
    /// Its last numbers.
    pub(super) numbers: Option<Numbers>,
    /// How many iterations it tells of.
    pub(super) iterations_done: Option<u64>,
    /// How often it tells a mean reward.
    pub(super) reward_lines: usize,
    /// The last of them, also when it is no number.
    pub(super) last_reward: Option<f64>,
    /// The folder that it names as the run's, when that is a plain name.
    pub(super) folder: Option<String>,
}

/// The exit code in a job's folder here.
pub(super) fn exit(job_dir: &Path) -> Option<ExitSeen> {
    let path = job_dir.join("exit_code");
    let text = read(&path, CODE_MAX)?;
    let code = std::str::from_utf8(&text).ok()?.trim().parse().ok()?;
    let written = std::fs::metadata(&path).and_then(|meta| meta.modified()).ok();
    let ceiling_struck = job_dir.join("ceiling_struck").is_file();
    Some(ExitSeen { code, ceiling_struck, at: written.map(DateTime::from) })
}

/// What the job's folder remembers of its launch.
pub(super) fn meta(job_dir: &Path) -> Option<JobMeta> {
    serde_json::from_slice(&read(&job_dir.join("meta.json"), META_MAX)?).ok()
}

/// Reads a job's log; `None` when it is not here, or too long. `line` is what the line begins with that
/// names the run's folder.
pub(super) fn log(job_dir: &Path, line: Option<&str>) -> Option<LogSays> {
    let log = read(&job_dir.join("out.log"), LOG_MAX)?;
    let mut parser = MetricsParser::new();
    parser.push(&log);
    parser.finish();
    let numbers = parser.latest().map(|block| Numbers {
        iteration: block.iteration,
        total_iterations: block.total_iterations,
        mean_reward: block.mean_reward.filter(|reward| reward.is_finite()),
    });
    let mut rewards = parser.blocks().iter().filter_map(|block| block.mean_reward);
    let folder = line.and_then(|line| {
        training::run_folder(&log_text::clean(&log, log.len()), line)
            .filter(|name| is_folder_name(name))
    });
    Some(LogSays {
        iterations_done: numbers.as_ref().map(iterations_done),
        numbers,
        reward_lines: rewards.clone().count(),
        last_reward: rewards.next_back(),
        folder,
    })
}

/// How often the log in a job's folder here tells a mean reward, and the last of them; `None` when it is
/// not here, or too long.
pub(crate) fn rewards_in_log(job_dir: &Path) -> Option<(usize, Option<f64>)> {
    log(job_dir, None).map(|says| (says.reward_lines, says.last_reward))
}

/// A plain file of at most so many bytes, whole.
fn read(path: &Path, max: u64) -> Option<Vec<u8>> {
    let meta = std::fs::metadata(path).ok()?;
    if !meta.is_file() || meta.len() > max {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(max).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
