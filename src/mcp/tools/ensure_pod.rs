//! ensure_pod.

use crate::error::Failure;
use crate::mcp::tool::{Effect, TetherTool};
use crate::ops::{EnsureAnswer, EnsureRequest, Tether};
use std::time::Duration;

pub struct EnsurePod;

/// Arguments of ensure_pod.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Only show the requests that the real call would send.
    #[serde(default)]
    dry_run: bool,
    /// How long to wait for a usable pod, in seconds, 0 to 45.
    #[serde(default = "default_wait")]
    #[schemars(range(min = 0, max = 45))]
    wait_sec: u64,
    /// The vehicle; the config's default when left out.
    vehicle: Option<String>,
}

const MAX_WAIT_SEC: u64 = 45;

const fn default_wait() -> u64 {
    MAX_WAIT_SEC
}

impl TetherTool for EnsurePod {
    type Arguments = Arguments;
    type Answer = EnsureAnswer;
    const NAME: &'static str = "ensure_pod";
    const TITLE: &'static str = "Have the pod running";
    const DESCRIPTION: &'static str = "Creates or starts the vehicle's pod and waits until a probe over SSH proves it usable. THE POD BILLS FROM THEN ON until stop_pod has answered `stopped`. Safe to call again: a pod that runs is left as it is, a lost create is found again and never sent twice. Answers still_initializing when it needs longer: call again. start_failed_no_gpu: no machine is free, or the pod came up without a GPU; the message says whether it bills, `recovery` lists ways out. dry_run=true shows the very requests and changes nothing.";
    const EFFECT: Effect = Effect::Changes { idempotent: true };

    async fn call(tether: &Tether, arguments: Arguments) -> Result<EnsureAnswer, Failure> {
        if arguments.wait_sec > MAX_WAIT_SEC {
            return Err(Failure::bad_input(format!(
                "wait_sec={} is more than {MAX_WAIT_SEC}: call again to go on waiting",
                arguments.wait_sec
            )));
        }
        let request = EnsureRequest {
            vehicle: arguments.vehicle,
            dry_run: arguments.dry_run,
            wait: Duration::from_secs(arguments.wait_sec),
        };
        tether.ensure_pod(&request).await
    }
}
