//! axis_sanity_sweep.

use crate::error::Failure;
use crate::mcp::tool::{Effect, TetherTool};
use crate::ops::{SweepAnswer, SweepRequest, Tether};

pub struct AxisSanitySweep;

/// Arguments of axis_sanity_sweep.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Stop the pod when the sweep ends, however it ends.
    #[serde(default)]
    auto_stop: bool,
    /// Only show the commands that the real call would send.
    #[serde(default)]
    dry_run: bool,
}

impl TetherTool for AxisSanitySweep {
    type Arguments = Arguments;
    type Answer = SweepAnswer;
    const NAME: &'static str = "axis_sanity_sweep";
    const TITLE: &'static str = "Sweep the thrusters";
    const DESCRIPTION: &'static str = "Drives one thruster after the other, as a job under timeouts.sweep_sec on the pod of the vehicle that declares a sweep, and compares the signs of the motion with the vehicle's geometry. Needs apply_bluerov_patches first. Returns a job_id and the gate: a PASS marker that is there only after a sweep that passed; the job's log names every wrong sign.";
    const EFFECT: Effect = Effect::Changes { idempotent: false };

    async fn call(tether: &Tether, arguments: Arguments) -> Result<SweepAnswer, Failure> {
        let Arguments { auto_stop, dry_run } = arguments;
        tether.axis_sanity_sweep(SweepRequest { auto_stop, dry_run }).await
    }
}
