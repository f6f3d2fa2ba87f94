//! A request, who makes it, and what it gets.

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
