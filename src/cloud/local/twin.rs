//! The twin itself: what it remembers, the pods that are alive, and what a change must hold.

use super::document::{Document, VERSION};
use super::error::ServeError;
use super::faults::Faults;
use super::journal::Journal;
use super::paths::{self, Paths};
use super::pod::Sshd;
use super::problem::Problem;
use super::timing::Timing;
use crate::clock::SharedClock;
use crate::digest::hex;
use crate::secret::Secret;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A pod's SSH server. Whoever boots or stops a pod holds the lock, so that neither sees the
/// other half done.
pub type Live = Arc<tokio::sync::Mutex<Option<Sshd>>>;

/// One local cloud.
pub struct Twin {
    pub paths: Paths,
    pub timing: Timing,
    pub clock: SharedClock,
    /// This program, for the stand-ins on a pod.
    pub program: PathBuf,
    /// Such as `http://127.0.0.1:40123`.
    pub url: String,
    /// The key of the account.
    pub key: Secret,
    pub requests: Journal,
    faults: Arc<Mutex<Faults>>,
    document: Mutex<Document>,
    live: Mutex<HashMap<String, Live>>,
    closing: AtomicBool,
}

/// What a twin is made of.
pub struct Parts {
    pub paths: Paths,
    pub timing: Timing,
    pub clock: SharedClock,
    pub program: PathBuf,
    pub url: String,
    pub key: Secret,
    pub faults: Faults,
}

impl Twin {
    /// A twin that goes on from what its folder remembers.
    pub fn open(parts: Parts) -> Result<Self, ServeError> {
        let document = read(&parts.paths)?;
        Ok(Self {
            requests: Journal::new(parts.paths.requests()),
            faults: Arc::new(Mutex::new(parts.faults)),
            document: Mutex::new(document),
            live: Mutex::new(HashMap::new()),
            closing: AtomicBool::new(false),
            paths: parts.paths,
            timing: parts.timing,
            clock: parts.clock,
            program: parts.program,
            url: parts.url,
            key: parts.key,
        })
    }

    /// The document, to be read. Never held across an await.
    pub fn document(&self) -> MutexGuard<'_, Document> {
        self.document.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the document and writes it; when either fails nothing has changed.
    pub fn change<T>(
        &self,
        change: impl FnOnce(&mut Document) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let mut current = self.document();
        let mut next = current.clone();
        let outcome = change(&mut next)?;
        let text = serde_json::to_string_pretty(&next)
            .map_err(|error| Problem::internal(&format!("cloud.json not written: {error}")))?;
        paths::replace(&self.paths.document(), &text)
            .map_err(|error| Problem::internal(&format!("cloud.json not written: {error}")))?;
        *current = next;
        Ok(outcome)
    }

    /// Lets no request in any more: what starts now would outlive the daemon.
    pub fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    pub fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same for what outlives a borrow, such as a pod's SSH server.
    pub fn shared_faults(&self) -> Arc<Mutex<Faults>> {
        Arc::clone(&self.faults)
    }

    /// The live side of a pod.
    pub fn live(&self, id: &str) -> Live {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(live.entry(id.to_owned()).or_default())
    }

    /// Forgets the live side of a pod that is gone.
    pub fn forget(&self, id: &str) {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

fn read(paths: &Paths) -> Result<Document, ServeError> {
    let path = paths.document();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Document::new()),
        Err(source) => return Err(ServeError::Io { doing: "read", path, source }),
    };
    let document: Document = serde_json::from_str(&text)
        .map_err(|error| ServeError::Document { path: path.clone(), detail: error.to_string() })?;
    if document.version != VERSION {
        let detail = format!("version {} is not version {VERSION}", document.version);
        return Err(ServeError::Document { path, detail });
    }
    Ok(document)
}

/// `local` and `length` random lower-case letters and digits.
pub fn new_id(length: usize) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let random = (0..length).map(|_| {
        let byte: u8 = rand::random();
        char::from(LETTERS[usize::from(byte) % LETTERS.len()])
    });
    "local".chars().chain(random).collect()
}

/// What the key of a pod begins with.
pub const POD_KEY: &str = "local-pod-";

/// A new key; never of the shape of a real one.
pub fn new_key(kind: &str) -> String {
    let random: [u8; 16] = rand::random();
    format!("local-{kind}{}", hex(&random))
}

/// A new id of a pod or volume.
pub fn fresh_id() -> String {
    new_id(9)
}
