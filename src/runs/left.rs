//! What the run of a training has left, and how it compares with what its recipe expects.

use serde::{Deserialize, Serialize};

/// A file of the run's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFile {
    /// Its name, relative to the folder.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// The SHA-256 that the pull compared on both sides; null when no pull has.
    pub sha256: Option<String>,
}

/// The last mean reward of a run, beside what its recipe expects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reward {
    /// The last one that the log tells; null when it tells none.
    pub last: Option<f64>,
    /// The lowest that is expected, as it is written in the recipe.
    pub low: String,
    /// The highest that is expected.
    pub high: String,
    /// Whether the last is at least the lowest; null when nobody can tell. It fails no run.
    pub reached: Option<bool>,
}

/// What a run has left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The name of its folder below the recipe's logs.root, by the log's own line.
    pub run_dir: Option<String>,
    /// Whether that folder was not there before the launch; null when nobody knows.
    pub is_new: Option<bool>,
    /// The recipe's artifacts and the other files at the folder's top, at most 64.
    pub files: Vec<RunFile>,
    /// Artifacts of the recipe that are not there.
    pub missing: Vec<String>,
    /// How often the log tells a mean reward.
    pub reward_lines: usize,
    /// How many iterations were expected.
    pub iterations: Option<u32>,
    /// Where the run's folder is here, relative to the vehicle's log folder; null when it is not here.
    #[serde(default)]
    pub folder: Option<String>,
    /// Of a recipe that expects a reward: whether it was reached.
    #[serde(default)]
    pub reward: Option<Reward>,
    /// What was found, and what is odd about it, one sentence each.
    #[serde(default)]
    pub told: Vec<String>,
}

impl Reward {
    /// Judges the last reward. The texts are the recipe's.
    #[must_use]
    pub fn judge(last: Option<f64>, low: &str, high: &str) -> Self {
        let reached = match (last, low.parse::<f64>()) {
            // A reward that is no number has reached nothing.
            (Some(last), Ok(low)) => Some(last.is_finite() && last >= low),
            _ => None,
        };
        // JSON has no word for what is no number.
        let last = last.filter(|last| last.is_finite());
        Self { last, low: low.to_owned(), high: high.to_owned(), reached }
    }

    /// In words.
    #[must_use]
    pub fn told(&self) -> String {
        let Self { low, high, .. } = self;
        let above = self.last.zip(high.parse::<f64>().ok()).is_some_and(|(last, high)| last > high);
        match (self.last, self.reached) {
            (Some(last), Some(true)) if above => {
                format!(
                    "the last reward, {last:.2}, is above the {low} to {high} that are expected"
                )
            }
            (Some(last), Some(true)) => {
                format!(
                    "the last reward, {last:.2}, is within the {low} to {high} that are expected"
                )
            }
            (Some(last), Some(false)) => format!(
                "the last reward, {last:.2}, did not reach the {low} to {high} that are expected"
            ),
            (None, Some(_)) => {
                format!("the last reward is no number; {low} to {high} are expected")
            }
            _ => format!("the log tells no reward; {low} to {high} are expected"),
        }
    }
}

/// Whether the log told as many rewards as iterations were expected, in words.
#[must_use]
pub(crate) fn lines_told(reward_lines: usize, iterations: Option<u32>) -> String {
    let expected = iterations.and_then(|n| usize::try_from(n).ok());
    match expected {
        Some(expected) if expected == reward_lines => {
            format!("{reward_lines} reward lines, one for each iteration that was expected")
        }
        Some(expected) => {
            format!("{reward_lines} reward lines; {expected} iterations were expected")
        }
        None => format!("{reward_lines} reward lines; nobody said how many iterations to expect"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reward_is_judged_in_words_and_one_that_is_no_number_reached_nothing() {
        for (last, reached, says) in [
            (Some(97.0), Some(true), "97.00, is within the 95 to 100"),
            (Some(121.26), Some(true), "is above the 95 to 100"),
            (Some(71.59), Some(false), "did not reach"),
            (Some(f64::NAN), Some(false), "no number"),
            (None, None, "tells no reward"),
        ] {
            let reward = Reward::judge(last, "95", "100");
            assert_eq!(reward.reached, reached);
            assert!(reward.told().contains(says), "{}", reward.told());
            // What is written is read again.
            let text = serde_json::to_string(&reward).unwrap();
            assert_eq!(serde_json::from_str::<Reward>(&text).unwrap(), reward);
        }
        assert_eq!(Reward::judge(Some(1.0), "?", "?").reached, None);
    }

    #[test]
    fn reward_lines_are_counted_against_what_was_expected() {
        assert!(lines_told(400, Some(400)).contains("one for each"));
        assert!(lines_told(399, Some(400)).contains("400 iterations were expected"));
        assert!(lines_told(3, None).contains("nobody said"));
    }
}
