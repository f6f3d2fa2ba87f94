//! The key in `RUNPOD_API_KEY`.

use super::{KeyError, KeySource, key_from};
use crate::config::{API_KEY, Environment};
use crate::secret::Secret;

/// The environment as it was when the process started.
#[derive(Debug)]
pub struct EnvironmentSource {
    key: Option<Secret>,
}

impl EnvironmentSource {
    /// The key in `env`, if there is one.
    #[must_use]
    pub fn new(env: &Environment) -> Self {
        Self { key: env.api_key().cloned() }
    }
}

impl KeySource for EnvironmentSource {
    fn describe(&self) -> String {
        format!("environment variable {API_KEY}")
    }

    fn read(&self) -> Result<Option<Secret>, KeyError> {
        match &self.key {
            Some(key) => key_from(key.reveal(), &self.describe()),
            None => Ok(None),
        }
    }
}
