//! Follows a job: a held command on the pod that returns when the job ends, and looks at its log in
//! between. Polling is the fallback when the held command is lost.

use crate::domain::{JobId, JobState, Pod, RemoteCommand, Vehicle, scripts};
use crate::error::Failure;
use crate::ops::{LatestMetrics, Tether};
use crate::pod::{ExecLimits, JobLook};
use crate::watch::metrics::{Block, MetricsParser};
use std::time::Duration;

/// How long one held command waits; well below what an idle connection survives, and renewed.
const HOLD: Duration = Duration::from_secs(60);
/// What a held command may take beyond its wait.
const HOLD_SLACK: Duration = Duration::from_secs(10);
/// After a held command was lost, before the job is looked at.
const AFTER_LOSS: Duration = Duration::from_secs(2);
/// How long the volume may take to answer a look.
const PATIENCE: Duration = Duration::from_secs(8);
/// How much of the log one look takes.
const LOOK_BYTES: u32 = 256 * 1024;

/// A job that is being followed, and its log as far as it was read.
pub(super) struct Follower<'a> {
    tether: &'a Tether,
    vehicle: &'a Vehicle,
    pod: Pod,
    id: &'a JobId,
    offset: u64,
    parser: MetricsParser,
}

impl<'a> Follower<'a> {
    pub(super) fn new(
        tether: &'a Tether,
        vehicle: &'a Vehicle,
        pod: &'a Pod,
        id: &'a JobId,
    ) -> Self {
        Self { tether, vehicle, pod: pod.clone(), id, offset: 0, parser: MetricsParser::new() }
    }

    /// Takes the pod as the provider tells it now: every boot has another address (F01).
    pub(super) fn move_to(&mut self, pod: Pod) {
        self.pod = pod;
    }

    /// The pod as it was last told.
    pub(super) const fn pod(&self) -> &Pod {
        &self.pod
    }

    /// One look: the job's state, and what its log has said since the last look.
    pub(super) async fn look(&mut self) -> Result<(JobState, Option<i32>), Failure> {
        let job = JobLook { id: self.id, max_bytes: LOOK_BYTES, offset: Some(self.offset) };
        let (status, _) = self.tether.look_at_job(self.vehicle, &self.pod, job, PATIENCE).await?;
        // A volume that did not answer has not made the log shorter.
        if let Some(log) = &status.log {
            self.parser.push(&log.bytes);
            self.offset = log.next_offset();
        }
        Ok((status.state, status.exit_code))
    }

    /// Returns when the job has ended, when `interval` has passed, or a moment after the held command
    /// was lost: then a look says whether the pod still answers, long before an interval is over.
    pub(super) async fn hold(&self, interval: Duration) {
        let start = self.tether.clock().monotonic();
        let dir = self.tether.job_dir(self.vehicle, self.id);
        loop {
            let spent = self.tether.clock().monotonic().saturating_sub(start);
            let left = interval.saturating_sub(spent);
            if left.is_zero() {
                return;
            }
            // Whole seconds, rounded up: the script counts in seconds.
            let seconds = left.min(HOLD).as_secs_f64().ceil().max(1.0);
            let command =
                RemoteCommand::script(scripts::AWAIT_EXIT, [dir.clone(), format!("{seconds:.0}")]);
            let limits = ExecLimits {
                timeout: left.min(HOLD) + HOLD_SLACK,
                stdout_bytes: 1_024,
                stderr_bytes: 1_024,
            };
            let held = async {
                let shell = self.tether.shell(self.vehicle, &self.pod).ok()?;
                let output = shell.run(&command, limits).await.ok()?;
                Some(output.stdout.text().trim().to_owned())
            };
            match tokio::time::timeout(left + Duration::from_secs(1), held).await {
                Ok(Some(word)) if word == "waiting" => {}
                Ok(Some(word)) if word == "ended" => return,
                Ok(_) => return tokio::time::sleep(AFTER_LOSS.min(left)).await,
                Err(_) => return,
            }
        }
    }

    /// The newest numbers of the log.
    pub(super) fn latest(&self) -> Option<LatestMetrics> {
        self.parser.latest().as_ref().map(LatestMetrics::from)
    }

    /// Iteration and mean reward of every block so far.
    pub(super) fn curve(&self) -> Vec<(u64, f64)> {
        let point = |block: &Block| Some((block.iteration, block.mean_reward?));
        self.parser.blocks().iter().filter_map(point).collect()
    }
}
