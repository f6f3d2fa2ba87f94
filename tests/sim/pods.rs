//! Pods, volumes and jobs as they truly are, as functions of time: what a pod was at any moment can
//! be asked for later, which is what a list that lags shows.

use super::logs::SimLog;
use super::watchdog::SimWatchdog;
use chrono::{DateTime, TimeDelta, Utc};
use podtether::domain::{CloudTier, DataCenterId, GpuTypeId, NetworkMount, VolumeId};
use podtether::domain::{Pod, PodId, PodStatus, Price, SshEndpoint, Usd, UsdPerHour, Volume};
use std::collections::BTreeMap;
use std::time::Duration;

/// The one GPU type of the simulated catalog.
pub const GPU: &str = "NVIDIA GeForce RTX 4090";
/// The one data centre.
pub const DATA_CENTER: &str = "EU-RO-1";

/// From a start to the stop after it.
#[derive(Clone, Debug)]
pub struct Run {
    /// When it was started; from then on it bills.
    pub from: DateTime<Utc>,
    /// When the container is up; `None` when it never is.
    pub up: Option<DateTime<Utc>>,
    /// When it was stopped.
    pub ends: Option<DateTime<Utc>>,
    /// Whether it came without a GPU.
    pub zero_gpus: bool,
    /// Its SSH port, another one each time.
    pub port: u16,
    /// Whether something that is no job keeps it in use: a terminal, a `.keepalive`.
    pub is_in_use: bool,
    /// Its own watchdog, once it is armed.
    pub watchdog: Option<SimWatchdog>,
}

/// A pod.
#[derive(Clone, Debug)]
pub struct SimPod {
    pub id: PodId,
    pub name: String,
    /// Whether podtether made it.
    pub is_ours: bool,
    pub env: BTreeMap<String, String>,
    pub volume: Option<VolumeId>,
    pub rate: UsdPerHour,
    pub hidden_until: DateTime<Utc>,
    pub runs: Vec<Run>,
    /// Whether its watchdog has stopped it before.
    pub was_stopped_by_its_own: bool,
    /// Until when what was approved lets it run, at most.
    pub promised_until: DateTime<Utc>,
}

impl SimPod {
    /// When it was made.
    pub fn created(&self) -> DateTime<Utc> {
        self.runs[0].from
    }

    /// The last run that had begun by then, and its place.
    pub fn run_at(&self, at: DateTime<Utc>) -> Option<(usize, &Run)> {
        self.runs.iter().enumerate().rev().find(|(_, run)| run.from <= at)
    }

    /// Whether it was on the bill.
    pub fn bills_at(&self, at: DateTime<Utc>) -> bool {
        self.run_at(at).is_some_and(|(_, run)| run.ends.is_none_or(|end| end > at))
    }

    /// Whether it was on the bill from one moment to the other without a pause.
    pub fn bills_throughout(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> bool {
        // A reboot is no pause.
        let mut at = from;
        for run in self.runs.iter().filter(|run| run.ends.is_none_or(|end| end > from)) {
            if run.from > at {
                return false;
            }
            match run.ends {
                Some(end) if end <= to => at = end,
                _ => return true,
            }
        }
        false
    }

    /// What it cost until then, exactly.
    pub fn cost_until(&self, at: DateTime<Utc>) -> Usd {
        self.cost_between(self.created(), at)
    }

    /// What it cost between two moments.
    pub fn cost_between(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Usd {
        let of_run = |run: &Run| {
            let end = run.ends.unwrap_or(to).min(to);
            let time = (end - run.from.max(from)).to_std().unwrap_or_default();
            self.rate.cost_of(time)
        };
        self.runs.iter().map(of_run).sum()
    }

    /// The pod as the provider knows it, at a moment that may lie in the past; `None` before it was made.
    pub fn shown_at(&self, at: DateTime<Utc>) -> Option<Pod> {
        let (_, run) = self.run_at(at)?;
        let status = match (run.ends, run.up) {
            (Some(end), _) if end <= at => PodStatus::Exited,
            (_, Some(up)) if up <= at => PodStatus::Running,
            (_, Some(up)) if up - TimeDelta::seconds(5) <= at => PodStatus::Starting,
            (_, None) if run.from + TimeDelta::seconds(10) <= at => PodStatus::Starting,
            _ => PodStatus::Provisioning,
        };
        let is_running = status == PodStatus::Running;
        let ssh = SshEndpoint { host: "192.0.2.1".into(), port: run.port, user: "root".into() };
        // The address comes some seconds after the container.
        let has_address = is_running && run.up.is_some_and(|up| up + TimeDelta::seconds(3) <= at);
        Some(Pod {
            id: self.id.clone(),
            name: self.name.clone(),
            gpu: Some((GpuTypeId(GPU.into()), u32::from(!run.zero_gpus))),
            cloud: CloudTier::Secure,
            data_center: Some(DataCenterId(DATA_CENTER.into())),
            mounts: self
                .volume
                .iter()
                .map(|id| NetworkMount { volume_id: id.clone(), path: "/workspace".into() })
                .collect(),
            // The provider reports no price for a stopped pod.
            price: if status == PodStatus::Exited {
                Price::Unknown
            } else {
                Price::Known(self.rate)
            },
            ssh: has_address.then_some(ssh),
            env: self.env.clone(),
            locked: false,
            cluster: false,
            interruptible: false,
            created_at: Some(self.created()),
            started_at: run.up.filter(|up| *up <= at),
            cuda_version: Some("12.4".into()),
            status,
        })
    }
}

/// A network volume and when it was made.
#[derive(Clone, Debug)]
pub struct SimVolume {
    pub volume: Volume,
    pub made: DateTime<Utc>,
}

impl SimVolume {
    /// What it cost until then: whole hours, billed when they are over.
    pub fn cost_until(&self, at: DateTime<Utc>) -> Usd {
        let hours = (at - self.made).num_hours().max(0);
        Volume::rate(self.volume.size_gb).per_hour().saturating_mul(hours)
    }
}

/// A job that was launched.
#[derive(Clone, Debug)]
pub struct SimJob {
    /// Its folder on the volume.
    pub dir: String,
    /// On which pod, in which of its runs.
    pub pod: PodId,
    pub run: usize,
    pub from: DateTime<Utc>,
    /// When it ends by itself or by its ceiling.
    pub ends: DateTime<Utc>,
    pub code: u8,
    pub ceiling: Duration,
    pub auto_stop: bool,
    /// What it writes.
    pub log: SimLog,
}

impl SimJob {
    /// How long after its launch that is.
    pub fn age(&self, at: DateTime<Utc>) -> Duration {
        (at - self.from).to_std().unwrap_or_default()
    }

    /// Its id.
    pub fn id(&self) -> &str {
        self.dir.rsplit('/').next().unwrap_or_default()
    }
}

/// How long a container takes to come up.
pub fn boot_time(seconds: u64) -> TimeDelta {
    TimeDelta::from_std(Duration::from_secs(seconds)).unwrap()
}
