//! russh's errors in the shell's words: which kind, and what to do about it.

use super::SshTarget;
use crate::pod::{ShellError, ShellErrorKind};
use russh::AlgorithmKind;

/// What ends a connection from inside: russh's own errors, and our own verdicts on the server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error("{0}")]
    HostKey(String),
    #[error("{0}")]
    Local(String),
    #[error("{0}")]
    Weak(String),
    #[error(transparent)]
    Ssh(#[from] russh::Error),
}

impl LinkError {
    /// Whether the server hung up before it had shown a key: sshd does that while too many others
    /// are at the same point (MaxStartups), and while it starts. Nothing has run, so it may be tried
    /// again.
    pub(crate) const fn hung_up(&self) -> bool {
        matches!(
            self,
            Self::Ssh(russh::Error::HUP | russh::Error::Disconnect | russh::Error::IO(_))
        )
    }

    /// The failure of a connect to `target`.
    pub(crate) fn while_connecting(self, target: &SshTarget) -> ShellError {
        let (kind, detail) = match self {
            Self::HostKey(detail) => (ShellErrorKind::HostKey, detail),
            Self::Local(detail) => (ShellErrorKind::Local, detail),
            Self::Weak(detail) => (ShellErrorKind::Handshake, detail),
            Self::Ssh(error) => handshake(error, target),
        };
        ShellError { kind, tried: connecting(target), detail }
    }
}

/// What is being tried, for a message.
pub(crate) fn connecting(target: &SshTarget) -> String {
    format!("SSH to {} (pod {})", target.endpoint, target.pod_id)
}

fn handshake(error: russh::Error, target: &SshTarget) -> (ShellErrorKind, String) {
    match error {
        // Once a key is pinned, only its algorithm is offered, so a server that has changed to
        // another one ends up here and not at the comparison.
        russh::Error::NoCommonAlgo { kind: AlgorithmKind::Key, theirs, .. } => (
            ShellErrorKind::HostKey,
            format!(
                "the server offers only host keys of the kinds {}, which is not what is pinned for this boot in {}; if the pod was restarted behind podtether's back, run ensure_pod again",
                plain(&theirs.join(", ")),
                target.known_hosts.display()
            ),
        ),
        russh::Error::NoCommonAlgo { kind, theirs, .. } => (
            ShellErrorKind::Handshake,
            format!(
                "no {kind:?} algorithm in common; the server offers {}",
                plain(&theirs.join(", "))
            ),
        ),
        russh::Error::Version => (
            ShellErrorKind::Handshake,
            "what answers there does not greet like an SSH server".to_owned(),
        ),
        russh::Error::HUP | russh::Error::Disconnect => (
            ShellErrorKind::Handshake,
            "the server closed the connection during the handshake; sshd may still be starting"
                .to_owned(),
        ),
        russh::Error::IO(error) => {
            (ShellErrorKind::Handshake, format!("the connection broke in the handshake: {error}"))
        }
        other => (
            ShellErrorKind::Handshake,
            format!("the handshake failed: {}", plain(&other.to_string())),
        ),
    }
}

/// Text that came from the other side, without control characters and at most 300 characters.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect()
}
