//! One line of a known_hosts file (format: sshd(8), SSH_KNOWN_HOSTS FILE FORMAT).

use russh::keys::PublicKey;

/// Marks a line as ours; the boot follows to the end of the line.
const OURS: &str = "podtether boot=";

/// A line, with the text it came from.
#[derive(Clone, Debug)]
pub(super) struct Line {
    text: String,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    /// Blank, a comment, or a certificate authority, which is never trusted here.
    Nothing,
    Key {
        names: String,
        key: PublicKey,
        boot: Option<String>,
    },
    Revoked(PublicKey),
}

impl Line {
    /// Reads a line; `None` when it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let content = Content::parse(text)?;
        Some(Self { text: text.to_owned(), content })
    }

    /// A pin of ours; `None` for a key that cannot be written down.
    pub(super) fn pin(pod: &str, boot: &str, key: &PublicKey) -> Option<Self> {
        let mut key = key.clone();
        key.set_comment("");
        let text = format!("{pod} {} {OURS}{boot}", key.to_openssh().ok()?.trim());
        Self::parse(&text)
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it records a key under exactly this name.
    pub(super) fn is_for(&self, name: &str) -> bool {
        match &self.content {
            Content::Key { names, .. } => names.split(',').any(|known| known == name),
            _ => false,
        }
    }

    pub(super) const fn key(&self) -> Option<&PublicKey> {
        match &self.content {
            Content::Key { key, .. } => Some(key),
            _ => None,
        }
    }

    /// The boot that a pin of ours is for.
    pub(super) fn boot(&self) -> Option<&str> {
        match &self.content {
            Content::Key { boot, .. } => boot.as_deref(),
            _ => None,
        }
    }

    pub(super) const fn revoked(&self) -> Option<&PublicKey> {
        match &self.content {
            Content::Revoked(key) => Some(key),
            _ => None,
        }
    }
}

impl Content {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            return Some(Self::Nothing);
        }
        let (marker, rest) = match text.strip_prefix('@') {
            Some(marked) => {
                let (marker, rest) = field(marked)?;
                (Some(marker), rest)
            }
            None => (None, text),
        };
        let (names, rest) = field(rest)?;
        let (kind, rest) = field(rest)?;
        let (encoded, comment) = field(rest)?;
        let key = PublicKey::from_openssh(&format!("{kind} {encoded}")).ok()?;
        match marker {
            None => Some(Self::Key {
                names: names.to_owned(),
                key,
                boot: comment.strip_prefix(OURS).map(str::to_owned),
            }),
            Some("revoked") => Some(Self::Revoked(key)),
            Some("cert-authority") => Some(Self::Nothing),
            Some(_) => None,
        }
    }
}

/// The first field, and what follows it.
fn field(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    (!first.is_empty()).then(|| (first, rest.trim_start()))
}
