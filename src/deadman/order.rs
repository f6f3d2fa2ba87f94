//! What a fuse is told when it is armed, over a pipe: everything that a stop needs, so that nothing
//! has to be read again when it fires. Never on disk, in arguments or in the environment.

use super::access::Access;
use crate::domain::PodId;
use crate::secret::Secret;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// An order to stop one vehicle's pod at a time. `Debug` does not show the key.
#[derive(Clone, Debug)]
pub struct Order {
    pub(super) terms: Terms,
    pub(super) access: Access,
}

/// Where people are told of what a fuse does; its own process reads the webhook's address when it settles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Telling {
    /// On this computer's screen.
    pub desktop: bool,
    /// By a webhook of this shape, in the config's word.
    pub webhook: Option<String>,
    /// The keychain account of the webhook's address.
    pub keychain_account: Option<String>,
}

/// The part that is no secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Terms {
    pub vehicle: String,
    pub pod_name: String,
    pub pod_id: Option<PodId>,
    pub micros_per_hour: Option<i64>,
    pub folder: PathBuf,
    pub config: PathBuf,
    pub armed_at: DateTime<Utc>,
    pub fire_at: DateTime<Utc>,
    pub retries: u32,
    pub spacing_sec: u64,
    pub nonce: String,
    pub telling: Telling,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    terms: Terms,
    base_url: String,
    is_local: bool,
    allow_loopback_http: bool,
    local_state: Option<PathBuf>,
    key: String,
}

impl Order {
    /// Where people are told.
    #[must_use]
    pub const fn telling(&self) -> &Telling {
        &self.terms.telling
    }

    /// Whether the pod is on the local cloud.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        self.access.is_local
    }

    /// What must stand in no text.
    #[must_use]
    pub fn secrets(&self) -> [Secret; 1] {
        [self.access.key.clone()]
    }

    /// For the pipe, and for nothing else.
    pub(super) fn to_wire(&self) -> Result<Vec<u8>, serde_json::Error> {
        let Access { base_url, key, is_local, allow_loopback_http, local_state } = &self.access;
        serde_json::to_vec(&Wire {
            terms: self.terms.clone(),
            base_url: base_url.clone(),
            is_local: *is_local,
            allow_loopback_http: *allow_loopback_http,
            local_state: local_state.clone(),
            key: key.reveal().to_owned(),
        })
    }

    /// From the pipe.
    ///
    /// # Errors
    /// Words that say what is wrong with it and hold nothing of it.
    pub fn from_wire(bytes: &[u8]) -> Result<Self, &'static str> {
        // The parser's own words could show a part of the key.
        let wire: Wire =
            serde_json::from_slice(bytes).map_err(|_| "the order is not understood")?;
        Ok(Self {
            terms: wire.terms,
            access: Access {
                base_url: wire.base_url,
                key: Secret::new(&wire.key).ok_or("the order has no key")?,
                is_local: wire.is_local,
                allow_loopback_http: wire.allow_loopback_http,
                local_state: wire.local_state,
            },
        })
    }
}

/// What a fuse answers once, before it lets go of its starter.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    /// It is armed.
    Armed(Box<super::Record>),
    /// The key was proven not to be able to stop pods.
    Denied(String),
    /// It could not settle.
    Failed(String),
}
