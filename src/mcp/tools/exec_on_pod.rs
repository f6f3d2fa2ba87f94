//! exec_on_pod.

use crate::error::Failure;
use crate::mcp::tool::{Effect, TetherTool};
use crate::ops::{ExecAnswer, ExecRequest, Tether};

pub struct ExecOnPod;

/// Arguments of exec_on_pod.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The command line, run by bash.
    command: String,
    /// How long to wait, in seconds, 1 to 600. Above 45 some clients give up first; use run_job.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 1, max = 600))]
    timeout_sec: i64,
    /// The folder to run in; the volume's mount path when left out.
    workdir: Option<String>,
    /// The vehicle; the config's default when left out.
    vehicle: Option<String>,
}

const fn default_timeout() -> i64 {
    120
}

impl TetherTool for ExecOnPod {
    type Arguments = Arguments;
    type Answer = ExecAnswer;
    const NAME: &'static str = "exec_on_pod";
    const TITLE: &'static str = "Run a short command";
    const DESCRIPTION: &'static str = "Runs one bash command line on the vehicle's running pod and waits for it. For looking around and quick fixes; anything long goes through run_job, which survives a lost connection. A non-zero exit code is an answer, not a failure. Shows the last 8,000 characters of stdout and 4,000 of stderr. Past timeout_sec it is ended on the pod and fails with kind timeout. Only files below the volume's mount path survive a stop.";
    const EFFECT: Effect = Effect::Destroys { idempotent: false };

    async fn call(tether: &Tether, arguments: Arguments) -> Result<ExecAnswer, Failure> {
        let Arguments { command, timeout_sec, workdir, vehicle } = arguments;
        tether.exec_on_pod(&ExecRequest { command, timeout_sec, workdir, vehicle }).await
    }
}
