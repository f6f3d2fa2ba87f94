//! Faults at the door: what stands between a client and the API, or comes instead of its answer.

use super::super::faults::{
    EDGE_1010, EDGE_HTML, EMPTY_REPLY, ERROR_AFTER, NOT_FOUND, On, RATE_LIMITED, RATE_LIMITED_BARE,
    RATE_LIMITED_LONG, READ_ONLY_KEY, REPLY_DELAYED, REPLY_LOST, REQUEST_LOST, RETIRED, REVOKED,
};
use super::super::problem::Problem;
use super::super::twin::Twin;
use super::call::{Answer, Call, Caller};
use std::time::Duration;

/// What comes instead of an answer before anybody has looked at the request.
pub fn at_the_edge(twin: &Twin, call: &Call) -> Option<Result<Answer, Problem>> {
    if call.path.starts_with("/_local") {
        return None;
    }
    let on = call.on();
    let mut faults = twin.faults();
    let mut meets = |name| faults.meets(name, &on, On::Any);
    if meets(REQUEST_LOST) {
        return Some(Ok(Answer::Cut));
    }
    if meets(RATE_LIMITED) {
        return Some(Err(Problem::rate_limited(1)));
    }
    if meets(RATE_LIMITED_LONG) {
        return Some(Err(Problem::rate_limited(120)));
    }
    if meets(RATE_LIMITED_BARE) {
        return Some(Err(Problem::rate_limited_bare()));
    }
    if meets(EDGE_HTML) {
        let page = "<html><head><title>502 Bad Gateway</title></head><body>502</body></html>";
        return Some(Ok(Answer::Text(502, "text/html", page)));
    }
    if meets(EDGE_1010) {
        return Some(Ok(Answer::Text(403, "text/plain", "error code: 1010")));
    }
    if meets(RETIRED) {
        return Some(Err(Problem::new(410, "this version of the API has been retired")));
    }
    None
}

/// What is refused to the account's key; a pod's own key is another one. And a pod that is there is
/// not found.
pub fn refuse(twin: &Twin, call: &Call, caller: &Caller) -> Result<(), Problem> {
    if !call.path.starts_with("/v2/") {
        return Ok(());
    }
    let on = call.on();
    let mut faults = twin.faults();
    if *caller == Caller::Account {
        if faults.meets(REVOKED, &on, On::Write) {
            return Err(Problem::new(401, "unauthorized"));
        }
        if faults.meets(READ_ONLY_KEY, &on, On::Write) {
            return Err(Problem::new(403, "access denied"));
        }
    }
    if call.path.starts_with("/v2/pods/") && faults.meets(NOT_FOUND, &on, On::Any) {
        return Err(Problem::not_found("pod"));
    }
    Ok(())
}

/// What comes instead of an answer after the request has taken effect.
pub fn instead_of(twin: &Twin, call: &Call, answer: Answer) -> Result<Answer, Problem> {
    if !call.path.starts_with("/v2/") {
        return Ok(answer);
    }
    let on = call.on();
    let mut faults = twin.faults();
    if faults.meets(REPLY_LOST, &on, On::Any) {
        return Ok(Answer::Cut);
    }
    if faults.meets(ERROR_AFTER, &on, On::Any) {
        return Err(Problem::internal("Something went wrong. Please try again later."));
    }
    if faults.meets(EMPTY_REPLY, &on, On::Any) {
        return Ok(Answer::Text(200, "application/json", ""));
    }
    Ok(answer)
}

/// How long an answer is held back.
pub fn delay(twin: &Twin, call: &Call) -> Option<Duration> {
    let seconds = twin.faults().seconds_on(REPLY_DELAYED, &call.on());
    let held = seconds.filter(|_| !call.path.starts_with("/_local"));
    held.map(|seconds| Duration::from_secs(seconds.into()))
}
