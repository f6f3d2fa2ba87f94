//! Stands between the program and the local cloud, and kills the program at one request: before it
//! reaches the cloud, or after it took effect and before the answer is passed on.

use super::cell::When;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::Response;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;

const PASSED_ON: [HeaderName; 3] =
    [header::AUTHORIZATION, header::CONTENT_TYPE, header::USER_AGENT];

#[derive(Default)]
struct Seen {
    /// How often each request came.
    times: HashMap<String, usize>,
    /// `METHOD path#N`, in the order in which they came.
    keys: Vec<String>,
    plan: Option<(String, When)>,
    /// Whom the plan is about; told once it was started.
    victim: Option<u32>,
}

struct Shared {
    target: String,
    /// What the program shows of itself. Whoever shows another key is a pod, or somebody whose cloud had
    /// this port before: their requests come when they please and are no step of the program.
    bearer: String,
    client: reqwest::Client,
    seen: Mutex<Seen>,
}

pub struct Proxy {
    pub url: String,
    shared: Arc<Shared>,
}

impl Proxy {
    pub async fn start(target: &str, key: &str) -> Self {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let (target, bearer) = (target.to_owned(), format!("Bearer {key}"));
        let shared = Arc::new(Shared { target, bearer, client, seen: Mutex::default() });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = axum::Router::new().fallback(handle).with_state(Arc::clone(&shared));
        tokio::spawn(async { axum::serve(listener, router).await });
        Self { url, shared }
    }

    /// Forgets what came so far and kills at `plan` from now on.
    pub fn begin(&self, plan: Option<(String, When)>) {
        *self.shared.seen.lock().unwrap() = Seen { plan, ..Seen::default() };
    }

    pub fn aim_at(&self, victim: u32) {
        self.shared.seen.lock().unwrap().victim = Some(victim);
    }

    /// The requests that came, and from now on nobody is killed.
    pub fn end(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.seen.lock().unwrap()).keys
    }
}

async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    let shown = parts.headers.get(header::AUTHORIZATION);
    let is_ours = shown.is_some_and(|shown| shown.as_bytes() == shared.bearer.as_bytes());
    let when = if is_ours {
        let mut seen = shared.seen.lock().unwrap();
        let name = name_of(parts.method.as_str(), parts.uri.path(), &body);
        let times = seen.times.entry(name.clone()).or_default();
        *times += 1;
        let key = format!("{name}#{times}");
        seen.keys.push(key.clone());
        seen.plan.as_ref().filter(|(planned, _)| *planned == key).map(|(_, when)| *when)
    } else {
        None
    };
    if when == Some(When::Before) {
        kill(&shared).await;
        return nothing();
    }
    let target = format!("{}{}", shared.target, parts.uri);
    let mut request = shared.client.request(parts.method, target).body(body);
    for name in PASSED_ON {
        if let Some(value) = parts.headers.get(&name) {
            request = request.header(name, value);
        }
    }
    let Ok(answer) = request.send().await else { return nothing() };
    let (status, headers) = (answer.status(), answer.headers().clone());
    let Ok(body) = answer.bytes().await else { return nothing() };
    if when == Some(When::After) {
        kill(&shared).await;
        return nothing();
    }
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    for (name, value) in &headers {
        if !matches!(*name, header::CONTENT_LENGTH | header::TRANSFER_ENCODING) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

/// For somebody who is dead, or whose connection is cut.
fn nothing() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}

async fn kill(shared: &Shared) {
    loop {
        let victim = shared.seen.lock().unwrap().victim;
        if let Some(victim) = victim {
            let pid = Pid::from_raw(victim.try_into().unwrap()).unwrap();
            let _ = kill_process(pid, Signal::KILL);
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The request without what is drawn anew each time.
fn name_of(method: &str, path: &str, body: &[u8]) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    for i in 1..parts.len() {
        if parts[i - 1] == "pods" && parts.get(1) == Some(&"v2") && parts[2] == "pods" {
            parts[i] = "{pod}";
        }
    }
    let mut name = format!("{method} {}", parts.join("/"));
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some(action) = body["action"].as_str() {
        name.push_str(&format!(" {action}"));
    }
    name
}
