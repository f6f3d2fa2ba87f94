//! The only place that asks for the time. Deadlines and records use wall time, silence is
//! measured on a clock that cannot be set back; they are different types on purpose.

use chrono::{DateTime, Utc};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A source of time. Everything that decides takes times as arguments; the loops around it ask here.
pub trait Clock: Send + Sync {
    /// Wall time. May jump; a laptop's sleep counts.
    fn now(&self) -> DateTime<Utc>;
    /// A clock that is never set back. On macOS and Linux it stands still while the machine sleeps.
    fn monotonic(&self) -> Duration;
}

/// A clock that is shared.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// The machine's clocks.
    #[must_use]
    pub fn new() -> Self {
        #[expect(clippy::disallowed_methods, reason = "this is the home of the clock")]
        let start = Instant::now();
        Self { start }
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

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        #[expect(clippy::disallowed_methods, reason = "this is the home of the clock")]
        let now = Utc::now();
        now
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}
