//! Steps: what a plan is made of, what a dry run prints and what apply executes.

use crate::domain::{CloudTier, DataCenterId, GpuTypeId, PodId, RemoteCommand, VolumeId};
use std::collections::BTreeMap;
use std::time::Duration;

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A change at the provider.
    Cloud(Change),
    /// A command on a pod.
    Pod(PodStep),
}

/// A change at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Create a network volume.
    CreateVolume(NewVolume),
    /// Create a pod. Never sent twice for one plan.
    CreatePod(NewPod),
    /// Start a stopped pod.
    StartPod(PodId),
    /// Stop a pod; what is on its network volume stays.
    StopPod(PodId),
    /// Delete a pod; its network volume stays.
    TerminatePod(PodId),
}

/// A network volume to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewVolume {
    /// Name.
    pub name: String,
    /// Size in GB.
    pub size_gb: u32,
    /// Data centre.
    pub data_center: DataCenterId,
}

/// A volume that exists, or one that an earlier step of the same plan creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeRef {
    /// It exists.
    Existing(VolumeId),
    /// The volume of this name, created by an earlier step.
    Planned(String),
}

/// A pod to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPod {
    /// Name.
    pub name: String,
    /// Container image.
    pub image: String,
    /// GPU type; the provider takes exactly one.
    pub gpu_type: GpuTypeId,
    /// GPUs; always sent, since leaving it out makes every create fail (facts on REST v2).
    pub gpu_count: u32,
    /// CUDA versions that the host may have.
    pub allowed_cuda_versions: Vec<String>,
    /// Cloud tier.
    pub cloud: CloudTier,
    /// Data centre, the volume's own.
    pub data_center: DataCenterId,
    /// Container disk in GB.
    pub container_disk_gb: u32,
    /// The network volume.
    pub volume: VolumeRef,
    /// Where the volume is mounted; always sent, v2 has no default.
    pub mount_path: String,
    /// Ports; always sent, v2 has no default.
    pub ports: Vec<String>,
    /// The container's environment: `PUBLIC_KEY` and the marker of this create.
    pub env: BTreeMap<String, String>,
}

impl NewPod {
    /// The environment variable that carries the unique marker of one create, by which a pod whose
    /// create answer was lost is found again (B02).
    pub const NONCE_ENV: &'static str = "PODTETHER_NONCE";

    /// The marker of this create.
    #[must_use]
    pub fn nonce(&self) -> Option<&str> {
        self.env.get(Self::NONCE_ENV).map(String::as_str)
    }
}

/// A command on a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodStep {
    /// On which pod.
    pub pod: PodId,
    /// What it is for, in a few words.
    pub label: String,
    /// The command, with what it reads on stdin.
    pub command: RemoteCommand,
    /// How long it may take.
    pub timeout: Duration,
}
