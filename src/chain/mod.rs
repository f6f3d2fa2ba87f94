//! A campaign: links one after the other on one pod, each within its envelope and held to what it must
//! leave, with one link at the end that stops the pod. Every job of it is a supervised run.

mod before;
mod bill;
mod end;
mod judge;
mod link;
mod prepared;
mod preview;
mod record;
mod run;
mod standing;
mod state;
mod take_up;
mod verdict;

pub use bill::LinkBill;
pub use preview::{LinkPreview, Preview, preview};
pub use record::{Artifact, LinkRecord, Outcome, Record};
pub use run::{Options, run};
pub use state::{Effect, End, Event, Standing, State, Terms, exit_code, next};
