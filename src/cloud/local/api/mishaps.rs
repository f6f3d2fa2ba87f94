//! Faults at the door: what stands between a client and the API, or comes instead of its answer.

use super::super::document::{Pod, Status};
use super::super::faults::{
    EDGE_1010, EDGE_HTML, EMPTY_REPLY, LIST_LAG, RATE_LIMITED, READ_ONLY_KEY, RETIRED, STALE_PORT,
};
use super::super::problem::Problem;
use super::super::twin::Twin;
use super::call::{Answer, Call, Caller};
use chrono::{DateTime, TimeDelta, Utc};

/// What comes instead of an answer before anybody has looked at the request.
pub fn at_the_edge(twin: &Twin, call: &Call) -> Option<Result<Answer, Problem>> {
    if call.path.starts_with("/_local") {
        return None;
    }
    let mut faults = twin.faults();
    if faults.happens(RATE_LIMITED) {
        return Some(Err(Problem::rate_limited(1)));
    }
    if faults.happens(EDGE_HTML) {
        let page = "<html><head><title>502 Bad Gateway</title></head><body>502</body></html>";
        return Some(Ok(Answer::Text(502, "text/html", page)));
    }
    if faults.happens(EDGE_1010) {
        return Some(Ok(Answer::Text(403, "text/plain", "error code: 1010")));
    }
    if faults.happens(RETIRED) {
        return Some(Err(Problem::new(410, "this version of the API has been retired")));
    }
    None
}

/// What is refused to a key that may only read.
pub fn refuse_writes(twin: &Twin, call: &Call, caller: &Caller) -> Result<(), Problem> {
    let writes = call.path.starts_with("/v2/") && call.method != "GET";
    if writes && *caller == Caller::Account && twin.faults().happens(READ_ONLY_KEY) {
        return Err(Problem::new(403, "access denied"));
    }
    Ok(())
}

/// What comes instead of an answer after the request has taken effect.
pub fn instead_of(twin: &Twin, call: &Call, answer: Answer) -> Answer {
    if call.path.starts_with("/v2/") && twin.faults().happens(EMPTY_REPLY) {
        return Answer::Text(200, "application/json", "");
    }
    answer
}

/// Whether a pod can be seen yet (A05).
pub fn is_visible(twin: &Twin, pod: &Pod, now: DateTime<Utc>) -> bool {
    let lag = twin.faults().seconds(LIST_LAG).unwrap_or(0);
    now - pod.created_at >= TimeDelta::seconds(lag.into())
}

/// A pod as a read shows it, which may be with the port of before (F01).
pub fn as_read(twin: &Twin, pod: &Pod) -> Pod {
    let mut shown = pod.clone();
    let moved = pod.status == Status::Running && pod.ssh_port.is_some();
    if moved && pod.last_port.is_some() && twin.faults().happens(STALE_PORT) {
        shown.ssh_port = pod.last_port;
    }
    shown
}
