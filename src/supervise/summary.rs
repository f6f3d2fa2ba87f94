//! The summary of a run: one JSON file, replaced atomically, readable by whoever comes later.

use super::state::Terms;
use crate::domain::PodId;
use crate::ops::{CloudName, LatestMetrics, SpendReport, StopAnswer, SyncAnswer};
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// What did not go as it should, by step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepTrouble {
    /// verify, dry_run, launch, follow, capture, spend, stop, notify.
    pub step: &'static str,
    /// What happened.
    pub error: String,
}

/// What was brought home.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pulled {
    /// The job's folder.
    pub job_dir: Option<SyncAnswer>,
    /// The folder of `--sync-subdir`.
    pub analysis: Option<SyncAnswer>,
}

impl Pulled {
    /// Whether everything that was to come is here, checked.
    #[must_use]
    pub fn is_complete(&self, wants_analysis: bool) -> bool {
        let whole =
            |answer: &Option<SyncAnswer>| answer.as_ref().is_some_and(|answer| answer.complete);
        whole(&self.job_dir) && (!wants_analysis || whole(&self.analysis))
    }
}

/// What was supervised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
}

/// The summary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Which cloud it ran on.
    pub cloud: CloudName,
    /// The job; null when none was started.
    pub job_id: Option<String>,
    /// The pod that it runs on.
    pub pod_id: Option<PodId>,
    /// Always `job` in this version.
    pub mode: &'static str,
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
    /// The latest numbers in its log.
    pub latest_metrics: Option<LatestMetrics>,
    /// What was brought home.
    pub pulled: Pulled,
    /// Whether what was brought home is whole, checked against the pod's manifest.
    pub capture_complete: bool,
    /// What was spent.
    pub spend: Option<SpendReport>,
    /// The stop, as far as it was read back.
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
    /// When the run started.
    pub started_at: DateTime<Utc>,
    /// By when the pod is off or the run has given up; null when it leaves the pod running.
    pub stops_by: Option<DateTime<Utc>>,
    /// The process of the run. Whether it lives is told by its lock file in the vehicle's log folder.
    pub pid: u32,
    /// When it ended; null while it runs.
    pub ended_at: Option<DateTime<Utc>>,
    /// The process's exit code; null while it runs.
    pub process_exit_code: Option<u8>,
    /// Where this summary is.
    pub summary_path: Option<PathBuf>,
}

/// How much trouble is written down; the first of it tells most.
const MAX_TROUBLES: usize = 100;

impl Summary {
    /// An empty summary of a run that starts now. Until a stop was read back, the pod may be running.
    pub(super) fn new(cloud: CloudName, spec: Spec, started_at: DateTime<Utc>) -> Self {
        Self {
            cloud,
            job_id: None,
            pod_id: None,
            mode: "job",
            spec,
            max_wait_sec: None,
            state: None,
            exit_code: None,
            force_stopped: false,
            adopted_after_launch_timeout: false,
            latest_metrics: None,
            pulled: Pulled { job_dir: None, analysis: None },
            capture_complete: false,
            spend: None,
            stop: None,
            stop_escalated: false,
            pod_may_still_be_running: true,
            errors: Vec::new(),
            refused: false,
            reason: None,
            started_at,
            stops_by: None,
            pid: std::process::id(),
            ended_at: None,
            process_exit_code: None,
            summary_path: None,
        }
    }

    pub(super) fn trouble(&mut self, step: &'static str, error: impl std::fmt::Display) {
        let trouble = StepTrouble { step, error: error.to_string() };
        // A link that is down for hours says the same at every look.
        if self.errors.len() < MAX_TROUBLES && !self.errors.contains(&trouble) {
            self.errors.push(trouble);
        }
    }

    pub(super) fn set_terms(&mut self, terms: Terms) {
        self.max_wait_sec = Some((terms.deadline - self.started_at).num_seconds());
    }

    /// Writes the summary to its path, whole or not at all, so that a reader always finds the last
    /// known truth.
    pub(super) fn write(&self) -> std::io::Result<()> {
        let Some(path) = &self.summary_path else { return Ok(()) };
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }
}
