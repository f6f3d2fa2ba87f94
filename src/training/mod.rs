//! Trainings: what is run on a vehicle's pod. All but the demo's own training in `auv` is pure: a
//! recipe with a level, a seed and extra arguments becomes a command and the edits of files.

pub mod auv;
pub mod edit;
mod level;
mod run;
mod seed;

pub use level::{LevelError, level};
pub use run::{Run, RunError, artifacts, expected_cost, expected_time, run, run_folder};
pub use seed::{SeedError, seed};

#[cfg(test)]
pub mod sample;
