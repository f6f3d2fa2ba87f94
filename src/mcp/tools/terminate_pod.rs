//! terminate_pod.

use crate::error::Failure;
use crate::mcp::tool::{Effect, TetherTool};
use crate::ops::{TerminateAnswer, Tether};

pub struct TerminatePod;

/// Arguments of terminate_pod.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The vehicle; must be named.
    vehicle: String,
    /// Exactly "terminate <pod_name>", with the vehicle's pod_name from the config.
    confirm: String,
}

impl TetherTool for TerminatePod {
    type Arguments = Arguments;
    type Answer = TerminateAnswer;
    const NAME: &'static str = "terminate_pod";
    const TITLE: &'static str = "Delete the pod";
    const DESCRIPTION: &'static str = "Deletes the vehicle's pod with its container disk and reads back that it is gone. The network volume is never deleted. Only when the user asked for it: stop_pod is enough to end the compute bill. Needs the verbatim words in `confirm`.";
    const EFFECT: Effect = Effect::Destroys { idempotent: true };

    async fn call(tether: &Tether, arguments: Arguments) -> Result<TerminateAnswer, Failure> {
        tether.terminate_pod(&arguments.vehicle, &arguments.confirm).await
    }
}
