//! When a call is asked again, and after how long. Pure: time left and randomness are arguments.

use crate::cloud::{CloudError, CloudErrorKind};
use chrono::{DateTime, Utc};
use std::time::Duration;

/// The shortest pause after a 429: a header that says zero, or a date gone by, is not an
/// invitation to hammer (A09).
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause that is believed.
const PAUSE_MAX: Duration = Duration::from_secs(3600);
/// The first back-off without a word from the provider.
const FIRST: Duration = Duration::from_millis(300);
/// The first back-off after a 429 without a usable header.
const FIRST_LIMITED: Duration = Duration::from_secs(2);
/// The longest back-off.
const LONGEST: Duration = Duration::from_secs(8);

/// What is being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A read; harmless to repeat.
    Read,
    /// A change; sent again only where the answer proves that it had no effect.
    Change,
}

/// How long to wait before asking again, or `None` to give up and hand the error on.
///
/// `attempt` counts the tries so far from 1, `left` is what remains of the budget, `jitter` is a
/// random number from 0 to 1000. A wait that does not fit into `left` is a `None`: the caller is
/// told the provider's pause and decides.
#[must_use]
pub fn decide(
    error: &CloudError,
    ask: Ask,
    attempt: u32,
    left: Duration,
    jitter: u32,
) -> Option<Duration> {
    let again = match ask {
        Ask::Read => error.is_transient(),
        // 429 is an answer before the work; anything else may have had an effect (B01).
        Ask::Change => matches!(error.kind, CloudErrorKind::RateLimited(_)),
    };
    if !again {
        return None;
    }
    let wait = match error.kind {
        // Never earlier than told; up to half a second later, so that processes that share one
        // quota do not come back in step.
        CloudErrorKind::RateLimited(Some(pause)) => {
            pause + share(Duration::from_millis(500), jitter)
        }
        CloudErrorKind::RateLimited(None) => backoff(FIRST_LIMITED, attempt, jitter),
        _ => backoff(FIRST, attempt, jitter),
    };
    (wait < left).then_some(wait)
}

/// The pause that a 429 asks for: `Retry-After` in seconds or as a date, else the longest `t` of an
/// exhausted window in `RateLimit`. `None` when neither is usable, which is never zero seconds.
#[must_use]
pub fn pause(
    retry_after: Option<&str>,
    rate_limit: Option<&str>,
    now: DateTime<Utc>,
) -> Option<Duration> {
    let told = retry_after.and_then(|text| seconds_or_date(text.trim(), now));
    told.or_else(|| rate_limit.and_then(exhausted_window))
        .map(|pause| pause.clamp(PAUSE_MIN, PAUSE_MAX))
}

fn seconds_or_date(text: &str, now: DateTime<Utc>) -> Option<Duration> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits beyond any number are a very long pause; no digits are none.
        return (!text.is_empty()).then(|| text.parse().map_or(PAUSE_MAX, Duration::from_secs));
    }
    let date = DateTime::parse_from_rfc2822(text).ok()?;
    Some((date.with_timezone(&Utc) - now).to_std().unwrap_or(Duration::ZERO))
}

fn exhausted_window(header: &str) -> Option<Duration> {
    let window = |item: &str| {
        let part = |name: &str| {
            item.split(';').find_map(|part| part.trim().strip_prefix(name)?.parse::<u64>().ok())
        };
        (part("r=")? == 0).then(|| part("t=")).flatten().map(Duration::from_secs)
    };
    header.split(',').filter_map(window).max()
}

/// Doubling with each attempt, between half and the whole of it.
fn backoff(first: Duration, attempt: u32, jitter: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1).min(16));
    let whole = first.saturating_mul(doubled).min(LONGEST);
    whole / 2 + share(whole / 2, jitter)
}

fn share(whole: Duration, jitter: u32) -> Duration {
    whole * jitter.min(1000) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    const AMPLE: Duration = Duration::from_secs(3600 * 2);

    fn error(kind: CloudErrorKind) -> CloudError {
        CloudError {
            kind,
            tried: "GET /v2/pods".to_owned(),
            status: None,
            detail: String::new(),
            request_id: None,
        }
    }

    /// B01: only a rate limit proves that a change had no effect.
    #[test]
    fn a_change_is_asked_again_only_after_a_rate_limit() {
        use CloudErrorKind as K;
        for kind in [
            K::Edge,
            K::Server,
            K::Malformed,
            K::Network { never_sent: false },
            K::Network { never_sent: true },
            K::NoCapacity,
            K::Conflict,
            K::Auth,
            K::Forbidden,
            K::NotFound,
            K::Balance,
            K::Retired,
            K::Validation,
        ] {
            let error = error(kind.clone());
            assert_eq!(decide(&error, Ask::Change, 1, AMPLE, 0), None, "{kind:?}");
            let read_again = decide(&error, Ask::Read, 1, AMPLE, 0).is_some();
            assert_eq!(read_again, error.is_transient(), "{kind:?}");
        }
        let limited = error(K::RateLimited(Some(Duration::from_secs(2))));
        assert_eq!(decide(&limited, Ask::Change, 1, AMPLE, 0), Some(Duration::from_secs(2)));
    }

    /// A09.
    #[test]
    fn a_pause_is_never_shorter_than_told_and_never_beyond_the_budget() {
        let pause = Duration::from_secs(12);
        let limited = error(CloudErrorKind::RateLimited(Some(pause)));
        for jitter in [0, 500, 1000, u32::MAX] {
            let wait = decide(&limited, Ask::Read, 1, AMPLE, jitter).unwrap();
            assert!(wait >= pause && wait <= pause + Duration::from_millis(500), "{wait:?}");
        }
        assert_eq!(decide(&limited, Ask::Read, 1, pause, 0), None);
    }

    /// A09: a blank or garbage header must not mean "0 seconds".
    #[test]
    fn an_unusable_header_is_no_pause_and_never_zero() {
        let now = DateTime::parse_from_rfc3339("2026-11-29T12:00:00Z").unwrap().to_utc();
        let seconds = |retry_after, rate_limit| {
            pause(retry_after, rate_limit, now).map(|pause| pause.as_secs())
        };
        for text in ["", " ", "soon", "-5", "1.5", "NaN"] {
            assert_eq!(seconds(Some(text), None), None, "{text:?}");
        }
        assert_eq!(seconds(None, None), None);
        assert_eq!(seconds(Some("120"), None), Some(120));
        assert_eq!(seconds(Some("0"), None), Some(1));
        assert_eq!(seconds(Some("99999999999999999999999"), None), Some(3600));
        assert_eq!(seconds(Some("Sun, 29 Nov 2026 12:00:30 GMT"), None), Some(30));
        assert_eq!(seconds(Some("Sun, 29 Nov 2026 11:00:00 GMT"), None), Some(1));
        let windows = r#""minute";r=0;t=12, "hour";r=2999;t=3000"#;
        assert_eq!(seconds(Some("?"), Some(windows)), Some(12));
        assert_eq!(seconds(Some("7"), Some(windows)), Some(7));
        assert_eq!(seconds(None, Some("garbage")), None);
        let unknown = error(CloudErrorKind::RateLimited(None));
        assert!(decide(&unknown, Ask::Read, 1, AMPLE, 0).unwrap() >= Duration::from_secs(1));
    }

    #[test]
    fn a_back_off_grows_stays_jittered_and_is_bounded() {
        let server = error(CloudErrorKind::Server);
        let wait = |attempt, jitter| decide(&server, Ask::Read, attempt, AMPLE, jitter).unwrap();
        assert_eq!((wait(1, 0), wait(1, 1000)), (FIRST / 2, FIRST));
        assert_eq!(wait(2, 1000), FIRST * 2);
        assert_eq!(wait(u32::MAX, 1000), LONGEST);
        assert_eq!(decide(&server, Ask::Read, 1, Duration::ZERO, 0), None);
    }
}
