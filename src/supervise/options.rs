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
    /// Who is told of what happens.
    pub notifier: Notifier,
    /// Where the summary goes; `supervise-<job_id>.json` in the vehicle's log folder when `None`.
    pub summary_path: Option<PathBuf>,
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
    },
    /// Results are coming.
    Pulling(SyncProgress),
}
