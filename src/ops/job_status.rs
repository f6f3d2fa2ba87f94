//! job_status: everything about one job in one look.

use super::probe::LOOK;
use super::{CloudName, Tether};
use crate::domain::{JobId, JobState, Pod, Vehicle};
use crate::error::Failure;
use crate::pod::jobs::{self, JobStatus, log_text};
use crate::watch::metrics::{Block, MetricsParser};
use schemars::JsonSchema;
use serde::Serialize;

/// The answer of job_status.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct JobStatusAnswer {
    /// Which cloud answered.
    pub cloud: CloudName,
    /// On which vehicle's pod.
    pub vehicle: String,
    /// The job.
    pub job_id: String,
    /// What is known about it. `unknown` is never "done" and never "dead".
    pub state: JobState,
    /// Its exit code, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What it was launched with: name, command, workdir, ceiling, provenance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<serde_json::Value>,
    /// The last lines of its log, without progress bars and colours.
    pub log_tail: String,
    /// Length of its log in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<u64>,
    /// Seconds since its log last grew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_age_sec: Option<u64>,
    /// The latest numbers that its log shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_metrics: Option<LatestMetrics>,
    /// What else to know.
    pub note: String,
}

/// The latest numbers in a training log.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize, JsonSchema)]
pub struct LatestMetrics {
    /// Iteration, counted from 0.
    pub iteration: u64,
    /// How many iterations there will be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_iterations: Option<u64>,
    /// Mean reward.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_reward: Option<f64>,
}

const TAIL_BYTES: u32 = 48 * 1024;
const SHOWN_BYTES: usize = 8 * 1024;

impl Tether {
    /// Looks at one job.
    ///
    /// # Errors
    /// Bad input, no running pod, or no way to its shell: then nothing is known of the job.
    pub async fn job_status(
        &self,
        id: &str,
        tail_lines: u32,
        vehicle: Option<&str>,
    ) -> Result<JobStatusAnswer, Failure> {
        let vehicle = self.vehicle(vehicle)?;
        let id = super::run_job::job_id(id)?;
        let pod = self.running_pod(&vehicle).await?;
        let status = self.look_at_job(&vehicle, &pod, &id, TAIL_BYTES, None).await?;
        let text = log_text::clean(&status.log.bytes, status.log.bytes.len());
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(tail_lines as usize)..].join("\n");
        let shown =
            tail.char_indices().rev().nth(SHOWN_BYTES).map_or(tail.as_str(), |(at, _)| &tail[at..]);
        Ok(JobStatusAnswer {
            cloud: self.cloud_name(),
            vehicle: vehicle.name.0.clone(),
            job_id: id.to_string(),
            state: status.state,
            exit_code: status.exit_code,
            meta: status.meta.as_ref().and_then(|meta| serde_json::to_value(meta).ok()),
            log_tail: crate::secret::scrub(shown, &[]),
            log_bytes: Some(status.log.size),
            log_age_sec: status.log_age.map(|age| age.as_secs()),
            latest_metrics: latest_metrics(&status.log.bytes),
            note: note(&status),
        })
    }

    /// One look at a job: its state and its log from `offset` on, or the last `bytes` of it.
    pub(crate) async fn look_at_job(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        id: &JobId,
        bytes: u32,
        offset: Option<u64>,
    ) -> Result<JobStatus, Failure> {
        let shell = self.shell(vehicle, pod)?;
        let command = jobs::status_command(&vehicle.volume_mount_path, id, bytes, offset);
        let output = shell.run(&command, LOOK).await?;
        let status =
            jobs::parse_status(&output).map_err(|error| super::run_job::pod_failure(&error))?;
        // A wrapper that is gone says nothing about its job.
        let is_over = status.state.has_ended() && status.state != JobState::WrapperLost;
        if is_over && !status.lives_on {
            self.note_job_end(vehicle, pod, id, status.state);
        }
        Ok(status)
    }
}

/// The last complete block of a training log.
pub(crate) fn latest_metrics(log: &[u8]) -> Option<LatestMetrics> {
    let mut parser = MetricsParser::new();
    parser.push(log);
    parser.blocks().last().map(LatestMetrics::from)
}

impl From<&Block> for LatestMetrics {
    fn from(block: &Block) -> Self {
        Self {
            iteration: block.iteration,
            total_iterations: block.total_iterations,
            mean_reward: block.mean_reward,
        }
    }
}

fn note(status: &JobStatus) -> String {
    let state = match status.state {
        JobState::Starting => "The job folder is there, its wrapper has not reported yet.",
        JobState::Running => {
            "Running. Ask again later; results so far can be pulled with sync_logs."
        }
        JobState::Succeeded => {
            "Ended with exit code 0. The pod still bills unless auto_stop was on: sync_logs, then stop_pod."
        }
        JobState::Failed => {
            "Ended with a failure; the log tail says more. The pod still bills unless auto_stop was on."
        }
        JobState::TimedOut => {
            "The ceiling struck and the job was ended. The pod still bills unless auto_stop was on."
        }
        JobState::WrapperLost => {
            "The job's wrapper is gone without an exit code; the job itself may live on, and no auto-stop comes. The pod still bills."
        }
        JobState::Orphaned => {
            "The recorded process belongs to an earlier boot or to something else. The pod still bills."
        }
        JobState::Unknown => "It could not be told; this means neither done nor dead. Ask again.",
        JobState::NotFound => "There is no such job on this pod's volume.",
    };
    let more = status.note.as_ref().map_or_else(String::new, |note| format!(" ({note})"));
    let lives = if status.lives_on { " Processes of the job live on." } else { "" };
    format!("{state}{more}{lives}")
}
