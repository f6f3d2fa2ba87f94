//! Which job is meant.

use crate::domain::JobId;
use crate::error::Failure;

/// A job's id, as whoever asks for it gives it.
pub(super) fn job_id(text: &str) -> Result<JobId, Failure> {
    JobId::parse(text).ok_or_else(|| {
        let shown: String = text.chars().take(120).collect();
        Failure::bad_input(format!("job_id={shown:?} is not a job id; run_job returns one such as 20260703-132525_train_00ab"))
    })
}
