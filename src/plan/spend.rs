//! What is known about money when a plan is made. Ledger and provider give these as values.

use crate::domain::{PodId, Usd, UsdPerHour};
use chrono::{DateTime, Utc};
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
        /// But not before so long from now: what it waits for besides the job, such as a deadline.
        not_before: Duration,
    },
    /// None was proven: the bill is open-ended. `allowance` is how long it is counted.
    Unproven {
        /// How long the pod is counted as unwatched.
        allowance: Duration,
    },
}

/// A time for which something may bill that was approved before: what is left of it, from now on.
/// What has passed is in what was spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// What it is for.
    pub what: String,
    /// The pod that may bill, when it is known. A pod bills once, however many jobs hold it.
    pub pod: Option<PodId>,
    /// What it bills for an hour.
    pub rate: UsdPerHour,
    /// From when on it adds to the lines before it, from now.
    pub after: Duration,
    /// Until when, from now.
    pub until: Duration,
}

impl Committed {
    /// What it may cost.
    #[must_use]
    pub fn usd(&self) -> Usd {
        self.beyond(Duration::ZERO)
    }

    /// What it may cost after so much time, for which the pod is counted already.
    #[must_use]
    pub fn beyond(&self, counted: Duration) -> Usd {
        self.rate.cost_of(self.until.saturating_sub(self.after.max(counted)))
    }
}

/// A start that may have put a pod on the bill within the last hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecentBoot {
    /// When it was asked for.
    pub at: DateTime<Utc>,
    /// How long ago that is.
    pub ago: Duration,
}

/// How often pods were started lately, and to what end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentBoots {
    /// Each start of the last hour, oldest first.
    pub started: Vec<RecentBoot>,
    /// How many boots of the last hour were given up.
    pub failed: usize,
    /// What those have cost.
    pub failed_usd: Usd,
}

/// Money, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spend {
    /// Spent in the budget's window.
    pub spent: Spent,
    /// What is not billed yet and may be: live reservations and creates whose outcome is unknown,
    /// each with its worst case.
    pub committed: Vec<Committed>,
    /// Starts of the last hour.
    pub boots: RecentBoots,
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
            boots: RecentBoots::default(),
            window_left: None,
            fuse: Fuse::Unproven { allowance: Duration::ZERO },
        }
    }
}
