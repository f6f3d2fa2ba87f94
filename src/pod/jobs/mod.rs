//! Jobs on a pod, as a look tells of them: how to read its answer. The folder that both sides share is
//! described in `remote/README.md`; launches are drafted by [`crate::plan::launch_steps`].

mod answer;
mod live;
pub mod log_text;
mod state;
mod status;

pub use answer::{Answer, AnswerError};
pub use live::LiveJobsError;
pub(super) use live::{live_job, live_jobs};
pub(super) use status::job_status;
pub use status::{JobStatus, LogSlice};
