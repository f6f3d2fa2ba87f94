//! What a boot of the pod left on the volume about who stopped it: for a drill, which believes only
//! what was left.

use super::jobs::{Answer, AnswerError};
use super::shell::ExecOutput;
use crate::domain::{RemoteCommand, scripts};

/// What lies on the volume. Counts are compared with those of before the stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrillEvidence {
    /// How many notices the watchdog has left so far, of all boots.
    pub notices: u64,
    /// The last of them: `<time> pod <id>: stop, <why>: <numbers>`.
    pub notice: Option<String>,
    /// The exit code of the job that was asked about.
    pub exit_code: Option<String>,
    /// How many lines the stop at its end has left.
    pub stop_lines: u64,
}

/// Asks for it; `job_dir` is that of a job with auto-stop.
#[must_use]
pub fn evidence_command(mount: &str, job_dir: Option<&str>) -> RemoteCommand {
    RemoteCommand::script(scripts::DRILL_EVIDENCE, [mount, job_dir.unwrap_or("-")])
}

/// Reads the answer.
///
/// # Errors
/// [`AnswerError`] when it is not whole or makes no sense: then nothing is known.
pub fn parse_evidence(output: &ExecOutput) -> Result<DrillEvidence, AnswerError> {
    let answer = Answer::read(scripts::DRILL_EVIDENCE.name, output)?;
    Ok(DrillEvidence {
        notices: answer.number("notices")?.unwrap_or(0),
        notice: answer.get("notice").map(str::to_owned),
        exit_code: answer.get("exit_code").map(str::to_owned),
        stop_lines: answer.number("stop_lines")?.unwrap_or(0),
    })
}
