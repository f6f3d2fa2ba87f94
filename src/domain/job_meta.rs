//! What a job's folder remembers about its launch: `meta.json`.

use super::PodId;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// `meta.json` of a job. Every field may be missing when read: the folder outlives versions.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default)]
pub struct JobMeta {
    /// The job's name.
    pub name: String,
    /// The command as it was given.
    pub command: String,
    /// The folder it was started in.
    pub workdir: String,
    /// The pod it was started on.
    pub pod_id: Option<PodId>,
    /// Its ceiling in seconds.
    pub max_runtime_sec: Option<u32>,
    /// Whether the pod stops itself when the job ends.
    pub auto_stop: Option<bool>,
    /// When it was launched.
    pub started_at: Option<DateTime<Utc>>,
    /// Where it came from: recipe, level, seed, edits, revision, …
    pub provenance: BTreeMap<String, serde_json::Value>,
}
