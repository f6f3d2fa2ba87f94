//! The laptop's fuse for the verbs: armed before a pod is created or started, extended before a job is
//! launched, called off after a stop that was read back. Off unless a face switches it on.

use super::Tether;
use crate::config::FuseHours;
use crate::deadman::{self, ArmError, Armed, Arming, CallOff, Called, Claim, Wish};
use crate::domain::{
    Ceiling, DeadmanSeen, FuseReport, FuseState, JobEnd, JobsSeen, Pod, Price, UsdPerHour, Vehicle,
    VehicleName,
};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::plan::Fuse;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// From the end of what a fuse covers to its firing: what a supervise that lives needs to stop the
/// pod itself.
const MARGIN: Duration = Duration::from_secs(60);
/// What is left for bringing results home after a job.
const CAPTURE: Duration = Duration::from_secs(15 * 60);

/// What one process claimed last of each vehicle's fuse.
#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<BTreeMap<VehicleName, Claim>>);

impl Claims {
    fn note(&self, vehicle: &Vehicle, armed: &Armed) {
        let mut claims = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        claims.insert(vehicle.name.clone(), armed.claim.clone());
    }

    fn last(&self, vehicle: &Vehicle) -> Option<Claim> {
        let claims = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        claims.get(&vehicle.name).cloned()
    }
}

impl Tether {
    /// The same with what a fuse of this machine is armed with.
    #[must_use]
    pub fn with_arming(self, arming: Arming) -> Self {
        Self { arming: Some(arming), ..self }
    }

    /// The same, arming the laptop's fuse by itself as the config says (`fuse.auto_arm_hours`). Every
    /// face does; what only looks on, or is to leave nothing behind, does not.
    #[must_use]
    pub fn arming_fuses(self) -> Self {
        Self { arms_fuses: true, ..self }
    }

    /// What a fuse is armed with; `None` in a process that was not opened from a config.
    #[must_use]
    pub const fn arming(&self) -> Option<&Arming> {
        self.arming.as_ref()
    }

    fn auto_arm(&self) -> Option<(&Arming, Duration)> {
        match (self.arms_fuses, &self.arming, self.config.auto_arm) {
            (true, Some(arming), FuseHours::After(time)) => Some((arming, time)),
            _ => None,
        }
    }

    /// A20: a pod has a fuse from its first second, so it is armed before the request goes out. A pod
    /// that runs already only gets one when it has none: looking at it does not extend its time.
    pub(super) async fn arm_before_a_start(
        &self,
        vehicle: &Vehicle,
        pod: Option<&Pod>,
        price: Price,
        starts: bool,
    ) -> Result<(), Failure> {
        let Some((arming, time)) = self.auto_arm() else { return Ok(()) };
        let lives = self.deadman_seen(vehicle).is_some_and(|seen| seen.lives != Some(false));
        if !starts && lives {
            return Ok(());
        }
        let mut wish = Wish::new(vehicle, later(self.clock.now(), time));
        wish.pod = pod.map(|pod| pod.id.clone());
        let known = price.known().or_else(|| pod.and_then(|pod| pod.price.known()));
        wish.usd_per_hour = known.map(UsdPerHour::per_hour);
        let armed = deadman::ensure_armed(arming, &wish, &self.clock).await;
        armed
            .map(|armed| self.claims.note(vehicle, &armed))
            .map_err(|error| not_armed(vehicle, &error))
    }

    /// What this process claimed last of the vehicle's fuse, when it armed or extended it.
    pub(crate) fn claim(&self, vehicle: &Vehicle) -> Option<Claim> {
        self.claims.last(vehicle)
    }

    /// The vehicle's fuse on this cloud, as others are told of it.
    pub(super) fn deadman_seen(&self, vehicle: &Vehicle) -> Option<DeadmanSeen> {
        deadman::seen(&vehicle.local_log_dir, self.cloud_name().as_str())
    }

    /// When the fuse that lives has stopped the vehicle's pod, UTC; `None` when none lives.
    pub(super) fn fuse_until(&self, vehicle: &Vehicle) -> Option<DateTime<Utc>> {
        let seen = self.deadman_seen(vehicle)?;
        (seen.lives != Some(false)).then(|| later(seen.fire_at, DeadmanSeen::STOP))
    }

    /// What a start takes for its fuse: the config's time, or a proven fuse that lives and was set for
    /// longer, by an earlier job or by hand. A start does not shorten it.
    pub(super) fn fuse_of_a_start(&self, vehicle: &Vehicle) -> Fuse {
        let Fuse::Unproven { allowance } = self.fuse() else { return self.fuse() };
        let now = self.clock.now();
        let fuse = FuseReport::deadman(self.deadman_seen(vehicle).as_ref(), now);
        let within = fuse.stops_within_sec.filter(|_| fuse.state == FuseState::Armed);
        match within.map(Duration::from_secs).filter(|within| *within > allowance) {
            Some(not_before) => {
                let what = "the laptop's, which is armed for longer already".to_owned();
                Fuse::Proven { what, within: Duration::ZERO, not_before }
            }
            None => Fuse::Unproven { allowance },
        }
    }

    /// Has the fuse fire no earlier than what is about to be launched is over. Never shortens it.
    pub(crate) async fn cover(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        until: DateTime<Utc>,
    ) -> Result<Option<Armed>, Failure> {
        let Some((arming, time)) = self.auto_arm() else { return Ok(None) };
        let lives = self.deadman_seen(vehicle).is_some_and(|seen| seen.lives == Some(true));
        // A new one is armed for no less than the config's time.
        let least = if lives { until } else { later(self.clock.now(), time) };
        let mut wish = Wish::new(vehicle, later(until, MARGIN).max(least));
        wish.pod = Some(pod.id.clone());
        wish.usd_per_hour = pod.price.known().map(UsdPerHour::per_hour);
        let armed = deadman::ensure_armed(arming, &wish, &self.clock).await;
        let armed = armed.map_err(|error| not_armed(vehicle, &error))?;
        self.claims.note(vehicle, &armed);
        Ok(Some(armed))
    }

    /// The same for jobs that live already: a fuse that is armed anew, after the laptop that held the one
    /// before it lost power, knows nothing of them. What keeps it from being extended is logged: the pod
    /// is guarded all the same.
    pub(super) async fn cover_live_jobs(&self, vehicle: &Vehicle, pod: &Pod, jobs: &JobsSeen) {
        let JobsSeen::Known(jobs) = jobs else { return };
        let ends = jobs.iter().filter_map(|job| {
            let ceiling = Duration::from_secs(job.ceiling_sec?.into());
            let grace = Duration::from_secs(u64::from(Ceiling::KILL_GRACE_SEC));
            Some(later(job.started_at?, ceiling + grace + CAPTURE))
        });
        let Some(until) = ends.max() else { return };
        let is_covered = self.fuse_until(vehicle).is_some_and(|fires| fires >= until);
        if !is_covered && let Err(failure) = self.cover(vehicle, pod, until).await {
            tracing::warn!(vehicle = %vehicle.name, "a live job is not covered: {}", failure.message);
        }
    }

    /// The same for a job that is launched now, and for bringing its results home.
    pub(super) async fn cover_job(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        ceiling: Ceiling,
    ) -> Result<(), Failure> {
        let until = later(self.clock.now(), job_time(ceiling) + CAPTURE);
        let covered = self.cover(vehicle, pod, until).await;
        // The pod runs and bills, whatever became of this.
        covered.map(|_| ()).map_err(|failure| failure.billing(StillBilling::Yes))
    }

    /// What a proven fuse is for the worst case of a launch, which extends the laptop's to cover it.
    pub(super) fn once_extended(&self, fuse: Fuse, ceiling: Ceiling, end: JobEnd) -> Fuse {
        self.once_extended_over(fuse, job_time(ceiling), end)
    }

    /// The same for what takes so long.
    pub(super) fn once_extended_over(&self, fuse: Fuse, job: Duration, end: JobEnd) -> Fuse {
        let Fuse::Proven { what, within, not_before } = fuse else { return fuse };
        if self.auto_arm().is_none() {
            return Fuse::Proven { what, within, not_before };
        }
        let over = match end {
            JobEnd::Supervised { max_wait, backstop, capture, stop } => {
                max_wait.unwrap_or(job.saturating_add(backstop)).saturating_add(capture + stop)
            }
            JobEnd::Left | JobEnd::AutoStop => Duration::ZERO,
        };
        let fires = over.max(job + CAPTURE).saturating_add(MARGIN + DeadmanSeen::STOP);
        // The launch extends the laptop's: what that may cost stands under its own name.
        let what = if fires > not_before && fires.saturating_sub(job) > within {
            "the laptop's fuse, which this launch extends".to_owned()
        } else {
            what
        };
        let (within, not_before) = (within.max(fires.saturating_sub(job)), not_before.max(fires));
        Fuse::Proven { what, within, not_before }
    }

    /// Calls the fuse off once the pod was read off the bill, unless another session has armed or
    /// extended it since this run's last `claim`. What keeps it from being called off is told: it then
    /// fires at a pod that is off, which changes nothing, or at the other session's.
    pub(crate) async fn call_off(
        &self,
        vehicle: &Vehicle,
        why: &str,
        claim: Option<&Claim>,
    ) -> Result<bool, Failure> {
        if self.auto_arm().is_none() {
            return Ok(false);
        }
        let call_off = CallOff::ReadOff { why, claim };
        let called = deadman::cancel(&vehicle.local_log_dir, call_off, &self.clock).await;
        called.map(|called| called != Called::NotArmed).map_err(|error| not_armed(vehicle, &error))
    }
}

/// A fuse that could not be armed, as a failure before anything was spent.
#[must_use]
pub fn not_armed(vehicle: &Vehicle, error: &ArmError) -> Failure {
    let name = &vehicle.name;
    let message = format!("the laptop's fuse: {error}");
    match error {
        ArmError::Denied(_) => Failure::new(
            FailureKind::Forbidden,
            message,
            "give the API key read and write access to pods in the RunPod console; nothing was changed",
        ),
        ArmError::Firing { .. } => Failure::new(
            FailureKind::Conflict,
            message,
            "wait until the pod is stopped, or call the fuse off first; nothing was changed",
        )
        .retryable(),
        ArmError::Claimed => Failure::new(
            FailureKind::Conflict,
            message,
            format!(
                "it fires at its time at whatever runs then; `podtether deadman cancel --vehicle {name}` calls it off all the same"
            ),
        ),
        ArmError::OtherCloud { .. } => Failure::new(
            FailureKind::Conflict,
            message,
            format!(
                "stop what that one guards, then `podtether deadman cancel --vehicle {name}`, or give the config of each cloud a local_log_dir of its own; nothing was changed"
            ),
        ),
        ArmError::NotArmed => {
            let hint = format!("arm it: podtether deadman arm --vehicle {name}");
            Failure::new(FailureKind::NotFound, message, hint)
        }
        ArmError::Silent(_) | ArmError::Failed(_) | ArmError::Folder { .. } => Failure::new(
            FailureKind::Internal,
            message,
            "mend what it names, or set fuse.auto_arm_hours: off to go without; nothing was changed",
        ),
    }
}

/// The longest that a job may go on.
fn job_time(ceiling: Ceiling) -> Duration {
    ceiling.duration().saturating_add(Duration::from_secs(u64::from(Ceiling::KILL_GRACE_SEC)))
}

fn later(at: DateTime<Utc>, by: Duration) -> DateTime<Utc> {
    let by = TimeDelta::from_std(by).unwrap_or(TimeDelta::MAX);
    at.checked_add_signed(by).unwrap_or(DateTime::<Utc>::MAX_UTC)
}
