//! How much of a GPU type a data centre has free.

use std::fmt;

/// The provider's word on stock. `High` is a hint, never a promise that a create will succeed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum Stock {
    /// Nothing free.
    None,
    /// Few.
    Low,
    /// Some.
    Medium,
    /// Many.
    High,
    /// Not told, or a word that is not known here.
    Unknown,
}

impl fmt::Display for Stock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "NONE",
            Self::Low => "LOW",
            Self::Medium => "MEDIUM",
            Self::High => "HIGH",
            Self::Unknown => "UNKNOWN",
        })
    }
}
