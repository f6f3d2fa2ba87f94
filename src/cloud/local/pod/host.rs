//! What all connections to one pod share.

use super::folder::Folder;
use crate::clock::SharedClock;
use crate::cloud::local::faults::Faults;
use crate::cloud::local::journal::Journal;
use russh::keys::PublicKey;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// What all connections of a server share.
pub struct Pod {
    pub id: String,
    pub folder: Folder,
    pub journal: Journal,
    pub clock: SharedClock,
    pub keys: Vec<PublicKey>,
    pub closed: CancellationToken,
    pub faults: Arc<Mutex<Faults>>,
}

impl Pod {
    /// The faults, for a moment. Never held across an await.
    pub fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
