//! The answers of the looking scripts: `key=value` lines closed by a sentinel.

use crate::pod::{ExecOutput, ExecStatus};
use base64::Engine as _;

/// Why an answer counts for nothing. Never taken for "no", "idle" or "done".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The script said that it could not look.
    #[error(
        "{script} could not look ({status}): {stderr}; ask again, or see what is wrong there with exec_on_pod"
    )]
    Failed {
        /// Which script.
        script: &'static str,
        /// How it ended.
        status: String,
        /// The end of its stderr.
        stderr: String,
    },
    /// The last line is missing, or the first ones are: the answer was cut.
    #[error(
        "the answer of {script} was cut, {got} bytes of {total} arrived, so it says nothing; ask again"
    )]
    Cut {
        /// Which script.
        script: &'static str,
        /// Bytes at hand.
        got: usize,
        /// Bytes that the script wrote.
        total: u64,
    },
    /// A value is missing or makes no sense.
    #[error(
        "{script} answered {key}={value:?}, which makes no sense here; is something on the pod in the way of its programs?"
    )]
    Value {
        /// Which script.
        script: &'static str,
        /// Which value.
        key: String,
        /// What it was.
        value: String,
    },
}

/// A complete answer.
#[derive(Clone, Debug)]
pub struct Answer {
    script: &'static str,
    lines: Vec<(String, String)>,
}

impl Answer {
    /// Reads what `script` wrote; its last line must be `end=<script>`.
    ///
    /// # Errors
    /// [`AnswerError`] when the script failed or its answer is not whole.
    pub fn read(script: &'static str, output: &ExecOutput) -> Result<Self, AnswerError> {
        let cut = || AnswerError::Cut {
            script,
            got: output.stdout.bytes.len(),
            total: output.stdout.total,
        };
        if !output.succeeded() {
            let status = match &output.status {
                ExecStatus::Code(code) => format!("exit code {code}"),
                ExecStatus::Signal(signal) => format!("signal {signal}"),
            };
            let stderr = output.stderr.text().trim().to_owned();
            return Err(AnswerError::Failed { script, status, stderr });
        }
        if output.stdout.is_truncated() {
            return Err(cut());
        }
        let text = output.stdout.text();
        let body = text.strip_suffix(&format!("end={script}\n")).ok_or_else(cut)?;
        let lines = body
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        Ok(Self { script, lines })
    }

    /// The value of `key`, when there is one that is not empty.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.first(key).filter(|value| !value.is_empty())
    }

    /// Every value of `key`.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter(move |(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    fn first(&self, key: &str) -> Option<&str> {
        self.lines.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// A number, when there is one.
    ///
    /// # Errors
    /// [`AnswerError::Value`] when it is none.
    pub fn number(&self, key: &str) -> Result<Option<u64>, AnswerError> {
        self.get(key).map(|text| text.parse().map_err(|_| self.senseless(key))).transpose()
    }

    /// The content of a file, when there is one.
    ///
    /// # Errors
    /// [`AnswerError::Value`] when it is no base64.
    pub fn bytes(&self, key: &str) -> Result<Option<Vec<u8>>, AnswerError> {
        let decode = |text| base64::engine::general_purpose::STANDARD.decode(text);
        self.first(key).map(|text| decode(text).map_err(|_| self.senseless(key))).transpose()
    }

    /// That the value of `key` makes no sense.
    #[must_use]
    pub fn senseless(&self, key: &str) -> AnswerError {
        let value = self.get(key).unwrap_or_default().chars().take(80).collect();
        AnswerError::Value { script: self.script, key: key.to_owned(), value }
    }
}
