//! An HTTP answer, taken off the wire and not yet judged.

use reqwest::header::HeaderMap;

/// What is kept of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// `Content-Type`, empty when there was none.
    pub content_type: String,
    /// `Retry-After`, as it came.
    pub retry_after: Option<String>,
    /// `RateLimit`, as it came: `"minute";r=0;t=12, "hour";r=2999;t=3000`.
    pub rate_limit: Option<String>,
    /// `x-request-id`.
    pub request_id: Option<String>,
    /// Body.
    pub body: Vec<u8>,
}

impl Answer {
    /// Status and headers, the body still empty.
    #[must_use]
    pub fn head(status: u16, headers: &HeaderMap) -> Self {
        let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
        Self {
            status,
            content_type: text("content-type").unwrap_or_default().to_ascii_lowercase(),
            retry_after: text("retry-after"),
            rate_limit: text("ratelimit"),
            request_id: text("x-request-id"),
            body: Vec::new(),
        }
    }

    /// Whether it says 2xx.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        self.status / 100 == 2
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).trim().to_owned()
    }

    /// Whether nothing but white space came.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.body.iter().all(u8::is_ascii_whitespace)
    }

    /// Whether the edge in front of the API wrote it: an HTML page or Cloudflare's one-liner. Those
    /// say nothing about the key, the pod or the request (A10).
    #[must_use]
    pub fn is_edge_page(&self) -> bool {
        let start: String = self.text().chars().take(200).collect::<String>().to_ascii_lowercase();
        self.content_type.contains("text/html")
            || start.starts_with('<')
            || start.starts_with("error code:")
    }
}
