//! What became of a vehicle's fuse, in a word, an exit code and a sentence.

use super::record::{Summary, Word};
use super::seat::{self, Seen};
use super::state::Outcome;
use crate::domain::{DeadmanSeen, Proof, Usd};
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::path::Path;

/// The state of one vehicle's fuse.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VehicleStatus {
    /// The vehicle.
    pub vehicle: String,
    /// `armed`, `stopped`, `cancelled`, `refused`, `not_armed`, `LOST` or `stop_failed`.
    pub state: String,
    /// The exit code that goes with it.
    pub code: u8,
    /// In words.
    pub message: String,
    /// When it fires, or was to fire, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fire_at: Option<DateTime<Utc>>,
    /// When it last looked at the clock, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_tick: Option<DateTime<Utc>>,
    /// How long ago that is, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_tick_age_sec: Option<u64>,
    /// When the timer of `deadman install` last looked, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_tick: Option<DateTime<Utc>>,
    /// What it costs when this machine sleeps or is shut down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_it_sleeps: Option<String>,
    /// What it says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuse: Option<super::Record>,
    /// How the last one ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Summary>,
}

/// A fuse that fires and has not stopped the pod for so long is no good news any more, in seconds.
const OVERDUE: u64 = 180;

/// A fuse that lives looks at the clock at least this often, in seconds.
const SILENT: u64 = 90;

/// What lies in a vehicle's log folder.
#[must_use]
pub fn look(folder: &Path) -> Seen {
    seat::look(folder)
}

/// The same as other fuses are told; `None` when none is armed.
#[must_use]
pub fn seen(folder: &Path) -> Option<DeadmanSeen> {
    let (lives, record) = match seat::look(folder) {
        Seen::Lives(Some(record)) => (Some(true), record),
        Seen::Lost(record) => (Some(false), record),
        Seen::Lives(None) | Seen::Nothing(_) | Seen::Unreadable(_) => return None,
    };
    let proof = &record.proof;
    let is_proven = proof.stop == Word::Proven && proof.read == Word::Proven;
    let what = "its key listed the pods, and a stop of a pod that does not exist was answered with 404, not 403";
    Some(DeadmanSeen {
        lives,
        pid: record.pid,
        fire_at: record.fire_at,
        last_tick: record.last_tick,
        may_stop: is_proven.then(|| Proof { what: what.to_owned(), at: proof.at }),
        unproven: proof.why.clone(),
        firing_since: record.firing_since,
    })
}

/// The worst code of several.
#[must_use]
pub fn worst(statuses: &[VehicleStatus]) -> u8 {
    statuses.iter().map(|status| status.code).max().unwrap_or(0)
}

/// The state of a vehicle's fuse.
#[must_use]
pub fn status(vehicle: &str, folder: &Path, now: DateTime<Utc>) -> VehicleStatus {
    let bare = |state: &str, code, message: String| VehicleStatus {
        vehicle: vehicle.to_owned(),
        state: state.to_owned(),
        code,
        message,
        fire_at: None,
        last_tick: None,
        last_tick_age_sec: None,
        timer_tick: super::timer::last_tick(folder),
        if_it_sleeps: None,
        fuse: None,
        last: None,
    };
    let age = |at: DateTime<Utc>| u64::try_from((now - at).num_seconds()).unwrap_or(0);
    match seat::look(folder) {
        Seen::Lives(None) => bare("not_armed", 0, "one is being armed".to_owned()),
        Seen::Unreadable(why) => bare("LOST", 1, format!("whether one lives is not known: {why}")),
        Seen::Lives(Some(record)) => {
            let ticked = age(record.last_tick);
            let (code, message) = match record.firing_since {
                Some(since) => {
                    let said = record.attempts.last().map_or("", |last| last.message.as_str());
                    let code = u8::from(age(since) > OVERDUE);
                    (code, format!("fires since {}; {said}", hour(since)))
                }
                None if ticked > SILENT => {
                    (1, format!("process {} lives and looks at no clock", record.pid))
                }
                None => {
                    let why = record.proof.why.as_ref();
                    let why = why.map_or_else(String::new, |why| format!(" ({why})"));
                    (
                        0,
                        format!(
                            "{}{why}; fires at {}",
                            record.proof.in_words(),
                            hour(record.fire_at)
                        ),
                    )
                }
            };
            VehicleStatus {
                fire_at: Some(record.fire_at),
                last_tick: Some(record.last_tick),
                last_tick_age_sec: Some(ticked),
                if_it_sleeps: Some(sleep_risk(
                    record.micros_per_hour.map(Usd::from_micros),
                    record.fire_at,
                )),
                message: format!("{message}; last tick {ticked} s ago"),
                fuse: Some(*record),
                ..bare("armed", code, String::new())
            }
        }
        Seen::Lost(record) => {
            let due = if record.fire_at <= now { "was due" } else { "is due" };
            let message = format!(
                "process {} is gone without having stopped the pod, which {due} at {} and MAY BILL: arm it again, or `podtether stop --vehicle {vehicle}`",
                record.pid,
                hour(record.fire_at)
            );
            VehicleStatus {
                fire_at: Some(record.fire_at),
                last_tick: Some(record.last_tick),
                last_tick_age_sec: Some(age(record.last_tick)),
                fuse: Some(*record),
                ..bare("LOST", 1, message)
            }
        }
        Seen::Nothing(None) => bare("not_armed", 0, "none is armed".to_owned()),
        Seen::Nothing(Some(summary)) => {
            let code = match summary.outcome {
                // Refused when it was armed, nothing was promised; when it fired, a pod may bill.
                Outcome::Refused => summary.exit_code,
                outcome => outcome.exit_code(),
            };
            let message = format!("ended at {}: {}", hour(summary.ended_at), summary.message);
            let last = Some(*summary);
            let word = last.as_ref().map_or("not_armed", |last| last.outcome.as_str());
            VehicleStatus { last: last.clone(), ..bare(word, code, message) }
        }
    }
}

/// C03: what it costs that a sleeping machine stops nothing.
#[must_use]
pub(super) fn sleep_risk(rate: Option<Usd>, from: DateTime<Utc>) -> String {
    let rate = rate.map_or_else(|| "an unknown price".to_owned(), |rate| rate.to_string());
    format!("if this machine sleeps: {rate}/h from {} on until it wakes", hour(from))
}

fn hour(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_risk_of_sleep_is_told_in_dollars_and_from_when() {
        let at = DateTime::UNIX_EPOCH;
        let told = sleep_risk(Some(Usd::from_micros(690_000)), at);
        assert_eq!(
            told,
            "if this machine sleeps: $0.69/h from 1970-01-01 00:00:00 UTC on until it wakes"
        );
        assert!(sleep_risk(None, at).contains("an unknown price/h"));
    }
}
