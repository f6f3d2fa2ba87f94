//! What is promised and not billed yet, from the journal: launches, starts, and creates whose outcome
//! is unknown, each for what is left of its worst case. Pure.

use crate::domain::{PodId, Usd, UsdPerHour};
use crate::ledger::{Action, Book};
use crate::plan::{Committed, RecentBoot, RecentBoots};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;
use std::time::Duration;

/// One reason why a pod may bill until then.
struct Hold {
    what: String,
    rate: Usd,
    until: DateTime<Utc>,
}

/// Every promise that is alive, one line each. `unwatched` is how long a pod may bill from its start
/// on when nothing follows: its boot and the time that it may be left to itself, by vehicle.
///
/// A pod bills once, however many promises hold it: the lines of one pod follow each other, each
/// from the end of the one before.
pub(super) fn committed(
    book: &Book,
    now: DateTime<Utc>,
    unwatched: impl Fn(&str) -> Duration,
) -> Vec<Committed> {
    let mut holds: BTreeMap<&PodId, Vec<Hold>> = BTreeMap::new();
    for promise in book.promises() {
        let job = if promise.has_ended { "the time after job" } else { "job" };
        holds.entry(&promise.pod).or_default().push(Hold {
            what: format!("{job} {} of {}", promise.job, promise.vehicle),
            rate: promise.rate,
            until: promise.until,
        });
    }
    for run in book.runs().iter().filter(|run| run.off.is_none() && run.is_ours) {
        holds.entry(&run.pod).or_default().push(Hold {
            what: format!("{}, started at {}, unwatched", run.vehicle, clock(run.from)),
            rate: run.rate.unwrap_or(Usd::ZERO),
            until: later(run.from, unwatched(&run.vehicle)),
        });
    }
    let mut lines: Vec<Committed> =
        holds.into_iter().flat_map(|(pod, holds)| of_pod(pod, holds, now)).collect();
    for intent in book.open_intents() {
        // A start that was asked for and has no end yet is no run yet.
        let pod = match &intent.action {
            Action::CreatePod { .. } => None,
            Action::StartPod { pod } => Some(pod.clone()),
            _ => continue,
        };
        let what = match pod {
            None => "create",
            Some(_) => "start",
        };
        lines.push(Committed {
            what: format!(
                "{what} of {} sent at {}, outcome unknown",
                intent.vehicle,
                clock(intent.at)
            ),
            pod,
            rate: UsdPerHour::new(intent.rate.unwrap_or(Usd::ZERO)),
            after: Duration::ZERO,
            until: unwatched(&intent.vehicle),
        });
    }
    lines
}

fn of_pod(pod: &PodId, mut holds: Vec<Hold>, now: DateTime<Utc>) -> Vec<Committed> {
    holds.sort_by_key(|hold| hold.until);
    // A price that was read anew holds for everything on this pod.
    let rate = holds.iter().map(|hold| hold.rate).max().unwrap_or(Usd::ZERO);
    let mut after = Duration::ZERO;
    let mut lines = Vec::new();
    for hold in holds {
        let until = (hold.until - now).to_std().unwrap_or_default();
        if until > after {
            lines.push(Committed {
                what: format!("pod {pod} until {}: {}", clock(hold.until), hold.what),
                pod: Some(pod.clone()),
                rate: UsdPerHour::new(rate),
                after,
                until,
            });
            after = until;
        }
    }
    lines
}

/// The starts of the last hour, and what those cost that came to nothing.
pub(super) fn recent_boots(book: &Book, now: DateTime<Utc>) -> RecentBoots {
    let hour_ago = now - TimeDelta::hours(1);
    let started = book.boots().iter().filter(|boot| boot.at > hour_ago);
    let failed: Vec<_> = book.failed_boots().iter().filter(|boot| boot.at > hour_ago).collect();
    RecentBoots {
        started: started
            .map(|boot| RecentBoot {
                at: boot.at,
                ago: (now - boot.at).to_std().unwrap_or_default(),
            })
            .collect(),
        failed: failed.len(),
        failed_usd: failed.iter().filter_map(|boot| boot.usd).sum(),
    }
}

fn clock(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn later(at: DateTime<Utc>, by: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(by)
        .ok()
        .and_then(|by| at.checked_add_signed(by))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}
