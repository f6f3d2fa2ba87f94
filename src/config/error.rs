//! What is wrong with a config: which file, which line, which key, which value, and what would do.

pub(super) use crate::domain::nearest;
use std::fmt;
use std::path::PathBuf;

/// A config that cannot be used. Nothing was changed anywhere.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No file was named and none was found.
    #[error(
        "no podtether.yaml in {} or any folder above it; change to the project's folder, name the file with --config FILE or PODTETHER_CONFIG, or start from a file in examples/",
        from.display()
    )]
    NotFound {
        /// The folder that the search began in.
        from: PathBuf,
    },
    /// The file could not be read.
    #[error("cannot read {what} {} (from {named_by}): {reason}; {fix}", path.display())]
    Unreadable {
        /// What the file is.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Where its name came from.
        named_by: &'static str,
        /// Why it could not be read.
        reason: String,
        /// What to do.
        fix: &'static str,
    },
    /// The text is not YAML.
    #[error("{}:{line}:{column}: not YAML: {detail}; mend this line and try again", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line, from 1; 0 when unknown.
        line: u64,
        /// Column, from 1; 0 when unknown.
        column: u64,
        /// The parser's words.
        detail: String,
    },
    /// Keys or values that will not do; all of them at once, so that they can be mended in one go.
    #[error("{}", list(path, problems))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Everything that is wrong, in the order of the file's lines.
        problems: Vec<Problem>,
    },
    /// A vehicle that the file does not declare.
    #[error("no vehicle {given:?} in {}; {fix}", path.display())]
    UnknownVehicle {
        /// The name as given.
        given: String,
        /// The file.
        path: PathBuf,
        /// The nearest name, or all of them.
        fix: String,
    },
    /// A training that the file does not declare.
    #[error("no training {given:?} in {}; {fix}", path.display())]
    UnknownTraining {
        /// The name as given.
        given: String,
        /// The file.
        path: PathBuf,
        /// The nearest name, or all of them.
        fix: String,
    },
    /// The SSH key file of a vehicle cannot be used.
    #[error("vehicle {vehicle}: ssh_identity {}: {reason}; {fix}", path.display())]
    Identity {
        /// The vehicle.
        vehicle: String,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What to do.
        fix: String,
    },
    /// An environment variable holds something that will not do.
    #[error("environment variable {name}={given:?}: {reason}; {fix}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// Its value. Never that of a secret one.
        given: String,
        /// What is wrong.
        reason: &'static str,
        /// What to do.
        fix: &'static str,
    },
}

/// One thing that is wrong in a config file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line, from 1; 0 when the key is missing and no line can be named.
    pub line: u64,
    /// The key's full path, such as `vehicles.hippocampus.gpu_count`.
    pub key: String,
    /// What is wrong, with the value as it was written.
    pub what: String,
    /// What would do.
    pub fix: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.key, self.what, self.fix)
    }
}

fn list(path: &std::path::Path, problems: &[Problem]) -> String {
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| match problem.line {
            0 => format!("{}: {problem}", path.display()),
            line => format!("{}:{line}: {problem}", path.display()),
        })
        .collect();
    lines.join("\n")
}

/// Collects what is wrong; a shared key that is wrong for every vehicle is told once.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub fn add(
        &mut self,
        line: u64,
        key: impl Into<String>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) {
        // Somebody may have pasted an API key anywhere, also where a key's name belongs.
        let clean = |text: String| crate::secret::scrub(&text, &[]);
        let (key, what, fix) = (clean(key.into()), clean(what.into()), clean(fix.into()));
        let problem = Problem { line, key, what, fix };
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn into_vec(self) -> Vec<Problem> {
        self.0
    }

    pub fn into_error(mut self, path: PathBuf) -> ConfigError {
        self.0.sort_by_key(|problem| problem.line);
        ConfigError::Invalid { path, problems: self.0 }
    }
}
