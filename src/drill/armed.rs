//! Arming one fuse with a short time, and every other one so that it does not strike.

use super::at_work::{Drill, delta};
use crate::deadman::{self, Wish};
use crate::domain::{DrillFuse, JobId, Pod};
use crate::error::{Failure, FailureKind};
use crate::ops::{RunJobRequest, not_armed};
use crate::pod::watchdog::WatchdogState;
use chrono::{DateTime, Utc};
use std::time::Duration;

/// Why a fuse is not armed.
pub(super) enum NotArmed {
    /// It cannot be: it has failed.
    InVain(String),
    /// Something else stood in the way: it was not tried.
    Otherwise(Failure),
}

impl From<Failure> for NotArmed {
    fn from(failure: Failure) -> Self {
        Self::Otherwise(failure)
    }
}

/// A fuse that is armed.
pub(super) struct Armed {
    pub at: DateTime<Utc>,
    pub due: DateTime<Utc>,
    pub job: Option<JobId>,
    /// Of the laptop's fuse.
    pub nonce: Option<String>,
}

impl Drill<'_> {
    /// Arms one fuse and holds every other one off.
    pub(super) async fn arm(&self, fuse: DrillFuse, pod: &Pod) -> Result<Armed, NotArmed> {
        let (terms, after_lease) = self.pace.watchdog(fuse);
        // It counts from some moment of this call: the earliest is taken, so that no strike looks quicker
        // than it was.
        let mut at = self.now();
        let armed = self.tether.arm_for_a_drill(self.vehicle, pod, terms, after_lease).await;
        let is_watchdogs = matches!(
            fuse,
            DrillFuse::WatchdogIdle | DrillFuse::WatchdogDeadline | DrillFuse::Lease
        );
        match armed {
            Ok(report) if is_watchdogs && report.state == WatchdogState::Dead => {
                let why = format!("the watchdog cannot stop the pod: {report}");
                return Err(NotArmed::InVain(why));
            }
            Ok(_) => {}
            // It may have struck before the answer was here; then the pod is off, and its notice tells.
            Err(failure)
                if is_watchdogs
                    && matches!(
                        failure.kind,
                        FailureKind::SshUnreachable | FailureKind::Timeout
                    ) => {}
            Err(failure) => return Err(failure.into()),
        }
        let mut job = None;
        let mut nonce = None;
        let mut due = at + delta(self.pace.due(fuse));
        match fuse {
            DrillFuse::AutoStop => {
                let request = RunJobRequest {
                    name: "drill-auto-stop".into(),
                    command: self.pace.job.0.into(),
                    auto_stop: true,
                    max_runtime_sec: Some(60),
                    vehicle: Some(self.vehicle.name.0.clone()),
                    ..RunJobRequest::default()
                };
                let launched = self.tether.run_job(&request).await?;
                job = JobId::parse(&launched.job_id);
                at = self.now();
                due = at + delta(self.pace.due(fuse));
            }
            DrillFuse::Lease => {
                at = self.now();
                due = at + delta(self.pace.due(fuse));
                self.tether.renew_lease(self.vehicle, pod, self.pace.lease).await?;
            }
            DrillFuse::Deadman => {
                at = self.now();
                due = at + delta(self.pace.due(fuse));
                let mut wish = Wish::new(self.vehicle, due);
                wish.pod = Some(pod.id.clone());
                wish.usd_per_hour = Some(self.rate.per_hour());
                wish.spacing = Duration::from_secs(60);
                let armed =
                    deadman::ensure_armed(self.net.arming(), &wish, self.tether.clock()).await;
                let armed = armed
                    .map_err(|error| NotArmed::InVain(not_armed(self.vehicle, &error).message))?;
                let record = armed.record;
                (nonce, due) = (Some(record.nonce), record.fire_at);
            }
            DrillFuse::WatchdogIdle | DrillFuse::WatchdogDeadline | DrillFuse::Supervise => {}
        }
        Ok(Armed { at, due, job, nonce })
    }
}
