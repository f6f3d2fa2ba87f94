//! One command runs a job unattended and the pod is off at the end: verify, plan, launch, follow,
//! capture, stop and read back, summary.

mod capture;
mod follow;
mod fuse;
mod notices;
mod options;
mod patience;
mod refused;
mod run;
mod state;
mod summary;
mod vigil;
mod watched;

pub use options::{Note, Options};
pub use run::run;
pub use state::{Effect, End, Event, LOOKS_FOR_A_JOB, Moment, State, Terms, exit_code, next};
pub use summary::{Pulled, StepTrouble, Summary};
