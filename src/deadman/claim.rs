//! Who relies on a vehicle's fuse: a word that is put anew each time somebody arms or extends it. Whoever
//! calls a fuse off after a stop names the last one that it knows of; another session that has begun
//! since then has put its own, and the fuse stays with that one.

use super::seat;
use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// In the vehicle's log folder, put only by whoever has the turn.
const FILE: &str = "deadman.claim";

/// One arming or extending of a fuse, told from any other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Claim(String);

impl Claim {
    /// Whether nobody has armed or extended since. A last one that cannot be read is somebody's.
    #[must_use]
    pub fn is_the_last(&self, last: Option<&Self>) -> bool {
        last == Some(self)
    }

    /// Puts a new one, before what it stands for is done: one that is followed by nothing leaves a fuse
    /// armed over a pod that is off, one that comes late would let it be called off over one that runs.
    pub(super) fn put(folder: &Path) -> io::Result<Self> {
        let claim = Self(format!("{:016x}", rand::rng().random::<u64>()));
        seat::place(&folder.join(FILE), &claim)?;
        Ok(claim)
    }
}

/// The last claim on the fuse of this log folder; `None` when there is none that can be read. For whoever
/// is sure by other means that nobody begins until it has called off.
#[must_use]
pub fn last_claim(folder: &Path) -> Option<Claim> {
    seat::read(&folder.join(FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_holds_until_somebody_puts_another() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(last_claim(folder.path()), None);
        let one = Claim::put(folder.path()).unwrap();
        assert!(one.is_the_last(last_claim(folder.path()).as_ref()));
        let other = Claim::put(folder.path()).unwrap();
        assert!(!one.is_the_last(last_claim(folder.path()).as_ref()));
        assert!(other.is_the_last(last_claim(folder.path()).as_ref()));
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        assert!(!other.is_the_last(last_claim(folder.path()).as_ref()), "unreadable is somebody's");
    }
}
