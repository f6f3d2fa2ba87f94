//! When something was noted, and how long ago that surely was. A wall clock can be set between two looks: then
//! a pod that no list shows yet would be taken for one that is not there (A05), or for one that may be, for
//! as long as the clock was set back.

use crate::clock::Clock;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a machine had been up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uptime {
    /// Names the boot.
    pub boot: String,
    /// Milliseconds since then, sleep included.
    pub ms: u64,
}

/// When something was noted, by both clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Wall time.
    pub at: DateTime<Utc>,
    /// By the clock that nobody sets.
    pub up: Option<Uptime>,
}

impl Noted {
    /// Now.
    #[must_use]
    pub fn now(clock: &dyn Clock) -> Self {
        let ms = u64::try_from(clock.since_boot().as_millis()).unwrap_or(u64::MAX);
        Self { at: clock.now(), up: clock.boot().map(|boot| Uptime { boot, ms }) }
    }

    /// How long ago that surely was, whatever wall clocks were set to meanwhile: by the time since this
    /// boot where it is the same one; else no longer than since this boot, for it may be another machine's.
    #[must_use]
    pub fn age(&self, now: &Self) -> Duration {
        let by_wall = (now.at - self.at).to_std().unwrap_or_default();
        match (&self.up, &now.up) {
            (Some(then), Some(now)) if then.boot == now.boot => {
                Duration::from_millis(now.ms.saturating_sub(then.ms))
            }
            (Some(_), Some(now)) => by_wall.min(Duration::from_millis(now.ms)),
            _ => by_wall,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    fn noted(wall: i64, up: Option<(&str, u64)>) -> Noted {
        let up = up.map(|(boot, sec)| Uptime { boot: boot.to_owned(), ms: sec * 1000 });
        Noted { at: DateTime::UNIX_EPOCH + TimeDelta::seconds(wall), up }
    }

    #[test]
    fn within_one_boot_no_setting_of_the_clock_changes_an_age() {
        let then = noted(10_000, Some(("a", 50)));
        for wall in [10_020, 17_220, 2_820] {
            assert_eq!(then.age(&noted(wall, Some(("a", 70)))), Duration::from_secs(20));
        }
    }

    /// Nobody knows how long the machine was off, or whether it is the same one.
    #[test]
    fn after_another_boot_it_is_no_older_than_that_boot_and_than_the_clock_says() {
        let then = noted(10_000, Some(("a", 50_000)));
        assert_eq!(then.age(&noted(17_200, Some(("b", 70)))), Duration::from_secs(70));
        assert_eq!(then.age(&noted(10_020, Some(("b", 7_000)))), Duration::from_secs(20));
        assert_eq!(then.age(&noted(9_000, Some(("b", 7_000)))), Duration::ZERO);
    }

    #[test]
    fn a_line_of_an_older_version_is_as_old_as_the_clock_says() {
        for now in [None, Some(("a", 5))] {
            assert_eq!(noted(10_000, None).age(&noted(10_150, now)), Duration::from_secs(150));
        }
        let then = noted(10_000, Some(("a", 5)));
        assert_eq!(then.age(&noted(10_150, None)), Duration::from_secs(150));
    }
}
