//! Request and facts to a draft of steps. Pure: everything known arrives as [`Facts`], and a plan
//! is so specific that carrying it out leaves nothing to decide.

mod ensure;
mod facts;
mod launch;
mod off;
mod on_pod;
mod replace;
mod spend;
mod step;

pub use ensure::{EnsureInputs, ensure};
pub use facts::{Created, Facts, Gate, Gates, LiveJobs, UnknownCreate, VolumeHealth};
pub use launch::{
    JobFile, LaunchSpec, PLACE_TIMEOUT, call_offs, files_dir, job_dir, launch_steps, place_file,
};
pub use off::{stop, terminate};
pub use on_pod::on_pod;
pub use replace::{CHANGED_SINCE, Replacement};
pub use spend::{Committed, Fuse, RecentBoot, RecentBoots, Spend, Spent};
pub use step::{Change, NewPod, NewVolume, PodStep, Step, VolumeRef};

use crate::domain::{Ceiling, JobEnd, PodId, Price, Vehicle};
use std::time::Duration;

/// What somebody wants, in the words that the rules understand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Have the vehicle's pod running: create or start it.
    EnsurePod,
    /// Run one command and wait for it.
    Exec,
    /// Start a job.
    Launch {
        /// Start it beside a live job.
        force: bool,
        /// The longest it may run.
        ceiling: Ceiling,
        /// What comes after it.
        end: JobEnd,
    },
    /// Keep the pod for the links of a campaign, one after the other. Nothing is sent for it: each link
    /// is planned and reviewed by itself when it begins.
    Campaign {
        /// The pod.
        pod: PodId,
        /// How long all links together may take, without what ends them.
        links: Duration,
        /// The longest ceiling of their jobs.
        longest: Ceiling,
        /// What comes after them.
        end: JobEnd,
    },
    /// Change files of the trainings on the pod.
    Patch {
        /// Do it beside a live job.
        force: bool,
    },
    /// Stop the vehicle's pod.
    StopPod,
    /// Delete the vehicle's pod.
    TerminatePod {
        /// The words given as confirmation.
        confirm: String,
    },
}

/// Steps that nobody has approved yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// What it is for.
    pub intent: Intent,
    /// The vehicle it acts for.
    pub vehicle: Vehicle,
    /// Whether the caller named the vehicle, or left it to the default.
    pub vehicle_was_named: bool,
    /// The steps, in order. Empty when nothing is left to do.
    pub steps: Vec<Step>,
    /// The hourly price that the steps put on the bill; `None` when they add nothing to it.
    pub adds: Option<Price>,
}
