//! Vehicles: a declared purpose with exactly one pod, one network volume and one log folder.

use super::{Ceiling, DataCenterId, GpuTypeId, UsdPerHour};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A vehicle's name in the config.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct VehicleName(pub String);

impl fmt::Display for VehicleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Default ceilings and the longest `exec_on_pod`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Ceiling of `run_pod_setup`.
    pub setup: Ceiling,
    /// Ceiling of `launch_training`.
    pub training: Ceiling,
    /// Ceiling of `axis_sanity_sweep`.
    pub sweep: Ceiling,
    /// Ceiling of `run_job`.
    pub job: Ceiling,
    /// Longest `timeout_sec` of `exec_on_pod`, in seconds.
    pub exec_max_sec: u32,
}

/// A vehicle with every setting resolved: its own keys over the shared ones over the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vehicle {
    /// The name.
    pub name: VehicleName,
    /// The name of its one pod.
    pub pod_name: String,
    /// The name of its network volume. Volumes are found by name, never by id.
    pub network_volume_name: String,
    /// Data centres to create the volume in, first choice first.
    pub datacenter_preference: Vec<DataCenterId>,
    /// The file its pods' host keys are pinned in.
    pub known_hosts_file: PathBuf,
    /// Where its logs and results come to.
    pub local_log_dir: PathBuf,
    /// Cloud tier to ask for.
    pub cloud_type: super::CloudTier,
    /// Allowed GPU types, first choice first.
    pub gpu_type_ids: Vec<GpuTypeId>,
    /// GPUs of its pod.
    pub gpu_count: u32,
    /// Container image.
    pub image_name: String,
    /// CUDA versions that a host may have.
    pub allowed_cuda_versions: Vec<String>,
    /// Container disk in GB; wiped on every stop.
    pub container_disk_gb: u32,
    /// Where the network volume is mounted, absolute.
    pub volume_mount_path: String,
    /// Size of the volume in GB, when it has to be created.
    pub network_volume_gb: u32,
    /// Ports as the provider writes them, `22/tcp` among them.
    pub ports: Vec<String>,
    /// The private SSH key file; its `.pub` neighbour is given to the pod.
    pub ssh_identity: PathBuf,
    /// Quiet time after which the pod's watchdog stops it.
    pub idle: Duration,
    /// Ceilings.
    pub timeouts: Timeouts,
    /// How long the CLIs wait for a pod to become usable.
    pub poll_budget: Duration,
    /// How often a wait looks again.
    pub poll_interval: Duration,
    /// A boot that takes longer is stopped.
    pub boot_max: Duration,
    /// Lowest NVIDIA driver version that will do.
    pub min_driver_version: String,
}

impl Vehicle {
    /// A path below the mount of its network volume, absolute on the pod; the mount itself for "".
    #[must_use]
    pub fn on_volume(&self, inside: &str) -> String {
        let mount = self.volume_mount_path.trim_end_matches('/');
        if inside.is_empty() { mount.to_owned() } else { format!("{mount}/{inside}") }
    }

    /// A vehicle that declares nothing but the name of its pod: for a stop where no config is at
    /// hand. No other field plays a part in a stop, so each holds what allows least: no GPU type, no
    /// port, no file.
    #[must_use]
    pub fn of_pod_name(name: VehicleName, pod_name: String) -> Self {
        let least = Ceiling::SHORTEST;
        Self {
            name,
            pod_name,
            network_volume_name: String::new(),
            datacenter_preference: Vec::new(),
            known_hosts_file: PathBuf::new(),
            local_log_dir: PathBuf::new(),
            cloud_type: super::CloudTier::Secure,
            gpu_type_ids: Vec::new(),
            gpu_count: 0,
            image_name: String::new(),
            allowed_cuda_versions: Vec::new(),
            container_disk_gb: 0,
            volume_mount_path: String::new(),
            network_volume_gb: 0,
            ports: Vec::new(),
            ssh_identity: PathBuf::new(),
            idle: Duration::ZERO,
            timeouts: Timeouts {
                setup: least,
                training: least,
                sweep: least,
                job: least,
                exec_max_sec: 0,
            },
            poll_budget: Duration::ZERO,
            poll_interval: Duration::ZERO,
            boot_max: Duration::ZERO,
            min_driver_version: String::new(),
        }
    }
}

/// Limits on money, over all vehicles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Highest price of a whole pod for one hour.
    pub max_usd_per_hour: Option<UsdPerHour>,
    /// Highest total spend in the budget's window, over the whole account.
    pub budget_usd: Option<super::Usd>,
    /// The time that the budget counts in; a vehicle has none of its own.
    pub budget_window: super::BudgetWindow,
    /// Highest worst-case cost of one job.
    pub max_usd_per_job: Option<super::Usd>,
    /// Most GPUs of one pod.
    pub max_gpu_count: Option<u32>,
    /// Most creates and starts within an hour, over all vehicles.
    pub max_boots_per_hour: Option<u32>,
    /// In how many failure domains a drill must have proven a fuse before anything is started.
    pub require_proven_fuses: Option<u32>,
}

impl Limits {
    /// Both at once: of each limit the tighter one, and one that only one side sets. The budget's
    /// window is that of `self`, which is the side that may have one.
    #[must_use]
    pub fn tighter(&self, other: &Self) -> Self {
        fn least<T: Ord + Copy>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.into_iter().chain(other).min()
        }
        Self {
            max_usd_per_hour: least(self.max_usd_per_hour, other.max_usd_per_hour),
            budget_usd: least(self.budget_usd, other.budget_usd),
            budget_window: self.budget_window,
            max_usd_per_job: least(self.max_usd_per_job, other.max_usd_per_job),
            max_gpu_count: least(self.max_gpu_count, other.max_gpu_count),
            max_boots_per_hour: least(self.max_boots_per_hour, other.max_boots_per_hour),
            // The more that must be proven, the tighter.
            require_proven_fuses: self.require_proven_fuses.max(other.require_proven_fuses),
        }
    }
}
