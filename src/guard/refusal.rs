//! Refusals: what a rule says, with the numbers in it.

/// Why a draft may not be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The config asks for a tier other than SECURE.
    #[error(
        "the pod would be in the {tier} cloud; only SECURE is allowed, since network volumes exist nowhere else"
    )]
    NotSecure {
        /// The tier.
        tier: String,
    },
}
