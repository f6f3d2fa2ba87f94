//! A small real training: a controller for a simulated underwater vehicle learns to hold a pose.
//! It is the job of the demo and of rehearsals on the local cloud, so that what is followed,
//! stopped and plotted there is a true learning curve and not a script. Physics and learner are
//! pure functions of their seed; only [`run`] touches files.

pub mod console;
mod dynamics;
mod geometry;
mod learner;
mod params;
mod policy;
pub mod run;
mod task;
mod vehicle;

pub use dynamics::{State, energy, step};
pub use geometry::{Quaternion, Vector};
pub use learner::{Batch, Learner, Report, Settings};
pub use policy::{ACTIONS, OBSERVATIONS, Policy};
pub use task::{Episode, Start, Task};
pub use vehicle::{Hull, Thruster};
