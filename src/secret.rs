//! Secrets that cannot be printed, and the one place that blanks them out of text.

use std::fmt;
use std::sync::{Arc, OnceLock};

/// An API key. `Debug` shows a placeholder, there is no `Display` and no `Serialize`; reading it
/// takes a loud name with few callers.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Takes a secret, without surrounding white space; `None` when nothing is left.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.into()))
    }

    /// The secret itself. Only for the header or the child environment that needs it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// What stands where a secret was.
pub const BLANK: &str = "[secret]";

/// Blanks the given secrets and anything of the shape of a RunPod key (`rpa_…`) out of a text,
/// also where the secret is URL-encoded.
#[must_use]
pub fn scrub(text: &str, secrets: &[Secret]) -> String {
    static KEY_SHAPE: OnceLock<Option<regex::Regex>> = OnceLock::new();
    let mut clean = text.to_owned();
    for secret in secrets {
        for form in [secret.reveal().to_owned(), url_encoded(secret.reveal())] {
            if clean.contains(&form) {
                clean = clean.replace(&form, BLANK);
            }
        }
    }
    match KEY_SHAPE.get_or_init(|| regex::Regex::new(r"\brpa_[A-Za-z0-9]{8,}").ok()) {
        Some(shape) => shape.replace_all(&clean, BLANK).into_owned(),
        None => clean,
    }
}

fn url_encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H01: a key planted in a URL, a header or a log line is never shown.
    #[test]
    fn a_secret_is_blanked_wherever_it_stands() {
        let secret = Secret::new(" old+key/1234 \n").unwrap();
        let text = "Authorization: Bearer old+key/1234 https://x/?api_key=old%2Bkey%2F1234 rpa_ABCDEFGH1234";
        let clean = scrub(text, std::slice::from_ref(&secret));
        assert_eq!(clean, "Authorization: Bearer [secret] https://x/?api_key=[secret] [secret]");
        assert_eq!(format!("{secret:?}"), "[secret]");
        assert!(Secret::new(" \n").is_none());
    }
}
