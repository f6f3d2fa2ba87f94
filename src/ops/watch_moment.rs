//! The moment that a watch measures silence and graces by (C02): a wall clock that is set is no time that went
//! by, and sleep is.

use crate::clock::Clock;
use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;

/// What time it was, and by the clock that nobody sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchMoment {
    at: DateTime<Utc>,
    since_boot: Duration,
}

impl WatchMoment {
    /// From now on, but not before what another process has lived through.
    pub(super) fn new(clock: &dyn Clock, before: Option<DateTime<Utc>>) -> Self {
        let now = clock.now();
        let at = before.map_or(now, |before| before.max(now));
        Self { at, since_boot: clock.since_boot() }
    }

    /// The moment now.
    pub(super) fn now(&self, clock: &dyn Clock) -> DateTime<Utc> {
        let passed = TimeDelta::from_std(clock.since_boot().saturating_sub(self.since_boot));
        passed.ok().and_then(|by| self.at.checked_add_signed(by)).unwrap_or(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    struct Clocks(Mutex<(i64, u64)>);

    impl Clock for Clocks {
        fn now(&self) -> DateTime<Utc> {
            DateTime::UNIX_EPOCH + TimeDelta::seconds(self.0.lock().unwrap().0)
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }

        fn since_boot(&self) -> Duration {
            Duration::from_secs(self.0.lock().unwrap().1)
        }
    }

    /// C02: a wall clock that is set back keeps no watch waiting, and one set forward makes no silence; also
    /// not where the next process goes on from the last one's moment.
    #[test]
    fn a_clock_that_is_set_is_no_time_that_went_by() {
        let clocks = Clocks(Mutex::new((10_000, 50)));
        let at = |seconds| DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds);
        let moment = WatchMoment::new(&clocks, None);
        *clocks.0.lock().unwrap() = (2_800, 110);
        assert_eq!(moment.now(&clocks), at(10_060));
        let next = WatchMoment::new(&clocks, Some(moment.now(&clocks)));
        *clocks.0.lock().unwrap() = (90_000, 170);
        assert_eq!(moment.now(&clocks), at(10_120));
        assert_eq!(next.now(&clocks), at(10_120));
    }
}
