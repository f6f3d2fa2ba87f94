//! Which jobs live on a pod, as a look tells.

use super::answer::Answer;
use crate::domain::{JobId, JobMeta, LiveJob};

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

/// What the end of a live job does to its pod. What did not come, or makes no sense, is not known.
pub(in crate::pod) fn live_job(answer: &Answer, id: &JobId) -> LiveJob {
    let mut metas = answer.all("live_meta").filter_map(|line| line.split_once(' '));
    let json = metas.find(|(of, _)| *of == id.as_str()).map(|(_, json)| json);
    let meta: Option<JobMeta> = json.and_then(|json| serde_json::from_str(json).ok());
    LiveJob {
        id: id.clone(),
        auto_stop: meta.as_ref().and_then(|meta| meta.auto_stop),
        started_at: meta.as_ref().and_then(|meta| meta.started_at),
        ceiling_sec: meta.and_then(|meta| meta.max_runtime_sec),
        wrapper_is_lost: answer.all("live_lost").any(|of| of == id.as_str()),
    }
}
