//! Why there is no key, where was looked, and how to store one.

use super::{SERVICE, WEBHOOK_SERVICE};
use crate::config::WEBHOOK_URL;
use std::time::Duration;

/// A key that could not be had. Never holds the key or any part of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No place held one.
    #[error("no RunPod API key found. Looked in:\n{}\n{}", list(looked), how_to_store())]
    NotFound {
        /// Every place, in the order they were asked.
        looked: Vec<Looked>,
    },
    /// No place held the address of a webhook.
    #[error(
        "no address of a webhook found. Looked in:\n{}\n{}",
        list(looked),
        how_to_store_an_address()
    )]
    NoAddress {
        /// Every place, in the order they were asked.
        looked: Vec<Looked>,
    },
    /// What is stored cannot be a key.
    #[error(
        "what {place} holds is no API key: it is too long or contains white space or other characters that no key has. {}",
        how_to_store()
    )]
    Malformed {
        /// The place.
        place: String,
    },
    /// The keychain would have to ask a person, and there may be none.
    #[error("{place} is locked or would ask on the screen; {fix}")]
    Locked {
        /// The place.
        place: String,
        /// What to run.
        fix: &'static str,
    },
    /// The program did not answer and was ended.
    #[error(
        "{program} did not answer within {} s and was ended; it is likely waiting for somebody to click: unlock the keychain and try again",
        waited.as_secs_f32()
    )]
    TimedOut {
        /// The program.
        program: String,
        /// How long was waited.
        waited: Duration,
    },
    /// The program is not there.
    #[error("{program} is not installed")]
    NoProgram {
        /// The program.
        program: String,
    },
    /// No account to look under.
    #[error("no account to look under: USER is not set; set keychain_account in podtether.yaml")]
    NoAccount,
    /// Anything else, in the place's own words.
    #[error("{tried} failed: {detail}")]
    Failed {
        /// What was tried.
        tried: String,
        /// Its words, at most 300 characters.
        detail: String,
    },
}

/// A place that was asked in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// The place.
    pub place: String,
    /// What came of it.
    pub outcome: String,
}

fn list(looked: &[Looked]) -> String {
    let lines: Vec<String> =
        looked.iter().map(|looked| format!("  {}: {}", looked.place, looked.outcome)).collect();
    lines.join("\n")
}

/// The same for the address of a webhook.
fn how_to_store_an_address() -> String {
    if cfg!(target_os = "macos") {
        format!(
            "Store it with `security add-generic-password -U -s {WEBHOOK_SERVICE} -a \"$USER\" -w` (it asks for the address)"
        )
    } else {
        format!(
            "Store it with `secret-tool store --label='podtether webhook' service {WEBHOOK_SERVICE} account \"$USER\"` (it asks for the address), or set {WEBHOOK_URL}"
        )
    }
}

/// How to store a key without it ever standing on a command line: both commands ask for it.
fn how_to_store() -> String {
    if cfg!(target_os = "macos") {
        format!(
            "Store it with `security add-generic-password -U -s {SERVICE} -a \"$USER\" -w` (it asks for the key)"
        )
    } else {
        format!(
            "Store it with `secret-tool store --label='RunPod API key' service {SERVICE} account \"$USER\"` (it asks for the key), or set RUNPOD_API_KEY"
        )
    }
}
