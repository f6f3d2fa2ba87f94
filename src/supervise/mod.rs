//! One command runs a job unattended and the pod is off at the end: verify, plan, launch, follow,
//! capture, stop and read back, summary.

mod begin;
mod between;
mod capture;
mod earlier;
mod follow;
mod fuse;
mod meanwhile;
mod notices;
mod options;
mod patience;
mod record;
mod refused;
mod resume;
mod risk;
mod run;
mod slept;
mod state;
mod summary;
mod vigil;
mod watched;

pub use crate::runs::{Results, RunFile};
pub use begin::run;
pub use options::{Note, Options, PULL_EVERY, ResumeOptions};
pub use resume::resume;
pub use state::{Effect, End, Event, LOOKS_FOR_A_JOB, Moment, State, Terms, exit_code, next};
pub use summary::{Early, Metrics, Mode, Pulled, Spec, StepTrouble, Summary, TrainingSpec};
