//! How a watch reads a log: by the log's own marks, as one family, or by the user's expression.

use crate::watch::LogReading;
use crate::watch::metrics::{FamilyName, Pattern};

/// How the log's numbers are to be read.
#[derive(Clone, Debug, Default)]
pub enum LogForm {
    /// By whatever family it shows to be.
    #[default]
    Any,
    /// As one family.
    Family(FamilyName),
    /// By an expression of the user's.
    Pattern(Pattern),
}

impl LogForm {
    /// A reading that has not read anything.
    #[must_use]
    pub fn reading(&self) -> LogReading {
        match self {
            Self::Any => LogReading::new(),
            Self::Family(family) => LogReading::of(*family),
            Self::Pattern(pattern) => LogReading::of_pattern(pattern.clone()),
        }
    }
}
