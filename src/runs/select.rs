//! Which runs are listed.

use super::record::NOT_STARTED;
use super::run::Run;
use crate::domain::{JobState, nearest};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use std::collections::BTreeSet;

/// What a run must be; everything when nothing is named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Its group.
    pub group: Option<String>,
    /// Who launched it.
    pub agent: Option<String>,
    /// Its state.
    pub state: Option<String>,
    /// Its vehicle.
    pub vehicle: Option<String>,
    /// Its training.
    pub training: Option<String>,
    /// Launched then or later.
    pub since: Option<DateTime<Utc>>,
}

impl Filter {
    /// Whether a run is meant. Words are compared letter by letter.
    #[must_use]
    pub fn takes(&self, run: &Run) -> bool {
        let same = |asked: &Option<String>, own: Option<&str>| {
            asked.as_deref().is_none_or(|asked| own == Some(asked))
        };
        same(&self.group, run.group.as_deref())
            && same(&self.agent, run.agent.as_deref())
            && same(&self.state, Some(&run.state))
            && same(&self.vehicle, Some(&run.vehicle))
            && same(&self.training, run.training.as_deref())
            && self.since.is_none_or(|since| run.launched_at >= since)
    }

    /// Words that no run has at all, each with the nearest that one has: an empty list that comes of a
    /// slip looks like one that comes of nothing having been run.
    #[must_use]
    pub fn unheard_of(&self, runs: &[Run]) -> Vec<String> {
        type Word = for<'a> fn(&'a Run) -> Option<&'a str>;
        let words: [(&str, &Option<String>, Word); 4] = [
            ("group", &self.group, |run| run.group.as_deref()),
            ("agent", &self.agent, |run| run.agent.as_deref()),
            ("vehicle", &self.vehicle, |run| Some(&run.vehicle)),
            ("training", &self.training, |run| run.training.as_deref()),
        ];
        let one = |(key, asked, word): (&str, &Option<String>, Word)| {
            let asked = asked.as_deref()?;
            let known: BTreeSet<&str> = runs.iter().filter_map(word).collect();
            if known.contains(asked) || runs.is_empty() {
                return None;
            }
            let shown: String = asked.chars().take(80).collect();
            let fix = match known.is_empty() {
                true => "none has one".to_owned(),
                false => nearest(asked, known),
            };
            Some(format!("no run is of {key} {shown:?}; {fix}"))
        };
        words.into_iter().filter_map(one).collect()
    }
}

/// Whether a word is a state that a run can have.
///
/// # Errors
/// The nearest one, in words.
pub fn known_state(word: &str) -> Result<(), String> {
    let known = || JobState::ALL.map(JobState::as_str).into_iter().chain([NOT_STARTED]);
    if known().any(|state| state == word) {
        return Ok(());
    }
    Err(nearest(word, known()))
}

/// Reads a point in time: `7d`, `12h`, `30m` before `now`, a day (UTC), or RFC 3339.
#[must_use]
pub fn since(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    if let Some((number, unit)) = text.char_indices().last().map(|(at, _)| text.split_at(at))
        && let Ok(number) = number.parse::<u32>()
    {
        let number = i64::from(number);
        let ago = match unit {
            "d" => TimeDelta::try_days(number),
            "h" => TimeDelta::try_hours(number),
            "m" => TimeDelta::try_minutes(number),
            _ => None,
        };
        if let Some(ago) = ago {
            return now.checked_sub_signed(ago);
        }
    }
    if let Ok(day) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        return Some(day.and_time(chrono::NaiveTime::MIN).and_utc());
    }
    DateTime::parse_from_rfc3339(text).ok().map(|at| at.with_timezone(&Utc))
}

#[cfg(test)]
mod tests {
    use super::super::run::{Around, merge};
    use super::super::sample;
    use super::*;

    #[test]
    fn a_time_is_so_long_ago_a_day_or_a_moment() {
        let now = DateTime::from_timestamp(1_783_085_125, 0).unwrap();
        for (text, seconds) in [("7d", 604_800), ("12h", 43_200), ("30m", 1_800), ("0d", 0)] {
            assert_eq!(since(text, now), Some(now - TimeDelta::seconds(seconds)), "{text}");
        }
        let day = since("2026-07-03", now).unwrap();
        assert_eq!(day.to_rfc3339(), "2026-07-03T00:00:00+00:00");
        assert_eq!(since("2026-07-03T02:00:00+02:00", now), Some(day));
        for text in ["", "d", "-1d", "1w", "yesterday", "2026-13-01", "9999999999d", "ü"] {
            assert_eq!(since(text, now), None, "{text:?}");
        }
    }

    #[test]
    fn a_filter_takes_what_is_all_of_what_was_asked() {
        let mut record = sample::record("20260703-132525_train_00ab");
        record.provenance.insert("group".into(), "ablation".into());
        let run = merge(Some(record), None, &Around::default()).unwrap();
        let text = |text: &str| Some(text.to_owned());
        let all = Filter {
            group: text("ablation"),
            agent: None,
            state: text("unknown"),
            vehicle: text("hippocampus"),
            training: text("curee"),
            since: Some(run.launched_at),
        };
        assert!(Filter::default().takes(&run) && all.takes(&run));
        let runs = [run.clone()];
        assert_eq!(all.unheard_of(&runs), Vec::<String>::new());
        let slips = Filter { training: text("cure"), agent: text("ann"), ..all.clone() };
        assert_eq!(
            slips.unheard_of(&runs),
            [
                "no run is of agent \"ann\"; none has one",
                "no run is of training \"cure\"; did you mean curee?"
            ]
        );
        assert_eq!(slips.unheard_of(&[]), Vec::<String>::new());
        assert_eq!(known_state("not_started").and(known_state("timed_out")), Ok(()));
        assert_eq!(known_state("succeded"), Err("did you mean succeeded?".to_owned()));
        for other in [
            Filter { group: text("Ablation"), ..all.clone() },
            Filter { agent: text("ann"), ..all.clone() },
            Filter { state: text("succeeded"), ..all.clone() },
            Filter { since: Some(run.launched_at + TimeDelta::seconds(1)), ..all.clone() },
        ] {
            assert!(!other.takes(&run), "{other:?}");
        }
    }
}
