//! An answer that is no success to a kind of failure. Pure: one function, one table of rules, and
//! the edge's pages are told apart before any status is believed.

use super::answer::Answer;
use super::retry;
use crate::cloud::{CloudError, CloudErrorKind};
use crate::secret::{Secret, scrub};
use chrono::{DateTime, Utc};
use serde_json::Value;

/// Longest detail, in characters.
const DETAIL_MAX: usize = 300;

/// Texts, in lower case, that mean "no machine free". REST v2 has no code for it: a create answers
/// 400 and a start 400 or 500 with one of these.
const NO_CAPACITY: [&str; 6] = [
    "no longer any instances available",
    "no instances currently available",
    "no gpu available",
    "not enough free gpus",
    "does not have the resources",
    "insufficient gpu",
];

/// The failure that `answer` stands for; `tried` is such as `GET /v2/pods`. `now` turns a
/// `Retry-After` date into a duration, `key` is blanked out of the provider's words.
#[must_use]
pub fn failure(answer: &Answer, tried: &str, now: DateTime<Utc>, key: &Secret) -> CloudError {
    let said = words(answer);
    let kind = kind(answer, said.as_deref(), now);
    let detail = said.unwrap_or_else(|| match (answer.status, answer.is_empty()) {
        (300..=399, _) => format!("HTTP {}: a redirect, which is never followed", answer.status),
        (_, true) => format!("HTTP {} with an empty body", answer.status),
        (_, false) => format!("HTTP {}: {}", answer.status, answer.text()),
    });
    error(kind, tried, answer, &detail, key)
}

/// A failure with the provider's own words cleaned.
#[must_use]
pub fn error(
    kind: CloudErrorKind,
    tried: &str,
    answer: &Answer,
    detail: &str,
    key: &Secret,
) -> CloudError {
    CloudError {
        kind,
        tried: tried.to_owned(),
        status: (answer.status != 0).then_some(answer.status),
        detail: clean(detail, key),
        request_id: answer.request_id.as_deref().map(|id| clean(id, key)),
    }
}

/// Text that is safe to show: no secrets, no control characters, one line, at most 300 characters.
#[must_use]
pub fn clean(text: &str, key: &Secret) -> String {
    // Scrubbed before it is cut, so that no half of a key is left at the end.
    let scrubbed = scrub(text, std::slice::from_ref(key));
    let printable: String =
        scrubbed.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut words = printable.split_whitespace();
    let mut line = words.next().unwrap_or_default().to_owned();
    for word in words {
        line.push(' ');
        line.push_str(word);
    }
    if line.chars().count() > DETAIL_MAX {
        line = line.chars().take(DETAIL_MAX - 1).chain(['…']).collect();
    }
    line
}

fn kind(answer: &Answer, said: Option<&str>, now: DateTime<Utc>) -> CloudErrorKind {
    let status = answer.status;
    // Before the edge: an edge that limits is a limit, and an edge that says "gone" is gone.
    match status {
        429 => {
            let pause =
                retry::pause(answer.retry_after.as_deref(), answer.rate_limit.as_deref(), now);
            return CloudErrorKind::RateLimited(pause);
        }
        410 => return CloudErrorKind::Retired,
        _ => {}
    }
    if answer.is_edge_page() {
        return CloudErrorKind::Edge;
    }
    let text = said.map_or_else(|| answer.text(), str::to_owned).to_lowercase();
    let refused = matches!(status, 400 | 409 | 422) || status >= 500;
    if refused && NO_CAPACITY.iter().any(|known| text.contains(known)) {
        return CloudErrorKind::NoCapacity;
    }
    match status {
        401 => CloudErrorKind::Auth,
        402 => CloudErrorKind::Balance,
        // The API refuses in JSON; anything else with 403 was written in front of it.
        403 if said.is_some() => CloudErrorKind::Forbidden,
        // A router's "404 page not found" is about the address, never about a pod.
        404 if said.is_none() && text.contains("page not found") => CloudErrorKind::Edge,
        404 => CloudErrorKind::NotFound,
        409 => CloudErrorKind::Conflict,
        408 | 500.. => CloudErrorKind::Server,
        400..=499 if status != 403 => CloudErrorKind::Validation,
        // 403 without the API's words, a redirect (never followed: it would carry the key
        // elsewhere), a status that does not exist.
        _ => CloudErrorKind::Edge,
    }
}

/// The API's own words, when the body is one of its shapes: problem+json, `{"error"}`,
/// `{"message"}` or `{"errors":[…]}`.
fn words(answer: &Answer) -> Option<String> {
    let Ok(Value::Object(body)) = serde_json::from_slice(&answer.body) else { return None };
    let text = |value: &Value| match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Object(inner) => inner.get("message").and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    let head = ["detail", "error", "message", "title"]
        .iter()
        .find_map(|name| body.get(*name).and_then(text));
    let listed: Vec<String> = body
        .get("errors")
        .and_then(Value::as_array)
        .map(|errors| errors.iter().filter_map(text).collect())
        .unwrap_or_default();
    match (head, listed.is_empty()) {
        (head, true) => head,
        (Some(head), false) => Some(format!("{head} ({})", listed.join("; "))),
        (None, false) => Some(listed.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Secret {
        Secret::new("local-test-key-0123456789").unwrap()
    }

    fn answer(status: u16, body: &str) -> Answer {
        Answer { status, body: body.as_bytes().to_vec(), ..Answer::default() }
    }

    fn failed(answer: &Answer) -> CloudError {
        failure(answer, "GET /v2/pods", DateTime::UNIX_EPOCH, &key())
    }

    /// A10, G13: status and body together decide; a page of the edge never speaks for the API.
    #[test]
    fn every_class_of_answer_has_its_kind() {
        use CloudErrorKind as K;
        let html = "<!DOCTYPE html><html><title>502 Bad Gateway</title></html>";
        let problem = r#"{"title":"T","status":0,"detail":"request could not be processed"}"#;
        let full = "There are no longer any instances available with the requested specifications.";
        let no_machine = format!(r#"{{"title":"Bad Request","status":400,"detail":"{full}"}}"#);
        let v1 = r#"{"error":"start pod: There are not enough free GPUs on the host machine to start this pod.","status":500}"#;
        for (status, body, kind) in [
            (401, problem, K::Auth),
            (401, r#"{"message":"Unauthorized"}"#, K::Auth),
            (401, "", K::Auth),
            (401, html, K::Edge),
            (402, problem, K::Balance),
            (403, problem, K::Forbidden),
            (403, "error code: 1010", K::Edge),
            (403, html, K::Edge),
            (403, "", K::Edge),
            (404, problem, K::NotFound),
            (404, "pod not found", K::NotFound),
            (404, "404 page not found", K::Edge),
            (404, html, K::Edge),
            (405, problem, K::Validation),
            (408, "", K::Server),
            (409, problem, K::Conflict),
            (409, &no_machine, K::NoCapacity),
            (410, problem, K::Retired),
            (410, html, K::Retired),
            (400, problem, K::Validation),
            (400, &no_machine, K::NoCapacity),
            (400, html, K::Edge),
            (422, problem, K::Validation),
            (429, "", K::RateLimited(None)),
            (429, html, K::RateLimited(None)),
            (500, v1, K::NoCapacity),
            (500, problem, K::Server),
            (500, "", K::Server),
            (502, html, K::Edge),
            (503, "upstream connect error", K::Server),
            (530, "error code: 1033", K::Edge),
            (302, "", K::Edge),
        ] {
            assert_eq!(failed(&answer(status, body)).kind, kind, "{status} {body}");
        }
    }

    #[test]
    fn every_text_that_means_no_machine_free_is_known() {
        for text in NO_CAPACITY {
            let body = format!(r#"{{"detail":"Create pod: {}"}}"#, text.to_uppercase());
            assert_eq!(failed(&answer(400, &body)).kind, CloudErrorKind::NoCapacity, "{text}");
            // An answer that says who asks, not what is free, is never read as capacity.
            assert_eq!(failed(&answer(401, &body)).kind, CloudErrorKind::Auth, "{text}");
        }
    }

    #[test]
    fn the_providers_own_words_are_found_in_each_of_its_shapes() {
        for (body, detail) in [
            (
                r#"{"title":"T","status":422,"detail":"D","errors":["$: x","$: y"]}"#,
                "D ($: x; $: y)",
            ),
            (r#"{"error":"E","status":500}"#, "E"),
            (r#"{"error":{"message":"M"}}"#, "M"),
            (r#"{"message":"M"}"#, "M"),
            (r#"{"title":"T"}"#, "T"),
            (r#"{"errors":[{"message":"a"},{"message":"b"}]}"#, "a; b"),
            ("plain\ttext\u{1b}[31m\r\n", "HTTP 422: plain text [31m"),
            ("", "HTTP 422 with an empty body"),
        ] {
            assert_eq!(failed(&answer(422, body)).detail, detail, "{body}");
        }
    }

    /// H01: a provider that echoes the key back does not put it into an error.
    #[test]
    fn a_detail_is_short_and_holds_no_secret() {
        let secret = key();
        let filler = "x".repeat(285);
        let echoed = format!(r#"{{"detail":"{filler} {} tail"}}"#, secret.reveal());
        let mut echo = answer(401, &echoed);
        echo.request_id = Some(format!("r-{}", secret.reveal()));
        let error = failed(&echo);
        assert!(error.detail.chars().count() <= DETAIL_MAX);
        assert!(!error.detail.contains("local-test"), "{}", error.detail);
        assert_eq!(error.request_id.as_deref(), Some("r-[secret]"));
    }
}
