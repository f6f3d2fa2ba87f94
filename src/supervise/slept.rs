//! Whether this computer slept: its wall clock goes on in sleep, the monotonic one stands still.

use crate::ops::Tether;
use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;

/// How far the wall clock has to run ahead to be called sleep (C03); less is a clock that is set.
const LEAST: TimeDelta = TimeDelta::seconds(60);
/// How often the clocks are compared while nothing else happens.
const EVERY: Duration = Duration::from_secs(5);

/// The two clocks side by side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slept {
    /// The wall clock less the monotonic one, as it was last.
    ahead: DateTime<Utc>,
}

impl Slept {
    pub(super) fn from_now(tether: &Tether) -> Self {
        Self { ahead: ahead(tether.clock().now(), tether.clock().monotonic()) }
    }

    /// For how long it slept since the last look; `None` when it did not. A wall clock that was put
    /// forward looks the same.
    pub(super) fn look(&mut self, tether: &Tether) -> Option<Duration> {
        self.at(tether.clock().now(), tether.clock().monotonic())
    }

    fn at(&mut self, now: DateTime<Utc>, monotonic: Duration) -> Option<Duration> {
        let ahead = ahead(now, monotonic);
        let gap = ahead - self.ahead;
        let slept = gap >= LEAST;
        // A clock that was set back begins anew; what is less than sleep adds up: many short naps.
        if slept || gap < TimeDelta::zero() {
            self.ahead = ahead;
        }
        slept.then(|| gap.to_std().unwrap_or_default())
    }

    /// Returns when it has slept. The next [`Self::look`] tells for how long.
    pub(super) async fn wakes(mut self, tether: &Tether) {
        while self.look(tether).is_none() {
            tokio::time::sleep(EVERY).await;
        }
    }
}

fn ahead(now: DateTime<Utc>, monotonic: Duration) -> DateTime<Utc> {
    let since = TimeDelta::from_std(monotonic).unwrap_or(TimeDelta::MAX);
    now.checked_sub_signed(since).unwrap_or(DateTime::<Utc>::MIN_UTC)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(wall: i64, monotonic: u64) -> (DateTime<Utc>, Duration) {
        (DateTime::UNIX_EPOCH + TimeDelta::seconds(wall), Duration::from_secs(monotonic))
    }

    /// C03: what the wall clock has run ahead is sleep, once it is a minute, and counted once.
    #[test]
    fn sleep_is_what_the_wall_clock_runs_ahead() {
        let (now, monotonic) = at(1_000, 10);
        let mut slept = Slept { ahead: ahead(now, monotonic) };
        let mut look = |wall, monotonic| {
            let (now, monotonic) = at(wall, monotonic);
            slept.at(now, monotonic).map(|time| time.as_secs())
        };
        assert_eq!(look(1_045, 55), None);
        assert_eq!(look(1_104, 55), None, "59 s are a clock that is set");
        assert_eq!(look(1_105, 55), Some(60), "a second more makes it a minute");
        assert_eq!(look(1_150, 100), None);
        assert_eq!(look(33_550, 160), Some(32_340), "a night");
        assert_eq!(look(26_350, 160), None, "a clock set back two hours is no sleep");
        assert_eq!(look(26_410, 160), Some(60), "and hides none");
    }
}
