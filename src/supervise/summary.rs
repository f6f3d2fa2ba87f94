//! The summary of a run: one JSON file, replaced atomically, readable by whoever comes later.

use super::state::Terms;
use crate::domain::{JobState, PodId};
use crate::ops::{
    CloudName, EditView, FuseClaim, LatestMetrics, SpendReport, StopAnswer, SyncAnswer,
};
use crate::runs::Results;
use crate::whole_file::{self, Unwritten};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

/// The version of this shape. It grows when a key changes its meaning, not when one is added.
pub(super) const VERSION: u32 = 1;

/// What did not go as it should, by step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepTrouble {
    /// verify, dry_run, fuse, launch, follow, capture, spend, stop, notify, resume, summary.
    pub step: Cow<'static, str>,
    /// What happened.
    pub error: String,
}

/// What was brought home.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pulled {
    /// The job's folder, at the end.
    pub job_dir: Option<SyncAnswer>,
    /// The folder of `--sync-subdir`, at the end.
    pub analysis: Option<SyncAnswer>,
    /// What came before the end, while the job ran; null when nothing did.
    pub while_running: Option<Early>,
}

/// What came home while the job ran. It is a state of the results in between, never all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Early {
    /// How often something was brought.
    pub pulls: u64,
    /// How many files were put in place, counted anew for each time.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the last of them came, UTC.
    pub last_at: DateTime<Utc>,
}

impl Pulled {
    /// Whether everything that was to come is here, checked.
    #[must_use]
    pub fn is_complete(&self, wants_analysis: bool) -> bool {
        let whole =
            |answer: &Option<SyncAnswer>| answer.as_ref().is_some_and(|answer| answer.complete);
        whole(&self.job_dir) && (!wants_analysis || whole(&self.analysis))
    }

    /// Adds what came before the job had ended.
    pub(super) fn came_early(&mut self, files: u64, bytes: u64, at: DateTime<Utc>) {
        let nothing = Early { pulls: 0, files: 0, bytes: 0, last_at: at };
        let early = self.while_running.get_or_insert(nothing);
        early.pulls += 1;
        early.files = early.files.saturating_add(files);
        early.bytes = early.bytes.saturating_add(bytes);
        early.last_at = early.last_at.max(at);
    }
}

/// What kind of thing is supervised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A command (`--job-name`).
    Job,
    /// A training by its recipe (`--training`).
    Training,
}

/// What was supervised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The vehicle.
    pub vehicle: String,
    /// The job's name.
    pub name: String,
    /// Its command.
    pub command: String,
    /// Its folder.
    pub workdir: Option<String>,
    /// Its ceiling, in seconds.
    pub max_runtime_sec: Option<i64>,
    /// What else is pulled at the end.
    pub sync_subdir: Option<String>,
    /// Whether the pod is left running.
    pub no_stop: bool,
    /// Of a training: which, and how.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingSpec>,
}

/// Which training was supervised, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainingSpec {
    /// Its name.
    pub training: String,
    /// Its level, by its one name; as it was asked for when the launch was refused.
    pub level: Option<String>,
    /// Its seed; as it was asked for when the launch was refused.
    pub seed: String,
    /// More arguments for its command.
    pub extra_args: String,
    /// The files that got the level.
    pub edits: Vec<EditView>,
}

/// The summary. What a run knows later than it begins is missing from a file that is read, not wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The version of this shape.
    #[serde(default)]
    pub version: u32,
    /// Which cloud it ran on.
    pub cloud: CloudName,
    /// The job; null when none was started.
    pub job_id: Option<String>,
    /// The pod that it runs on.
    pub pod_id: Option<PodId>,
    /// When that pod was started, as the provider says; another time is another boot.
    pub pod_started_at: Option<DateTime<Utc>>,
    /// What kind of thing is supervised.
    pub mode: Mode,
    /// What was supervised.
    pub spec: Spec,
    /// How long it was followed at most, in seconds.
    pub max_wait_sec: Option<i64>,
    /// The job's last known state.
    pub state: Option<String>,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// Whether `max_wait` passed before the job ended, and the pod was stopped for that.
    pub force_stopped: bool,
    /// Whether the answer to the launch was lost and the job was found all the same.
    pub adopted_after_launch_timeout: bool,
    /// The latest numbers in its log, under the two names that readers know them by.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// What was brought home.
    #[serde(default)]
    pub pulled: Pulled,
    /// Whether what was brought home is whole, checked against the pod's manifest.
    pub capture_complete: bool,
    /// Of a training: what its run has left, as far as it is home; missing otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Results>,
    /// What was spent.
    #[serde(skip_deserializing)]
    pub spend: Option<SpendReport>,
    /// The stop, as far as it was read back.
    #[serde(skip_deserializing)]
    pub stop: Option<StopAnswer>,
    /// Whether the stop had to be asked for again.
    pub stop_escalated: bool,
    /// Whether the pod may still be running and billing.
    pub pod_may_still_be_running: bool,
    /// What did not go as it should.
    pub errors: Vec<StepTrouble>,
    /// Whether a guardrail refused the launch. Nothing was changed then.
    pub refused: bool,
    /// Why it was refused.
    pub reason: Option<String>,
    /// For how many seconds this computer slept while it was to follow the job: how far its wall
    /// clock ran ahead of one that stands still in sleep.
    #[serde(default)]
    pub slept_for_sec: u64,
    /// How often the run was taken up by another process (`--resume`).
    #[serde(default)]
    pub resumed: u32,
    /// When the run started.
    pub started_at: DateTime<Utc>,
    /// By when the pod is off or the run has given up; null when it leaves the pod running.
    pub stops_by: Option<DateTime<Utc>>,
    /// What the run claimed last of the laptop's fuse; null when it has armed or extended none. Only with
    /// it is the fuse called off: another session that has claimed it since keeps it.
    #[serde(default)]
    pub fuse_claim: Option<FuseClaim>,
    /// The process of the run. Whether it lives is told by its lock file in the vehicle's log folder.
    pub pid: u32,
    /// When it ended; null while it runs.
    pub ended_at: Option<DateTime<Utc>>,
    /// The process's exit code; null while it runs.
    pub process_exit_code: Option<u8>,
    /// Where this summary is.
    pub summary_path: Option<PathBuf>,
    /// Whether what lies there is older than this.
    #[serde(skip)]
    pub unwritten: Unwritten,
    /// Of a run that was not begun: what to do about it.
    #[serde(skip)]
    pub hint: Option<String>,
}

/// The latest numbers in a job's log: one value, under both of its names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    latest_metrics: Option<LatestMetrics>,
    #[serde(skip_deserializing)]
    metrics: Option<LatestMetrics>,
}

impl Metrics {
    /// The newest numbers.
    #[must_use]
    pub const fn latest(&self) -> Option<&LatestMetrics> {
        self.latest_metrics.as_ref()
    }

    pub(super) fn set(&mut self, latest: Option<LatestMetrics>) {
        self.metrics.clone_from(&latest);
        self.latest_metrics = latest;
    }
}

/// How much trouble is written down; the first of it tells most.
const MAX_TROUBLES: usize = 100;

impl Summary {
    /// An empty summary of a run that starts now. Until a stop was read back, the pod may be running.
    pub(super) fn new(cloud: CloudName, spec: Spec, started_at: DateTime<Utc>) -> Self {
        Self {
            version: VERSION,
            cloud,
            job_id: None,
            pod_id: None,
            pod_started_at: None,
            mode: if spec.training.is_some() { Mode::Training } else { Mode::Job },
            spec,
            max_wait_sec: None,
            state: None,
            exit_code: None,
            force_stopped: false,
            adopted_after_launch_timeout: false,
            metrics: Metrics::default(),
            pulled: Pulled::default(),
            capture_complete: false,
            results: None,
            spend: None,
            stop: None,
            stop_escalated: false,
            pod_may_still_be_running: true,
            errors: Vec::new(),
            refused: false,
            reason: None,
            slept_for_sec: 0,
            resumed: 0,
            started_at,
            stops_by: None,
            fuse_claim: None,
            pid: std::process::id(),
            ended_at: None,
            process_exit_code: None,
            summary_path: None,
            unwritten: Unwritten::default(),
            hint: None,
        }
    }

    /// The same run, taken up by this process.
    pub(super) fn taken_up(mut self, path: PathBuf) -> Self {
        self.metrics.set(self.metrics.latest_metrics.clone());
        self.keep_what_came_at_the_end();
        Self {
            version: VERSION,
            pid: std::process::id(),
            resumed: self.resumed.saturating_add(1),
            ended_at: None,
            process_exit_code: None,
            summary_path: Some(path),
            ..self
        }
    }

    /// What an earlier process brought home while the job had not ended (it was told to leave, or to stop a pod
    /// that it could not stop) is a state in between, never all of the results.
    fn keep_what_came_at_the_end(&mut self) {
        if self.job_has_ended() {
            return;
        }
        self.capture_complete = false;
        let at = self.ended_at.unwrap_or(self.started_at);
        let pulled = &mut self.pulled;
        for answer in pulled.job_dir.take().into_iter().chain(pulled.analysis.take()) {
            pulled.came_early(answer.files, answer.bytes, at);
        }
    }

    /// Whether the job was seen to end by itself.
    pub(super) fn job_has_ended(&self) -> bool {
        let ends = [JobState::Succeeded, JobState::Failed, JobState::TimedOut];
        self.state.as_ref().is_some_and(|state| ends.iter().any(|end| end.as_str() == state))
    }

    pub(super) fn trouble(&mut self, step: &'static str, error: impl std::fmt::Display) {
        let trouble = StepTrouble { step: step.into(), error: error.to_string() };
        // A link that is down for hours says the same at every look.
        if self.errors.len() < MAX_TROUBLES && !self.errors.contains(&trouble) {
            self.errors.push(trouble);
        }
    }

    pub(super) fn slept(&mut self, time: Duration) {
        // Two clocks are read one after the other: some microseconds are neither's.
        let seconds = time.saturating_add(Duration::from_millis(500)).as_secs();
        self.slept_for_sec = self.slept_for_sec.saturating_add(seconds);
    }

    pub(super) fn set_terms(&mut self, terms: Terms) {
        self.max_wait_sec = Some((terms.deadline - self.started_at).num_seconds());
    }

    /// Writes the summary to its path, whole or not at all, so that a reader always finds the last
    /// known truth.
    pub(super) fn write(&self) -> std::io::Result<()> {
        let Some(path) = &self.summary_path else { return Ok(()) };
        whole_file::replace(path, self).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervise::read_summary;
    use std::path::Path;

    fn left(state: &str) -> Summary {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/state/supervise-v1.json");
        let summary = read_summary(&file).unwrap().unwrap();
        let answer = serde_json::json!({
            "cloud": "local", "vehicle": "rover", "from": "/workspace/jobs/x", "to": "/home/x",
            "files": 2, "bytes": 10, "complete": true, "proof": "",
        });
        let answer: SyncAnswer = serde_json::from_value(answer).unwrap();
        let pulled = Pulled { job_dir: Some(answer), analysis: None, while_running: None };
        let state = Some(state.to_owned());
        Summary { state, pulled, capture_complete: true, process_exit_code: Some(6), ..summary }
    }

    /// D01: a run that was left after it had brought home what there was, while its job went on, is taken up:
    /// what came then is not the end of the results, whatever becomes of the last pull.
    #[test]
    fn what_came_before_the_job_ended_is_never_taken_for_the_whole_of_it() {
        let taken_up = left("running").taken_up("x.json".into());
        assert!(!taken_up.capture_complete && !taken_up.pulled.is_complete(false));
        let early = taken_up.pulled.while_running.unwrap();
        assert_eq!((early.pulls, early.files, early.bytes), (1, 2, 10));
        // Killed between the last pull and the stop: everything is home.
        let taken_up = left("succeeded").taken_up("x.json".into());
        assert!(taken_up.capture_complete && taken_up.pulled.is_complete(false));
        assert_eq!(taken_up.pulled.while_running, None);
    }
}
