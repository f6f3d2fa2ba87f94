//! What a client is made from, and what is refused before the first request: a mix of the real
//! provider and the local cloud, or a key that could go out in clear text.

use crate::secret::Secret;
use reqwest::Url;
use std::net::IpAddr;
use std::time::Duration;

/// RunPod's API, without the version.
pub const DEFAULT_BASE_URL: &str = "https://api.runpod.io";
/// How every key of the local cloud begins. No key of RunPod's does.
pub const LOCAL_KEY_PREFIX: &str = "local-";

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct RunPodOptions {
    /// Scheme, host and optionally a path; `/v2/…` is added. A trailing `/v2` is taken off.
    pub base_url: String,
    /// The API key.
    pub key: Secret,
    /// Whether it speaks to the local cloud.
    pub is_local: bool,
    /// Longest time for one request, the answer's body included.
    pub timeout: Duration,
    /// How long one call goes on asking again, waits included. A change is asked again only after
    /// a 429.
    pub retry_budget: Duration,
    /// Lets a client that is not local speak plain HTTP on loopback. For tests only.
    pub allow_loopback_http: bool,
}

impl RunPodOptions {
    /// The real provider: 30 s for a request, 20 s of asking again.
    #[must_use]
    pub fn new(key: Secret) -> Self {
        Self {
            base_url: DEFAULT_BASE_URL.to_owned(),
            key,
            is_local: false,
            timeout: Duration::from_secs(30),
            retry_budget: Duration::from_secs(20),
            allow_loopback_http: false,
        }
    }

    /// The local cloud at `base_url`, such as `http://127.0.0.1:4480`.
    #[must_use]
    pub fn local(base_url: &str, key: Secret) -> Self {
        Self { base_url: base_url.to_owned(), is_local: true, ..Self::new(key) }
    }
}

/// Why a client can not be made. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The base URL is no plain address.
    #[error(
        "the API address {url:?} can not be used: {why}; it should look like {DEFAULT_BASE_URL}"
    )]
    BadUrl {
        /// The address, without user name and password.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The local cloud is configured with an address that is not on this machine.
    #[error(
        "the config says local cloud, but {url} is not http on this machine (127.0.0.1, ::1 or localhost); real and local are never mixed"
    )]
    LocalElsewhere {
        /// The address.
        url: String,
    },
    /// The local cloud is configured with a key that is not the local cloud's.
    #[error(
        "the config says local cloud, but the key does not begin with {LOCAL_KEY_PREFIX:?}: it may be a real one and is not sent there"
    )]
    RealKeyForLocal,
    /// The real provider is configured with a key of the local cloud.
    #[error(
        "the key begins with {LOCAL_KEY_PREFIX:?}, so it is the local cloud's, but the config says RunPod; real and local are never mixed"
    )]
    LocalKeyForReal,
    /// The key would go out in clear text.
    #[error("{url} is not https, so the API key would go out in clear text")]
    ClearText {
        /// The address.
        url: String,
    },
    /// The key has characters that no key has.
    #[error("the API key has characters that can not be sent in a header; store it again")]
    BadKey,
    /// TLS or the HTTP client could not be set up.
    #[error(
        "the HTTP client could not be set up: {0}; on Linux the package ca-certificates must be installed"
    )]
    Client(#[source] reqwest::Error),
}

/// The checked base URL, without a slash at its end.
///
/// # Errors
/// [`SetupError`] when the address, the key and the kind of cloud do not go together.
pub fn checked_base(options: &RunPodOptions) -> Result<String, SetupError> {
    let bad = |url: &str, why: &str| SetupError::BadUrl { url: url.into(), why: why.into() };
    let text = options.base_url.trim().trim_end_matches('/');
    let url = Url::parse(text).map_err(|error| {
        // An address that does not parse may still hold a password before its '@'.
        let shown = text.rsplit_once('@').map_or(text, |(_, host)| host);
        bad(shown, &error.to_string())
    })?;
    let mut shown = url.clone();
    if shown.set_username("").is_err() || shown.set_password(None).is_err() {
        return Err(bad(url.scheme(), "it names no host"));
    }
    shown.set_query(None);
    shown.set_fragment(None);
    let shown = shown.as_str().trim_end_matches('/').to_owned();
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad(&shown, "it has a user name or a password in it"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad(&shown, "it has a query or a fragment"));
    }
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad(&shown, "it is neither https nor http"));
    }
    let loopback_http = url.scheme() == "http" && is_loopback(&url);
    let http_allowed = loopback_http && options.allow_loopback_http;
    let local_key = options.key.reveal().starts_with(LOCAL_KEY_PREFIX);
    match (options.is_local, local_key) {
        (true, _) if !loopback_http => return Err(SetupError::LocalElsewhere { url: shown }),
        (true, false) => return Err(SetupError::RealKeyForLocal),
        (false, true) => return Err(SetupError::LocalKeyForReal),
        (false, false) if url.scheme() != "https" && !http_allowed => {
            return Err(SetupError::ClearText { url: shown });
        }
        _ => {}
    }
    Ok(shown.strip_suffix("/v2").unwrap_or(&shown).to_owned())
}

/// Whether the host is this machine.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: &str = "rpa_ABCDEFGHIJKLMNOP";
    const LOCAL: &str = "local-0123";

    fn check(base: &str, key: &str, is_local: bool) -> Result<String, SetupError> {
        let key = Secret::new(key).unwrap();
        checked_base(&RunPodOptions { base_url: base.into(), is_local, ..RunPodOptions::new(key) })
    }

    /// Real and local are never mixed up, and no key goes out in clear text.
    #[test]
    fn address_key_and_kind_of_cloud_must_go_together() {
        type Expected = fn(&SetupError) -> bool;
        let refused: [(&str, &str, bool, Expected); 12] = [
            ("https://api.runpod.io", REAL, true, |e| {
                matches!(e, SetupError::LocalElsewhere { .. })
            }),
            ("http://10.0.0.1:80", LOCAL, true, |e| matches!(e, SetupError::LocalElsewhere { .. })),
            ("http://127.0.0.1.evil.example", LOCAL, true, |e| {
                matches!(e, SetupError::LocalElsewhere { .. })
            }),
            ("https://127.0.0.1", LOCAL, true, |e| matches!(e, SetupError::LocalElsewhere { .. })),
            ("http://127.0.0.1:1", REAL, true, |e| matches!(e, SetupError::RealKeyForLocal)),
            ("https://api.runpod.io", LOCAL, false, |e| matches!(e, SetupError::LocalKeyForReal)),
            ("http://127.0.0.1:1", LOCAL, false, |e| matches!(e, SetupError::LocalKeyForReal)),
            ("http://127.0.0.1:1", REAL, false, |e| matches!(e, SetupError::ClearText { .. })),
            ("http://api.runpod.io", REAL, false, |e| matches!(e, SetupError::ClearText { .. })),
            ("api.runpod.io", REAL, false, |e| matches!(e, SetupError::BadUrl { .. })),
            ("ftp://api.runpod.io", REAL, false, |e| matches!(e, SetupError::BadUrl { .. })),
            ("https://api.runpod.io?x=1", REAL, false, |e| matches!(e, SetupError::BadUrl { .. })),
        ];
        for (base, key, is_local, expected) in refused {
            let error = check(base, key, is_local).unwrap_err();
            assert!(expected(&error), "{base} {key} {is_local}: {error:?}");
            assert!(!error.to_string().contains(key), "{error}");
        }
        for (base, key, is_local, expected) in [
            ("https://api.runpod.io/v2/", REAL, false, "https://api.runpod.io"),
            (
                "https://proxy.example/runpod",
                "old-style-key",
                false,
                "https://proxy.example/runpod",
            ),
            ("http://127.0.0.1:4480/", LOCAL, true, "http://127.0.0.1:4480"),
            ("http://localhost:4480", LOCAL, true, "http://localhost:4480"),
            ("http://[::1]:4480", LOCAL, true, "http://[::1]:4480"),
        ] {
            assert_eq!(check(base, key, is_local).unwrap(), expected);
        }
    }

    #[test]
    fn plain_http_on_loopback_takes_an_explicit_word_and_never_leaves_the_machine() {
        let options = |base: &str| RunPodOptions {
            base_url: base.into(),
            allow_loopback_http: true,
            ..RunPodOptions::new(Secret::new(REAL).unwrap())
        };
        assert!(checked_base(&options("http://127.0.0.1:1")).is_ok());
        let error = checked_base(&options("http://api.runpod.io")).unwrap_err();
        assert!(matches!(error, SetupError::ClearText { .. }), "{error:?}");
    }

    #[test]
    fn a_password_in_the_address_is_never_shown() {
        for base in ["https://me:hunter2@api.runpod.io", "https://me:hunter2@:::"] {
            let error = check(base, REAL, false).unwrap_err();
            assert!(matches!(error, SetupError::BadUrl { .. }), "{error:?}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
