//! A file that is held locked, and let go in so many words.

use std::fs::{File, TryLockError};
use std::io;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// How often a lock that somebody holds is tried again.
const AGAIN: Duration = Duration::from_millis(25);

/// A file whose lock this process holds until this is dropped, or the process ends.
///
/// The lock is given back by asking for it. Closing the file is not enough: a child that another
/// thread has just forked holds a copy of every descriptor until it runs its program, and for those
/// moments the system goes on holding the lock for it (`flock(2)`).
#[derive(Debug)]
pub struct Held(File);

impl Held {
    /// Takes `file` for this process alone; `None` when somebody holds it.
    ///
    /// # Errors
    /// When the system cannot lock it.
    pub fn alone(file: &File) -> io::Result<Option<Self>> {
        Self::taken(file, file.try_lock())
    }

    /// As [`Self::alone`], tried again for as long as `wait`: who only looks holds it for an instant.
    ///
    /// # Errors
    /// When the system cannot lock it.
    pub async fn alone_within(file: &File, wait: Duration) -> io::Result<Option<Self>> {
        let mut waited = Duration::ZERO;
        loop {
            let held = Self::alone(file)?;
            if held.is_some() || waited >= wait {
                return Ok(held);
            }
            tokio::time::sleep(AGAIN).await;
            waited += AGAIN;
        }
    }

    /// Takes `file` beside others who do the same; `None` when somebody holds it alone.
    ///
    /// # Errors
    /// When the system cannot lock it.
    pub fn beside_others(file: &File) -> io::Result<Option<Self>> {
        Self::taken(file, file.try_lock_shared())
    }

    fn taken(file: &File, lock: Result<(), TryLockError>) -> io::Result<Option<Self>> {
        match lock {
            // A second descriptor of the same open file: the lock is the file's, not the descriptor's.
            Ok(()) => file.try_clone().map(|file| Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A lock that cannot be given back goes with the descriptor.
        let _ = self.0.unlock();
    }
}

impl Deref for Held {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for Held {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(folder: &tempfile::TempDir) -> File {
        File::options().create(true).append(true).open(folder.path().join("lock")).unwrap()
    }

    /// What a child between fork and exec does: it has a copy of the descriptor.
    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_what_was_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let file = at(&folder);
        let copy = file.try_clone().unwrap();
        let held = Held::alone(&file).unwrap().unwrap();
        drop(file);
        assert!(Held::beside_others(&at(&folder)).unwrap().is_none());
        drop(held);
        assert!(Held::alone(&at(&folder)).unwrap().is_some());
        drop(copy);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_gets_it_when_it_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let held = Held::alone(&at(&folder)).unwrap();
        let file = at(&folder);
        let wait = Duration::from_secs(2);
        assert!(Held::alone_within(&file, wait).await.unwrap().is_none());
        let let_go = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(held);
        };
        let (taken, ()) = tokio::join!(Held::alone_within(&file, wait), let_go);
        assert!(taken.unwrap().is_some());
    }

    #[test]
    fn those_who_look_do_not_see_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let one = Held::beside_others(&at(&folder)).unwrap();
        assert!(one.is_some() && Held::beside_others(&at(&folder)).unwrap().is_some());
        assert!(Held::alone(&at(&folder)).unwrap().is_none());
    }
}
