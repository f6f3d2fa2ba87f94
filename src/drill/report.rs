//! What a drill found, as one object.

use super::plan::DrillPlan;
use crate::domain::{DrillOutcome, FuseReceipt, Usd};
use serde::Serialize;
use std::path::PathBuf;

/// The findings of one drill.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DrillReport {
    /// Whether every fuse that was to be tried is proven, and the pod is off.
    pub ok: bool,
    /// Whether only the plan was made.
    pub dry_run: bool,
    /// The plan.
    pub plan: DrillPlan,
    /// One receipt for each fuse; empty in a dry run.
    pub fuses: Vec<FuseReceipt>,
    /// What was read of the pod at the end.
    pub stop: Option<String>,
    /// Whether the pod may still be running and billing.
    pub pod_may_still_be_running: bool,
    /// What the boots have cost, from each request until the pod was read as off.
    pub spent_usd: Usd,
    /// Where the receipts lie.
    pub receipts: Option<PathBuf>,
    /// What went wrong beside the fuses.
    pub problems: Vec<String>,
    /// The process's exit code: 0 all proven, 1 not all, 6 the pod may still bill.
    pub process_exit_code: u8,
}

impl DrillReport {
    pub(super) const fn of_plan(plan: DrillPlan) -> Self {
        Self {
            ok: true,
            dry_run: true,
            plan,
            fuses: Vec::new(),
            stop: None,
            pod_may_still_be_running: false,
            spent_usd: Usd::ZERO,
            receipts: None,
            problems: Vec::new(),
            process_exit_code: 0,
        }
    }

    /// Gives it its exit code.
    pub(super) fn judged(mut self) -> Self {
        let is_proven = |receipt: &FuseReceipt| receipt.outcome == DrillOutcome::Proven;
        self.process_exit_code = match (self.pod_may_still_be_running, &self.problems[..]) {
            (true, _) => 6,
            (false, []) if self.fuses.iter().all(is_proven) => 0,
            (false, _) => 1,
        };
        self.ok = self.process_exit_code == 0;
        self
    }

    /// The findings in lines, for people.
    #[must_use]
    pub fn told(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for receipt in &self.fuses {
            let (name, outcome) = (receipt.fuse.as_str(), receipt.outcome.as_str());
            lines.push(format!("{name:18}{outcome:10}{:8} {}", receipt.usd(), receipt.observed));
        }
        lines.extend(self.problems.iter().map(|problem| format!("problem: {problem}")));
        lines.push(match (&self.stop, self.pod_may_still_be_running) {
            (_, true) => format!(
                "THE POD MAY STILL BE RUNNING AND BILLING: podtether stop --vehicle {}",
                self.plan.vehicle
            ),
            (Some(stop), false) => format!("off: {stop}"),
            (None, false) => "off".to_owned(),
        });
        lines.push(format!(
            "spent {} of at most ${}",
            self.spent_usd,
            self.plan.max_usd.to_decimal()
        ));
        lines.extend(self.receipts.as_ref().map(|path| format!("receipts: {}", path.display())));
        lines
    }
}
