//! What a supervised run is asked for, and what it tells while it goes on.

use crate::domain::{Ceiling, JobState, Usd};
use crate::notify::Notifier;
use crate::ops::{LatestMetrics, RunJobRequest, SyncProgress};
use std::path::PathBuf;
use std::time::Duration;

/// What is asked of a supervised run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The job.
    pub job: RunJobRequest,
    /// How often the job is looked at.
    pub interval: Duration,
    /// How long it is followed at most; the ceiling, the kill grace and `backstop` when `None`.
    pub max_wait: Option<Duration>,
    /// What is added to the ceiling for `max_wait`.
    pub backstop: Duration,
    /// Leave the pod running at the end.
    pub no_stop: bool,
    /// A folder below the mount path that is pulled at the end, apart from the job's own.
    pub sync_subdir: Option<String>,
    /// How often results are brought home while the job runs, at most.
    pub pull_every: Duration,
    /// Who is told of what happens.
    pub notifier: Notifier,
    /// Where the summary goes; `supervise-<job_id>.json` in the vehicle's log folder when `None`.
    pub summary_path: Option<PathBuf>,
}

/// How often results are brought home while a job runs, when nothing else is said.
pub const PULL_EVERY: Duration = Duration::from_secs(45);

/// What is asked of taking up a run whose process is gone.
#[derive(Clone, Debug)]
pub struct ResumeOptions {
    /// The summary that it left.
    pub summary: PathBuf,
    /// The vehicle that it has to be of; any of the config's when `None`.
    pub vehicle: Option<String>,
    /// How often the job is looked at.
    pub interval: Duration,
    /// How often results are brought home while the job runs, at most.
    pub pull_every: Duration,
    /// Who is told of what happens.
    pub notifier: Notifier,
}

/// What a run tells while it goes on.
#[derive(Clone, Debug)]
pub enum Note {
    /// Something happened, in a sentence.
    Said(String),
    /// How far the job is.
    Progress {
        /// What is known of the job.
        state: JobState,
        /// The latest numbers in its log.
        metrics: Option<LatestMetrics>,
        /// Since the launch.
        elapsed: Duration,
        /// Until the ceiling strikes.
        ceiling: Ceiling,
        /// What the pod has cost since the launch, when its price is known.
        cost: Option<Usd>,
        /// What is proven to stop the pod by itself.
        armed: Vec<&'static str>,
    },
    /// Results are coming.
    Pulling(SyncProgress),
}
