//! pod_status.

use crate::error::Failure;
use crate::mcp::tool::{Effect, TetherTool};
use crate::ops::{PodStatusAnswer, Tether};

pub struct PodStatus;

/// Arguments of pod_status.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The vehicle; the config's default when left out.
    vehicle: Option<String>,
}

impl TetherTool for PodStatus {
    type Arguments = Arguments;
    type Answer = PodStatusAnswer;
    const NAME: &'static str = "pod_status";
    const TITLE: &'static str = "How the pod is";
    const DESCRIPTION: &'static str = "The vehicle's pod: status, $/h, uptime and cost so far, live jobs or why they are unknown, GPU use, what would stop it by itself, and pods of the account that no vehicle declares. Changes nothing.";
    const EFFECT: Effect = Effect::Reads;

    async fn call(tether: &Tether, arguments: Arguments) -> Result<PodStatusAnswer, Failure> {
        tether.pod_status(arguments.vehicle.as_deref()).await
    }
}
