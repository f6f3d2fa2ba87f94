//! Where the RunPod API key comes from: the environment, the macOS Keychain or the Secret Service.
//! Never a file of ours and never an argument; the key is read when it is needed and not kept.

mod environment;
mod error;
mod keychain;
mod program;
mod secret_service;
mod webhook;

pub use environment::EnvironmentSource;
pub use error::{KeyError, Looked};
pub use keychain::{KeychainSource, Silent, SilentRead};
pub use secret_service::SecretServiceSource;
pub use webhook::{WEBHOOK_SERVICE, webhook_url};

use crate::config::Environment;
use crate::secret::Secret;

/// The name that the key is stored under, in the macOS Keychain and the Secret Service.
pub const SERVICE: &str = "runpod-api-key";

/// One place where the key may be.
pub trait KeySource {
    /// The place, for people: what is asked, and under which names.
    fn describe(&self) -> String;

    /// The key, or `None` when this place works and holds none. Never waits for a person: a prompt
    /// that nobody answers would hold up a fuse (C11).
    ///
    /// # Errors
    /// [`KeyError`] when the place could not be asked, or holds something that is no key.
    fn read(&self) -> Result<Option<Secret>, KeyError>;
}

/// A key and the place it came from.
#[derive(Clone, Debug)]
pub struct Found {
    /// The key.
    pub key: Secret,
    /// [`KeySource::describe`] of the place.
    pub place: String,
}

/// The places of this machine, in the order they are asked: `RUNPOD_API_KEY` first, since setting
/// it is the more deliberate act, then the platform's keychain. `account` is the config's
/// `keychain_account`; `None` means the login name.
#[must_use]
pub fn places(env: &Environment, account: Option<&str>) -> Vec<Box<dyn KeySource>> {
    let mut places: Vec<Box<dyn KeySource>> = vec![Box::new(EnvironmentSource::new(env))];
    let account = account.or_else(|| env.user());
    if cfg!(target_os = "macos") {
        places.push(Box::new(KeychainSource::new(env, account)));
    } else {
        places.push(Box::new(SecretServiceSource::new(env, account)));
    }
    places
}

/// The key from the first of [`places`] that holds one.
///
/// # Errors
/// [`KeyError::NotFound`] with every place that was looked in, what each said, and the command
/// that stores the key.
pub fn find(env: &Environment, account: Option<&str>) -> Result<Secret, KeyError> {
    find_in(&places(env, account)).map(|found| found.key)
}

/// The key from the first of `places` that holds one.
///
/// # Errors
/// As [`find`]. A place that holds something malformed ends the search: falling through to an
/// older key elsewhere would bring back one that was rotated away (H04).
pub fn find_in(places: &[Box<dyn KeySource>]) -> Result<Found, KeyError> {
    let mut looked = Vec::new();
    for source in places {
        let place = source.describe();
        match source.read() {
            Ok(Some(key)) => return Ok(Found { key, place }),
            Ok(None) => looked.push(Looked { place, outcome: "no key there".to_owned() }),
            Err(error @ KeyError::Malformed { .. }) => return Err(error),
            Err(error) => looked.push(Looked { place, outcome: error.to_string() }),
        }
    }
    Err(KeyError::NotFound { looked })
}

/// Takes what a place holds for the key, when it can be sent in a header.
fn key_from(text: &str, place: &str) -> Result<Option<Secret>, KeyError> {
    let Some(key) = Secret::new(text) else { return Ok(None) };
    // RunPod's keys have about 50 characters; what is far longer is something else.
    let plain = key.reveal().len() <= 512 && key.reveal().bytes().all(|b| b.is_ascii_graphic());
    if plain { Ok(Some(key)) } else { Err(KeyError::Malformed { place: place.to_owned() }) }
}
