//! Results that come home while the job still runs, so that the last pull, during which the pod bills
//! for nothing, carries only a remainder. Nothing waits for it and nothing fails with it.

use super::options::Options;
use super::summary::Pulled;
use crate::domain::{JobId, Pod, Vehicle};
use crate::ops::Tether;
use chrono::{DateTime, Utc};
use std::pin::Pin;
use std::time::Duration;

/// A pull takes at most this part of the time: it reads from the same volume as the job.
const SHARE: u32 = 5;
/// The longest pause after pulls in vain.
const LONGEST: Duration = Duration::from_secs(900);

/// What one round brought.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    files: u64,
    bytes: u64,
    /// What did not come and why, when that is news; only a note, because the last pull asks again.
    pub trouble: Option<String>,
}

/// The pulls beside a job that runs.
pub(super) struct Meanwhile<'a> {
    tether: &'a Tether,
    vehicle: &'a Vehicle,
    folders: Vec<String>,
    every: Duration,
    /// When the next one is due, on the monotonic clock.
    due: Duration,
    /// When the present one was begun, on the monotonic clock.
    begun: Duration,
    in_vain: u32,
    /// What was in the way last.
    trouble: Option<String>,
    at_work: Option<Pin<Box<dyn Future<Output = Round> + Send + 'a>>>,
}

impl<'a> Meanwhile<'a> {
    pub(super) fn new(
        tether: &'a Tether,
        options: &Options,
        vehicle: &'a Vehicle,
        id: &JobId,
    ) -> Self {
        let mut folders = vec![format!("jobs/{id}")];
        folders.extend(options.sync_subdir.clone());
        let every = options.pull_every;
        let due = tether.clock().monotonic() + every;
        let begun = Duration::ZERO;
        Self {
            tether,
            vehicle,
            folders,
            every,
            due,
            begun,
            in_vain: 0,
            trouble: None,
            at_work: None,
        }
    }

    /// Returns when a round is over. Dropping it loses nothing: the round goes on with the next call.
    pub(super) async fn round(&mut self, pod: &Pod) -> Round {
        let clock = self.tether.clock();
        let at_work = match &mut self.at_work {
            Some(at_work) => at_work,
            None => {
                tokio::time::sleep(self.due.saturating_sub(clock.monotonic())).await;
                self.begun = clock.monotonic();
                let pull = pull(self.tether, self.vehicle, pod.clone(), self.folders.clone());
                self.at_work.insert(Box::pin(pull))
            }
        };
        let mut round = at_work.await;
        self.at_work = None;
        let now = clock.monotonic();
        let took = now.saturating_sub(self.begun);
        self.in_vain = if round.trouble.is_some() { self.in_vain.saturating_add(1) } else { 0 };
        self.due = now + pause(self.every, took, self.in_vain);
        let trouble = round.trouble.take();
        if trouble != self.trouble {
            round.trouble.clone_from(&trouble);
            self.trouble = trouble;
        }
        round
    }

    /// Lets go of what is under way: what it has brought so far is kept for the last pull.
    pub(super) fn end(&mut self) {
        self.at_work = None;
    }
}

fn pause(every: Duration, took: Duration, in_vain: u32) -> Duration {
    let pause = every.max(took.saturating_mul(SHARE - 1));
    // Seldom and slow it may be by its own share; in vain it is not to be more seldom than that.
    let longest = LONGEST.max(pause);
    pause.saturating_mul(2_u32.saturating_pow(in_vain)).min(longest)
}

async fn pull(tether: &Tether, vehicle: &Vehicle, pod: Pod, folders: Vec<String>) -> Round {
    let mut round = Round::default();
    for folder in folders {
        match tether.sync_from(vehicle, &pod, &folder, false, |_| ()).await {
            Ok(answer) => {
                round.files += answer.files;
                round.bytes += answer.bytes;
            }
            // The job may make its folder late, and one that is not there at the end is told then.
            Err(failure) => round.trouble = Some(format!("{folder}: {}", failure.message)),
        }
    }
    round
}

impl Round {
    /// Adds what came to what is home; whether anything did.
    pub(super) fn note(&self, pulled: &mut Pulled, now: DateTime<Utc>) -> bool {
        if self.files == 0 {
            return false;
        }
        pulled.came_early(self.files, self.bytes, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pulls_leave_the_volume_to_the_job_and_give_way_when_they_come_to_nothing() {
        let sec = Duration::from_secs;
        let pause = |took, in_vain| pause(sec(45), sec(took), in_vain).as_secs();
        assert_eq!([pause(1, 0), pause(30, 0), pause(600, 0)], [45, 120, 2_400]);
        assert_eq!([pause(1, 1), pause(1, 3), pause(1, 99)], [90, 360, 900]);
        assert_eq!(pause(600, 9), 2_400);
    }
}
