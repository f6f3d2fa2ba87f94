//! What a local cloud remembers: pods, volumes, and the spans of time that they bill.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the shape of `cloud.json`.
pub const VERSION: u32 = 1;

/// Observed status, in the words of REST v2. A terminated pod is not remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    Provisioning,
    Starting,
    Running,
    Exited,
}

impl Status {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Provisioning => "PROVISIONING",
            Self::Starting => "STARTING",
            Self::Running => "RUNNING",
            Self::Exited => "EXITED",
        }
    }

    /// The actions that are valid now (REST v2, `podAction`).
    pub const fn actions(self) -> &'static [&'static str] {
        match self {
            Self::Provisioning | Self::Starting => &["stop", "terminate"],
            Self::Running => &["stop", "restart", "terminate"],
            Self::Exited => &["start", "terminate"],
        }
    }
}

/// A network volume at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mount {
    pub volume_id: String,
    pub path: String,
}

/// One pod.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pod {
    pub id: String,
    pub name: String,
    pub image: String,
    pub args: String,
    pub disk_gb: u32,
    pub ports: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub gpu_id: String,
    pub gpu_count: u32,
    pub cloud: String,
    pub data_center: String,
    pub cuda: String,
    pub mount: Option<Mount>,
    pub status: Status,
    /// Counts the boots; what an earlier boot still had to do is void.
    pub boot: u64,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    /// Port of the SSH server, once it listens.
    pub ssh_port: Option<u16>,
    /// Port of the boot before, which the next one must not get.
    pub last_port: Option<u16>,
    /// The key that may only read, stop and terminate this pod.
    pub key: String,
    /// Price of the whole pod, in micro-dollars for one hour.
    pub rate: i64,
}

/// One network volume.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Volume {
    pub id: String,
    pub name: String,
    pub size_gb: u32,
    pub data_center: String,
    pub kind: String,
    pub created_at: DateTime<Utc>,
}

/// A span of time for which a pod or volume bills. Outlives both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub of: String,
    /// Micro-dollars for one hour: GPUs, or a volume.
    pub rate: i64,
    /// Micro-dollars for one hour: a container disk.
    pub disk_rate: i64,
    pub start: DateTime<Utc>,
    pub end: Option<DateTime<Utc>>,
}

/// Everything that is remembered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Document {
    pub version: u32,
    pub pods: Vec<Pod>,
    pub volumes: Vec<Volume>,
    pub pod_spans: Vec<Span>,
    pub volume_spans: Vec<Span>,
}

impl Document {
    pub const fn new() -> Self {
        Self {
            version: VERSION,
            pods: Vec::new(),
            volumes: Vec::new(),
            pod_spans: Vec::new(),
            volume_spans: Vec::new(),
        }
    }

    pub fn pod(&self, id: &str) -> Option<&Pod> {
        self.pods.iter().find(|pod| pod.id == id)
    }

    pub fn pod_mut(&mut self, id: &str) -> Option<&mut Pod> {
        self.pods.iter_mut().find(|pod| pod.id == id)
    }

    pub fn volume(&self, id: &str) -> Option<&Volume> {
        self.volumes.iter().find(|volume| volume.id == id)
    }

    /// Ends the open span of a pod.
    pub fn end_pod_span(&mut self, id: &str, now: DateTime<Utc>) {
        for span in &mut self.pod_spans {
            if span.of == id && span.end.is_none() {
                span.end = Some(now.max(span.start));
            }
        }
    }
}
