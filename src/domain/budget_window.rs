//! The time that a budget counts in.

use chrono::{DateTime, Datelike as _, Months, NaiveDate, NaiveTime, TimeDelta, Utc};
use std::fmt;

/// The time that `limits.budget_usd` counts in. Days and months are those of UTC, as the provider's
/// bill is.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum BudgetWindow {
    /// Everything that the provider's billing still tells.
    #[default]
    Total,
    /// The calendar month.
    Month,
    /// The calendar day.
    Day,
}

impl BudgetWindow {
    /// Every window, the widest first.
    pub const ALL: [Self; 3] = [Self::Total, Self::Month, Self::Day];

    /// Its word in the config.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Month => "month",
            Self::Day => "day",
        }
    }

    /// The window of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|window| window.as_str() == word)
    }

    /// When the window that `now` is in began.
    ///
    /// The provider names no limit on how far back its bill goes (REST v2, `startTime`), so `Total`
    /// asks from the start of 2022, before RunPod rented its first pod.
    #[must_use]
    pub fn start(self, now: DateTime<Utc>) -> DateTime<Utc> {
        let today = now.date_naive();
        let first = match self {
            Self::Total => NaiveDate::from_ymd_opt(2022, 1, 1),
            Self::Month => today.with_day(1),
            Self::Day => Some(today),
        };
        first.unwrap_or(today).and_time(NaiveTime::MIN).and_utc()
    }

    /// When it ends; `None` when it never does.
    #[must_use]
    pub fn end(self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let start = self.start(now);
        match self {
            Self::Total => None,
            Self::Month => start.checked_add_months(Months::new(1)),
            Self::Day => start.checked_add_signed(TimeDelta::days(1)),
        }
    }
}

impl fmt::Display for BudgetWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_whole_days_and_months_of_utc() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let now = at("2026-12-31T23:59:59Z");
        for (window, start, end) in [
            (BudgetWindow::Total, "2022-01-01T00:00:00Z", None),
            (BudgetWindow::Month, "2026-12-01T00:00:00Z", Some("2027-01-01T00:00:00Z")),
            (BudgetWindow::Day, "2026-12-31T00:00:00Z", Some("2027-01-01T00:00:00Z")),
        ] {
            assert_eq!((window.start(now), window.end(now)), (at(start), end.map(at)), "{window}");
            assert_eq!(BudgetWindow::parse(window.as_str()), Some(window));
        }
        assert_eq!(BudgetWindow::parse("week"), None);
    }
}
