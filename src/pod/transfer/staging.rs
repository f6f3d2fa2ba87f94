//! The staging folder: private, one per pull's source and destination, kept until a pull has
//! brought everything, so that the next one goes on where this one stopped.

use super::{PullRequest, TransferError};
use crate::digest::hex;
use crate::held::Held;
use sha2::{Digest as _, Sha256};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Holds the folder for one pull at a time.
pub(super) struct Staging {
    root: PathBuf,
    tree: PathBuf,
    _lock: Held,
}

impl Staging {
    /// Makes or takes up the folder. `local_dir` has to be absolute.
    pub(super) fn open(request: &PullRequest, local_dir: &Path) -> Result<Self, TransferError> {
        let parent = match &request.staging_root {
            Some(root) => root.as_path(),
            None => local_dir.parent().unwrap_or(local_dir),
        };
        fs::create_dir_all(parent)
            .map_err(|error| TransferError::local("creating", parent, error))?;
        let root = parent.join(format!(".podtether-staging-{}", key(request, local_dir)));
        private_dir(&root)?;

        let lock_path = root.join("lock");
        let failed = |error| TransferError::local("locking", &lock_path, error);
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&lock_path)
            .map_err(failed)?;
        let Some(lock) = Held::alone(&lock).map_err(failed)? else {
            return Err(TransferError::Busy { staging: root });
        };
        // The pull before may just have removed the folder under our feet.
        if lock.metadata().map_err(failed)?.nlink() == 0 {
            return Err(TransferError::Busy { staging: root });
        }
        let tree = root.join("tree");
        private_dir(&tree)?;
        Ok(Self { root, tree, _lock: lock })
    }

    /// Where the files are received.
    pub(super) fn tree(&self) -> &Path {
        &self.tree
    }

    /// A tree of its own for files that would overwrite others on their way in.
    pub(super) fn apart(&self, turn: usize) -> Result<PathBuf, TransferError> {
        let tree = self.root.join(format!("apart-{turn}"));
        private_dir(&tree)?;
        Ok(tree)
    }

    /// The whole folder.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// A file beside the tree, for a list of names.
    pub(super) fn list_path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Whether names that differ only by case, or by the form of an accent, are one file here, as on
    /// a Mac's usual disk.
    pub(super) fn is_name_blind(&self) -> Result<bool, TransferError> {
        let probe = self.root.join("Prob\u{e9}");
        fs::write(&probe, "").map_err(|error| TransferError::local("writing", &probe, error))?;
        Ok(["prob\u{e9}", "Probe\u{301}"].iter().any(|name| self.root.join(name).exists()))
    }

    /// Removes the folder, once everything has been put in place.
    pub(super) fn remove(&self) -> Result<(), TransferError> {
        fs::remove_dir_all(&self.root)
            .map_err(|error| TransferError::local("removing", &self.root, error))
    }
}

fn key(request: &PullRequest, local_dir: &Path) -> String {
    let mut hash = Sha256::new();
    for part in [
        request.target.pod_id.0.as_bytes(),
        request.remote_dir.as_bytes(),
        local_dir.as_os_str().as_bytes(),
    ] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex(&hash.finalize()[..8])
}

/// Makes a folder that only we can enter, or checks that it is one.
fn private_dir(path: &Path) -> Result<(), TransferError> {
    let failed = |error| TransferError::local("creating the private folder", path, error);
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(error)),
    }
    let meta = fs::symlink_metadata(path).map_err(failed)?;
    let is_ours = meta.is_dir()
        && meta.uid() == rustix::process::geteuid().as_raw()
        && meta.mode() & 0o077 == 0;
    if is_ours {
        return Ok(());
    }
    let why = io::Error::other("something else is there that others can get at; remove it");
    Err(failed(why))
}
