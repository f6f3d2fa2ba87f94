//! run_job.

use crate::error::Failure;
use crate::mcp::tool::{Effect, TetherTool};
use crate::ops::{RunJobAnswer, RunJobRequest, Tether};

pub struct RunJob;

/// Arguments of run_job.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Name: letters, digits, '.', '_' and '-', at most 64 characters.
    #[schemars(length(min = 1, max = 64))]
    name: String,
    /// The command, run by bash with pipefail.
    command: String,
    /// The folder to run in; the volume's mount path when left out.
    workdir: Option<String>,
    /// Stop the pod when the job ends, however it ends. Results on the volume stay.
    #[serde(default)]
    auto_stop: bool,
    /// Run beside a job that is still live.
    #[serde(default)]
    force: bool,
    /// Only show the commands that the real call would send.
    #[serde(default)]
    dry_run: bool,
    /// The longest it may run, in seconds, 1 to 604800; the config's timeouts.job_sec when left out.
    #[schemars(range(min = 1, max = 604_800))]
    max_runtime_sec: Option<i64>,
    /// The vehicle; the config's default when left out.
    vehicle: Option<String>,
}

impl TetherTool for RunJob {
    type Arguments = Arguments;
    type Answer = RunJobAnswer;
    const NAME: &'static str = "run_job";
    const TITLE: &'static str = "Start a job";
    const DESCRIPTION: &'static str = "Starts a detached command on the vehicle's running pod, under a ceiling that is always finite (TERM, then KILL after 60 s). Returns a job_id for job_status. One live job per pod unless force=true. Not safe to repeat: when an answer was lost, look at live_jobs of pod_status first. The pod goes on billing after the job ends unless auto_stop=true. Write results below the mount path; the job's own folder holds out.log and exit_code.";
    const EFFECT: Effect = Effect::Changes { idempotent: false };

    async fn call(tether: &Tether, arguments: Arguments) -> Result<RunJobAnswer, Failure> {
        let Arguments {
            name,
            command,
            workdir,
            auto_stop,
            force,
            dry_run,
            max_runtime_sec,
            vehicle,
        } = arguments;
        let request = RunJobRequest {
            name,
            command,
            workdir,
            auto_stop,
            force,
            dry_run,
            max_runtime_sec,
            vehicle,
            ..RunJobRequest::default()
        };
        tether.run_job(&request).await
    }
}
