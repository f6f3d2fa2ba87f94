//! What a drill will do and cost at most, before anything is done. The dry run shows this object, and
//! the drill goes through its boots.

use super::pace::Pace;
use crate::domain::{
    DeadmanSeen, DrillFuse, FailureDomain, Pod, PodId, Price, Usd, UsdPerHour, Vehicle,
};
use crate::error::{Failure, FailureKind};
use crate::ops::{CloudName, StepView, Tether};
use serde::Serialize;
use std::time::Duration;

/// What is asked of a drill.
#[derive(Clone, Debug)]
pub struct DrillRequest {
    /// The vehicle, by name: a drill stops its pod.
    pub vehicle: String,
    /// Which fuses; each once, in the drill's own order.
    pub fuses: Vec<DrillFuse>,
    /// What all of it may cost at most.
    pub max_usd: Usd,
    /// Only show the plan.
    pub dry_run: bool,
}

/// One boot of the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedBoot {
    /// What is let strike in it; null in one that only reads what the last fuse on the pod has left.
    pub fuse: Option<DrillFuse>,
    /// From arming until it is due, in seconds.
    pub due_sec: u64,
    /// The longest that the pod bills: then the outer net stops it, in seconds.
    pub at_most_sec: u64,
    /// What that costs.
    pub usd: Usd,
}

/// The plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DrillPlan {
    /// On which cloud.
    pub cloud: CloudName,
    /// For which vehicle.
    pub vehicle: String,
    /// Its pod, which is off; null when it will be created.
    pub pod: Option<PodId>,
    /// Its GPU.
    pub gpu: String,
    /// What it costs for an hour.
    pub usd_per_hour: Usd,
    /// The boots, in order.
    pub boots: Vec<PlannedBoot>,
    /// All of them at their longest.
    pub worst_case_usd: Usd,
    /// The cap.
    pub max_usd: Usd,
    /// The very requests of the first boot.
    pub first_requests: Vec<StepView>,
}

impl DrillPlan {
    /// Draws it up; changes nothing.
    pub(super) async fn draw(
        tether: &Tether,
        vehicle: &Vehicle,
        request: &DrillRequest,
        pace: &Pace,
    ) -> Result<(Self, Option<Pod>), Failure> {
        let ground = tether.drill_ground(vehicle).await?;
        let Price::Known(rate) = ground.price else {
            return Err(Failure::new(
                FailureKind::Refused,
                "the price of the pod is unknown, so no cap in dollars can be held",
                "try again when the catalog answers; nothing was changed",
            ));
        };
        let boots = boots(&request.fuses, pace, rate);
        let plan = Self {
            cloud: tether.cloud_name(),
            vehicle: vehicle.name.0.clone(),
            pod: ground.pod.as_ref().map(|pod| pod.id.clone()),
            gpu: ground.gpu,
            usd_per_hour: rate.per_hour(),
            worst_case_usd: boots.iter().map(|boot| boot.usd).sum(),
            boots,
            max_usd: request.max_usd,
            first_requests: ground.steps,
        };
        plan.within_the_cap()?;
        plan.within_the_boots(ground.boots_left)?;
        Ok((plan, ground.pod))
    }

    fn within_the_cap(&self) -> Result<(), Failure> {
        if self.worst_case_usd <= self.max_usd {
            return Ok(());
        }
        Err(Failure::new(
            FailureKind::Refused,
            format!(
                "the drill may cost ${} at worst ({} boots of a {} at {}/h, each until the outer net stops it), and the cap is ${}",
                self.worst_case_usd.to_decimal(),
                self.boots.len(),
                self.gpu,
                self.usd_per_hour,
                self.max_usd.to_decimal()
            ),
            format!(
                "--max-usd {} would pass, or fewer --fuses; nothing was changed",
                self.worst_case_usd.to_decimal()
            ),
        ))
    }

    fn within_the_boots(&self, left: Option<usize>) -> Result<(), Failure> {
        let needed = self.boots.len();
        match left.filter(|left| *left < needed) {
            None => Ok(()),
            Some(left) => Err(Failure::new(
                FailureKind::Refused,
                format!(
                    "the drill starts the pod {needed} times, and limits.max_boots_per_hour leaves {left} starts within this hour"
                ),
                "wait, try fewer --fuses at a time, or raise the limit; nothing was changed",
            )),
        }
    }

    /// The plan in lines, for people.
    #[must_use]
    pub fn told(&self) -> Vec<String> {
        let pod =
            self.pod.as_ref().map_or("a pod to be created".to_owned(), |pod| format!("pod {pod}"));
        let mut lines = vec![format!(
            "drill of vehicle {} on {pod}, {} at {}/h",
            self.vehicle, self.gpu, self.usd_per_hour
        )];
        lines.extend(self.first_requests.iter().filter_map(|step| {
            let request = step.request.as_ref()?;
            Some(format!("  first: {} {}", request.method, request.path))
        }));
        lines.extend(self.boots.iter().enumerate().map(|(number, boot)| {
            let what = match boot.fuse {
                Some(fuse) => {
                    format!("{} strikes {} s after it is armed", fuse.as_str(), boot.due_sec)
                }
                None => "reads what the last fuse on the pod has left".to_owned(),
            };
            format!(
                "  boot {}: {what}; off after {} s at most, {}",
                number + 1,
                boot.at_most_sec,
                boot.usd
            )
        }));
        lines.push(format!(
            "  at worst ${}, cap ${}; the network volume bills beside it as ever",
            self.worst_case_usd.to_decimal(),
            self.max_usd.to_decimal()
        ));
        lines
    }
}

/// A boot for each fuse; and one more when the last is on the pod, whose traces only a later boot reads.
fn boots(fuses: &[DrillFuse], pace: &Pace, rate: UsdPerHour) -> Vec<PlannedBoot> {
    let chosen = DrillFuse::ALL.into_iter().filter(|fuse| fuses.contains(fuse));
    let mut all: Vec<Option<DrillFuse>> = chosen.map(Some).collect();
    if all.last().is_some_and(|last| last.is_some_and(|fuse| fuse.domain() == FailureDomain::Pod)) {
        all.push(None);
    }
    let boot = |fuse: Option<DrillFuse>| {
        let longest = pace.step(fuse) + DeadmanSeen::STOP;
        PlannedBoot {
            fuse,
            due_sec: fuse.map_or(Duration::ZERO, |fuse| pace.due(fuse)).as_secs(),
            at_most_sec: longest.as_secs(),
            usd: rate.cost_of(longest),
        }
    };
    all.into_iter().map(boot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::sample;

    fn of(fuses: &[DrillFuse]) -> Vec<PlannedBoot> {
        let pace = Pace::of(false, &sample::vehicle());
        boots(fuses, &pace, UsdPerHour::new(Usd::from_micros(690_000)))
    }

    #[test]
    fn a_boot_reads_what_the_last_fuse_on_the_pod_has_left() {
        use DrillFuse::{AutoStop, Deadman, Lease};
        let fuses = |all: &[DrillFuse]| of(all).iter().map(|boot| boot.fuse).collect::<Vec<_>>();
        assert_eq!(fuses(&DrillFuse::ALL), DrillFuse::ALL.map(Some));
        assert_eq!(fuses(&[Lease, AutoStop]), [Some(AutoStop), Some(Lease), None]);
        assert_eq!(fuses(&[Deadman, Lease]), [Some(Lease), Some(Deadman)]);
        assert_eq!(fuses(&[Deadman]), [Some(Deadman)]);
    }

    /// docs/drill.md tells this sum.
    #[test]
    fn six_boots_of_an_rtx_4090_are_bounded_by_two_dollars() {
        let all = of(&DrillFuse::ALL);
        assert!(all.iter().all(|boot| boot.at_most_sec >= 900 + 300));
        let worst: Usd = all.iter().map(|boot| boot.usd).sum();
        assert!(
            worst > Usd::from_micros(1_000_000) && worst < Usd::from_micros(2_000_000),
            "{worst}"
        );
    }
}
