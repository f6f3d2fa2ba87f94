//! One command runs a job unattended and the pod is off at the end: verify, plan, launch, follow,
//! capture, stop and read back, summary.

mod begin;
mod between;
mod capture;
mod earlier;
mod follow;
mod fuse;
mod look_up;
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
pub(crate) use begin::run_link;
pub(crate) use earlier::read_summary;
pub(crate) use fuse::{arm as arm_fuse, call_off as call_off_fuse};
pub(crate) use look_up::look_up;
pub use options::{Note, Options, PULL_EVERY, ResumeOptions};
pub(crate) use patience::{CAPTURE_MAX, later, longest_stop, stop_pause, terms as stop_terms};
pub use resume::resume;
pub(crate) use resume::{later_boot, resume_link};
pub(crate) use run::leave;
pub use state::{Effect, End, Event, LOOKS_FOR_A_JOB, Moment, State, Terms, exit_code, next};
pub use summary::{Early, Metrics, Mode, Pulled, Spec, StepTrouble, Summary, TrainingSpec};
pub(crate) use watched::Watched;
