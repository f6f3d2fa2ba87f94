//! Gathers what would stop a pod by itself, for every answer that says so.

use super::probe::{LOOK, SHORT};
use super::{Tether, vigil, watchdog_fuse};
use crate::config::FuseHours;
use crate::domain::{
    FuseName, FuseReport, JobsSeen, Pod, UnattendedBill, Vehicle, Watchdog, longest_asleep,
    longest_unattended, slowest_proven,
};
use crate::plan;
use crate::pod::Look;
use crate::pod::watchdog::WatchdogReport;
use std::time::Duration;

impl Tether {
    /// Every fuse of a pod that is, or must be taken to be, on the bill, and what it costs when
    /// nobody looks after it. `watchdog` is what the pod said of its own.
    pub(super) fn fuses(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        jobs: &JobsSeen,
        watchdog: &Watchdog,
    ) -> (Vec<FuseReport>, UnattendedBill) {
        let now = self.clock.now();
        let mut fuses = FuseReport::auto_stop(jobs, watchdog.stop_path(), now);
        let vigils = vigil::seen(&vehicle.local_log_dir);
        fuses.extend(FuseReport::supervise(&vigils, &pod.id, pod.started_at, now));
        fuses.push(FuseReport::watchdog(watchdog, now));
        let deadman = self.deadman_seen(vehicle);
        let mut laptop = FuseReport::deadman(deadman.as_ref(), now);
        if self.config.auto_arm == FuseHours::Off && deadman.is_none() {
            laptop.why.push_str("; fuse.auto_arm_hours is off, so none is armed by itself");
        }
        fuses.push(laptop);
        self.with_receipts(vehicle, &mut fuses);
        let unattended = longest_unattended(pod.price, &fuses);
        (fuses, unattended)
    }

    /// Every fuse of a pod as a look at it told, and what it costs when this laptop sleeps.
    pub(crate) fn fuses_seen(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        look: &Look,
    ) -> (Vec<FuseReport>, UnattendedBill) {
        let (jobs, now) = (look.jobs_seen(), self.clock.now());
        let report = look.pod.watchdog.as_deref();
        let watchdog = watchdog_fuse::watchdog_fuse(report, &jobs, now);
        let (fuses, _) = self.fuses(vehicle, pod, &jobs, &watchdog);
        let asleep = longest_asleep(pod.price, &fuses, now);
        (fuses, asleep)
    }

    /// What the worst case of a launch on this pod takes for its fuse: of what this machine sees by
    /// itself and of the pod's watchdog the slowest that is proven, else `unproven`. `others` are the
    /// jobs that live before the launch.
    pub(super) fn fuse_of_a_plan(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        others: &JobsSeen,
        watchdog: Option<&WatchdogReport>,
        is_supervised: bool,
        unproven: plan::Fuse,
    ) -> plan::Fuse {
        let unasked = JobsSeen::Unknown("the pod was not asked".to_owned());
        let here = plan_fuse(&self.fuses(vehicle, pod, &unasked, &Watchdog::Off).0);
        let now = self.clock.now();
        let pods = watchdog_fuse::plan_fuse(watchdog, others, is_supervised, now);
        slower(here, pods).unwrap_or(unproven)
    }

    /// The jobs of a usable pod and what their end does, looked at for at most `time`.
    pub(super) async fn jobs_within(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        time: Duration,
    ) -> JobsSeen {
        let look = self.look(vehicle, pod, SHORT, false, None);
        match tokio::time::timeout(time.min(LOOK.timeout), look).await {
            Ok(Ok(look)) => look.jobs_seen(),
            Ok(Err(failure)) => JobsSeen::Unknown(failure.message),
            Err(_) => JobsSeen::Unknown("the pod did not answer in time".to_owned()),
        }
    }
}

/// The slowest proven of these fuses, as one of a plan. The bound is from now on; a plan counts it
/// from the end of what it plans, which is the safe side.
fn plan_fuse(fuses: &[FuseReport]) -> Option<plan::Fuse> {
    let is_laptops = |fuse: &FuseReport| fuse.name == FuseName::Deadman;
    let (laptops, others): (Vec<_>, Vec<_>) = fuses.iter().cloned().partition(is_laptops);
    let proven = |name: FuseName, within, not_before| plan::Fuse::Proven {
        what: name.as_str().to_owned(),
        within,
        not_before,
    };
    let others = slowest_proven(&others).map(|(name, time)| proven(name, time, Duration::ZERO));
    // The laptop's is a time of day: over once, and not counted again from the end of a job.
    let laptops = slowest_proven(&laptops).map(|(name, time)| proven(name, Duration::ZERO, time));
    slower(others, laptops)
}

/// What holds for both: the later of each of their bounds.
fn slower(one: Option<plan::Fuse>, other: Option<plan::Fuse>) -> Option<plan::Fuse> {
    use plan::Fuse::Proven;
    match (one, other) {
        (
            Some(Proven { what: one, within: a, not_before: from }),
            Some(Proven { what: other, within: b, not_before: until }),
        ) => {
            let what = if a.max(from) > b.max(until) { one } else { other };
            Some(Proven { what, within: a.max(b), not_before: from.max(until) })
        }
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::FuseState;

    #[test]
    fn only_a_proven_fuse_takes_the_place_of_the_allowance() {
        let fuse = |state, sec| FuseReport {
            stops_within_sec: Some(sec),
            ..FuseReport::without_proof(FuseName::Supervise, state, String::new())
        };
        let unproven = [fuse(FuseState::Unproven, 60), fuse(FuseState::Dead, 60)];
        assert_eq!(plan_fuse(&unproven), None);
        let proven = [fuse(FuseState::Armed, 60), fuse(FuseState::Armed, 90)];
        assert_eq!(plan_fuse(&proven), Some(bounds("supervise", 90, 0)));
        // A time of day is no time after a job.
        let laptops = FuseReport { name: FuseName::Deadman, ..fuse(FuseState::Armed, 3600) };
        assert_eq!(plan_fuse(std::slice::from_ref(&laptops)), Some(bounds("deadman", 0, 3600)));
        let both = [laptops, fuse(FuseState::Armed, 90)];
        assert_eq!(plan_fuse(&both), Some(bounds("deadman", 90, 3600)));
    }

    fn bounds(what: &str, within: u64, not_before: u64) -> plan::Fuse {
        let (within, not_before) = (Duration::from_secs(within), Duration::from_secs(not_before));
        plan::Fuse::Proven { what: what.into(), within, not_before }
    }

    #[test]
    fn of_two_proven_fuses_a_plan_waits_for_the_later_end_of_either() {
        let (here, pods) =
            (|| Some(bounds("supervise", 90, 0)), || Some(bounds("watchdog", 60, 99)));
        assert_eq!(slower(here(), pods()), Some(bounds("watchdog", 90, 99)));
        assert_eq!(slower(here(), None), here());
        assert_eq!(slower(None, pods()), pods());
        assert_eq!(slower(None, None), None);
    }
}
