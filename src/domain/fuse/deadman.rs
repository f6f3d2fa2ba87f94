//! The laptop's fuse, as others see it.

use super::{FuseName, FuseReport, FuseState, Proof, seconds};
use chrono::{DateTime, Utc};
use std::time::Duration;

/// What is known of the laptop's fuse of one vehicle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadmanSeen {
    /// Whether its process lives, told by its lock (A17); `None` when that could not be told.
    pub lives: Option<bool>,
    /// Its process, for people.
    pub pid: u32,
    /// When it stops the pod, UTC.
    pub fire_at: DateTime<Utc>,
    /// When it last looked at the clock, UTC.
    pub last_tick: DateTime<Utc>,
    /// That its key may stop pods, when that was proven.
    pub may_stop: Option<Proof>,
    /// Why that is not proven.
    pub unproven: Option<String>,
    /// Since when it asks for the stop.
    pub firing_since: Option<DateTime<Utc>>,
}

impl DeadmanSeen {
    /// From the deadline to a stop that was read back: one look at the clock and one cycle.
    pub const STOP: Duration = Duration::from_secs(120);
}

/// A fuse that lives looks at the clock at least this often.
const SILENT: Duration = Duration::from_secs(90);

impl FuseReport {
    /// The laptop's fuse; `None` when none is armed.
    #[must_use]
    pub fn deadman(seen: Option<&DeadmanSeen>, now: DateTime<Utc>) -> Self {
        let bare = |state, why| Self::without_proof(FuseName::Deadman, state, why);
        let Some(seen) = seen else {
            let why =
                "none is armed on this machine (podtether deadman arm --vehicle …)".to_owned();
            return bare(FuseState::Off, why);
        };
        let DeadmanSeen { pid, fire_at, .. } = seen;
        let at = fire_at.format("%Y-%m-%d %H:%M UTC");
        let within = seconds(*fire_at - now) + DeadmanSeen::STOP.as_secs();
        let silent_for = seconds(now - seen.last_tick);
        match (seen.lives, seen.firing_since, &seen.may_stop) {
            (Some(false), _, _) => bare(
                FuseState::Dead,
                format!("LOST: process {pid} is gone without having stopped the pod, due {at}"),
            ),
            (None, _, _) => {
                bare(FuseState::Unproven, format!("whether process {pid} lives could not be told"))
            }
            (Some(true), Some(since), _) => bare(
                FuseState::Unproven,
                format!("it asks for the stop since {}", since.format("%H:%M:%S UTC")),
            ),
            (Some(true), None, _) if silent_for > SILENT.as_secs() => bare(
                FuseState::Unproven,
                format!("process {pid} lives but has not looked at the clock for {silent_for} s"),
            ),
            (Some(true), None, None) => Self {
                stops_within_sec: Some(within),
                ..bare(
                    FuseState::Unproven,
                    format!(
                        "armed (stop permission unproven), due {at}: {}",
                        seen.unproven.as_deref().unwrap_or("it was not asked")
                    ),
                )
            },
            (Some(true), None, Some(proof)) => Self::proven(
                FuseName::Deadman,
                proof,
                Some(within),
                format!(
                    "process {pid} stops the pod at {at}, or when this machine wakes after that; needs this machine on and online"
                ),
                now,
            ),
        }
    }
}
