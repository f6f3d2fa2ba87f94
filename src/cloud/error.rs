//! What goes wrong at the provider, classified once.

use std::time::Duration;

/// The kinds of failure that call for different behaviour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloudErrorKind {
    /// 401: the key is missing or not accepted.
    Auth,
    /// 403 with the API's own words: the key may not do this.
    Forbidden,
    /// 403 or HTML from the edge in front of the API (such as `error code: 1010`), an empty 200, a
    /// body that is not what was asked for. Says nothing about the key (A10).
    Edge,
    /// 404: not there, or not accessible.
    NotFound,
    /// Refused with one of the texts that mean "no machine free".
    NoCapacity,
    /// 402: the balance does not allow it.
    Balance,
    /// 429. `None` when no usable Retry-After came: never to be read as zero (A09).
    RateLimited(Option<Duration>),
    /// 410: this API version is gone. Never "the pod is gone".
    Retired,
    /// 409: not valid for the pod's present status.
    Conflict,
    /// 400 or 422: the request is wrong. Ours to fix, never to be retried (G13).
    Validation,
    /// 5xx: nobody knows whether it took effect.
    Server,
    /// The answer never came: connect, TLS, DNS, time-out, cut off. Nobody knows whether a change
    /// took effect, unless the connection was never made.
    Network {
        /// Whether the request can not have reached the provider.
        never_sent: bool,
    },
    /// An answer of 2xx that could not be understood.
    Malformed,
}

/// A call that did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{tried} failed: {detail}")]
pub struct CloudError {
    /// The kind.
    pub kind: CloudErrorKind,
    /// What was tried, such as `POST /v2/pods`.
    pub tried: String,
    /// HTTP status, when there was an answer.
    pub status: Option<u16>,
    /// The provider's own words, at most 300 characters, scrubbed of secrets and control characters.
    pub detail: String,
    /// The provider's request id, for a support case.
    pub request_id: Option<String>,
}

impl CloudError {
    /// Whether a change that failed like this may still have taken effect. Then it has to be looked
    /// up, never sent again blindly (B01, B02).
    #[must_use]
    pub const fn may_have_taken_effect(&self) -> bool {
        match self.kind {
            CloudErrorKind::Network { never_sent } => !never_sent,
            CloudErrorKind::Server | CloudErrorKind::Malformed | CloudErrorKind::Edge => true,
            _ => false,
        }
    }

    /// Whether the same read may succeed when it is asked again a little later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(
            self.kind,
            CloudErrorKind::Edge
                | CloudErrorKind::RateLimited(_)
                | CloudErrorKind::Server
                | CloudErrorKind::Network { .. }
                | CloudErrorKind::Malformed
        )
    }
}
