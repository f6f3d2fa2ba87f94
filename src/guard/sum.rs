//! A sum of money as a refusal shows it: line by line, to the micro-dollar.

use super::worst_case::WorstCase;
use crate::domain::{PodId, Usd};
use crate::plan::Committed;
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

    /// What is promised to others. A pod bills once: of what holds the plan's own pod, only the time
    /// beyond the plan counts.
    pub(super) fn add_committed(
        &mut self,
        committed: &[Committed],
        pod: Option<&PodId>,
        plan: &WorstCase,
    ) {
        for line in committed {
            let is_same = pod.is_some() && line.pod.as_ref() == pod;
            let usd = if is_same { line.beyond(plan.pod_time()) } else { line.usd() };
            if usd > Usd::ZERO {
                let beyond = if is_same { ", beyond this plan" } else { "" };
                self.add(format!("committed: {}{beyond}", line.what), usd);
            }
        }
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
