//! What is known about money when a plan is made. Ledger and provider give these as values.

use crate::domain::Usd;
use std::time::Duration;

/// What was spent so far in the budget's window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spent {
    /// Billed, and estimated since the last billed hour.
    Known(Usd),
    /// Nobody could say. Refuses a spend, never a stop.
    Unknown(String),
}

/// What would stop a pod that nobody watches, independently of the plan's own end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fuse {
    /// The slowest fuse that was proven.
    Proven {
        /// Which one.
        what: String,
        /// How long after the boot, or after the job's end at the latest, the pod is surely off.
        within: Duration,
    },
    /// None was proven: the bill is open-ended. `allowance` is how long it is counted.
    Unproven {
        /// How long the pod is counted as unwatched.
        allowance: Duration,
    },
}

/// Money, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spend {
    /// Spent in the budget's window.
    pub spent: Spent,
    /// What is not billed yet and may be: live reservations and creates whose outcome is unknown,
    /// each with its worst case.
    pub committed: Vec<(String, Usd)>,
    /// Until the end of the budget's window; `None` when it has none.
    pub window_left: Option<Duration>,
    /// What stops an unwatched pod.
    pub fuse: Fuse,
}

impl Spend {
    /// Nothing is known, since nobody asked: every spend under a budget is refused.
    #[must_use]
    pub fn not_asked() -> Self {
        Self {
            spent: Spent::Unknown("the bill was not asked for".to_owned()),
            committed: Vec::new(),
            window_left: None,
            fuse: Fuse::Unproven { allowance: Duration::ZERO },
        }
    }
}
