//! Pieces that several answers share, in the shape that people and agents read.

use crate::apply::StepOutcome;
use crate::cloud::{Cloud, RequestView};
use crate::digest::sha256_hex;
use crate::domain::{Pod, PodId, Price, Usd};
use crate::plan::Step;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which cloud answered. Said in every answer, so that the local cloud is never taken for a real one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CloudName {
    /// The local cloud on this machine; nothing costs anything.
    Local,
    /// RunPod.
    Runpod,
}

impl CloudName {
    pub(crate) fn of(cloud: &dyn Cloud) -> Self {
        if cloud.is_local() { Self::Local } else { Self::Runpod }
    }

    /// Its word in answers and in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Runpod => "runpod",
        }
    }
}

/// A pod in an answer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PodView {
    /// The provider's id.
    pub id: PodId,
    /// Its name.
    pub name: String,
    /// The provider's word for its status.
    pub status: String,
    /// Price of the whole pod for one hour, while it is on the bill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_per_hour: Option<Usd>,
    /// GPU type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_count: Option<u32>,
    /// Where it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_center: Option<String>,
    /// Direct SSH address, `user@host:port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh: Option<String>,
    /// When the present or last container was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
}

impl From<&Pod> for PodView {
    fn from(pod: &Pod) -> Self {
        let price = if pod.status.bills_compute() { pod.price } else { Price::Unknown };
        Self {
            id: pod.id.clone(),
            name: pod.name.clone(),
            status: pod.status.to_string(),
            usd_per_hour: price.known().map(crate::domain::UsdPerHour::per_hour),
            gpu_type: pod.gpu.as_ref().map(|(gpu_type, _)| gpu_type.0.clone()),
            gpu_count: pod.gpu.as_ref().map(|(_, count)| *count),
            data_center: pod.data_center.as_ref().map(|id| id.0.clone()),
            ssh: pod.ssh.as_ref().map(ToString::to_string),
            started_at: pod.started_at,
        }
    }
}

/// One step of a plan: a request to the provider, or a command on the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepView {
    /// The request that is sent to the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestView>,
    /// What a command on the pod is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The command on the pod. `"$(cat remote/NAME)"` stands for a script of podtether, whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What the command reads on stdin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<StdinView>,
}

/// What a command reads on stdin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StdinView {
    /// Length in bytes.
    pub bytes: usize,
    /// SHA-256, in hexadecimal.
    pub sha256: String,
    /// The text, when it is short and is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Text of at most this many bytes is shown whole in a plan.
const SHOWN_STDIN_BYTES: usize = 4_000;

impl StepView {
    pub(crate) fn of(step: &Step, cloud: &dyn Cloud) -> Self {
        match step {
            Step::Cloud(change) => Self {
                request: Some(cloud.preview(change)),
                label: None,
                command: None,
                stdin: None,
            },
            Step::Pod(step) => {
                let stdin = &step.command.stdin;
                let text = (stdin.len() <= SHOWN_STDIN_BYTES)
                    .then(|| String::from_utf8(stdin.clone()).ok())
                    .flatten();
                let view = StdinView { bytes: stdin.len(), sha256: sha256_hex(stdin), text };
                Self {
                    request: None,
                    label: Some(step.label.clone()),
                    command: Some(step.command.to_string()),
                    stdin: (!stdin.is_empty()).then_some(view),
                }
            }
        }
    }

    pub(crate) fn all(steps: &[Step], cloud: &dyn Cloud) -> Vec<Self> {
        steps.iter().map(|step| Self::of(step, cloud)).collect()
    }
}

/// The pod that a plan created or found, and whether its create answer was lost.
pub(crate) fn created_pod(outcomes: &[StepOutcome]) -> Option<(&Pod, bool)> {
    outcomes.iter().find_map(|outcome| match outcome {
        StepOutcome::PodCreated { pod, adopted } => Some((&**pod, *adopted)),
        _ => None,
    })
}

/// The same with a capital.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
