//! launch_training.

use crate::error::Failure;
use crate::mcp::tool::{Effect, TetherTool};
use crate::ops::{LaunchTrainingAnswer, LaunchTrainingRequest, Tether, TrainingChoice};

pub struct LaunchTraining;

/// Arguments of launch_training.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The training, as the config names it. It knows its vehicle.
    training: String,
    /// The level, by name or alias, such as none, small or DR_2.
    dr_level: String,
    /// The seed, 0 to 4294967295; 1 when left out.
    // As JSON has it, so that what is no seed is told by the same words as on the command line.
    #[schemars(with = "u32", range(min = 0, max = 4_294_967_295_u32))]
    #[serde(default)]
    seed: Option<serde_json::Number>,
    /// Stop the pod when the job ends, however it ends. Results on the volume stay.
    #[serde(default)]
    auto_stop: bool,
    /// More arguments, split into words; nothing in them is expanded.
    #[serde(default)]
    extra_args: String,
    /// Run beside a job that is still live.
    #[serde(default)]
    force: bool,
    /// Only show what would be done.
    #[serde(default)]
    dry_run: bool,
}

impl TetherTool for LaunchTraining {
    type Arguments = Arguments;
    type Answer = LaunchTrainingAnswer;
    const NAME: &'static str = "launch_training";
    const TITLE: &'static str = "Launch a training";
    const DESCRIPTION: &'static str = "Writes a level's values into the training's source on its vehicle's running pod and starts its command as a job, by the recipe in the config: only the lines with the values change, and what is no known level, or a gate that does not hold, is refused. Ceiling timeouts.training_sec. One live job per pod unless force=true. First call with dry_run=true: it shows diff, command, gates and the most it can cost. Not safe to repeat: when an answer was lost, look at live_jobs of pod_status.";
    const EFFECT: Effect = Effect::Changes { idempotent: false };

    async fn call(tether: &Tether, arguments: Arguments) -> Result<LaunchTrainingAnswer, Failure> {
        let Arguments { training, dr_level, seed, auto_stop, extra_args, force, dry_run } =
            arguments;
        let seed = seed.map(|seed| seed.to_string());
        let choice = TrainingChoice { training, dr_level: Some(dr_level), seed, extra_args };
        let request = LaunchTrainingRequest { choice, auto_stop, force, dry_run };
        tether.launch_training(&request).await
    }
}
