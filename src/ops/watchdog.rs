//! Arms the pod's own watchdog, and tells it that somebody supervises.

use super::Tether;
use super::run_job::pod_failure;
use crate::config::FuseHours;
use crate::domain::{Pod, Vehicle};
use crate::error::Failure;
use crate::pod::watchdog::{self, WatchdogReport, WatchdogTerms};
use crate::pod::{ExecLimits, Shell as _};
use std::time::Duration;

/// The deadline when the config trusts no fuse of the laptop: never none (A21).
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// How long arming may take: some seconds for the environment file, and two calls of the API.
const ARM: ExecLimits = ExecLimits {
    timeout: Duration::from_secs(30),
    stdout_bytes: 64 * 1024,
    stderr_bytes: 8 * 1024,
};
const RENEW: ExecLimits = ExecLimits { timeout: Duration::from_secs(10), ..ARM };

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

    /// Arms it in at most `within` and says what came of it, in words for the list of fuses. A
    /// failure is said and is none of the caller's: the pod is usable all the same.
    pub(super) async fn watchdog_fuse(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        within: Duration,
    ) -> String {
        let armed = self.arm_watchdog(vehicle, pod, self.watchdog_terms(vehicle));
        match tokio::time::timeout(within, armed).await {
            Ok(Ok(report)) => report.to_string(),
            Ok(Err(failure)) => {
                format!("the pod's watchdog: not armed, {}; call ensure_pod again", failure.message)
            }
            Err(_) => format!(
                "the pod's watchdog: unknown, it was not armed within {} s; call ensure_pod again",
                within.as_secs()
            ),
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
