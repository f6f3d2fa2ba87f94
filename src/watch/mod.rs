//! Following a job's log without changing anything: read, understand, page.

mod divergence;
mod failure;
pub mod metrics;
mod plateau;
mod reading;
pub mod replay;
pub mod state;
mod tail;
mod verdict;

pub use failure::{FailureCause, Finding};
pub use plateau::{Curve, Flat, PlateauRule};
pub use reading::{LogReading, ReadingState};
pub use tail::LogTail;
pub use verdict::Verdict;
