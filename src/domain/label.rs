//! Labels of runs: whose they are and what they belong together with. They only tell runs apart.

use std::fmt;

/// A label: 1 to 64 characters of `a-z A-Z 0-9 . _ - / : @ +`, starting with a letter or digit. It
/// is printed, compared and written into a job's folder, so nothing in it means anything to a shell
/// or a terminal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(String);

/// A text that is no label.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} is no label; use up to 64 letters, digits and any of . _ - / : @ +, starting with a letter or digit, for example {suggestion:?}"
)]
pub struct LabelError {
    /// As given, cut.
    pub given: String,
    /// One that would do.
    pub suggestion: String,
}

/// The labels of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// What it belongs together with, such as an ablation.
    pub group: Option<Label>,
    /// Who launched it, such as a person or an agent's program.
    pub agent: Option<Label>,
}

impl Label {
    const MAX: usize = 64;

    /// Reads a label.
    ///
    /// # Errors
    /// [`LabelError`] with one that would do.
    pub fn parse(text: &str) -> Result<Self, LabelError> {
        let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if starts_well && text.len() <= Self::MAX && text.chars().all(is_plain) {
            return Ok(Self(text.to_owned()));
        }
        let suggestion = Self::near(text).map_or_else(|| "sweep-1".to_owned(), |label| label.0);
        Err(LabelError { given: text.chars().take(80).collect(), suggestion })
    }

    /// The label that is nearest to a text of somebody else's, such as the name that a client gives
    /// itself; `None` when nothing of it can stay.
    #[must_use]
    pub fn near(text: &str) -> Option<Self> {
        let plain: String = text.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
        let start = plain.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
        let cut: String = start.chars().take(Self::MAX).collect();
        let label = cut.trim_end_matches('-');
        (!label.is_empty()).then(|| Self(label.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-/:@+".contains(c)
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Labels {
    /// These, and where one is missing that of `others`.
    #[must_use]
    pub fn or(self, others: &Self) -> Self {
        Self {
            group: self.group.or_else(|| others.group.clone()),
            agent: self.agent.or_else(|| others.agent.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_plain_and_a_name_of_somebody_elses_is_made_so() {
        for good in ["sweep-1", "claude-code", "ann@lab", "a/b:c+d_e.f", "1"] {
            assert_eq!(Label::parse(good).unwrap().as_str(), good);
        }
        for (bad, near) in [
            ("", "sweep-1"),
            ("-x", "x"),
            ("a b", "a-b"),
            ("\u{1b}[2Jx", "2Jx"),
            ("$(id)", "id"),
            ("\u{202e}", "sweep-1"),
        ] {
            assert_eq!(Label::parse(bad).unwrap_err().suggestion, near, "{bad:?}");
        }
        assert!(Label::parse(&"x".repeat(65)).is_err());
        assert_eq!(Label::near(&"x".repeat(65)).unwrap().as_str().len(), 64);
    }
}
