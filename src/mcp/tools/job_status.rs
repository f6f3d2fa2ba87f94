//! job_status.

use crate::error::Failure;
use crate::mcp::tool::{Effect, TetherTool};
use crate::ops::{JobStatusAnswer, Tether};

pub struct JobStatus;

/// Arguments of job_status.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The job, as run_job returned it.
    job_id: String,
    /// How many lines of the log's end to show, 0 to 400.
    #[serde(default = "default_lines")]
    #[schemars(range(min = 0, max = 400))]
    tail_lines: u32,
    /// The vehicle; the config's default when left out.
    vehicle: Option<String>,
}

const fn default_lines() -> u32 {
    40
}

impl TetherTool for JobStatus {
    type Arguments = Arguments;
    type Answer = JobStatusAnswer;
    const NAME: &'static str = "job_status";
    const TITLE: &'static str = "How a job is";
    const DESCRIPTION: &'static str = "State, exit code, last log lines, latest training numbers, log age and GPU use of one job. State unknown means neither done nor dead: ask again. Changes nothing.";
    const EFFECT: Effect = Effect::Reads;

    async fn call(tether: &Tether, arguments: Arguments) -> Result<JobStatusAnswer, Failure> {
        tether
            .job_status(
                &arguments.job_id,
                arguments.tail_lines.min(400),
                arguments.vehicle.as_deref(),
            )
            .await
    }
}
