//! What a pod costs at most when everything but the slowest proven fuse fails.

use super::{FuseName, FuseReport, FuseState};
use crate::domain::{Price, Usd};
use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;

/// What a pod costs that nobody looks after any more.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct UnattendedBill {
    /// In words.
    pub text: String,
    /// Until the slowest proven fuse has stopped the pod; missing when none is proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// What that costs; missing when no fuse is proven or the price is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<Usd>,
}

/// The slowest of the proven fuses and how long it may take; `None` when none is proven.
#[must_use]
pub fn slowest_proven(fuses: &[FuseReport]) -> Option<(FuseName, Duration)> {
    let proven = fuses.iter().filter(|fuse| fuse.state == FuseState::Armed);
    // A proof without a bound bounds nothing.
    let bounded = proven.filter_map(|fuse| Some((fuse.name, fuse.stops_within_sec?)));
    bounded
        .max_by_key(|(_, within)| *within)
        .map(|(name, within)| (name, Duration::from_secs(within)))
}

/// What the pod costs at most from now on when everything but the slowest proven fuse fails.
#[must_use]
pub fn longest_unattended(price: Price, fuses: &[FuseReport]) -> UnattendedBill {
    let rate = price.known();
    if let Some((_, within)) = slowest_proven(fuses) {
        let usd = rate.map(|rate| rate.cost_of(within));
        let cost =
            usd.map_or_else(|| "at a price that is not known".to_owned(), |usd| usd.to_string());
        let text = format!(
            "if everything but the slowest proven fuse fails: {}, {cost}",
            in_words(within)
        );
        return UnattendedBill { text, seconds: Some(within.as_secs()), usd };
    }
    let open = match rate {
        Some(rate) => format!("{} for every hour", rate.per_hour()),
        None => "at a price that is not known".to_owned(),
    };
    let promises: Vec<String> = fuses
        .iter()
        .filter(|fuse| fuse.state == FuseState::Unproven)
        .filter_map(|fuse| {
            let within = Duration::from_secs(fuse.stops_within_sec?);
            let cost = rate.map_or_else(String::new, |rate| format!(", {}", rate.cost_of(within)));
            Some(format!("{} promises {}{cost}", fuse.name.as_str(), in_words(within)))
        })
        .collect();
    let promised = if promises.is_empty() {
        String::new()
    } else {
        format!(" (unproven: {})", promises.join("; "))
    };
    let text = format!("no fuse is proven: the bill is open-ended, {open}{promised}");
    UnattendedBill { text, seconds: None, usd: None }
}

/// What the pod costs at most from now on while the laptop sleeps: then only what runs on the pod acts.
/// The laptop's own fuses act when it wakes.
#[must_use]
pub fn longest_asleep(price: Price, fuses: &[FuseReport], now: DateTime<Utc>) -> UnattendedBill {
    let on_the_pod =
        |fuse: &&FuseReport| matches!(fuse.name, FuseName::AutoStop | FuseName::Watchdog);
    let fuses: Vec<FuseReport> = fuses.iter().filter(on_the_pod).cloned().collect();
    let mut bill = longest_unattended(price, &fuses);
    let rate = price.known().map(|rate| rate.per_hour());
    bill.text = match (bill.seconds, bill.usd) {
        (Some(seconds), usd) => {
            let by = TimeDelta::try_seconds(i64::try_from(seconds).unwrap_or(i64::MAX))
                .and_then(|within| now.checked_add_signed(within))
                .unwrap_or(DateTime::<Utc>::MAX_UTC);
            let most = usd.map_or_else(
                || "at a price that is not known".to_owned(),
                |usd| format!("at most {usd} from now"),
            );
            format!(
                "if this laptop sleeps: the pod's own fuses stop it by {}, {most}",
                by.format("%Y-%m-%d %H:%M UTC")
            )
        }
        (None, _) => format!(
            "if this laptop sleeps: nothing on the pod is proven to stop it, it bills {} until this laptop wakes",
            rate.map_or_else(
                || "at a price that is not known".to_owned(),
                |rate| format!("{rate} for every hour")
            )
        ),
    };
    bill
}

/// Whole minutes, rounded up: what is left is never told shorter than it is.
fn in_words(time: Duration) -> String {
    let minutes = time.as_secs().div_ceil(60);
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}
