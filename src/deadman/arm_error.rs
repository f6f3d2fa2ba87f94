//! Why no fuse was armed.

use chrono::{DateTime, Utc};
use std::io;
use std::path::PathBuf;

/// No fuse was armed, or none was extended.
#[derive(Debug, thiserror::Error)]
pub enum ArmError {
    /// A07: a fuse that may not stop is none.
    #[error("{0}")]
    Denied(String),
    /// The vehicle's fuse is stopping its pod.
    #[error(
        "the fuse of vehicle {vehicle} fires: it asks for the stop since {since}; `podtether deadman cancel --vehicle {vehicle}` ends that"
    )]
    Firing {
        /// The vehicle.
        vehicle: String,
        /// Since when, UTC.
        since: DateTime<Utc>,
    },
    /// There is none to extend.
    #[error("no fuse of this vehicle is armed")]
    NotArmed,
    /// Somebody has armed or extended it since whoever calls it off did.
    #[error(
        "another session has armed or extended the fuse since, and may have a pod under it, so it was not called off"
    )]
    Claimed,
    /// The vehicle's fuse guards its pod on another cloud than the one that is asked for: real and local are
    /// never mixed up.
    #[error(
        "the vehicle's log folder has a fuse of the {theirs} cloud, which stops nothing on the {ours} one"
    )]
    OtherCloud {
        /// Whose fuse is there: `local` or `runpod`.
        theirs: String,
        /// For which one was to be armed.
        ours: &'static str,
    },
    /// A process holds the lock and says nothing.
    #[error("process {0} holds the fuse's lock and does not answer")]
    Silent(String),
    /// The new process did not settle.
    #[error("the fuse could not be armed: {0}")]
    Failed(String),
    /// The vehicle's log folder.
    #[error("the log folder {} cannot be used: {source}", folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
}
