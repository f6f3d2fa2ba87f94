//! The only place that asks for the time. Deadlines and records use wall time, silence is
//! measured on a clock that cannot be set back; they are different types on purpose.

pub mod boot;

use chrono::{DateTime, Utc};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A source of time. Everything that decides takes times as arguments; the loops around it ask here.
pub trait Clock: Send + Sync {
    /// Wall time. May jump; a laptop's sleep counts.
    fn now(&self) -> DateTime<Utc>;
    /// A clock that is never set back. On macOS and Linux it stands still while the machine sleeps.
    fn monotonic(&self) -> Duration;
    /// A clock that is never set back and goes on while the machine sleeps; like [`Self::monotonic`] where
    /// the system has none. By it a sleep shows also when the wall clock was set back meanwhile.
    fn since_boot(&self) -> Duration {
        self.monotonic()
    }
    /// Names the boot that [`Self::since_boot`] counts from, the same for every process of this machine;
    /// `None` where that is not known. Within one boot no setting of the clock changes how old something is.
    fn boot(&self) -> Option<String> {
        None
    }
}

/// A clock that is shared.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
    boot: OnceLock<Option<String>>,
}

impl SystemClock {
    /// The machine's clocks.
    #[must_use]
    pub fn new() -> Self {
        #[expect(clippy::disallowed_methods, reason = "this is the home of the clock")]
        let start = Instant::now();
        Self { start, boot: OnceLock::new() }
    }

    /// The machine's clocks, ready to be shared.
    #[must_use]
    pub fn shared() -> SharedClock {
        Arc::new(Self::new())
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

/// Linux's CLOCK_BOOTTIME counts the time in suspend (clock_gettime(2)), and so does macOS's CLOCK_MONOTONIC
/// (clock_gettime(3) there; not tried on a Mac). `Instant` is neither of the two.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn counting_sleep() -> Option<Duration> {
    use rustix::time::{ClockId, clock_gettime};
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(target_os = "macos")]
    let clock = ClockId::Monotonic;
    let now = clock_gettime(clock);
    Some(Duration::new(u64::try_from(now.tv_sec).ok()?, u32::try_from(now.tv_nsec).ok()?))
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
const fn counting_sleep() -> Option<Duration> {
    None
}

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        #[expect(clippy::disallowed_methods, reason = "this is the home of the clock")]
        let now = Utc::now();
        now
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn since_boot(&self) -> Duration {
        counting_sleep().unwrap_or_else(|| self.start.elapsed())
    }

    fn boot(&self) -> Option<String> {
        self.boot.get_or_init(|| counting_sleep().and_then(|_| boot::id())).clone()
    }
}
