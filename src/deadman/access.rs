//! How the provider is reached when the fuse fires.

use crate::cloud::runpod::RunPodOptions;
use crate::secret::Secret;
use std::path::PathBuf;

/// How the provider is reached when it fires.
#[derive(Clone, Debug)]
pub struct Access {
    /// Scheme and host of the API.
    pub base_url: String,
    /// The key.
    pub key: Secret,
    /// Whether it is the local cloud.
    pub is_local: bool,
    /// Lets a client that is not local speak plain HTTP on loopback. For tests only.
    pub allow_loopback_http: bool,
    /// The state folder of the local cloud: when that is gone, so are its pods.
    pub local_state: Option<PathBuf>,
}

impl Access {
    /// The cloud as a record names it.
    #[must_use]
    pub const fn cloud(&self) -> &'static str {
        cloud_word(self.is_local)
    }

    /// The client's settings.
    pub(super) fn options(&self) -> RunPodOptions {
        RunPodOptions {
            base_url: self.base_url.clone(),
            is_local: self.is_local,
            allow_loopback_http: self.allow_loopback_http,
            ..RunPodOptions::new(self.key.clone())
        }
    }
}

/// A cloud as a record names it.
pub(super) const fn cloud_word(is_local: bool) -> &'static str {
    if is_local { "local" } else { "runpod" }
}
