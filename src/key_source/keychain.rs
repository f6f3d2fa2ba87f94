//! The key in the macOS Keychain.
//!
//! First through the Keychain's own interface with interaction switched off. A binary that was
//! built anew is not yet trusted with the item and would be asked about, also after "Always
//! Allow"; then `/usr/bin/security`, which usually created the item, reads it within a bounded
//! wait. If that fails too, the error says what to run. The logic runs on any system: only
//! [`SilentRead`] of the real Keychain needs a Mac.

use super::program::{Outcome, Program};
use super::{KeyError, KeySource, SERVICE, key_from};
use crate::config::Environment;
use crate::secret::Secret;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

/// How long either way of asking may take.
const WAIT: Duration = Duration::from_secs(10);

/// What the Keychain says when it may not ask anybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silent {
    /// The item's bytes.
    Found(Vec<u8>),
    /// There is no such item.
    Absent,
    /// It cannot be read like this: locked, not trusted, not answering, or no Mac.
    Unreadable(String),
}

/// Reads an item without ever showing anything on a screen.
pub trait SilentRead: Send + Sync {
    /// Reads the item of `service` and `account`.
    fn read(&self, service: &str, account: &str) -> Silent;
}

/// The macOS Keychain.
pub struct KeychainSource {
    service: &'static str,
    account: Option<String>,
    silent: Box<dyn SilentRead>,
    security: Program,
}

impl KeychainSource {
    /// The same for what is stored under another service.
    #[must_use]
    pub fn of_service(self, service: &'static str) -> Self {
        Self { service, ..self }
    }

    /// The Keychain of this machine.
    #[must_use]
    pub fn new(env: &Environment, account: Option<&str>) -> Self {
        Self::with(env, account, Box::new(native::Keychain), "/usr/bin/security".into(), WAIT)
    }

    /// A Keychain with another way of silent reading, another `security` program and another
    /// longest wait for it.
    #[must_use]
    pub fn with(
        env: &Environment,
        account: Option<&str>,
        silent: Box<dyn SilentRead>,
        security: PathBuf,
        wait: Duration,
    ) -> Self {
        let children = env.for_children().map(|(name, value)| (name, OsStr::to_owned(value)));
        let security = Program { path: security, env: children.collect(), wait };
        Self { service: SERVICE, account: account.map(str::to_owned), silent, security }
    }

    /// `security`'s exit code is the low byte of the OSStatus (`SecBase.h`): 44 is
    /// errSecItemNotFound (-25300), 36 errSecInteractionNotAllowed (-25308), 51 errSecAuthFailed
    /// (-25293), 128 a prompt that was cancelled.
    fn by_program(&self, account: &str) -> Result<Option<Secret>, KeyError> {
        let args = ["find-generic-password", "-s", self.service, "-a", account, "-w"];
        let outcome: Outcome = self.security.run(&args)?;
        match outcome.code {
            Some(0) => match key_from(&outcome.stdout, &self.describe())? {
                Some(key) => Ok(Some(key)),
                // Over SSH a locked keychain has been seen to answer with nothing at all (C11).
                None => Err(self.locked()),
            },
            Some(44) => Ok(None),
            Some(36 | 51 | 128) => Err(self.locked()),
            _ => Err(KeyError::Failed { tried: self.security.name(), detail: outcome.complaint() }),
        }
    }

    fn locked(&self) -> KeyError {
        KeyError::Locked {
            place: self.describe(),
            fix: "run `security unlock-keychain` in this terminal and try again",
        }
    }
}

impl KeySource for KeychainSource {
    fn describe(&self) -> String {
        let account = self.account.as_deref().unwrap_or("(none)");
        format!("macOS Keychain, service {}, account {account}", self.service)
    }

    fn read(&self) -> Result<Option<Secret>, KeyError> {
        let account = self.account.as_deref().ok_or(KeyError::NoAccount)?;
        match self.silent.read(self.service, account) {
            Silent::Found(bytes) => {
                let place = self.describe();
                let text = String::from_utf8(bytes)
                    .map_err(|_| KeyError::Malformed { place: place.clone() })?;
                key_from(&text, &place)
            }
            Silent::Absent => Ok(None),
            Silent::Unreadable(_) => self.by_program(account),
        }
    }
}

#[cfg(target_os = "macos")]
mod native {
    use super::{Silent, SilentRead, WAIT};
    use security_framework::os::macos::keychain::SecKeychain;
    use security_framework::os::macos::passwords::find_generic_password;

    /// errSecItemNotFound (`SecBase.h`).
    const ITEM_NOT_FOUND: i32 = -25300;

    pub(super) struct Keychain;

    impl SilentRead for Keychain {
        fn read(&self, service: &str, account: &str) -> Silent {
            let (service, account) = (service.to_owned(), account.to_owned());
            let (sender, receiver) = std::sync::mpsc::channel();
            // On a thread of its own: a securityd that hangs must not hang a fuse.
            std::thread::spawn(move || {
                let _ = sender.send(ask(&service, &account));
            });
            receiver
                .recv_timeout(WAIT)
                .unwrap_or_else(|_| Silent::Unreadable("the Keychain does not answer".to_owned()))
        }
    }

    fn ask(service: &str, account: &str) -> Silent {
        // Without this lock the read could put a prompt on the screen.
        let _quiet = match SecKeychain::disable_user_interaction() {
            Ok(quiet) => quiet,
            Err(error) => return Silent::Unreadable(error.to_string()),
        };
        match find_generic_password(None, service, account) {
            Ok((password, _)) => Silent::Found(password.as_ref().to_vec()),
            Err(error) if error.code() == ITEM_NOT_FOUND => Silent::Absent,
            Err(error) => Silent::Unreadable(error.to_string()),
        }
    }
}

#[cfg(not(target_os = "macos"))]
mod native {
    use super::{Silent, SilentRead};

    pub(super) struct Keychain;

    impl SilentRead for Keychain {
        fn read(&self, _: &str, _: &str) -> Silent {
            Silent::Unreadable("this is no Mac".to_owned())
        }
    }
}
