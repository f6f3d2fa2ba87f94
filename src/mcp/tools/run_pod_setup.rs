//! run_pod_setup.

use crate::error::Failure;
use crate::mcp::tool::{Effect, TetherTool};
use crate::ops::{RunJobAnswer, SetUpRequest, Tether};

pub struct RunPodSetup;

/// Arguments of run_pod_setup.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Stop the pod when the setup ends, however it ends.
    #[serde(default)]
    auto_stop: bool,
    /// Only show the commands that the real call would send.
    #[serde(default)]
    dry_run: bool,
    /// The vehicle; the config's default when left out.
    vehicle: Option<String>,
}

impl TetherTool for RunPodSetup {
    type Arguments = Arguments;
    type Answer = RunJobAnswer;
    const NAME: &'static str = "run_pod_setup";
    const TITLE: &'static str = "Set the pod up";
    const DESCRIPTION: &'static str = "Runs the setup script of the config on the vehicle's running pod, as a job under timeouts.setup_sec, with the installers' EULA and privacy questions answered yes. Refused beside a live job. Returns a job_id; the step of job_status tells how far it is. What is there already is skipped, so repeat it after every start of the pod: the container disk is wiped on a stop.";
    const EFFECT: Effect = Effect::Changes { idempotent: false };

    async fn call(tether: &Tether, arguments: Arguments) -> Result<RunJobAnswer, Failure> {
        let Arguments { auto_stop, dry_run, vehicle } = arguments;
        tether.run_pod_setup(&SetUpRequest { auto_stop, dry_run, vehicle }).await
    }
}
