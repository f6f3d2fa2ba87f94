//! Virtual time: the runtime's paused clock, a wall clock over it, and what can be wrong with a wall
//! clock. Nothing in a campaign takes real time.

use chrono::{DateTime, TimeDelta, Utc};
use podtether::clock::Clock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// The one time line of a campaign. Wall times are milliseconds after its start.
#[derive(Debug)]
pub struct TimeLine {
    start: Instant,
    began: DateTime<Utc>,
    /// How long the laptop has slept: wall time went on, its monotonic clock did not (C02).
    slept_ms: AtomicI64,
}

impl TimeLine {
    /// Begins now, on a day of the year that the campaign draws.
    pub fn new(began: DateTime<Utc>) -> Arc<Self> {
        Arc::new(Self { start: Instant::now(), began, slept_ms: AtomicI64::new(0) })
    }

    /// What the time truly is, at the provider and everywhere.
    pub fn truth(&self) -> DateTime<Utc> {
        let slept = TimeDelta::milliseconds(self.slept_ms.load(Ordering::Relaxed));
        self.began + TimeDelta::from_std(self.start.elapsed()).unwrap() + slept
    }

    /// Time since the beginning.
    pub fn since_start(&self) -> Duration {
        (self.truth() - self.began).to_std().unwrap_or_default()
    }

    /// The laptop sleeps: everything on it stands still, the world goes on.
    pub fn sleep_laptop(&self, time: Duration) {
        let ms = i64::try_from(time.as_millis()).unwrap();
        self.slept_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

/// The laptop's clocks. The wall clock may be wrong, and be set.
#[derive(Debug)]
pub struct LaptopClock {
    line: Arc<TimeLine>,
    wrong_ms: AtomicI64,
    /// Which boot it is, and when that was by the time line.
    boot: Mutex<(u32, Duration)>,
}

impl LaptopClock {
    /// A clock that is wrong by so much.
    pub fn new(line: Arc<TimeLine>, wrong_by: TimeDelta) -> Self {
        let wrong_ms = AtomicI64::new(wrong_by.num_milliseconds());
        Self { line, wrong_ms, boot: Mutex::default() }
    }

    /// The laptop was off and is on again.
    pub fn boots(&self) {
        let mut boot = self.boot.lock().unwrap();
        *boot = (boot.0 + 1, self.line.since_start());
    }

    /// Somebody, or a time server, sets the wall clock.
    pub fn set(&self, by: TimeDelta) {
        self.wrong_ms.fetch_add(by.num_milliseconds(), Ordering::Relaxed);
    }
}

impl Clock for LaptopClock {
    fn now(&self) -> DateTime<Utc> {
        self.line.truth() + TimeDelta::milliseconds(self.wrong_ms.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        self.line.start.elapsed()
    }

    fn since_boot(&self) -> Duration {
        self.line.since_start().saturating_sub(self.boot.lock().unwrap().1)
    }

    fn boot(&self) -> Option<String> {
        Some(self.boot.lock().unwrap().0.to_string())
    }
}
