//! The rules.

use super::Refusal;
use crate::domain::{CloudTier, Limits};
use crate::plan::{Change, Draft, Facts, Step};

type Rule = fn(&Draft, &Facts, &Limits) -> Option<Refusal>;

/// Every rule, by name.
pub const RULES: &[(&str, Rule)] = &[("is_in_the_secure_cloud", is_in_the_secure_cloud)];

fn is_in_the_secure_cloud(draft: &Draft, _: &Facts, _: &Limits) -> Option<Refusal> {
    draft.steps.iter().find_map(|step| match step {
        Step::Cloud(Change::CreatePod(pod)) if pod.cloud != CloudTier::Secure => {
            Some(Refusal::NotSecure { tier: pod.cloud.to_string() })
        }
        _ => None,
    })
}
