//! job_status: everything about one job in one look.

use super::probe::SHORT;
use super::status::Seen;
use super::{CloudName, Tether};
use crate::domain::{JobState, Pod, Vehicle};
use crate::error::Failure;
use crate::pod::jobs::{JobStatus, LogSlice, log_text};
use crate::pod::{JobLook, Look};
use crate::watch::metrics::{Block, MetricsParser};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

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
    /// How far it says that it is: its last `podtether-step` line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
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
    /// Jobs that live on the pod; missing when unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_jobs: Option<Vec<String>>,
    /// What the pod says of its machine.
    pub machine: Seen,
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
        let id = super::job_id::job_id(id)?;
        let pod = self.running_pod(&vehicle).await?;
        let job = JobLook { id: &id, max_bytes: TAIL_BYTES, offset: None };
        let (status, seen) = self.look_at_job(&vehicle, &pod, job, SHORT).await?;
        let log = status.log.clone().unwrap_or_default();
        Ok(JobStatusAnswer {
            cloud: self.cloud_name(),
            vehicle: vehicle.name.0.clone(),
            job_id: id.to_string(),
            state: status.state,
            exit_code: status.exit_code,
            meta: status.meta.as_ref().and_then(|meta| serde_json::to_value(meta).ok()),
            step: step(&log),
            log_tail: tail(&log, tail_lines as usize),
            log_bytes: status.log.as_ref().map(|log| log.size),
            log_age_sec: status.log_age.map(|age| age.as_secs()),
            latest_metrics: latest_metrics(&log.bytes),
            live_jobs: seen
                .live_jobs
                .as_ref()
                .ok()
                .map(|jobs| jobs.iter().map(ToString::to_string).collect()),
            machine: Seen::of(&seen.pod),
            note: note(&status),
        })
    }

    /// One look at a job and its pod. Another machine that answers at the pod's address says nothing
    /// about the job (F01).
    pub(crate) async fn look_at_job(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        job: JobLook<'_>,
        patience: Duration,
    ) -> Result<(JobStatus, Look), Failure> {
        let id = job.id;
        let mut look = self.look(vehicle, pod, patience, false, Some(job)).await?;
        if let Some(other) = look.pod.pod_id.as_ref().filter(|id| **id != pod.id) {
            let error = format!("pod {other} answers at the address of pod {}", pod.id);
            return Err(super::probe::pod_failure(&error));
        }
        let status = look.job.take();
        let status = status
            .ok_or_else(|| super::probe::pod_failure(&"the look tells nothing about the job"))?;
        // A wrapper that is gone says nothing about its job.
        let is_over = status.state.has_ended() && status.state != JobState::WrapperLost;
        if is_over && !status.lives_on {
            self.note_job_end(vehicle, pod, id, status.state);
        }
        Ok((status, look))
    }
}

/// The last lines of a log for people, without secrets. They are blanked before anything is cut: half
/// a key is still half a key. What the pod has cut at the front goes up to the next line.
fn tail(log: &LogSlice, lines: usize) -> String {
    let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let start = match log.bytes.iter().position(is_break) {
        Some(at) if log.offset > 0 => at + 1,
        _ => 0,
    };
    let bytes = log.bytes.get(start..).unwrap_or_default();
    let text = crate::secret::scrub(&log_text::clean(bytes, bytes.len()), &[]);
    let all: Vec<&str> = text.lines().collect();
    let last = all[all.len().saturating_sub(lines)..].join("\n");
    let cut = last.char_indices().rev().nth(SHOWN_BYTES).map_or(0, |(at, _)| at);
    last[cut..].to_owned()
}

/// How a line begins in which a job says how far it is, as the scripts of `examples/` do.
const STEP: &str = "podtether-step ";
/// A line is for reading; what is longer is cut.
const STEP_CHARS: usize = 300;

/// The last line of a log in which the job says how far it is, when that is not long ago.
fn step(log: &LogSlice) -> Option<String> {
    let text = tail(log, usize::MAX);
    let last = text.lines().rev().find_map(|line| line.strip_prefix(STEP))?;
    Some(last.chars().take(STEP_CHARS).collect())
}

/// The newest numbers of a training log.
pub(crate) fn latest_metrics(log: &[u8]) -> Option<LatestMetrics> {
    let mut parser = MetricsParser::new();
    parser.push(log);
    parser.latest().as_ref().map(LatestMetrics::from)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(offset: u64, text: &str) -> LogSlice {
        let bytes = text.as_bytes().to_vec();
        LogSlice { offset, size: offset + bytes.len() as u64, bytes }
    }

    #[test]
    fn as_many_lines_as_asked_for_are_shown() {
        let log = slice(0, "one\n10%\r20%\r\n\x1b[1mthree\x1b[m\0\n");
        for (lines, shown) in
            [(0, ""), (1, "three"), (2, "20%\nthree"), (usize::MAX, "one\n20%\nthree")]
        {
            assert_eq!(tail(&log, lines), shown);
        }
        assert_eq!(tail(&slice(0, &"x".repeat(20_000)), 5).len(), SHOWN_BYTES + 1);
        assert_eq!(tail(&slice(0, ""), 40), "");
    }

    #[test]
    fn the_last_step_that_a_job_tells_is_shown_and_no_other_word() {
        let log = "podtether-step 1/2 ok driver: 550\nsays podtether-step 9/9\npodtether-step 2/2 running x: y\rz\npip\n";
        assert_eq!(step(&slice(0, log)).as_deref(), Some("1/2 ok driver: 550"), "written over");
        let log = log.replace("\rz", "");
        assert_eq!(step(&slice(0, &log)).as_deref(), Some("2/2 running x: y"));
        assert_eq!(step(&slice(0, "nothing of it\n")), None);
    }

    /// H01: no cut leaves a part of a key behind, neither the pod's nor ours, and where the log goes on
    /// is counted in the pod's bytes, whatever is blanked.
    #[test]
    fn no_cut_shows_a_part_of_a_key() {
        let key = "rpa_0123456789ABCDEF0123456789ABCDEF";
        for kept in 1..key.len() {
            let cut = slice(7, &format!("{}\nnext {key}\n", &key[key.len() - kept..]));
            assert_eq!(tail(&cut, 40), "next [secret]");
            assert_eq!(cut.next_offset(), 7 + cut.bytes.len() as u64);
            let long = format!("{key}{}", " ".repeat(SHOWN_BYTES - kept));
            assert!(!tail(&slice(0, &long), 1).contains("ABCDEF"), "{kept}");
        }
    }
}
