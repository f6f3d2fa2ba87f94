//! How long and how often an unconfirmed stop is asked again at the end of a run.

use super::state::Terms;
use crate::apply::OffSettings;
use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;

/// How long capture may hold up the stop. A pull that stands still ends by itself long before; one
/// that crawls would keep the pod on the bill for ever (D01).
pub(crate) const CAPTURE_MAX: Duration = Duration::from_secs(3600);

/// How long after the end of following the pod is off, or the run has given up.
pub(crate) fn last_part(off: OffSettings) -> Duration {
    CAPTURE_MAX.saturating_add(longest_stop(off))
}

/// How often at least.
const MAX_STOPS: u32 = 5;
/// How long, in budgets of one stop: half an hour with the default of 120 s.
const STOP_BUDGETS: u32 = 15;

/// How long at least: an outage is outlived by time, not by a number of tries (A01).
fn stop_for(off: OffSettings) -> TimeDelta {
    TimeDelta::from_std(off.budget.saturating_mul(STOP_BUDGETS)).unwrap_or(TimeDelta::MAX)
}

/// How long the stop at the end can take at most, for the worst case of a run: every try with its
/// pause, until there are enough of them and the time is over.
pub(crate) fn longest_stop(off: OffSettings) -> Duration {
    let one = off.budget.saturating_add(off.budget / 4);
    let asked = off.budget.saturating_mul(STOP_BUDGETS);
    one.saturating_mul(MAX_STOPS).max(asked.saturating_add(one))
}

/// A01: how long to wait before the stop is asked for again. A stop fails at once while the laptop is
/// offline, and tries without a pause would all be spent in a few seconds.
pub(crate) fn stop_pause(stops: u32, off: OffSettings) -> Duration {
    match stops {
        0 => Duration::ZERO,
        _ => (off.ask_again_after.saturating_mul(2_u32.saturating_pow(stops - 1)))
            .min(off.budget / 4),
    }
}

/// What a run with this deadline goes by.
pub(crate) fn terms(deadline: DateTime<Utc>, no_stop: bool, off: OffSettings) -> Terms {
    Terms { deadline, no_stop, max_stops: MAX_STOPS, stop_for: stop_for(off) }
}

/// A moment so much later, at most the last that there is.
pub(crate) fn later(at: DateTime<Utc>, by: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(by)
        .ok()
        .and_then(|by| at.checked_add_signed(by))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A01: tries that fail at once are spread out, and none waits longer than a part of the budget.
    #[test]
    fn a_stop_that_fails_at_once_is_not_asked_again_at_once() {
        let off = OffSettings { budget: Duration::from_secs(120), ..OffSettings::default() };
        let pauses: Vec<u64> =
            (0..MAX_STOPS).map(|stops| stop_pause(stops, off).as_secs()).collect();
        assert_eq!(pauses, [0, 8, 16, 30, 30]);
        assert_eq!(stop_pause(u32::MAX, off), Duration::from_secs(30));
    }

    /// A01: twenty minutes without a network are less than what is waited for.
    #[test]
    fn the_default_outlives_an_outage_of_twenty_minutes() {
        let off = OffSettings { budget: Duration::from_secs(120), ..OffSettings::default() };
        assert!(stop_for(off) > TimeDelta::minutes(20));
        assert_eq!(longest_stop(off), Duration::from_secs(15 * 120 + 150));
        let endless = OffSettings { budget: Duration::MAX, ..off };
        assert_eq!(stop_for(endless), TimeDelta::MAX);
    }
}
