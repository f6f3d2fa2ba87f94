//! What stands in the journal. Written once, read for ever: a field is added with a default, and
//! nothing is renamed or removed.

use super::noted::{Noted, Uptime};
use crate::domain::{PodId, Usd};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When it was written, wall time.
    pub at: DateTime<Utc>,
    /// The same by a clock that nobody sets; missing in lines of older versions, and where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<Uptime>,
    /// What happened.
    pub event: Event,
}

impl Entry {
    /// When it was noted.
    #[must_use]
    pub fn noted(&self) -> Noted {
        Noted { at: self.at, up: self.up.clone() }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Event {
    /// A journal was begun.
    Opened {
        /// The config file of the project.
        config: String,
        /// Where the journal before it was set aside, when that could not be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        set_aside: Option<String>,
    },
    /// A changing call is about to be made.
    Intend {
        /// Names this intent in later lines.
        id: u64,
        /// For which vehicle.
        vehicle: String,
        /// What it is.
        action: Action,
        /// What it puts on the bill for an hour, in micro-dollars; missing when nothing or unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        micros_per_hour: Option<i64>,
    },
    /// It was made, and this was observed.
    Done {
        /// Which intent.
        id: u64,
        /// The pod that it made or acted on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pod: Option<PodId>,
        /// What was observed, in the provider's words.
        observed: String,
    },
    /// It failed.
    Failed {
        /// Which intent.
        id: u64,
        /// Why.
        error: String,
        /// Whether it may have taken effect all the same. Then it stays open until it was looked up.
        may_have_taken_effect: bool,
    },
    /// A job was seen to have ended. What is left of its reservation is the time after a job.
    JobEnded {
        /// Which vehicle's.
        vehicle: String,
        /// On which pod.
        pod: PodId,
        /// Its id.
        job: String,
        /// How it ended, in the words of job_status.
        state: String,
    },
    /// The record of a job, `runs/<job>.json` in the vehicle's log folder, was completed.
    RunRecorded {
        /// Which vehicle's.
        vehicle: String,
        /// The job's id.
        job: String,
        /// SHA-256 of the record as it was written, in hex: one that was changed since is noticed.
        sha256: String,
    },
    /// A pod of ours was seen on the bill or off it. Written when that is news.
    PodSeen {
        /// Which vehicle's.
        vehicle: String,
        /// Which.
        pod: PodId,
        /// The provider's word, or `gone` when no list shows it any more.
        status: String,
        /// What it bills for an hour, in micro-dollars; missing when the provider did not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        micros_per_hour: Option<i64>,
        /// When its container was started, by the provider's clock.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_at: Option<DateTime<Utc>>,
    },
    /// A boot was given up since it took too long (I05). The pod's stop is noted by itself.
    BootFailed {
        /// Which vehicle's.
        vehicle: String,
        /// Which pod.
        pod: PodId,
        /// When it was asked to start.
        asked_at: DateTime<Utc>,
        /// How long it was waited for.
        seconds: u64,
        /// What that cost, in micro-dollars; missing when the price was not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        micros: Option<i64>,
    },
}

/// A changing call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Action {
    /// Create a network volume.
    CreateVolume {
        /// Its name.
        name: String,
    },
    /// Create a pod.
    CreatePod {
        /// Its name.
        name: String,
        /// The marker in its environment by which it is found again (B02).
        nonce: String,
    },
    /// Start a stopped pod.
    StartPod {
        /// Which.
        pod: PodId,
    },
    /// Stop a pod.
    StopPod {
        /// Which.
        pod: PodId,
    },
    /// Delete a pod.
    TerminatePod {
        /// Which.
        pod: PodId,
    },
    /// Start a job. Puts no new rate on the bill but reserves the pod's for as long as it may take.
    LaunchJob {
        /// On which pod.
        pod: PodId,
        /// Its id.
        job: String,
        /// The longest it may run, in seconds.
        ceiling_sec: u32,
        /// How long the pod may bill after it, in seconds.
        tail_sec: u64,
        /// When the pod is off the bill at the latest, by the plan's worst case.
        until: DateTime<Utc>,
        /// Where it comes from, as its `meta.json` says.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        provenance: BTreeMap<String, serde_json::Value>,
    },
}

impl Action {
    /// Whether it can put a pod on the bill.
    #[must_use]
    pub const fn can_start_a_bill(&self) -> bool {
        matches!(self, Self::CreatePod { .. } | Self::StartPod { .. })
    }
}

impl Event {
    /// The rate of an intent.
    #[must_use]
    pub fn rate(&self) -> Option<Usd> {
        match self {
            Self::Intend { micros_per_hour, .. } => micros_per_hour.map(Usd::from_micros),
            _ => None,
        }
    }
}
