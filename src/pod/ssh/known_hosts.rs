//! Host keys, pinned per pod and boot in the vehicle's own known_hosts file. russh's helpers are
//! not used: they take a changed key of another algorithm for a new host, and an unreadable file
//! for an empty one.
//!
//! A pin is one line in OpenSSH's format, named by the pod's id, since rented addresses are given
//! to others later; its comment carries the boot. `ssh -o HostKeyAlias=<pod id>` reads it too.
//! Lines of any other name are kept byte for byte.

mod file;
mod line;

use line::Line;
use russh::keys::{Algorithm, HashAlg, PublicKey};
use std::io;
use std::path::{Path, PathBuf};

/// Why a host key was not accepted, or the file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum KnownHostsError {
    /// Another key is pinned for this boot.
    #[error(
        "pod {pod} shows the host key {shown}, but for this boot {pinned} is pinned in {file}: either something stands in between, or the pod was restarted behind podtether's back; run ensure_pod again, which asks the provider for the boot"
    )]
    Changed {
        /// The pod's id.
        pod: String,
        /// Fingerprint of the key that the server showed.
        shown: String,
        /// Fingerprints of what is pinned.
        pinned: String,
        /// The known_hosts file.
        file: PathBuf,
    },
    /// The key is marked `@revoked`.
    #[error("the host key {shown} is marked @revoked in {file}")]
    Revoked {
        /// Fingerprint of the key.
        shown: String,
        /// The known_hosts file.
        file: PathBuf,
    },
    /// A line that cannot be read. Skipping it could drop a pin.
    #[error("{file} line {number} is not a known_hosts line; mend it or remove it")]
    Malformed {
        /// The known_hosts file.
        file: PathBuf,
        /// Counted from 1.
        number: usize,
    },
    /// The file is not one that only we can have written.
    #[error("{file} {why}")]
    Untrusted {
        /// The known_hosts file.
        file: PathBuf,
        /// What is wrong with it and how to mend it.
        why: String,
    },
    /// The pod id or boot can not stand in a line.
    #[error("{what} {text:?} cannot stand in a known_hosts file")]
    BadName {
        /// Which of the two.
        what: &'static str,
        /// The value.
        text: String,
    },
    /// The server's key cannot be written as a line.
    #[error("the host key {shown} cannot be recorded")]
    BadKey {
        /// Fingerprint of the key.
        shown: String,
    },
    /// The file system.
    #[error("{doing} {file}: {source}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file.
        file: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl KnownHostsError {
    /// Whether the server is to blame, and not the file.
    #[must_use]
    pub const fn is_verdict(&self) -> bool {
        matches!(self, Self::Changed { .. } | Self::Revoked { .. } | Self::BadKey { .. })
    }
}

/// One boot of one pod, checked to be fit for a line.
#[derive(Clone, Copy, Debug)]
pub struct BootName<'a> {
    pod: &'a str,
    boot: &'a str,
}

impl<'a> BootName<'a> {
    /// Names a boot.
    ///
    /// # Errors
    /// [`KnownHostsError::BadName`] when either would break the file's format.
    pub fn new(pod: &'a str, boot: &'a str) -> Result<Self, KnownHostsError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if pod.is_empty() || !pod.chars().all(plain) {
            return Err(KnownHostsError::BadName { what: "pod id", text: pod.to_owned() });
        }
        let fits = boot.trim() == boot && !boot.is_empty() && !boot.chars().any(char::is_control);
        if !fits {
            return Err(KnownHostsError::BadName { what: "boot", text: boot.to_owned() });
        }
        Ok(Self { pod, boot })
    }
}

/// The algorithms of what is pinned for this boot; empty when nothing is. Only these are offered
/// to the server, so that it cannot answer with a key of another kind.
///
/// # Errors
/// Any [`KnownHostsError`] about the file.
pub fn pinned_algorithms(
    path: &Path,
    name: BootName<'_>,
) -> Result<Vec<Algorithm>, KnownHostsError> {
    let lines = file::read(path)?;
    Ok(binding(&lines, name).map(|line| line.key.algorithm()).collect())
}

/// Accepts `key` for this boot: pins it on first contact, compares it afterwards. A pin of an
/// earlier boot is replaced.
///
/// # Errors
/// [`KnownHostsError::Changed`] and [`KnownHostsError::Revoked`] about the key, the others about
/// the file. Nothing was written then.
pub fn check(path: &Path, name: BootName<'_>, key: &PublicKey) -> Result<(), KnownHostsError> {
    if is_pinned(path, &file::read(path)?, name, key)? {
        return Ok(());
    }
    // First contact of this boot. Others may be at the same point, so look again under the lock.
    file::rewrite(path, |lines| {
        if is_pinned(path, lines, name, key)? {
            return Ok(None);
        }
        let mut kept: Vec<Line> =
            lines.iter().filter(|line| !line.is_for(name.pod)).cloned().collect();
        let pin = Line::pin(name.pod, name.boot, key);
        kept.push(pin.ok_or_else(|| KnownHostsError::BadKey { shown: fingerprint(key) })?);
        Ok(Some(kept))
    })
}

/// Compares `key` with what is pinned for this boot and writes nothing: `false` when nothing is.
///
/// # Errors
/// As [`check`].
pub fn compare(path: &Path, name: BootName<'_>, key: &PublicKey) -> Result<bool, KnownHostsError> {
    is_pinned(path, &file::read(path)?, name, key)
}

/// Forgets every key of a pod, whatever the boot. For a start, which makes new ones.
///
/// # Errors
/// Any [`KnownHostsError`] about the file.
pub fn reset(path: &Path, pod: &str) -> Result<(), KnownHostsError> {
    if !file::read(path)?.iter().any(|line| line.is_for(pod)) {
        return Ok(());
    }
    file::rewrite(path, |lines| {
        Ok(Some(lines.iter().filter(|line| !line.is_for(pod)).cloned().collect()))
    })
}

/// `Ok(true)`: the key is pinned. `Ok(false)`: nothing is pinned for this boot.
fn is_pinned(
    path: &Path,
    lines: &[Line],
    name: BootName<'_>,
    key: &PublicKey,
) -> Result<bool, KnownHostsError> {
    let shown = || fingerprint(key);
    // A revoked key is refused under every name: its line may be hashed.
    if lines.iter().filter_map(Line::revoked).any(|revoked| revoked.key_data() == key.key_data()) {
        return Err(KnownHostsError::Revoked { shown: shown(), file: path.to_owned() });
    }
    let pinned: Vec<&PublicKey> = binding(lines, name).map(|line| line.key).collect();
    // The comment is no part of a key's identity; `PublicKey`'s own equality counts it.
    if pinned.iter().any(|known| known.key_data() == key.key_data()) {
        return Ok(true);
    }
    if pinned.is_empty() {
        return Ok(false);
    }
    Err(KnownHostsError::Changed {
        pod: name.pod.to_owned(),
        shown: shown(),
        pinned: pinned.iter().map(|known| fingerprint(known)).collect::<Vec<_>>().join(", "),
        file: path.to_owned(),
    })
}

struct Binding<'a> {
    key: &'a PublicKey,
}

/// The lines that bind this boot: ours of the same boot, and those of this pod that somebody else
/// wrote, since those name no boot.
fn binding<'a>(lines: &'a [Line], name: BootName<'a>) -> impl Iterator<Item = Binding<'a>> {
    lines
        .iter()
        .filter(move |line| line.is_for(name.pod))
        .filter(move |line| line.boot().is_none_or(|boot| boot == name.boot))
        .filter_map(|line| line.key().map(|key| Binding { key }))
}

fn fingerprint(key: &PublicKey) -> String {
    format!("{} {}", key.algorithm().as_str(), key.fingerprint(HashAlg::Sha256))
}

#[cfg(test)]
mod tests;
