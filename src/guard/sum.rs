//! A sum of money as a refusal shows it: line by line, to the micro-dollar.

use super::worst_case::WorstCase;
use crate::domain::Usd;
use std::fmt;

/// Amounts with what they are for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// The lines.
    pub lines: Vec<(String, Usd)>,
}

impl Sum {
    pub(super) fn add(&mut self, what: impl Into<String>, usd: Usd) {
        self.lines.push((what.into(), usd));
    }

    pub(super) fn add_worst_case(&mut self, worst_case: &WorstCase) {
        for line in &worst_case.lines {
            self.add(format!("{} ({} s)", line.label, line.time.as_secs()), line.usd);
        }
    }

    /// Everything together.
    #[must_use]
    pub fn total(&self) -> Usd {
        self.lines.iter().map(|(_, usd)| *usd).sum()
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, usd) in &self.lines {
            write!(f, "\n  ${} {what}", usd.to_decimal())?;
        }
        write!(f, "\n  = ${}", self.total().to_decimal())
    }
}
