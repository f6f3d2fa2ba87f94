//! Which jobs live on a pod, as a look tells.

use super::answer::Answer;
use crate::domain::JobId;

/// Why nobody can say which jobs live. Never taken for "none".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiveJobsError {
    /// The volume hangs, so its folders could not be looked at.
    #[error("the volume is unresponsive, so nobody can say which jobs live; ask again")]
    Unresponsive,
    /// The volume is not there, or cannot be listed.
    #[error("the folder of the jobs cannot be listed; is the volume mounted?")]
    NotListed,
    /// Some folders could not be judged.
    #[error("it could not be read whether these jobs live: {}; look at them with job_status", .0.join(", "))]
    Undecided(Vec<String>),
    /// A live job in a folder whose name is no job id.
    #[error(
        "a job lives in the folder {0:?}, which is no job id of this tool; end it, or rename the folder once it has ended"
    )]
    Strange(String),
}

/// The jobs that live: those whose wrapper lives, whose processes outlived it, or that were launched
/// within the last minute. A job with an exit code is over.
pub(in crate::pod) fn live_jobs(
    answer: &Answer,
    volume_answers: bool,
) -> Result<Vec<JobId>, LiveJobsError> {
    if answer.get("jobs") != Some("whole") {
        return Err(if volume_answers {
            LiveJobsError::NotListed
        } else {
            LiveJobsError::Unresponsive
        });
    }
    let undecided: Vec<String> = answer.all("unknown").map(str::to_owned).collect();
    if !undecided.is_empty() {
        return Err(LiveJobsError::Undecided(undecided));
    }
    let strange = |id: &str| LiveJobsError::Strange(id.to_owned());
    answer.all("live").map(|id| JobId::parse(id).ok_or_else(|| strange(id))).collect()
}
