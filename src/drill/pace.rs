//! How short the times of a drill are. A provider's machine takes its time; the local cloud's is quick,
//! so there a drill of all six fuses is over within a minute.

use crate::domain::{DrillFuse, Vehicle};
use crate::pod::watchdog::WatchdogTerms;
use std::time::Duration;

/// What is not to strike is held off for so long: longer than any step goes on.
const HOLD: Duration = Duration::from_secs(3600);
/// The times of one drill.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// The longest that a boot may take.
    pub boot: Duration,
    /// The longest that arming may take.
    pub arming: Duration,
    /// How often the watchdog looks.
    pub tick: Duration,
    idle: Duration,
    deadline: Duration,
    /// How long a supervisor's lease lasts.
    pub lease: Duration,
    after_lease: Duration,
    /// From arming to firing of the laptop's fuse.
    pub deadman: Duration,
    /// How long supervise follows a job.
    pub max_wait: Duration,
    /// What the job does, and for how long, before it stops its pod.
    pub job: (&'static str, Duration),
    /// From when it is due until the pod is read as off: a look, a stop by every way, results.
    pub grace: Duration,
    /// What the last stop of a step is given before the net is due.
    stop: Duration,
    /// How often the provider is asked meanwhile.
    pub poll: Duration,
}

impl Pace {
    pub(super) fn of(is_local: bool, vehicle: &Vehicle) -> Self {
        let sec = Duration::from_secs;
        match is_local {
            true => Self {
                boot: vehicle.boot_max.min(sec(30)),
                arming: sec(20),
                tick: sec(1),
                idle: sec(3),
                deadline: sec(3),
                lease: sec(3),
                after_lease: sec(2),
                deadman: sec(5),
                max_wait: sec(3),
                job: ("sleep 2", sec(2)),
                grace: sec(30),
                stop: sec(20),
                poll: Duration::from_millis(200),
            },
            // A stop by every way takes the pod 205 s in vain (remote/stop_pod.sh); a look that hangs 70.
            false => Self {
                boot: vehicle.boot_max,
                arming: sec(60),
                tick: sec(15),
                idle: sec(90),
                deadline: sec(90),
                lease: sec(60),
                after_lease: sec(60),
                deadman: sec(60),
                max_wait: sec(60),
                job: ("sleep 10", sec(10)),
                grace: sec(300),
                stop: sec(120),
                poll: sec(3),
            },
        }
    }

    /// What the watchdog is armed with while this fuse is tried, and how long the pod may be idle once
    /// a lease ran out: everything held off but what is to strike.
    pub(super) const fn watchdog(&self, fuse: DrillFuse) -> (WatchdogTerms, Duration) {
        let mut terms = WatchdogTerms { idle: HOLD, tick: self.tick, deadline: HOLD };
        let mut after_lease = HOLD;
        match fuse {
            DrillFuse::WatchdogIdle => terms.idle = self.idle,
            DrillFuse::WatchdogDeadline => terms.deadline = self.deadline,
            DrillFuse::Lease => after_lease = self.after_lease,
            DrillFuse::AutoStop | DrillFuse::Deadman | DrillFuse::Supervise => {}
        }
        (terms, after_lease)
    }

    /// From arming until it is due.
    pub(super) fn due(&self, fuse: DrillFuse) -> Duration {
        match fuse {
            DrillFuse::AutoStop => self.job.1,
            DrillFuse::WatchdogIdle => self.idle,
            DrillFuse::WatchdogDeadline => self.deadline,
            DrillFuse::Lease => self.lease.max(self.after_lease),
            DrillFuse::Deadman => self.deadman,
            DrillFuse::Supervise => self.max_wait,
        }
    }

    /// The longest that a step goes on before the net strikes; without a fuse it only looks.
    pub(super) fn step(&self, fuse: Option<DrillFuse>) -> Duration {
        let strike = fuse.map_or(Duration::ZERO, |fuse| self.due(fuse) + self.grace);
        self.boot + self.arming + strike + self.stop
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::sample;

    /// Else it would not be clear which one struck.
    #[test]
    fn only_the_fuse_that_is_tried_is_due_within_its_step() {
        for is_local in [true, false] {
            let pace = Pace::of(is_local, &sample::vehicle());
            for fuse in DrillFuse::ALL {
                let longest = pace.step(Some(fuse)) - pace.boot;
                let (terms, after_lease) = pace.watchdog(fuse);
                let short: Vec<DrillFuse> = [
                    (DrillFuse::WatchdogIdle, terms.idle),
                    (DrillFuse::WatchdogDeadline, terms.deadline),
                    (DrillFuse::Lease, after_lease),
                ]
                .into_iter()
                .filter(|(_, time)| *time <= longest)
                .map(|(fuse, _)| fuse)
                .collect();
                let is_watchdogs = fuse.row() == crate::domain::FuseName::Watchdog;
                assert_eq!(short, if is_watchdogs { vec![fuse] } else { vec![] }, "{fuse:?}");
            }
        }
    }
}
