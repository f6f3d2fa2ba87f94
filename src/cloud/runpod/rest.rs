//! The HTTP side: one request out, one answer in, asked again only where `retry` says so.

use super::answer::Answer;
use super::classify;
use super::retry::{self, Ask};
use super::setup::{RunPodOptions, SetupError, checked_base};
use crate::clock::SharedClock;
use crate::cloud::{CloudError, CloudErrorKind, RequestView};
use crate::secret::Secret;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, Method};
use std::time::Duration;

/// Sent with every request: the edge bans the default names of HTTP libraries (A10).
pub const USER_AGENT: &str = concat!("podtether/", env!("CARGO_PKG_VERSION"));

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A whole account's list is far below this; more is a fault or an attack.
const BODY_MAX: usize = 16 * 1024 * 1024;

/// A connection to the API.
pub struct Rest {
    client: Client,
    base: String,
    key: Secret,
    budget: Duration,
    clock: SharedClock,
}

impl Rest {
    /// A client for the checked address.
    ///
    /// # Errors
    /// [`SetupError`]; nothing was sent.
    pub fn new(options: RunPodOptions, clock: SharedClock) -> Result<Self, SetupError> {
        let base = checked_base(&options)?;
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", options.key.reveal()))
            .map_err(|_| SetupError::BadKey)?;
        bearer.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, bearer);
        headers
            .insert(ACCEPT, HeaderValue::from_static("application/json, application/problem+json"));
        install_crypto();
        let builder = Client::builder()
            .user_agent(USER_AGENT)
            .default_headers(headers)
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(options.timeout)
            // A redirect would carry the key elsewhere, a hidden retry would create twice.
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false);
        // Plain HTTP was let through for this machine only. It needs no proxy from the environment
        // and no certificates, which a bare container does not have.
        let builder = match base.starts_with("http://") {
            true => builder.no_proxy().tls_certs_only([]),
            false => builder,
        };
        let client = builder.build().map_err(|error| SetupError::Client(error.without_url()))?;
        Ok(Self { client, base, key: options.key, budget: options.retry_budget, clock })
    }

    /// When a call that begins now stops asking again, on the clock that is never set back.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.clock.monotonic().saturating_add(self.budget)
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// Reads `path`, asking again until `deadline` while the failure may pass.
    ///
    /// # Errors
    /// The last failure. A 2xx without a JSON body is one too.
    pub async fn read(
        &self,
        path: &str,
        query: &[(&str, String)],
        deadline: Duration,
    ) -> Result<(Answer, serde_json::Value), CloudError> {
        let view = RequestView { method: "GET".to_owned(), path: path.to_owned(), body: None };
        let read = |answer: Answer, tried: &str| self.json(answer, tried);
        self.ask(&view, query, Ask::Read, deadline, read).await
    }

    /// Asks a question that travels in a body and changes nothing, for at most `patience`, while the
    /// failure may pass.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn query(
        &self,
        view: &RequestView,
        patience: Duration,
    ) -> Result<serde_json::Value, CloudError> {
        let deadline = self.clock.monotonic().saturating_add(patience.min(self.budget));
        let read = |answer: Answer, tried: &str| self.json(answer, tried);
        Ok(self.ask(view, &[], Ask::Read, deadline, read).await?.1)
    }

    fn json(&self, answer: Answer, tried: &str) -> Result<(Answer, serde_json::Value), CloudError> {
        match serde_json::from_slice(&answer.body) {
            Ok(value) => Ok((answer, value)),
            Err(error) => Err(self.not_json(&answer, tried, &error)),
        }
    }

    /// Sends a change, once; only a 429 is asked again.
    ///
    /// # Errors
    /// The failure; see [`CloudError::may_have_taken_effect`].
    pub async fn change(&self, view: &RequestView) -> Result<Answer, CloudError> {
        let taken = |answer: Answer, tried: &str| match answer.is_edge_page() {
            true => {
                let detail = "a web page instead of an answer of the API";
                Err(classify::error(CloudErrorKind::Edge, tried, &answer, detail, &self.key))
            }
            false => Ok(answer),
        };
        self.ask(view, &[], Ask::Change, self.deadline(), taken).await
    }

    /// An answer of 2xx that could not be understood.
    #[must_use]
    pub fn malformed(&self, answer: &Answer, tried: &str, why: &str) -> CloudError {
        classify::error(CloudErrorKind::Malformed, tried, answer, why, &self.key)
    }

    /// A request that was refused here, before it was sent.
    #[must_use]
    pub fn refused(&self, tried: &str, why: &str) -> CloudError {
        classify::error(CloudErrorKind::Validation, tried, &Answer::default(), why, &self.key)
    }

    fn not_json(&self, answer: &Answer, tried: &str, error: &serde_json::Error) -> CloudError {
        let looks_like_json = answer.text().starts_with(['{', '[']);
        let (kind, why) = match (looks_like_json, answer.is_empty()) {
            (true, _) => (CloudErrorKind::Malformed, format!("broken JSON: {error}")),
            (false, true) => (CloudErrorKind::Edge, "an empty answer".to_owned()),
            (false, false) => (CloudErrorKind::Edge, format!("no JSON but {:?}", answer.text())),
        };
        classify::error(kind, tried, answer, &why, &self.key)
    }

    async fn ask<T>(
        &self,
        view: &RequestView,
        query: &[(&str, String)],
        ask: Ask,
        deadline: Duration,
        judge: impl Fn(Answer, &str) -> Result<T, CloudError>,
    ) -> Result<T, CloudError> {
        let tried = tried(view);
        let mut attempt = 1;
        loop {
            let outcome = match self.send(view, query, &tried).await {
                Ok(answer) if answer.is_success() => judge(answer, &tried),
                Ok(answer) => Err(classify::failure(&answer, &tried, self.clock.now(), &self.key)),
                Err(error) => Err(error),
            };
            let error = match outcome {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let left = deadline.saturating_sub(self.clock.monotonic());
            let jitter = rand::random_range(0..=1000);
            let Some(wait) = retry::decide(&error, ask, attempt, left, jitter) else {
                return Err(error);
            };
            tracing::debug!(%error, attempt, ?wait, "asking again");
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    async fn send(
        &self,
        view: &RequestView,
        query: &[(&str, String)],
        tried: &str,
    ) -> Result<Answer, CloudError> {
        let method = Method::from_bytes(view.method.as_bytes())
            .map_err(|_| self.refused(tried, "no HTTP method"))?;
        let mut request = self.client.request(method, format!("{}{}", self.base, view.path));
        if !query.is_empty() {
            request = request.query(query);
        }
        if let Some(body) = &view.body {
            request = request.json(body);
        }
        let mut response = request.send().await.map_err(|error| self.network(tried, error))?;
        let mut answer = Answer::head(response.status().as_u16(), response.headers());
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if answer.body.len() + chunk.len() <= BODY_MAX => {
                    answer.body.extend_from_slice(&chunk);
                }
                Ok(Some(_)) => {
                    return Err(self.malformed(&answer, tried, "a body of more than 16 MiB"));
                }
                Ok(None) => return Ok(answer),
                // A refusal is one, however much of its text came through.
                Err(_) if !answer.is_success() => return Ok(answer),
                Err(error) => return Err(self.network(tried, error)),
            }
        }
    }

    fn network(&self, tried: &str, error: reqwest::Error) -> CloudError {
        // Only a connection that was never made proves that nothing was sent; TLS counts as making it.
        let never_sent = error.is_connect() || error.is_builder();
        let what = match (error.is_timeout(), never_sent) {
            (true, true) => "no connection in time",
            (true, false) => "no answer in time",
            (false, true) => "no connection",
            (false, false) => "the connection broke before the whole answer came",
        };
        let error = error.without_url();
        let mut detail = format!("{what}: {error}");
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            detail.push_str(&format!(": {cause}"));
            source = cause.source();
        }
        let kind = CloudErrorKind::Network { never_sent };
        classify::error(kind, tried, &Answer::default(), &detail, &self.key)
    }
}

/// The request in a few words, for errors.
#[must_use]
pub fn tried(view: &RequestView) -> String {
    format!("{} {}", view.method, view.path)
}

/// reqwest is built without a TLS provider of its own. Whoever installs one first wins, and every
/// part of podtether installs ring.
fn install_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Losing the race against another thread that installs the same provider is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
