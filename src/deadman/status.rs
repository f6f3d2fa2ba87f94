//! What became of a vehicle's fuse, in a word, an exit code and a sentence.

use super::record::{Summary, Word};
use super::risk;
use super::seat::{self, Seen};
use super::state::Outcome;
use crate::clock::boot;
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
    /// What the pod costs until it fires, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_risk: Option<String>,
    /// The same in dollars; missing when the price is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_at_risk: Option<Usd>,
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

/// How long ago the last one may have ended, in seconds, when its place is taken and nothing is said there.
const JUST_ENDED: u64 = 5;

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
        Seen::Lives(None) | Seen::Nothing(_) | Seen::LostUnread(_) | Seen::Unreadable(_) => {
            return None;
        }
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
        at_risk: None,
        usd_at_risk: None,
        if_it_sleeps: None,
        fuse: None,
        last: None,
    };
    let age = |at: DateTime<Utc>| u64::try_from((now - at).num_seconds()).unwrap_or(0);
    let seen = match seat::look(folder) {
        // One that has just ended holds its place for a moment more, as one that is being armed does.
        Seen::Lives(None) => match seat::last_summary(folder) {
            Some(last) if age(last.ended_at) <= JUST_ENDED => Seen::Nothing(Some(Box::new(last))),
            _ => Seen::Lives(None),
        },
        seen => seen,
    };
    match seen {
        Seen::Lives(None) => bare("not_armed", 0, "one is being armed".to_owned()),
        Seen::Unreadable(why) => bare("LOST", 1, format!("whether one lives is not known: {why}")),
        Seen::LostUnread(why) => bare(
            "LOST",
            1,
            format!(
                "one was armed and its process is gone, and what it said of itself cannot be read ({why}): the pod MAY BILL: arm it again, or `podtether stop --vehicle {vehicle}`, and then `podtether deadman cancel --vehicle {vehicle}` writes it off"
            ),
        ),
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
            let rate = record.micros_per_hour.map(Usd::from_micros);
            VehicleStatus {
                fire_at: Some(record.fire_at),
                last_tick: Some(record.last_tick),
                last_tick_age_sec: Some(ticked),
                at_risk: Some(record.at_risk(now)),
                usd_at_risk: risk::until_it_fires(rate, record.fire_at, now),
                if_it_sleeps: Some(risk::of_sleep(rate, record.fire_at)),
                message: format!("{message}; last tick {ticked} s ago"),
                fuse: Some(*record),
                ..bare("armed", code, String::new())
            }
        }
        Seen::Lost(record) => {
            let due = if record.fire_at <= now { "was due" } else { "is due" };
            let rate = record.micros_per_hour.map(Usd::from_micros);
            let cost = risk::since_due(rate, record.fire_at, now);
            let cost = cost.map_or_else(String::new, |cost| format!(" ({cost} since then)"));
            let rate = rate.map_or_else(String::new, |rate| format!(" {rate}/h"));
            let is_of_before = boot::is_another(record.boot_id.as_deref(), boot::id().as_deref());
            let ended =
                if is_of_before { "ended with this machine's last boot" } else { "is gone" };
            let message = format!(
                "process {} {ended} without having stopped the pod, which {due} at {}{cost} and MAY BILL{rate}: arm it again, or `podtether stop --vehicle {vehicle}`, and then `podtether deadman cancel --vehicle {vehicle}` writes it off",
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

fn hour(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}
