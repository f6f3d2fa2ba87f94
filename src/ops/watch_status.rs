//! The status file of a watch (contract, section 11): what is known after each round, replaced atomically,
//! and what another process needs to go on.

use super::CloudName;
use crate::watch::state::State;
use crate::watch::{Finding, PlateauRule, ReadingState};
use crate::whole_file::{self, Unwritten};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What is watched, and by which rules.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WatchSpec {
    /// The vehicle.
    pub vehicle: String,
    /// Between two looks, in seconds.
    pub interval: u64,
    /// How long the start may take, in seconds.
    pub startup_grace: u64,
    /// How long a log may be silent, in seconds.
    pub stall_sec: u64,
    /// When a flat reward is a plateau.
    pub plateau: PlateauRule,
}

/// Where the job's files are on the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Artifacts {
    /// The job's folder.
    pub job_dir: String,
    /// Its log.
    pub log: String,
}

/// The status.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WatchStatus {
    /// Which cloud it runs on.
    pub cloud: CloudName,
    /// The job; null while none is known.
    pub job_id: Option<String>,
    /// What is watched, and by which rules.
    pub spec: WatchSpec,
    /// The iteration.
    pub iteration: Option<u64>,
    /// How many there will be.
    pub total_iterations: Option<u64>,
    /// The last mean reward.
    pub mean_reward: Option<f64>,
    /// How much the mean reward moved over the plateau window.
    pub trend: Option<f64>,
    /// Whether a plateau was paged.
    pub plateau_fired: bool,
    /// What the log says went wrong; null while nothing did.
    pub failure_detected: Option<Finding>,
    /// The job's exit code, once it has left one.
    pub exit_code_artifact: Option<i32>,
    /// Whether the job is no longer among those that run.
    pub gone_from_active: bool,
    /// Whether a stall was paged.
    pub stalled: bool,
    /// Whether the log is silent while the GPU works.
    pub quiet: bool,
    /// Where the next watch reads on in the log, in bytes: after the last complete block.
    pub offset_bytes: u64,
    /// Where the job's files are on the pod.
    pub artifacts: Option<Artifacts>,
    /// The verdict in words; null while there is none.
    pub verdict: Option<String>,
    /// When the watch of this job began.
    pub started_at: DateTime<Utc>,
    /// When this was written.
    pub updated_at: DateTime<Utc>,
    /// When it ended; null while it goes on.
    pub ended_at: Option<DateTime<Utc>>,
    /// The process's exit code; null while it goes on.
    pub process_exit_code: Option<u8>,
    /// Where this file is.
    pub status_path: Option<PathBuf>,
    /// Whether what lies there is older than this.
    #[serde(skip)]
    pub unwritten: Unwritten,
    /// For the next process.
    pub resume: Resume,
}

/// What another process needs to go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resume {
    /// The machine.
    pub state: State,
    /// The reading of the log.
    pub reading: ReadingState,
    /// How far the log was read, in bytes. The next process reads from the last block on, and what it reads
    /// again is no growth. 0 in files of earlier versions.
    #[serde(default)]
    pub read_to: u64,
    /// The moment of the state's times that this was written at. It goes by a clock that nobody sets, and is not
    /// before that in the next process. Null in files of earlier versions.
    #[serde(default)]
    pub at: Option<DateTime<Utc>>,
}

/// The part of a status that is read again.
#[derive(Debug, Deserialize)]
pub(super) struct Kept {
    job_id: Option<String>,
    pub(super) started_at: DateTime<Utc>,
    pub(super) mean_reward: Option<f64>,
    pub(super) resume: Resume,
}

impl Kept {
    /// The status of an earlier watch of this job; none when there is no such file or it cannot be
    /// understood, and then the log is read from its start.
    pub(super) fn read(path: &Path, job: &str) -> Option<Self> {
        let kept: Self = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        (kept.job_id.as_deref() == Some(job)).then_some(kept)
    }
}

impl WatchStatus {
    /// Replaces the file, whole or not at all, and returns what is new to tell of that. It `yields` to a file
    /// that is there.
    pub(super) fn kept(&mut self, yields: bool) -> Option<String> {
        let path = self.status_path.as_ref()?;
        if yields && path.exists() {
            return None;
        }
        let written = whole_file::replace(path, self);
        let (Ok(said) | Err(said)) = self.unwritten.note("the status", written)?;
        Some(said)
    }
}
