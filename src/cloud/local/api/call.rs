//! A request, who makes it, and what it gets.

use super::super::faults::On;
use super::super::problem::Problem;
use axum::body::Bytes;
use serde_json::Value;
use std::collections::HashMap;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Nobody in particular, for what needs no key.
    Nobody,
    Account,
    /// The key of one pod.
    Pod(String),
}

/// One request, read to its end.
pub struct Call {
    pub method: String,
    pub path: String,
    pub query: HashMap<String, String>,
    pub body: Bytes,
    pub bearer: Option<String>,
}

impl Call {
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Everything that this request is, in the words of `@on:`.
    pub fn on(&self) -> Vec<On> {
        let path: Vec<&str> = self.path.trim_start_matches('/').split('/').collect();
        let reads = self.method == "GET";
        let mut all = vec![On::Any, if reads { On::Read } else { On::Write }];
        all.extend(match (self.method.as_str(), &path[..]) {
            ("GET", ["v2", "pods" | "network-volumes"]) => Some(On::List),
            ("GET", ["v2", "pods", _]) => Some(On::Get),
            ("GET", ["v2", "billing", _]) => Some(On::Billing),
            ("POST", ["v2", "pods" | "network-volumes"]) => Some(On::Create),
            ("DELETE", _) => Some(On::Terminate),
            ("POST", ["v2", "pods", _, "action"]) => {
                let body = self.json().unwrap_or_default();
                match body.get("action").and_then(Value::as_str) {
                    Some("start") => Some(On::Start),
                    Some("stop") => Some(On::Stop),
                    Some("terminate") => Some(On::Terminate),
                    _ => None,
                }
            }
            _ => None,
        });
        all
    }

    /// A comma-separated list.
    pub fn query_list(&self, name: &str) -> Vec<&str> {
        self.query(name).map_or_else(Vec::new, |text| text.split(',').map(str::trim).collect())
    }

    pub fn json(&self) -> Result<Value, Problem> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Problem::bad_request(format!("request body is no JSON: {error}")))
    }
}

/// What a request gets.
pub enum Answer {
    Json(u16, Value),
    Empty,
    /// Something that the API does not say.
    Text(u16, &'static str, &'static str),
    /// The connection is cut instead of an answer.
    Cut,
}
