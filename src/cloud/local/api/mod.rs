//! The HTTP side: one door that authenticates, records and answers every request.

mod billing;
mod call;
mod catalog;
mod create;
mod graphql;
mod mishaps;
mod page;
mod pods;
mod shape;
mod shown;
mod view;
mod volumes;

use super::faults::{Fault, POD_KEY_BOUND, POD_KEY_READ_ONLY};
use super::problem::Problem;
use super::twin::{POD_KEY, Twin};
use axum::body::{Body, Bytes};
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use call::{Answer, Call, Caller};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// The largest body that is read, in bytes.
const LARGEST_BODY: usize = 1 << 20;

/// The header that marks every answer as local.
pub const LOCAL_HEADER: &str = "x-podtether-local";

pub fn router(twin: Arc<Twin>) -> axum::Router {
    axum::Router::new().fallback(handle).with_state(twin)
}

async fn handle(State(twin): State<Arc<Twin>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, LARGEST_BODY).await else {
        return respond(Err(Problem::bad_request("request body is too large or was cut off")));
    };
    let call = Call {
        method: parts.method.as_str().to_owned(),
        path: parts.uri.path().to_owned(),
        query: query_of(&parts.uri),
        body,
        bearer: bearer(&parts.headers),
    };
    // In a task of its own: a caller that hangs up must not leave a change half done. A pod that
    // stops itself hangs up by dying.
    let answered = tokio::spawn(async move {
        let outcome = answer(&twin, &call).await;
        record(&twin, &call, &outcome);
        if let Some(delay) = mishaps::delay(&twin, &call) {
            tokio::time::sleep(delay).await;
        }
        outcome
    });
    respond(answered.await.unwrap_or_else(|error| Err(Problem::internal(&error.to_string()))))
}

fn query_of(uri: &Uri) -> HashMap<String, String> {
    Query::<HashMap<String, String>>::try_from_uri(uri).map_or_else(|_| HashMap::new(), |q| q.0)
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim().to_owned())
}

fn authenticate(twin: &Twin, call: &Call) -> Result<Caller, Problem> {
    let Some(key) = call.bearer.as_deref().filter(|key| !key.is_empty()) else {
        return Err(Problem::new(401, "missing bearer token (this is podtether's local cloud)"));
    };
    if key == twin.key.reveal() {
        return Ok(Caller::Account);
    }
    let document = twin.document();
    let owner = document.pods.iter().find(|pod| pod.key == key);
    owner.map(|pod| Caller::Pod(pod.id.clone())).ok_or_else(|| {
        Problem::new(
            401,
            "this is podtether's local cloud and that is not its key; the key stands in \
             daemon.json of its state folder, and a real RunPod key does not belong here",
        )
    })
}

async fn answer(twin: &Arc<Twin>, call: &Call) -> Result<Answer, Problem> {
    if let Some(answer) = mishaps::at_the_edge(twin, call) {
        return answer;
    }
    if twin.is_closing() {
        return Err(Problem::new(503, "the local cloud is stopping"));
    }
    let caller = if graphql::is_public(call) { Caller::Nobody } else { authenticate(twin, call)? };
    let path: Vec<&str> = call.path.trim_start_matches('/').split('/').collect();
    permit(twin, &caller, call, &path)?;
    mishaps::refuse(twin, call, &caller)?;
    let answer = route(twin, call, &caller, &path).await?;
    mishaps::instead_of(twin, call, answer)
}

async fn route(
    twin: &Arc<Twin>,
    call: &Call,
    caller: &Caller,
    path: &[&str],
) -> Result<Answer, Problem> {
    match (call.method.as_str(), path) {
        ("GET", ["v2", "pods"]) => pods::list(twin, call),
        ("POST", ["v2", "pods"]) => pods::create(twin, call),
        ("GET", ["v2", "pods", id]) => pods::get(twin, id),
        ("DELETE", ["v2", "pods", id]) => pods::delete(twin, id).await,
        ("POST", ["v2", "pods", id, "action"]) => pods::action(twin, call, id).await,
        ("GET", ["v2", "network-volumes"]) => volumes::list(twin, call),
        ("POST", ["v2", "network-volumes"]) => volumes::create(twin, call),
        ("GET", ["v2", "network-volumes", id]) => volumes::get(twin, id),
        ("DELETE", ["v2", "network-volumes", id]) => volumes::delete(twin, id),
        ("GET", ["v2", "catalog", "gpus"]) => catalog::gpus(twin, call),
        ("GET", ["v2", "catalog", "datacenters"]) => catalog::data_centers(call),
        ("GET", ["v2", "billing", "pods"]) => billing::pods(twin, call),
        ("GET", ["v2", "billing", "network-volumes"]) => billing::volumes(twin, call),
        ("POST", ["graphql"]) => graphql::query(twin, call, caller).await,
        ("GET", ["_local"]) => Ok(Answer::Json(200, local(twin))),
        ("GET", ["_local", "faults"]) => Ok(Answer::Json(200, faults(twin))),
        ("PUT", ["_local", "faults"]) => {
            let answer = set_faults(twin, call)?;
            twin.play_once().await;
            Ok(answer)
        }
        (_, path) => Err(no_route(path)),
    }
}

/// A pod's own key may read, stop and terminate that pod and nothing else. Whether the real API says
/// 403 or 404 to a pod that is not there is not known; this one says 404 unless a fault is on.
fn permit(twin: &Twin, caller: &Caller, call: &Call, path: &[&str]) -> Result<(), Problem> {
    let Caller::Pod(own) = caller else { return Ok(()) };
    let denied = || Err(Problem::new(403, "access denied"));
    if call.method != "GET" && twin.faults().is_on(POD_KEY_READ_ONLY) {
        return denied();
    }
    if let ["v2", "pods", id, ..] = path
        && twin.document().pod(id).is_none()
        && !twin.faults().is_on(POD_KEY_BOUND)
    {
        return Err(Problem::not_found("pod"));
    }
    if path == ["graphql"] {
        return Ok(()); // it looks at the caller itself
    }
    let allowed = match (call.method.as_str(), path) {
        ("GET" | "DELETE", ["v2", "pods", id]) => id == own,
        ("POST", ["v2", "pods", id, "action"]) => {
            let action = call.json().ok().and_then(|body| Some(body.get("action")?.clone()));
            let other = ["start", "restart"].map(Value::from);
            id == own && !action.is_some_and(|action| other.contains(&action))
        }
        _ => false,
    };
    if allowed { Ok(()) } else { denied() }
}

fn no_route(path: &[&str]) -> Problem {
    let allowed = match path {
        ["v2", "pods" | "network-volumes"] => "GET, POST",
        ["v2", "pods" | "network-volumes", _] => "GET, DELETE",
        ["v2", "pods", _, "action"] => "POST",
        ["v2", "catalog", "gpus" | "datacenters"] => "GET",
        ["v2", "billing", "pods" | "network-volumes"] => "GET",
        _ => return Problem::not_found("path"),
    };
    Problem {
        headers: vec![("allow", allowed.to_owned())],
        ..Problem::new(405, "The requested method is not allowed for this path.")
    }
}

fn local(twin: &Twin) -> Value {
    json!({"local": true, "url": twin.url, "pid": std::process::id()})
}

fn faults(twin: &Twin) -> Value {
    let kinds: Vec<Value> = super::faults::FAULTS
        .iter()
        .map(|kind| json!({"name": kind.name, "meaning": kind.meaning}))
        .collect();
    json!({"faults": twin.faults().list(), "known": kinds})
}

fn set_faults(twin: &Twin, call: &Call) -> Result<Answer, Problem> {
    let body = call.json()?;
    let Some(names) = body.get("faults").and_then(Value::as_array) else {
        return Err(Problem::bad_request("the body is {\"faults\": [\"NAME\", \"NAME=VALUE\"]}"));
    };
    let parsed: Result<Vec<Fault>, _> =
        names.iter().map(|name| name.as_str().unwrap_or_default().parse()).collect();
    let parsed = parsed.map_err(|error| Problem::bad_request(error.to_string()))?;
    twin.faults().replace(parsed);
    Ok(Answer::Json(200, faults(twin)))
}

/// Records a request of the provider's API; the tests compare dry runs with it.
fn record(twin: &Twin, call: &Call, outcome: &Result<Answer, Problem>) {
    if call.path.starts_with("/_local") {
        return;
    }
    let body: Value = serde_json::from_slice(&call.body).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(&call.body).into_owned();
        if text.is_empty() { Value::Null } else { Value::String(text) }
    });
    let status = match outcome {
        Ok(Answer::Json(status, _)) => Some(*status),
        Ok(Answer::Text(status, _, _)) => Some(*status),
        Ok(Answer::Empty) => Some(204),
        Ok(Answer::Cut) => None,
        Err(problem) => Some(problem.status),
    };
    twin.requests.append(&json!({
        "at": view::timestamp(twin.clock.now()),
        "by_pod": call.bearer.as_deref().is_some_and(|key| key.starts_with(POD_KEY)),
        "method": call.method,
        "path": call.path,
        "query": call.query,
        "body": body,
        "status": status,
    }));
}

fn respond(outcome: Result<Answer, Problem>) -> Response {
    let (status, content_type, body, headers) = match outcome {
        Ok(Answer::Json(status, value)) => {
            (status, Some("application/json"), Body::from(value.to_string()), Vec::new())
        }
        Ok(Answer::Text(status, content_type, text)) => {
            (status, Some(content_type), Body::from(text), Vec::new())
        }
        Ok(Answer::Empty) => (204, None, Body::empty(), Vec::new()),
        // A body that fails before its first byte makes the server drop the connection with
        // nothing sent.
        Ok(Answer::Cut) => (200, None, failing_body(), Vec::new()),
        Err(problem) => {
            let body = Body::from(problem.body().to_string());
            (problem.status, Some("application/problem+json"), body, problem.headers)
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut set = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    };
    set("x-request-id", &format!("local-{:016x}", rand::random::<u64>()));
    set(LOCAL_HEADER, "1");
    set("ratelimit", "\"minute\";r=59;t=60");
    set("ratelimit-policy", "\"minute\";q=60;w=60, \"hour\";q=3000;w=3600");
    if let Some(content_type) = content_type {
        set("content-type", content_type);
    }
    for (name, value) in &headers {
        set(name, value);
    }
    response
}

fn failing_body() -> Body {
    let failure = std::io::Error::other("cut on purpose");
    Body::from_stream(futures_util::stream::once(async { Err::<Bytes, _>(failure) }))
}
