//! Follows a job: a held command on the pod that returns when the job ends, and looks at its log in
//! between. Polling is the fallback when the held command is lost.

use crate::domain::{JobId, JobState, Pod, RemoteCommand, Vehicle, scripts};
use crate::error::Failure;
use crate::ops::{LatestMetrics, Tether};
use crate::pod::{ExecLimits, JobLook, Look};
use crate::watch::metrics::{Block, MetricsParser};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
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
/// How much of its end is read at home.
const CATCH_UP_BYTES: u64 = 4 << 20;

/// A job that is being followed, and its log as far as it was read.
pub(super) struct Follower<'a> {
    tether: &'a Tether,
    vehicle: &'a Vehicle,
    pod: Pod,
    id: &'a JobId,
    offset: u64,
    is_behind: bool,
    end: EndTold,
    parser: MetricsParser,
}

/// Whether the held command's word for the end of the job is worth to be waited for. It goes by the file that
/// the job publishes; a look reads it, and may find no exit code in it (E04). Then the word comes at once, each
/// time, and a run that waits for it does nothing but look.
#[derive(Debug, Default)]
struct EndTold {
    told: AtomicBool,
    in_vain: bool,
}

impl EndTold {
    fn tell(&self) {
        self.told.store(true, Ordering::Relaxed);
    }

    fn looked(&mut self, has_ended: bool) {
        self.in_vain |= std::mem::take(self.told.get_mut()) && !has_ended;
    }
}

/// What one look found.
pub(super) struct Found {
    pub state: JobState,
    pub exit_code: Option<i32>,
    pub look: Look,
}

impl<'a> Follower<'a> {
    pub(super) fn new(
        tether: &'a Tether,
        vehicle: &'a Vehicle,
        pod: &'a Pod,
        id: &'a JobId,
    ) -> Self {
        let (pod, parser) = (pod.clone(), MetricsParser::new());
        let end = EndTold::default();
        Self { tether, vehicle, pod, id, offset: 0, is_behind: false, end, parser }
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
    pub(super) async fn look(&mut self) -> Result<Found, Failure> {
        let job = JobLook { id: self.id, max_bytes: LOOK_BYTES, offset: Some(self.offset) };
        let (status, look) =
            self.tether.look_at_job(self.vehicle, &self.pod, job, PATIENCE).await?;
        // A volume that did not answer has not made the log shorter.
        if let Some(log) = &status.log {
            self.parser.push(&log.bytes);
            self.offset = log.next_offset();
            self.is_behind = self.offset < log.size;
        }
        self.end.looked(status.state.has_ended());
        Ok(Found { state: status.state, exit_code: status.exit_code, look })
    }

    /// Whether the log has more than was read of it.
    pub(super) const fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Reads the end of the log from the copy that came home, when the looks did not get to it.
    pub(super) fn catch_up(&mut self, log: &Path) {
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(log)?;
            let last = file.metadata()?.len().saturating_sub(CATCH_UP_BYTES);
            file.seek(SeekFrom::Start(self.offset.max(last)))?;
            let mut rest = Vec::new();
            file.take(CATCH_UP_BYTES).read_to_end(&mut rest)?;
            Ok(rest)
        };
        // Without it the numbers are those of the last look.
        if let Ok(rest) = read() {
            self.parser.push(&rest);
        }
    }

    /// Returns when the job has ended, when `interval` has passed, or a moment after the held command
    /// was lost: then a look says whether the pod still answers, long before an interval is over.
    pub(super) async fn hold(&self, interval: Duration) {
        if self.end.in_vain {
            return tokio::time::sleep(interval).await;
        }
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
                Ok(Some(word)) if word == "ended" => return self.end.tell(),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// E04: an exit_code that is none is said to be the end by whoever waits for the file, and by no look: it
    /// is waited for no more, and the job is looked at once in an interval.
    #[test]
    fn an_end_that_no_look_confirms_is_not_waited_for_again() {
        let mut end = EndTold::default();
        end.looked(false);
        assert!(!end.in_vain, "nobody said that it had ended");
        end.tell();
        end.looked(false);
        assert!(end.in_vain);
        let mut end = EndTold::default();
        end.tell();
        end.looked(true);
        assert!(!end.in_vain);
    }
}
