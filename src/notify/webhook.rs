//! Notices over a webhook: one POST of ntfy's or Slack's JSON. The address is a secret as a whole, and
//! no error shows any of it.

use super::notice::{Message, without_markup};
use crate::config::WebhookShape;
use crate::secret::{Secret, scrub};
use reqwest::{Client, StatusCode, Url};
use serde_json::{Value, json};
use std::time::Duration;

/// How much of an answer is read, in bytes, for the words of a refusal.
const ANSWER_MAX: usize = 1_024;

/// Why a notice did not get through. Never shows the address.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The address will not do. Nothing was sent.
    #[error("the webhook's address {why}; store another one")]
    BadAddress {
        /// What is wrong with it.
        why: &'static str,
    },
    /// The HTTP client could not be set up.
    #[error(
        "the HTTP client could not be set up: {0}; on Linux the package ca-certificates must be installed"
    )]
    Client(#[source] reqwest::Error),
    /// No answer came.
    #[error("the webhook gave {detail}; is the network up and the address still right?")]
    NoAnswer {
        /// What happened.
        detail: String,
    },
    /// It answered with something else than 2xx.
    #[error(
        "the webhook answered {status}: {detail}; is the address still right, and of the kind that notify.webhook says?"
    )]
    Answered {
        /// Its status.
        status: StatusCode,
        /// Its first words.
        detail: String,
    },
}

impl WebhookError {
    /// Whether another try may get through: not when the receiver said no to this notice. One that was
    /// not answered may have arrived, and arrives twice then; that is better than not at all.
    #[must_use]
    pub fn may_be_sent_again(&self) -> bool {
        match self {
            Self::BadAddress { .. } | Self::Client(_) => false,
            Self::NoAnswer { .. } => true,
            Self::Answered { status, .. } => {
                let for_now = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
                status.is_server_error() || for_now.contains(status)
            }
        }
    }
}

/// A webhook that can be sent to.
pub struct Webhook {
    client: Client,
    shape: WebhookShape,
    url: Url,
    /// ntfy's topic.
    topic: String,
    /// The address and each of its parts that could be a secret.
    hidden: Vec<Secret>,
}

impl Webhook {
    /// A webhook at a stored address. `wait` is the longest time for one notice.
    ///
    /// # Errors
    /// [`WebhookError`] when the address is not https (http on this machine is for tests), or has no
    /// topic for ntfy. Nothing is sent.
    pub fn new(
        shape: WebhookShape,
        address: &Secret,
        wait: Duration,
    ) -> Result<Self, WebhookError> {
        let bad = |why| WebhookError::BadAddress { why };
        let mut url = Url::parse(address.reveal()).map_err(|_| bad("is not a URL"))?;
        let is_loopback = matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
        match url.scheme() {
            "https" => {}
            "http" if is_loopback => {}
            "http" => return Err(bad("is not https, so the notices would go out in clear text")),
            _ => return Err(bad("is neither https nor http")),
        }
        let hidden = parts(&url, address);
        let mut topic = String::new();
        if shape == WebhookShape::Ntfy {
            // https://docs.ntfy.sh/publish/#publish-as-json: the topic is in the JSON, and that goes to
            // the server's root. Titles of any text would not fit into headers.
            topic = url.path().trim_matches('/').to_owned();
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
            if topic.is_empty() || topic.len() > 64 || !topic.bytes().all(plain) {
                return Err(bad(
                    "has no topic of ntfy's; it should look like https://ntfy.sh/TOPIC",
                ));
            }
            url.set_path("/");
        }
        url.set_fragment(None);
        install_crypto();
        let builder = Client::builder()
            .user_agent(concat!("podtether/", env!("CARGO_PKG_VERSION")))
            .timeout(wait)
            // A redirect would carry the words elsewhere, a hidden retry would tell twice.
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false);
        let builder = match url.scheme() {
            "http" => builder.no_proxy().tls_certs_only([]),
            _ => builder,
        };
        let client = builder.build().map_err(|error| WebhookError::Client(error.without_url()))?;
        Ok(Self { client, shape, url, topic, hidden })
    }

    /// What of the address must not stand in a text.
    #[must_use]
    pub fn hidden(&self) -> &[Secret] {
        &self.hidden
    }

    /// The body that is sent.
    #[must_use]
    pub fn body(&self, message: &Message) -> Value {
        match self.shape {
            WebhookShape::Ntfy => json!({
                "topic": self.topic,
                "title": message.title,
                "message": message.text,
                "priority": message.kind.priority(),
                "tags": [message.kind.as_str()],
            }),
            // Slack takes `&`, `<` and `>` for control characters: a log that says `<!channel>` would
            // call everybody (https://docs.slack.dev/messaging/formatting-message-text).
            WebhookShape::Slack => json!({
                "text": without_markup(&format!("{}\n{}", message.title, message.text)),
                "mrkdwn": false,
            }),
        }
    }

    /// Sends a notice, once.
    ///
    /// # Errors
    /// [`WebhookError`]; whether it got through is not known after one of no answer.
    pub async fn post(&self, message: &Message) -> Result<(), WebhookError> {
        let request = self.client.post(self.url.clone()).json(&self.body(message));
        let mut response = request.send().await.map_err(|error| self.no_answer(error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let mut words = Vec::new();
        while words.len() < ANSWER_MAX
            && let Ok(Some(chunk)) = response.chunk().await
        {
            words.extend_from_slice(&chunk);
        }
        let said = scrub(&String::from_utf8_lossy(&words), &self.hidden);
        let detail = said.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
        Err(WebhookError::Answered { status, detail })
    }

    fn no_answer(&self, error: reqwest::Error) -> WebhookError {
        let what = match (error.is_timeout(), error.is_connect()) {
            (true, _) => "no answer in time",
            (false, true) => "no connection",
            (false, false) => "no whole answer",
        };
        let error = error.without_url();
        let mut detail = what.to_owned();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            detail.push_str(&format!(": {cause}"));
            source = cause.source();
        }
        WebhookError::NoAnswer { detail: scrub(&detail, &self.hidden) }
    }
}

/// The address, and its parts that a server might say back.
fn parts(url: &Url, address: &Secret) -> Vec<Secret> {
    let segments = url.path_segments().into_iter().flatten().map(str::to_owned);
    let values = url.query_pairs().map(|(_, value)| value.into_owned());
    let whole = [url.path().trim_start_matches('/').to_owned()];
    let long = |part: &String| part.len() >= 6;
    let parts = whole.into_iter().chain(segments).chain(values).filter(long);
    let parts = parts.chain(url.password().map(str::to_owned));
    [address.clone()].into_iter().chain(parts.filter_map(|part| Secret::new(&part))).collect()
}

/// reqwest is built without a TLS provider of its own; every part of podtether installs ring.
fn install_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Losing the race against another thread that installs the same provider is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(shape: WebhookShape, address: &str) -> String {
        let secret = Secret::new(address).unwrap();
        match Webhook::new(shape, &secret, Duration::from_secs(1)) {
            Ok(_) => panic!("{address} was taken"),
            Err(error) => error.to_string(),
        }
    }

    /// The address is a secret: what is wrong with it is told without it, and it never goes out in clear.
    #[test]
    fn an_address_that_will_not_do_is_refused_and_not_shown() {
        for (shape, address, why) in [
            (WebhookShape::Slack, "http://hooks.example/MARKER", "clear text"),
            (WebhookShape::Slack, "http://127.0.0.1.evil.example/MARKER", "clear text"),
            (WebhookShape::Slack, "ftp://127.0.0.1/MARKER", "neither https"),
            (WebhookShape::Slack, "MARKER", "not a URL"),
            (WebhookShape::Ntfy, "https://ntfy.sh/", "no topic"),
            (WebhookShape::Ntfy, "https://ntfy.sh/MARKER/json", "no topic"),
            (WebhookShape::Ntfy, "https://ntfy.sh/MARKER%20x", "no topic"),
        ] {
            let said = refused(shape, address);
            assert!(said.contains(why) && !said.contains("MARKER"), "{address}: {said}");
        }
    }

    #[test]
    fn every_part_of_an_address_that_could_be_said_back_is_hidden() {
        let address =
            Secret::new("http://127.0.0.1/services/T0123456/B0123456?auth=QmFzaWMx").unwrap();
        let webhook = Webhook::new(WebhookShape::Slack, &address, Duration::from_secs(1)).unwrap();
        let said = "no B0123456 of T0123456 at services/T0123456/B0123456, auth QmFzaWMx";
        let clean = scrub(said, webhook.hidden());
        assert_eq!(clean, "no [secret] of [secret] at [secret], auth [secret]");
    }
}
