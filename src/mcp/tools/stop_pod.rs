//! stop_pod.

use crate::error::Failure;
use crate::mcp::tool::{Effect, TetherTool};
use crate::ops::{StopAnswer, Tether};

pub struct StopPod;

/// Arguments of stop_pod.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The vehicle; must be named.
    vehicle: String,
    /// Accepted for symmetry with the command line: a stop is never refused, with or without it.
    #[serde(default)]
    #[expect(dead_code, reason = "a stop has no gentler form that could be skipped")]
    force: bool,
}

impl TetherTool for StopPod {
    type Arguments = Arguments;
    type Answer = StopAnswer;
    const NAME: &'static str = "stop_pod";
    const TITLE: &'static str = "Stop the pod";
    const DESCRIPTION: &'static str = "Takes the vehicle's pod off the bill and reads it back: `stopped` means that EXITED was seen. `stop_unconfirmed` means that it MAY STILL BILL: call again and tell the user. Never refused by any limit. A job that runs is ended; files below the mount path stay, the container disk is wiped. The network volume goes on billing.";
    const EFFECT: Effect = Effect::Destroys { idempotent: true };

    async fn call(tether: &Tether, arguments: Arguments) -> Result<StopAnswer, Failure> {
        tether.stop_pod(&arguments.vehicle).await
    }
}
