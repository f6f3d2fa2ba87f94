//! spend_report.

use crate::error::Failure;
use crate::mcp::tool::{Effect, TetherTool};
use crate::ops::{SpendReport, Tether};

pub struct SpendReportTool;

/// Arguments of spend_report.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {}

impl TetherTool for SpendReportTool {
    type Arguments = Arguments;
    type Answer = SpendReport;
    const NAME: &'static str = "spend_report";
    const TITLE: &'static str = "What was spent";
    const DESCRIPTION: &'static str = "What was billed in the budget's window, runs up and is promised, what remains of the budget, what nobody can explain, failed boots, the credit and how long it lasts. Changes nothing.";
    const EFFECT: Effect = Effect::Reads;

    async fn call(tether: &Tether, _: Arguments) -> Result<SpendReport, Failure> {
        tether.spend_report().await
    }
}
