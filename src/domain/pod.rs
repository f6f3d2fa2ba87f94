//! Pods as the provider lists them.

use super::{DataCenterId, GpuTypeId, Price, VolumeId};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;
use std::fmt;

/// A pod's id at the provider.
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
pub struct PodId(pub String);

impl fmt::Display for PodId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A pod's observed status.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PodStatus {
    /// A machine is being found.
    Provisioning,
    /// The container is being started.
    Starting,
    /// The container runs. Says nothing about SSH.
    Running,
    /// Stopped: no GPU, no compute bill.
    Exited,
    /// The provider gave up on it; only start and terminate are allowed.
    Error,
    /// Deleted.
    Terminated,
    /// A word that is not known here. Counted as billing.
    Other(String),
}

impl PodStatus {
    /// Whether compute is, or must be taken to be, on the bill. Only what the provider calls
    /// stopped or deleted is not; an unknown word is.
    #[must_use]
    pub const fn bills_compute(&self) -> bool {
        !matches!(self, Self::Exited | Self::Terminated)
    }

    /// The provider's word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Provisioning => "PROVISIONING",
            Self::Starting => "STARTING",
            Self::Running => "RUNNING",
            Self::Exited => "EXITED",
            Self::Error => "ERROR",
            Self::Terminated => "TERMINATED",
            Self::Other(word) => word,
        }
    }
}

impl From<&str> for PodStatus {
    fn from(word: &str) -> Self {
        match word {
            "PROVISIONING" => Self::Provisioning,
            "STARTING" => Self::Starting,
            "RUNNING" => Self::Running,
            "EXITED" => Self::Exited,
            "ERROR" => Self::Error,
            "TERMINATED" => Self::Terminated,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for PodStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which of the provider's clouds a pod is in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CloudTier {
    /// Vetted data centres; the only tier with network volumes.
    Secure,
    /// Hosts of the community.
    Community,
    /// A word that is not known here, or none.
    Other(String),
}

impl CloudTier {
    /// The provider's word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Secure => "SECURE",
            Self::Community => "COMMUNITY",
            Self::Other(word) => word,
        }
    }
}

impl From<&str> for CloudTier {
    fn from(word: &str) -> Self {
        match word {
            "SECURE" => Self::Secure,
            "COMMUNITY" => Self::Community,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for CloudTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A network volume attached to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkMount {
    /// Which volume.
    pub volume_id: VolumeId,
    /// Absolute path inside the pod.
    pub path: String,
}

/// A direct SSH address. It changes on every start, and the first read after a start may still be
/// the old one, so it is never kept across a start.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct SshEndpoint {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Login name.
    pub user: String,
}

impl fmt::Display for SshEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}:{}", self.user, self.host, self.port)
    }
}

/// One pod as the provider lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// The provider's id.
    pub id: PodId,
    /// The name; the provider does not keep names unique.
    pub name: String,
    /// Observed status.
    pub status: PodStatus,
    /// GPU type and count; `None` for a CPU pod or when not told.
    pub gpu: Option<(GpuTypeId, u32)>,
    /// Cloud tier.
    pub cloud: CloudTier,
    /// Where it runs, once the scheduler has decided.
    pub data_center: Option<DataCenterId>,
    /// Network volumes attached.
    pub mounts: Vec<NetworkMount>,
    /// Price of the whole pod for one hour as the provider reports it now. The provider reports 0
    /// for a stopped pod, which is unknown here: it does not say what a start would bill.
    pub price: Price,
    /// Direct SSH address, absent until ready.
    pub ssh: Option<SshEndpoint>,
    /// The container's environment as the provider tells it.
    pub env: BTreeMap<String, String>,
    /// Whether the owner locked it against stop and restart.
    pub locked: bool,
    /// Whether it is part of a cluster.
    pub cluster: bool,
    /// Whether it is a spot pod; REST v2 has none, so this is `true` only when the wire says so.
    pub interruptible: bool,
    /// When it was created.
    pub created_at: Option<DateTime<Utc>>,
    /// When the current or last container was started. Identifies a boot.
    pub started_at: Option<DateTime<Utc>>,
    /// Highest CUDA version of the host's driver, as reported.
    pub cuda_version: Option<String>,
}

impl Pod {
    /// Whether the provider lists it only as a memory.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.status == PodStatus::Terminated
    }

    /// What identifies the present boot: the time the container was started, or else the time the
    /// pod was created.
    #[must_use]
    pub fn boot(&self) -> String {
        let at = self.started_at.or(self.created_at);
        at.map_or_else(|| "unknown".to_owned(), |at| at.to_rfc3339())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E16: an unknown status counts as billing.
    #[test]
    fn only_stopped_and_deleted_pods_are_off_the_bill() {
        for word in ["PROVISIONING", "STARTING", "RUNNING", "ERROR", "MIGRATING", ""] {
            assert!(PodStatus::from(word).bills_compute(), "{word}");
            assert_eq!(PodStatus::from(word).as_str(), word);
        }
        assert!(!PodStatus::Exited.bills_compute());
        assert!(!PodStatus::Terminated.bills_compute());
    }
}
