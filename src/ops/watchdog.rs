//! Arms the pod's own watchdog, and tells it that somebody supervises.

use super::Tether;
use super::probe::pod_failure;
use super::watchdog_fuse::watchdog_fuse;
use crate::config::FuseHours;
use crate::domain::{JobsSeen, Pod, Vehicle, Watchdog};
use crate::error::Failure;
use crate::pod::ExecLimits;
use crate::pod::watchdog::{self, WatchdogReport, WatchdogTerms};
use std::time::Duration;

/// The deadline when the config trusts no fuse of the laptop: never none (A21).
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// How long arming may take: some seconds for the environment file, and two calls of the API.
const ARM: ExecLimits = ExecLimits {
    timeout: Duration::from_secs(30),
    stdout_bytes: 64 * 1024,
    stderr_bytes: 8 * 1024,
};
/// With less time it is not tried: the probe of the stop path takes as long.
const LEAST: Duration = Duration::from_secs(4);
const RENEW: ExecLimits = ExecLimits { timeout: Duration::from_secs(10), ..ARM };
/// The watchdog is worth some seconds more than the caller gave.
const ARM_AT_LEAST: Duration = Duration::from_secs(15);
/// How long a pod that answers is asked for its live jobs.
const JOBS: Duration = Duration::from_secs(4);
/// The longest that a client of the protocol waits for a usable pod, and by how much the rest may take
/// longer: an answer after 50 s may find nobody.
const LONGEST_WAIT: Duration = Duration::from_secs(45);
const OVERTIME: Duration = Duration::from_secs(4);

/// The jobs of a pod that is up, and what its watchdog says.
pub(super) type Guarded = (JobsSeen, Watchdog);

impl Tether {
    /// The terms that the config gives the vehicle's watchdog.
    #[must_use]
    pub fn watchdog_terms(&self, vehicle: &Vehicle) -> WatchdogTerms {
        let deadline = match self.config.auto_arm {
            FuseHours::After(time) => time,
            FuseHours::Off => LONGEST,
        };
        // A short idle time is looked at more often: what begins between two looks is use, too.
        let tick = (vehicle.idle / 4).clamp(Duration::from_secs(15), WatchdogTerms::TICK);
        WatchdogTerms { idle: vehicle.idle, tick, deadline }
    }

    /// Has the watchdog watch a pod that was proven ours. One that watches with the same terms goes on;
    /// it takes the call for a use of the pod, and its deadline is put off.
    ///
    /// # Errors
    /// When the pod does not answer or its answer is not whole. Whether it watches is then unknown.
    pub async fn arm_watchdog(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        terms: WatchdogTerms,
    ) -> Result<WatchdogReport, Failure> {
        let shell = self.shell(vehicle, pod)?;
        let command = watchdog::arm_command(&pod.id, &vehicle.volume_mount_path, terms);
        let output = shell.run(&command, ARM).await?;
        watchdog::parse_armed(&output).map_err(|error| pod_failure(&error))
    }

    /// Has a pod that answers watched by its own watchdog, whatever else is wrong with it: it bills.
    /// `took` of the time to `wait` are over.
    pub(super) async fn guard_pod(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        wait: Duration,
        took: Duration,
    ) -> Guarded {
        let (arm_for, jobs_for) = times(wait, took);
        let (armed, jobs) = tokio::join!(
            self.arm_within(vehicle, pod, arm_for),
            self.jobs_within(vehicle, pod, jobs_for)
        );
        let watchdog = match armed {
            Ok(report) => watchdog_fuse(Some(&report), &jobs, self.clock.now()),
            Err(why) => Watchdog::Unknown(why),
        };
        (jobs, watchdog)
    }

    /// Arms it in at most `within`, or says in words for the list of fuses why nobody knows of it. A
    /// failure is none of the caller's: the pod is usable all the same.
    pub(super) async fn arm_within(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        within: Duration,
    ) -> Result<WatchdogReport, String> {
        if within < LEAST {
            return Err("not armed yet, no time was left for it; call ensure_pod again".to_owned());
        }
        let armed = self.arm_watchdog(vehicle, pod, self.watchdog_terms(vehicle));
        match tokio::time::timeout(within, armed).await {
            Ok(Ok(report)) => Ok(report),
            Ok(Err(failure)) => {
                Err(format!("not armed: {}; call ensure_pod again", failure.message))
            }
            Err(_) => Err(format!(
                "not armed yet, it was not done within {} s; call ensure_pod again",
                within.as_secs()
            )),
        }
    }

    /// Tells the watchdog that somebody supervises the pod for so long (C07). Zero takes that back.
    ///
    /// # Errors
    /// When the pod does not answer or its answer is not whole.
    pub async fn renew_lease(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        lasts: Duration,
    ) -> Result<WatchdogReport, Failure> {
        let shell = self.shell(vehicle, pod)?;
        let output = shell.run(&watchdog::lease_command(lasts), RENEW).await?;
        watchdog::parse_lease(&output).map_err(|error| pod_failure(&error))
    }
}

/// How long arming and the look at the jobs may take, side by side, when `took` of the time to `wait`
/// are over.
fn times(wait: Duration, took: Duration) -> (Duration, Duration) {
    let left = wait.max(LONGEST_WAIT).saturating_add(OVERTIME).saturating_sub(took);
    let arm_for = left.min(wait.saturating_sub(took).max(ARM_AT_LEAST));
    (arm_for, left.clamp(Duration::from_secs(1), JOBS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients of the protocol give up on a call after a minute.
    #[test]
    fn an_answer_is_never_more_than_50_seconds_away_however_long_a_boot_has_taken() {
        let sec = Duration::from_secs;
        for wait in 0..=45 {
            for took in 0..=49 {
                let (arm_for, jobs_for) = times(sec(wait), sec(took));
                let tried = if arm_for < LEAST { Duration::ZERO } else { arm_for };
                assert!(sec(took) + tried.max(jobs_for) <= sec(50), "{wait} {took}");
            }
        }
        let arm_for = |wait, took| times(sec(wait), sec(took)).0;
        assert_eq!((arm_for(45, 10), arm_for(0, 2)), (sec(35), ARM_AT_LEAST));
        assert_eq!((arm_for(45, 40), arm_for(600, 599)), (sec(9), sec(5)));
        assert!(arm_for(45, 46) < LEAST, "then it is said that it is not armed yet");
    }
}
