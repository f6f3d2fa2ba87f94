//! What a fuse leaves at risk, in dollars: until it fires, and when the machine that it lives on sleeps or is
//! shut down. Pure.

use crate::domain::{Usd, UsdPerHour};
use chrono::{DateTime, Utc};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// What the pod costs from `now` until the fuse fires; `None` when the price is not known.
pub(super) fn until_it_fires(
    rate: Option<Usd>,
    fire_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Option<Usd> {
    let left = (fire_at - now).to_std().unwrap_or_default();
    rate.map(|rate| UsdPerHour::new(rate).cost_of(left))
}

/// The same in words.
pub(super) fn until_in_words(
    rate: Option<Usd>,
    fire_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> String {
    let minutes = u64::try_from((fire_at - now).num_minutes()).unwrap_or(0);
    let time = format!("{} h {:02} min", minutes / 60, minutes % 60);
    match (rate, until_it_fires(rate, fire_at, now)) {
        (Some(rate), Some(cost)) => {
            format!("at risk until it fires, if its pod runs: {cost} ({rate}/h for {time})")
        }
        _ => {
            format!("at risk until it fires, if its pod runs: {time} at a price that is not known")
        }
    }
}

/// C03: what it costs that a sleeping machine stops nothing.
pub(super) fn of_sleep(rate: Option<Usd>, from: DateTime<Utc>) -> String {
    let from = from.format("%Y-%m-%d %H:%M:%S UTC");
    match rate {
        Some(rate) => format!(
            "if this machine sleeps or is shut down: {rate}/h from {from} on until it wakes, {} a day",
            UsdPerHour::new(rate).cost_of(DAY)
        ),
        None => format!(
            "if this machine sleeps or is shut down: an unknown price/h from {from} on until it wakes"
        ),
    }
}

/// What a fuse that is lost has let run since it was due; `None` before that, or without a price.
pub(super) fn since_due(
    rate: Option<Usd>,
    fire_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Option<Usd> {
    let late = (now - fire_at).to_std().ok()?;
    rate.map(|rate| UsdPerHour::new(rate).cost_of(late))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[test]
    fn the_risk_is_told_in_dollars_and_from_when() {
        let at = DateTime::UNIX_EPOCH;
        let rate = Some(Usd::from_micros(690_000));
        let told = of_sleep(rate, at);
        assert_eq!(
            told,
            "if this machine sleeps or is shut down: $0.69/h from 1970-01-01 00:00:00 UTC on until it wakes, $16.56 a day"
        );
        assert!(of_sleep(None, at).contains("an unknown price/h"));
        let due = at + TimeDelta::minutes(90);
        assert_eq!(
            until_in_words(rate, due, at),
            "at risk until it fires, if its pod runs: $1.04 ($0.69/h for 1 h 30 min)"
        );
        assert!(until_in_words(None, due, at).ends_with("at a price that is not known"));
        assert_eq!(until_it_fires(rate, due, due + TimeDelta::hours(1)), Some(Usd::ZERO));
        assert_eq!(
            since_due(rate, due, due + TimeDelta::hours(2)),
            Some(Usd::from_micros(1_380_000))
        );
        assert_eq!(since_due(rate, due, at), None);
    }
}
