//! The key in the Secret Service (GNOME Keyring, KWallet, KeePassXC), through `secret-tool`.

use super::program::Program;
use super::{KeyError, KeySource, SERVICE, key_from};
use crate::config::Environment;
use crate::secret::Secret;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

/// How long it may take; longer means that it asks somebody to unlock the collection.
const WAIT: Duration = Duration::from_secs(10);

/// The Secret Service, asked through libsecret's own program.
#[derive(Debug)]
pub struct SecretServiceSource {
    service: &'static str,
    account: Option<String>,
    program: Program,
}

impl SecretServiceSource {
    /// The same for what is stored under another service.
    #[must_use]
    pub fn of_service(self, service: &'static str) -> Self {
        Self { service, ..self }
    }

    /// `secret-tool` from `PATH`.
    #[must_use]
    pub fn new(env: &Environment, account: Option<&str>) -> Self {
        Self::with(env, account, "secret-tool".into(), WAIT)
    }

    /// Another program and another longest wait.
    #[must_use]
    pub fn with(
        env: &Environment,
        account: Option<&str>,
        program: PathBuf,
        wait: Duration,
    ) -> Self {
        let children = env.for_children().map(|(name, value)| (name, OsStr::to_owned(value)));
        let program = Program { path: program, env: children.collect(), wait };
        Self { service: SERVICE, account: account.map(str::to_owned), program }
    }
}

impl KeySource for SecretServiceSource {
    fn describe(&self) -> String {
        let account = self.account.as_deref().unwrap_or("(none)");
        format!("Secret Service, service {}, account {account}", self.service)
    }

    fn read(&self) -> Result<Option<Secret>, KeyError> {
        let account = self.account.as_deref().ok_or(KeyError::NoAccount)?;
        let outcome = self.program.run(&["lookup", "service", self.service, "account", account])?;
        match outcome.code {
            Some(0) => key_from(&outcome.stdout, &self.describe()),
            // `secret-tool lookup` ends with 1 and says nothing when there is no such item
            // (libsecret, tool/secret-tool.c); with words when it could not ask.
            Some(1) if outcome.stderr.trim().is_empty() => Ok(None),
            _ => Err(KeyError::Failed { tried: self.program.name(), detail: outcome.complaint() }),
        }
    }
}
