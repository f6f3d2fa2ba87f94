//! Faults as they are written: `NAME[=VALUE][@on:REQUEST][@after:SEC][@for:SEC]`, one a line in a
//! scenario.

use super::{FAULTS, FaultKind, FaultValue, On};
use std::fmt;
use std::str::FromStr;

/// A fault with its number and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which one.
    pub kind: &'static FaultKind,
    /// The number: times left or seconds, as [`FaultKind::value`] says. `None` is every time.
    pub value: Option<u32>,
    /// The requests it meets; `None` where nobody chose.
    pub on: Option<On>,
    /// Seconds until it begins, from when it was switched on.
    pub after: Option<u32>,
    /// Seconds that it goes on after its beginning; for ever when `None`.
    pub lasts: Option<u32>,
}

/// Text that names no fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No fault has this name.
    #[error("there is no fault `{name}`{}; there are: {}", hint(.nearest), list())]
    Unknown {
        /// The name given.
        name: String,
        /// The nearest name there is.
        nearest: Option<&'static str>,
    },
    /// A number is no whole number from 0.
    #[error("{what} of fault `{name}` is not a whole number: `{value}`")]
    NotANumber {
        /// The fault.
        name: &'static str,
        /// Which number.
        what: &'static str,
        /// What was given.
        value: String,
    },
    /// What follows an `@` is none of the limits.
    #[error(
        "fault `{name}` has no `@{given}`; there are @after:SEC, @for:SEC and, where a fault meets requests, @on:{}",
        requests()
    )]
    Limit {
        /// The fault.
        name: &'static str,
        /// What was given.
        given: String,
    },
}

/// A scenario with a line that names no fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {source}")]
pub struct ScenarioError {
    /// Which line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub source: FaultError,
}

fn hint(nearest: &Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

fn list() -> String {
    FAULTS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}

fn requests() -> String {
    On::ALL.map(On::word).join("|")
}

/// The faults of a scenario: one a line, `#` begins a comment.
///
/// # Errors
/// [`ScenarioError`] with the first line that names no fault.
pub fn scenario(text: &str) -> Result<Vec<Fault>, ScenarioError> {
    let lines = text.lines().enumerate().map(|(index, line)| {
        let written = line.split_once('#').map_or(line, |(before, _)| before);
        (index + 1, written.trim())
    });
    lines
        .filter(|(_, written)| !written.is_empty())
        .map(|(line, written)| written.parse().map_err(|source| ScenarioError { line, source }))
        .collect()
}

fn kind(name: &str) -> Result<&'static FaultKind, FaultError> {
    FAULTS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let nearest = FAULTS
            .iter()
            .map(|kind| (strsim::jaro_winkler(kind.name, name), kind.name))
            .filter(|(likeness, _)| *likeness > 0.75)
            .max_by(|(one, _), (other, _)| one.total_cmp(other))
            .map(|(_, name)| name);
        FaultError::Unknown { name: name.to_owned(), nearest }
    })
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let mut parts = text.split('@').map(str::trim);
        let first = parts.next().unwrap_or_default();
        let (name, value) = match first.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (first, None),
        };
        let kind = kind(name)?;
        let number = |what, text: &str| {
            let value = text.to_owned();
            text.parse().map_err(|_| FaultError::NotANumber { name: kind.name, what, value })
        };
        let value = match (value, kind.value) {
            (Some(value), _) => Some(number("the value", value)?),
            (None, FaultValue::Times(times)) => times,
            (None, FaultValue::Seconds(seconds)) => Some(seconds),
        };
        let mut fault = Self { kind, value, on: None, after: None, lasts: None };
        for part in parts {
            let unknown = || FaultError::Limit { name: kind.name, given: part.to_owned() };
            match part.split_once(':') {
                Some(("after", text)) => fault.after = Some(number("@after", text)?),
                Some(("for", text)) => fault.lasts = Some(number("@for", text)?),
                Some(("on", word)) if kind.meets_requests => {
                    let on = On::ALL.into_iter().find(|on| on.word() == word);
                    fault.on = Some(on.ok_or_else(unknown)?);
                }
                _ => return Err(unknown()),
            }
        }
        Ok(fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name)?;
        if let Some(value) = self.value {
            write!(f, "={value}")?;
        }
        if let Some(on) = self.on {
            write!(f, "@on:{}", on.word())?;
        }
        if let Some(after) = self.after {
            write!(f, "@after:{after}")?;
        }
        if let Some(lasts) = self.lasts {
            write!(f, "@for:{lasts}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_fault_is_refused_with_the_nearest_name_and_the_list() {
        let message = "slowboot".parse::<Fault>().unwrap_err().to_string();
        assert!(message.contains("did you mean `slow-boot`"), "{message}");
        assert!(message.contains("create-reply-lost, duplicate"), "{message}");
        for wrong in [
            "slow-boot=soon",
            "slow-boot=-1",
            "rate-limited@",
            "rate-limited@after:x",
            "rate-limited@on:tuesday",
            "rate-limited@until:3",
        ] {
            assert!(wrong.parse::<Fault>().is_err(), "{wrong}");
        }
        let message = "slow-boot@on:list".parse::<Fault>().unwrap_err().to_string();
        assert!(message.contains("no `@on:list`"), "{message}");
    }

    #[test]
    fn a_fault_is_written_as_it_is_read() {
        for text in [
            "no-capacity",
            "slow-boot=4",
            "rate-limited=2@on:stop@after:3@for:60",
            "retired@on:write@for:5",
        ] {
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_scenario_says_which_line_is_wrong() {
        let faults = scenario("# a bad day\n\nretired  # for good\nlist-lag=3\n").unwrap();
        let names: Vec<&str> = faults.iter().map(|fault| fault.kind.name).collect();
        assert_eq!(names, ["retired", "list-lag"]);
        let error = scenario("retired\n\nlist-leg=3\n").unwrap_err();
        assert_eq!(error.line, 3);
        assert!(error.to_string().contains("did you mean `list-lag`"), "{error}");
    }

    #[test]
    fn the_table_is_in_order_and_no_name_stands_twice() {
        let names: Vec<&str> = FAULTS.iter().map(|kind| kind.name).collect();
        assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
    }
}
