//! What all connections to one pod share.

use super::folder::Folder;
use crate::clock::SharedClock;
use crate::cloud::local::journal::Journal;
use russh::keys::PublicKey;
use tokio_util::sync::CancellationToken;

/// What all connections of a server share.
pub struct Pod {
    pub id: String,
    pub folder: Folder,
    pub journal: Journal,
    pub clock: SharedClock,
    pub keys: Vec<PublicKey>,
    pub closed: CancellationToken,
}
