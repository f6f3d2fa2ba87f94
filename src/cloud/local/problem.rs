//! Refusals in the provider's shape: `application/problem+json` with title, status and detail.

use serde_json::{Value, json};

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub status: u16,
    pub detail: String,
    /// The single violations of a body that does not match the schema.
    pub errors: Vec<String>,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
}

impl Problem {
    pub fn new(status: u16, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), errors: Vec::new(), headers: Vec::new() }
    }

    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(400, detail)
    }

    /// The provider's own words for a lack of machines; it has no code for it.
    pub fn no_capacity() -> Self {
        Self::new(
            400,
            "There are no longer any instances available with the requested specifications. \
             Please refresh and try again.",
        )
    }

    pub fn not_found(what: &str) -> Self {
        Self::new(404, format!("{what} not found"))
    }

    pub fn internal(detail: &str) -> Self {
        Self::new(500, detail)
    }

    /// A body that does not match the schema.
    pub fn unprocessable(errors: Vec<String>) -> Self {
        let detail = "request body does not match the schema";
        Self { errors, ..Self::new(422, detail) }
    }

    pub fn rate_limited(seconds: u32) -> Self {
        let headers = vec![
            ("retry-after", seconds.to_string()),
            ("ratelimit", format!("\"minute\";r=0;t={seconds}")),
        ];
        Self { headers, ..Self::new(429, "rate limit exceeded for the minute window") }
    }

    /// A refusal for too many requests that does not say for how long.
    pub fn rate_limited_bare() -> Self {
        Self::new(429, "rate limit exceeded")
    }

    pub fn body(&self) -> Value {
        let title = match self.status {
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            409 => "Conflict",
            410 => "Gone",
            422 => "Unprocessable Entity",
            429 => "Too Many Requests",
            503 => "Service Unavailable",
            _ => "Internal Server Error",
        };
        let mut body = json!({"title": title, "status": self.status, "detail": self.detail});
        if !self.errors.is_empty()
            && let Some(fields) = body.as_object_mut()
        {
            fields.insert("errors".to_owned(), json!(self.errors));
        }
        body
    }
}
