//! What a watch saw beside its status, for people who look on: the new points of the curve, the end of the
//! log, the GPU, what the pod costs and what would stop it.

use super::Tether;
use super::watchdog_fuse::watchdog_fuse;
use crate::domain::{FuseReport, JobState, Pod, UnattendedBill, Usd, UsdPerHour, Vehicle};
use crate::pod::Look;
use chrono::{DateTime, Utc};
use std::time::Duration;

/// One look, for a screen.
#[derive(Clone, Debug)]
pub struct WatchSight {
    /// When, UTC.
    pub at: DateTime<Utc>,
    /// What is known of the job.
    pub job: JobState,
    /// Iterations and mean rewards since the look before.
    pub points: Vec<(u64, f64)>,
    /// The end of the log, without secrets and control characters, oldest line first.
    pub log: Vec<String>,
    /// How long ago the log was written to, by the pod's clock.
    pub log_age: Option<Duration>,
    /// To the end of the run, as the log says.
    pub eta: Option<Duration>,
    /// The pod.
    pub pod: PodSight,
}

/// What a look showed of the pod.
#[derive(Clone, Debug)]
pub struct PodSight {
    /// Its id.
    pub id: String,
    /// The use of the busiest GPU, in percent.
    pub gpu_percent: Option<u32>,
    /// The memory in use on all of them, in MiB.
    pub gpu_memory_mib: Option<u64>,
    /// What it costs in an hour, when that is known.
    pub rate: Option<UsdPerHour>,
    /// Since when it bills, UTC.
    pub since: Option<DateTime<Utc>>,
    /// What would stop it without being asked.
    pub fuses: Vec<FuseReport>,
    /// What it costs at most when nobody looks after it.
    pub unattended: UnattendedBill,
}

impl PodSight {
    /// What this boot has cost by `now`, when the price and its start are known.
    #[must_use]
    pub fn cost(&self, now: DateTime<Utc>) -> Option<Usd> {
        Some(self.rate?.cost_of((now - self.since?).to_std().unwrap_or_default()))
    }
}

impl Tether {
    /// What a look shows of the pod. The fuses are told from files of this machine and from the look itself.
    pub(super) fn sight_of_pod(&self, vehicle: &Vehicle, pod: &Pod, look: &Look) -> PodSight {
        let jobs = look.jobs_seen();
        let watchdog = watchdog_fuse(look.pod.watchdog.as_deref(), &jobs, self.clock.now());
        let (fuses, unattended) = self.fuses(vehicle, pod, &jobs, &watchdog);
        let gpus = &look.pod.gpus;
        let memory: u64 = gpus.iter().filter_map(|gpu| gpu.used_mib).sum();
        PodSight {
            id: pod.id.0.clone(),
            gpu_percent: gpus.iter().filter_map(|gpu| gpu.percent).max(),
            gpu_memory_mib: gpus.iter().any(|gpu| gpu.used_mib.is_some()).then_some(memory),
            rate: pod.price.known(),
            since: pod.started_at,
            fuses,
            unattended,
        }
    }
}
