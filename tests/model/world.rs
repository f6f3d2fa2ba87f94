//! What is around the machines: pods, a job, clocks, a provider. Small, and as bad as it is allowed
//! to be. Time goes in ticks of a minute.

use chrono::{DateTime, TimeDelta, Utc};
use podtether::deadman::state::Now;
use podtether::domain::JobState;
use std::time::Duration;

/// One tick.
pub const TICK: u64 = 60;

/// Whether a pod bills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Power {
    Running,
    Exited,
    Gone,
}

/// A pod at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pod {
    pub power: Power,
    /// Whether it carries the vehicle's name.
    pub ours: bool,
}

/// The pod that the run and the fuse know by its id.
pub const RUNS: usize = 0;
/// One that somebody else makes under the same name.
pub const ANOTHERS: usize = 1;
/// One of another name; it always runs.
pub const STRANGERS: usize = 2;

/// What goes wrong, or is done by somebody else; each takes one of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bad {
    PodIsStopped,
    PodIsStartedAgain,
    PodIsDeleted,
    PodIsRenamed,
    AnotherPodOfTheName,
    KeyIsRevoked,
    LaptopSleeps,
    ClockIsSetBack,
    SuperviseIsKilled,
    LaptopDies,
    AnotherSessionBegins,
}

/// The world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// True time since the start, in ticks.
    pub time: u8,
    /// How much of it the laptop slept.
    pub slept: u8,
    /// By how much its wall clock was set back.
    pub back: u8,
    pub pods: [Pod; 3],
    /// `None` as long as nothing was placed.
    pub job: Option<JobState>,
    pub revoked: bool,
    /// Whether the fuse was shown the other pod of the name.
    pub fuse_knows_anothers: bool,
    /// What is left of the budgets.
    pub bad: u8,
    pub lies: u8,
    /// A pod that is not ours was stopped.
    pub foreign_stopped: bool,
    /// Anything but a stop was asked of the provider.
    pub else_asked: bool,
}

impl World {
    pub const fn new(bad: u8, lies: u8) -> Self {
        Self {
            time: 0,
            slept: 0,
            back: 0,
            pods: [
                Pod { power: Power::Running, ours: true },
                Pod { power: Power::Gone, ours: true },
                Pod { power: Power::Running, ours: false },
            ],
            job: None,
            revoked: false,
            fuse_knows_anothers: false,
            bad,
            lies,
            foreign_stopped: false,
            else_asked: false,
        }
    }

    pub fn wall(&self) -> DateTime<Utc> {
        at(self.time) - TimeDelta::seconds(i64::from(self.back) * 60)
    }

    pub fn steady(&self) -> Duration {
        Duration::from_secs(u64::from(self.time - self.slept) * TICK)
    }

    pub fn since_boot(&self) -> Duration {
        Duration::from_secs(u64::from(self.time) * TICK)
    }

    pub fn clocks(&self) -> Now {
        Now { wall: self.wall(), monotonic: self.steady(), since_boot: self.since_boot() }
    }

    /// Whether a pod of the vehicle's name bills.
    pub fn bills(&self) -> bool {
        self.pods.iter().any(|pod| pod.ours && pod.power == Power::Running)
    }

    pub fn power_off(&mut self, id: usize, to: Power) {
        self.pods[id].power = to;
        let lives = matches!(self.job, Some(JobState::Starting | JobState::Running));
        if id == RUNS && lives {
            self.job = Some(JobState::Orphaned);
        }
    }

    /// What happens next, if it can.
    pub fn goes_wrong(&self, bad: Bad) -> Option<Self> {
        let mut next = self.clone();
        next.bad = self.bad.checked_sub(1)?;
        let pod = self.pods[RUNS];
        match bad {
            Bad::PodIsStopped if pod.power == Power::Running => {
                next.power_off(RUNS, Power::Exited);
            }
            Bad::PodIsStartedAgain if pod.power == Power::Exited => {
                next.pods[RUNS].power = Power::Running;
            }
            Bad::PodIsDeleted if pod.power != Power::Gone => next.power_off(RUNS, Power::Gone),
            Bad::PodIsRenamed if pod.ours && pod.power != Power::Gone => {
                next.pods[RUNS].ours = false;
            }
            Bad::AnotherPodOfTheName if self.pods[ANOTHERS].power == Power::Gone => {
                next.pods[ANOTHERS].power = Power::Running;
            }
            Bad::KeyIsRevoked if !self.revoked => next.revoked = true,
            Bad::LaptopSleeps => {
                next.time += SLEEP;
                next.slept += SLEEP;
            }
            Bad::ClockIsSetBack if self.back == 0 => {
                next.back = SET_BACK;
            }
            Bad::SuperviseIsKilled | Bad::LaptopDies | Bad::AnotherSessionBegins => {}
            _ => return None,
        }
        Some(next)
    }
}

/// How long the laptop sleeps: past every deadline.
const SLEEP: u8 = 9;
/// How far the clock is set back.
const SET_BACK: u8 = 4;

/// A moment.
pub fn at(ticks: u8) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(1) + TimeDelta::seconds(i64::from(ticks) * 60)
}
