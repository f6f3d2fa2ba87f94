//! What a fuse says of itself while it lives (`deadman.pid`) and when it is over
//! (`deadman-<timestamp>.json`).

use super::fire::Attempt;
use super::state::Outcome;
use crate::domain::{PodId, Usd};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How far a permission is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// It was seen to hold.
    Proven,
    /// It was seen not to hold.
    Denied,
    /// Neither.
    Unproven,
}

/// What was proven of the key when the fuse was armed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// When, UTC.
    pub at: DateTime<Utc>,
    /// That it may read: the account's pods were listed.
    pub read: Word,
    /// That it may stop: a stop of a pod that does not exist was answered with 404.
    pub stop: Word,
    /// Why something of it is not proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Proof {
    /// The state in the words that every face uses.
    #[must_use]
    pub fn in_words(&self) -> String {
        match (self.read, self.stop) {
            (Word::Proven, Word::Proven) => "armed".to_owned(),
            _ => "armed (stop permission unproven)".to_owned(),
        }
    }
}

/// What a fuse says of itself while it lives. People read `pid`; whether it lives is told by the lock
/// beside it and never by a number (A17).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its process.
    pub pid: u32,
    /// When that process began, UTC.
    pub process_started_at: DateTime<Utc>,
    /// The boot of this machine, where the system tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// When it was armed, UTC.
    pub armed_at: DateTime<Utc>,
    /// When it fires, UTC.
    pub fire_at: DateTime<Utc>,
    /// From arming to firing, in hours.
    pub hours: f64,
    /// How many cycles are tried again.
    pub retries: u32,
    /// Between two cycles, in seconds.
    pub spacing_sec: u64,
    /// For which vehicle.
    pub vehicle: String,
    /// The name of its pod.
    pub pod_name: String,
    /// The pod's id, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_id: Option<PodId>,
    /// What the pod bills for an hour, as last known, in micro-dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micros_per_hour: Option<i64>,
    /// `local` or `runpod`.
    pub cloud: String,
    /// The config that it was armed from; not read again.
    pub config: PathBuf,
    /// The version of the program.
    pub version: String,
    /// Tells this fuse from any other of the vehicle.
    pub nonce: String,
    /// What was proven of its key.
    pub proof: Proof,
    /// When it last looked at the clock, UTC.
    pub last_tick: DateTime<Utc>,
    /// The last question of `arm` that it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<String>,
    /// Since when it asks for the stop, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firing_since: Option<DateTime<Utc>>,
    /// Every ask, the latest last; of many in vain only the last are kept.
    #[serde(default)]
    pub attempts: Vec<Attempt>,
    /// How long the machine slept, or its clock was set forward, since it was armed, in seconds.
    #[serde(default)]
    pub slept_for_sec: u64,
}

/// More asks than this are not kept.
const ATTEMPTS: usize = 50;

impl Record {
    /// What the pod costs until it fires, in words and dollars.
    #[must_use]
    pub fn at_risk(&self, now: DateTime<Utc>) -> String {
        super::risk::until_in_words(self.micros_per_hour.map(Usd::from_micros), self.fire_at, now)
    }

    /// Adds an ask.
    pub(super) fn asked(&mut self, attempt: Attempt) {
        if self.attempts.len() >= ATTEMPTS {
            self.attempts.remove(0);
        }
        self.attempts.push(attempt);
    }
}

/// What became of a fuse.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// As it said of itself last.
    #[serde(flatten)]
    pub record: Record,
    /// How it ended.
    pub outcome: Outcome,
    /// What was last read of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_status: Option<String>,
    /// When it ended, UTC.
    pub ended_at: DateTime<Utc>,
    /// Whether the pod may still be running and billing.
    pub pod_may_still_be_running: bool,
    /// The exit code that goes with it.
    pub exit_code: u8,
    /// In words.
    pub message: String,
}
