//! apply_bluerov_patches.

use crate::error::Failure;
use crate::mcp::tool::{Effect, TetherTool};
use crate::ops::{PatchAnswer, PatchRequest, Tether};
use std::time::Duration;

pub struct ApplyBluerovPatches;

/// Arguments of apply_bluerov_patches.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Only show the commands, and whether every edit fits.
    #[serde(default)]
    dry_run: bool,
    /// Patch beside a job that is still live.
    #[serde(default)]
    force: bool,
}

impl TetherTool for ApplyBluerovPatches {
    type Arguments = Arguments;
    type Answer = PatchAnswer;
    const NAME: &'static str = "apply_bluerov_patches";
    const TITLE: &'static str = "Patch the training source";
    const DESCRIPTION: &'static str = "Patches the training source on the pod of the vehicle that declares patches, all edits or none: refused when the checkout is at another commit, was changed, or an edit does not fit exactly. Leaves a marker. Safe to repeat: a patched tree is left alone. Then run axis_sanity_sweep.";
    const EFFECT: Effect = Effect::Changes { idempotent: true };
    const PATIENCE: Option<Duration> = Some(Duration::from_secs(45));

    async fn call(tether: &Tether, arguments: Arguments) -> Result<PatchAnswer, Failure> {
        let Arguments { dry_run, force } = arguments;
        tether.apply_bluerov_patches(PatchRequest { dry_run, force }).await
    }
}
