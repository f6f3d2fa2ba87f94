//! Limits in code. [`review`] is the only maker of [`Approved`], and nothing reaches the provider
//! without one. Pure: every rule sees the draft, the facts and the limits, and all of them run.

mod account;
mod approved;
mod money_rules;
mod refusal;
mod rules;
mod sum;
mod worst_case;

pub use account::{RuleAccount, cheapest, everything_counted, explain, longest_ceiling};
pub use approved::{Approved, ApprovedChange, ApprovedStep};
pub use refusal::Refusal;
pub use sum::Sum;
pub use worst_case::{Line, Part, WorstCase};

#[cfg(test)]
mod tests;

use crate::domain::Limits;
use crate::plan::{Draft, Facts};

/// Lets a draft through, or says everything that stands against it.
///
/// # Errors
/// Every refusal at once, so that all of them can be mended in one go. Nothing was changed.
pub fn review(draft: Draft, facts: &Facts, limits: &Limits) -> Result<Approved, Vec<Refusal>> {
    let refusals: Vec<Refusal> =
        rules::RULES.iter().filter_map(|(_, rule)| rule(&draft, facts, limits)).collect();
    if !refusals.is_empty() {
        return Err(refusals);
    }
    let worst_case = WorstCase::of(&draft, facts).unwrap_or_default();
    Ok(Approved::new(draft.steps, worst_case))
}
