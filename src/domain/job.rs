//! Jobs: detached commands on a pod.

use chrono::{DateTime, Utc};
use std::fmt;
use std::time::Duration;

/// A job's name: 1 to 64 characters of `a-z A-Z 0-9 . _ -`, starting with a letter or digit. The
/// charset is strict because the name becomes a folder and a word on a remote command line (H03).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JobName(String);

/// Why a text is not a job name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobNameError {
    /// Nothing was given.
    #[error(
        "a job name must not be empty; use letters, digits, '.', '_' and '-', for example {suggestion:?}",
        suggestion = "train-1"
    )]
    Empty,
    /// More than 64 characters.
    #[error("a job name has at most {max} characters, this one has {length}; for example {suggestion:?}", max = JobName::MAX)]
    TooLong {
        /// How many characters it has.
        length: usize,
        /// A name that would do.
        suggestion: String,
    },
    /// A character outside the charset, or a first character that is not a letter or digit.
    #[error(
        "job name {name:?} may not contain {character:?}; use letters, digits, '.', '_' and '-', starting with a letter or digit, for example {suggestion:?}"
    )]
    BadCharacter {
        /// The name as given.
        name: String,
        /// The first character that is not allowed.
        character: char,
        /// A name that would do.
        suggestion: String,
    },
}

impl JobName {
    const MAX: usize = 64;

    /// Reads a name.
    ///
    /// # Errors
    /// [`JobNameError`] with a name that would do.
    pub fn parse(text: &str) -> Result<Self, JobNameError> {
        if text.is_empty() {
            return Err(JobNameError::Empty);
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let first_bad = text
            .chars()
            .enumerate()
            .find(|(i, c)| !allowed(*c) || (*i == 0 && !c.is_ascii_alphanumeric()));
        if let Some((_, character)) = first_bad {
            let name = text.chars().take(80).collect();
            return Err(JobNameError::BadCharacter {
                name,
                character,
                suggestion: Self::nearest(text),
            });
        }
        let length = text.chars().count();
        if length > Self::MAX {
            return Err(JobNameError::TooLong { length, suggestion: Self::nearest(text) });
        }
        Ok(Self(text.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn nearest(text: &str) -> String {
        let words: Vec<&str> = text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        let joined = words.join("-");
        let cut: String = joined.chars().take(Self::MAX).collect();
        if cut.is_empty() { "job-1".to_owned() } else { cut.trim_end_matches('-').to_owned() }
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A job's id, `YYYYMMDD-HHMMSS_<slug>_<4 hex>`; also the name of its folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(String);

impl JobId {
    /// A new id from the time of launch, the job's name and 16 random bits.
    #[must_use]
    pub fn new(now: DateTime<Utc>, name: &JobName, random: u16) -> Self {
        Self(format!(
            "{}_{}_{random:04x}",
            now.format("%Y%m%d-%H%M%S"),
            name.as_str().to_ascii_lowercase()
        ))
    }

    /// Reads an id; anything that could leave the jobs folder or reach a shell is refused.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (stamp, rest) = text.split_once('_')?;
        let (slug, random) = rest.rsplit_once('_')?;
        let digits = |part: &str, count: usize| {
            part.len() == count && part.bytes().all(|b| b.is_ascii_digit())
        };
        let (day, time) = stamp.split_once('-')?;
        let hex = random.len() == 4 && random.bytes().all(|b| b.is_ascii_hexdigit());
        (digits(day, 8) && digits(time, 6) && hex && JobName::parse(slug).is_ok())
            .then(|| Self(text.to_owned()))
    }

    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The longest a job may run. Always finite: from 1 second to 7 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ceiling(u32);

/// Why a number is not a ceiling.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}={given} is not a ceiling: it must be a whole number of seconds from 1 to {max}; leave it out for the default of {default} s", max = Ceiling::MAX_SEC)]
pub struct CeilingError {
    /// The field that was given.
    pub what: &'static str,
    /// The value as given.
    pub given: String,
    /// The default that would apply, in seconds.
    pub default: u32,
}

impl Ceiling {
    /// Seven days, in seconds. Nothing this tool starts should outlive a week unseen.
    pub const MAX_SEC: u32 = 7 * 24 * 3600;
    /// Between TERM and KILL at the ceiling, in seconds.
    pub const KILL_GRACE_SEC: u32 = 60;

    /// The shortest that there is: one second.
    pub const SHORTEST: Self = Self(1);

    /// A ceiling of `seconds`; no value means `default`, never unlimited (A21).
    ///
    /// # Errors
    /// [`CeilingError`] when it is below 1 or above [`Self::MAX_SEC`].
    pub fn new(
        what: &'static str,
        seconds: Option<i64>,
        default: Self,
    ) -> Result<Self, CeilingError> {
        let Some(seconds) = seconds else { return Ok(default) };
        u32::try_from(seconds).ok().and_then(Self::from_secs).ok_or_else(|| CeilingError {
            what,
            given: seconds.to_string(),
            default: default.0,
        })
    }

    /// A ceiling of `seconds`, when in range.
    #[must_use]
    pub const fn from_secs(seconds: u32) -> Option<Self> {
        if seconds >= 1 && seconds <= Self::MAX_SEC { Some(Self(seconds)) } else { None }
    }

    /// In seconds.
    #[must_use]
    pub const fn as_secs(self) -> u32 {
        self.0
    }

    /// As a duration.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_secs(self.0 as u64)
    }
}

/// What is known about a job.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// The folder exists, the wrapper has not yet written its pid.
    Starting,
    /// The process that wrote the pid still lives.
    Running,
    /// Exit code 0.
    Succeeded,
    /// Any other exit code.
    Failed,
    /// The ceiling struck.
    TimedOut,
    /// The wrapper is gone without an exit code; the job may live on.
    WrapperLost,
    /// The recorded pid now belongs to something else or to an earlier boot.
    Orphaned,
    /// It could not be read. Never taken for dead, never for done.
    Unknown,
    /// There is no such job folder.
    NotFound,
}

impl JobState {
    /// Every state.
    pub const ALL: [Self; 9] = [
        Self::Starting,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::TimedOut,
        Self::WrapperLost,
        Self::Orphaned,
        Self::Unknown,
        Self::NotFound,
    ];

    /// Whether the job has ended and its exit code is settled.
    #[must_use]
    pub const fn has_ended(self) -> bool {
        matches!(
            self,
            Self::Succeeded | Self::Failed | Self::TimedOut | Self::WrapperLost | Self::Orphaned
        )
    }

    /// The word used in every answer.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::WrapperLost => "wrapper_lost",
            Self::Orphaned => "orphaned",
            Self::Unknown => "unknown",
            Self::NotFound => "not_found",
        }
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H03: nothing in a job name can reach a shell or leave the jobs folder.
    #[test]
    fn a_hostile_job_name_is_refused_with_one_that_would_do() {
        let long = "x".repeat(300);
        for (name, suggestion) in [
            ("$(touch pwned)", "touch-pwned"),
            ("a\nb", "a-b"),
            ("../../etc/passwd", "etc-passwd"),
            ("-rf", "rf"),
            ("a;b", "a-b"),
            ("`id`", "id"),
            ("it's", "it-s"),
            ("naïve", "na-ve"),
            ("…", "job-1"),
            (long.as_str(), &long[..64]),
        ] {
            let message = JobName::parse(name).unwrap_err().to_string();
            assert!(message.contains(&format!("{suggestion:?}")), "{message}");
            assert!(JobName::parse(suggestion).is_ok());
        }
        assert_eq!(JobName::parse(""), Err(JobNameError::Empty));
        assert!(JobName::parse("Train_1.5-b").is_ok());
    }

    #[test]
    fn a_job_id_is_read_back_and_nothing_else_is_one() {
        let now = DateTime::parse_from_rfc3339("2026-07-03T13:25:25Z").unwrap().to_utc();
        let id = JobId::new(now, &JobName::parse("Train_a").unwrap(), 0xab);
        assert_eq!(id.as_str(), "20260703-132525_train_a_00ab");
        assert_eq!(JobId::parse(id.as_str()), Some(id));
        for text in [
            "",
            "20260703-132525_x",
            "../20260703-132525_x_00ab",
            "20260703-132525_a/b_00ab",
            "20260703-132525_$(x)_00ab",
        ] {
            assert_eq!(JobId::parse(text), None, "{text}");
        }
    }

    /// A21: no ceiling means the default, and nothing means unlimited.
    #[test]
    fn a_ceiling_is_always_finite() {
        let default = Ceiling::from_secs(3600).unwrap();
        assert_eq!(Ceiling::new("max_runtime_sec", None, default), Ok(default));
        for seconds in [0, -1, i64::MAX, 604_801] {
            let error = Ceiling::new("max_runtime_sec", Some(seconds), default).unwrap_err();
            assert!(error.to_string().contains("from 1 to 604800"), "{error}");
        }
        assert_eq!(Ceiling::new("max_runtime_sec", Some(5), default).map(Ceiling::as_secs), Ok(5));
    }
}
