//! Gathers what would stop a pod by itself, for every answer that says so.

use super::probe::{LOOK, SHORT, live_jobs};
use super::{Tether, vigil};
use crate::config::FuseHours;
use crate::deadman;
use crate::domain::{
    FuseReport, JobId, JobState, JobsSeen, LiveJob, Pod, UnattendedBill, Vehicle, WatchdogSeen,
    longest_unattended, slowest_proven,
};
use crate::plan::{self, LiveJobs};
use crate::pod::JobLook;
use futures_util::future::join_all;
use std::time::Duration;

/// More live jobs than this are not looked at one by one.
const MOST_JOBS: usize = 8;

impl Tether {
    /// Every fuse of a pod that is, or must be taken to be, on the bill, and what it costs when
    /// nobody looks after it. `watchdog` is what the pod said of its own; `None` when it has none.
    pub(super) fn fuses(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        jobs: &JobsSeen,
        watchdog: Option<&WatchdogSeen>,
    ) -> (Vec<FuseReport>, UnattendedBill) {
        let now = self.clock.now();
        let stop_path = watchdog.and_then(|seen| seen.stop_path.as_ref());
        let mut fuses = FuseReport::auto_stop(jobs, stop_path, now);
        let vigils = vigil::seen(&vehicle.local_log_dir);
        fuses.extend(FuseReport::supervise(&vigils, &pod.id, pod.started_at, now));
        fuses.push(FuseReport::watchdog(watchdog, now));
        let deadman = deadman::seen(&vehicle.local_log_dir);
        let mut laptop = FuseReport::deadman(deadman.as_ref(), now);
        if self.config.auto_arm == FuseHours::Off && deadman.is_none() {
            laptop.why.push_str("; fuse.auto_arm_hours is off, so none is armed by itself");
        }
        fuses.push(laptop);
        let unattended = longest_unattended(pod.price, &fuses);
        (fuses, unattended)
    }

    /// What the worst case of a plan for this pod takes for its fuse: of what this machine can see
    /// without asking the pod the slowest that is proven, else `unproven`.
    pub(super) fn fuse_of_a_plan(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        unproven: plan::Fuse,
    ) -> plan::Fuse {
        let jobs = JobsSeen::Unknown("the pod was not asked".to_owned());
        plan_fuse(&self.fuses(vehicle, pod, &jobs, None).0, unproven)
    }

    /// The live jobs with what their end does to the pod, each looked at on the pod.
    pub(super) async fn jobs_seen(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        live: &LiveJobs,
    ) -> JobsSeen {
        match live {
            LiveJobs::Unknown(why) => JobsSeen::Unknown(why.clone()),
            LiveJobs::Known(ids) => {
                let looks = ids.iter().take(MOST_JOBS).map(|id| self.live_job(vehicle, pod, id));
                let mut jobs = join_all(looks).await;
                jobs.extend(ids.iter().skip(MOST_JOBS).map(unread));
                JobsSeen::Known(jobs)
            }
        }
    }

    async fn live_job(&self, vehicle: &Vehicle, pod: &Pod, id: &JobId) -> LiveJob {
        let job = JobLook { id, max_bytes: 1, offset: None };
        let Ok((status, _)) = self.look_at_job(vehicle, pod, job, SHORT).await else {
            return unread(id);
        };
        let meta = status.meta;
        LiveJob {
            auto_stop: meta.as_ref().and_then(|meta| meta.auto_stop),
            started_at: meta.as_ref().and_then(|meta| meta.started_at),
            ceiling_sec: meta.and_then(|meta| meta.max_runtime_sec),
            wrapper_is_lost: matches!(status.state, JobState::WrapperLost | JobState::Orphaned),
            ..unread(id)
        }
    }

    /// The jobs of a usable pod and what their end does, looked at for at most `time`.
    pub(super) async fn jobs_within(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        time: Duration,
    ) -> JobsSeen {
        let looking = async {
            let live = match self.look(vehicle, pod, SHORT, false, None).await {
                Ok(look) => live_jobs(&look),
                Err(failure) => LiveJobs::Unknown(failure.message),
            };
            self.jobs_seen(vehicle, pod, &live).await
        };
        tokio::time::timeout(time.min(LOOK.timeout), looking)
            .await
            .unwrap_or_else(|_| JobsSeen::Unknown("the pod did not answer in time".to_owned()))
    }
}

/// A job of which only the id is known.
fn unread(id: &JobId) -> LiveJob {
    LiveJob {
        id: id.clone(),
        auto_stop: None,
        started_at: None,
        ceiling_sec: None,
        wrapper_is_lost: false,
    }
}

/// What the worst case of a plan takes for the fuse of an unwatched pod: the slowest that is proven,
/// else `unproven`, which is counted for an allowance.
///
/// The bound is from now on; a plan counts it from the end of what it plans, which is the safe side.
fn plan_fuse(fuses: &[FuseReport], unproven: plan::Fuse) -> plan::Fuse {
    match slowest_proven(fuses) {
        Some((name, within)) => plan::Fuse::Proven { what: name.as_str().to_owned(), within },
        None => unproven,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{FuseName, FuseState};

    #[test]
    fn only_a_proven_fuse_takes_the_place_of_the_allowance() {
        let allowance = plan::Fuse::Unproven { allowance: Duration::from_secs(3 * 3600) };
        let fuse = |state, sec| FuseReport {
            stops_within_sec: Some(sec),
            ..FuseReport::without_proof(FuseName::Supervise, state, String::new())
        };
        let unproven = [fuse(FuseState::Unproven, 60), fuse(FuseState::Dead, 60)];
        assert_eq!(plan_fuse(&unproven, allowance.clone()), allowance);
        let proven = [fuse(FuseState::Armed, 60), fuse(FuseState::Armed, 90)];
        let within = Duration::from_secs(90);
        let expected = plan::Fuse::Proven { what: "supervise".into(), within };
        assert_eq!(plan_fuse(&proven, allowance), expected);
    }
}
