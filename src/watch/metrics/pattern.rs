//! Logs of a form of their own: the user gives a regular expression whose named groups are the numbers.
//! The engine's time is linear in the line's length, whatever the expression.

use super::bar::Bar;
use super::number::number;
use super::{Block, Family, FamilyName};
use regex::Regex;

/// A regular expression with a group `iteration`, and perhaps `total` and `value`.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

/// Why an expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It is no regular expression.
    #[error("the metrics pattern is no regular expression: {0}")]
    Syntax(String),
    /// The group that everything hangs on is missing.
    #[error(
        "the metrics pattern has no group named iteration; write for example `step (?P<iteration>\\d+)(?:/(?P<total>\\d+))?: loss (?P<value>\\S+)`"
    )]
    NoIteration,
    /// A group whose name means nothing here.
    #[error(
        "the metrics pattern has a group named {0}; only iteration, total and value mean something"
    )]
    UnknownGroup(String),
}

impl Pattern {
    /// Reads an expression. `value` is what the plateau rule watches.
    ///
    /// # Errors
    /// [`PatternError`].
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let regex = Regex::new(text).map_err(|error| PatternError::Syntax(error.to_string()))?;
        let mut names: Vec<&str> = regex.capture_names().flatten().collect();
        if !names.contains(&"iteration") {
            return Err(PatternError::NoIteration);
        }
        names.retain(|name| !["iteration", "total", "value"].contains(name));
        match names.first() {
            Some(name) => Err(PatternError::UnknownGroup((*name).to_owned())),
            None => Ok(Self(regex)),
        }
    }
}

/// The lines that a pattern fits.
#[derive(Debug)]
pub(super) struct PatternLines(Pattern);

impl PatternLines {
    pub(super) const fn new(pattern: Pattern) -> Self {
        Self(pattern)
    }
}

impl Family for PatternLines {
    fn name(&self) -> FamilyName {
        FamilyName::Pattern
    }

    fn line(&mut self, line: &str, _: Option<&Bar>) -> Option<Block> {
        let found = self.0.0.captures(line)?;
        let whole = |name: &str| found.name(name)?.as_str().trim().parse::<u64>().ok();
        let (iteration, total) = (whole("iteration")?, whole("total"));
        // Nobody knows whether it counts from 0, so only the total itself is an end.
        let is_last = total.is_some_and(|total| iteration >= total);
        let value = found.name("value").and_then(|value| number(value.as_str().trim()));
        Some(Block { is_last, mean_reward: value, ..Block::at(iteration, total) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::MetricsParser;
    use super::*;

    #[test]
    fn named_groups_are_the_numbers() {
        let pattern = Pattern::parse(
            r"\[\d+,\s*(?P<iteration>\d+)/\s*(?P<total>\d+)\].*Loss: (?P<value>\S+)",
        );
        let mut parser = MetricsParser::of_pattern(pattern.unwrap());
        parser.push(b"[1,   50/ 100] Loss: 5.5 x\nnothing\n[1,  100/ 100] Loss: nan\n");
        let read: Vec<_> = parser.blocks().iter().map(|block| block.iteration).collect();
        assert_eq!(read, [50, 100]);
        assert_eq!(parser.blocks()[0].mean_reward, Some(5.5));
        assert_eq!(parser.blocks()[1].not_finite().len(), 1);
        assert!(parser.is_finished());
    }

    #[test]
    fn a_pattern_that_cannot_work_is_refused_with_one_that_would() {
        assert!(matches!(Pattern::parse("("), Err(PatternError::Syntax(_))));
        assert_eq!(Pattern::parse(r"\d+").unwrap_err(), PatternError::NoIteration);
        assert!(PatternError::NoIteration.to_string().contains("(?P<iteration>"));
        let unknown = Pattern::parse(r"(?P<iteration>\d+) (?P<loss>\d+)").unwrap_err();
        assert_eq!(unknown, PatternError::UnknownGroup("loss".to_owned()));
    }
}
