//! Jobs on a pod: what to ask and how to read the answers. The folder that both sides share is
//! described in `remote/README.md`; launches are drafted by [`crate::plan::launch_steps`].

mod answer;
mod live;
pub mod log_text;
mod state;
mod status;

pub use answer::{Answer, AnswerError};
pub use live::{LiveJobsError, live_jobs_command, parse_live_jobs};
pub use status::{JobStatus, LogSlice, parse_status, status_answer_bytes, status_command};
