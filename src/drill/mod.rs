//! The drill: every fuse is armed with a short time and left to strike by itself, on a pod that is
//! started for it under a hard cap in dollars. What counts is what was read back and what was left
//! behind, and it is written into receipts. Nothing here is a shortcut: the fuses are those of every
//! day, only their times are short.

mod armed;
mod at_work;
mod evidence;
mod found;
mod net;
mod off;
mod pace;
mod plan;
mod report;
mod run;
mod step;

pub use plan::{DrillPlan, DrillRequest, PlannedBoot};
pub use report::DrillReport;
pub use run::run;
