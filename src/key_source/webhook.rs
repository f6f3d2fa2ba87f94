//! The address of the webhook that notices go to: a secret, since whoever has it can write there, and
//! at ntfy read as well. It is kept where the API key is, under a name of its own.

use super::{KeyError, KeySource, KeychainSource, Looked, SecretServiceSource};
use crate::config::{Environment, WEBHOOK_URL};
use crate::secret::Secret;

/// The name that the address is stored under, in the macOS Keychain and the Secret Service.
pub const WEBHOOK_SERVICE: &str = "podtether-webhook";

/// The address from `PODTETHER_WEBHOOK_URL`, else from the platform's keychain under
/// [`WEBHOOK_SERVICE`]; `account` as for the API key. A keychain may take 20 s to say that it is
/// locked.
///
/// # Errors
/// [`KeyError::NoAddress`] with every place and how to store one. Never the address.
pub fn webhook_url(env: &Environment, account: Option<&str>) -> Result<Secret, KeyError> {
    if let Some(address) = env.webhook_url() {
        return Ok(address.clone());
    }
    let account = account.or_else(|| env.user());
    let keychain: Box<dyn KeySource> = if cfg!(target_os = "macos") {
        Box::new(KeychainSource::new(env, account).of_service(WEBHOOK_SERVICE))
    } else {
        Box::new(SecretServiceSource::new(env, account).of_service(WEBHOOK_SERVICE))
    };
    let outcome = match keychain.read() {
        Ok(Some(address)) => return Ok(address),
        Ok(None) => "no address there".to_owned(),
        Err(KeyError::Malformed { .. }) => "what is stored is no address".to_owned(),
        Err(error) => error.to_string(),
    };
    let place = format!("environment variable {WEBHOOK_URL}");
    let unset = Looked { place, outcome: "not set".to_owned() };
    Err(KeyError::NoAddress { looked: vec![unset, Looked { place: keychain.describe(), outcome }] })
}
