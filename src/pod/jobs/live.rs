//! Which jobs live on a pod: the command, and the reading of its answer.

use super::answer::{Answer, AnswerError};
use crate::domain::{JobId, RemoteCommand, scripts};
use crate::pod::ExecOutput;

/// Why nobody can say which jobs live. Never taken for "none".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiveJobsError {
    /// The answer counts for nothing.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// Some folders could not be judged.
    #[error("it could not be read whether these jobs live: {}; look at them with job_status", .0.join(", "))]
    Undecided(Vec<String>),
    /// A live job in a folder whose name is no job id.
    #[error(
        "a job lives in the folder {0:?}, which is no job id of this tool; end it, or rename the folder once it has ended"
    )]
    Strange(String),
}

/// Asks for the jobs that live: those whose wrapper lives, whose processes outlived it, or that were
/// launched within the last minute. A job with an exit code is over.
#[must_use]
pub fn live_jobs_command(mount: &str) -> RemoteCommand {
    RemoteCommand::script(scripts::LIVE_JOBS, [mount])
}

/// Reads the answer to [`live_jobs_command`].
///
/// # Errors
/// [`LiveJobsError`] when nobody can say.
pub fn parse_live_jobs(output: &ExecOutput) -> Result<Vec<JobId>, LiveJobsError> {
    let answer = Answer::read(scripts::LIVE_JOBS.name, output)?;
    let undecided: Vec<String> = answer.all("unknown").map(str::to_owned).collect();
    if !undecided.is_empty() {
        return Err(LiveJobsError::Undecided(undecided));
    }
    let strange = |id: &str| LiveJobsError::Strange(id.to_owned());
    answer.all("live").map(|id| JobId::parse(id).ok_or_else(|| strange(id))).collect()
}
