//! Where things lie in the state folder of a local cloud.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The state folder. Everything of a local cloud is below it.
#[derive(Clone, Debug)]
pub struct Paths {
    root: PathBuf,
}

impl Paths {
    /// The folder `root`, created for this user alone and without symbolic links in its name:
    /// macOS hands out temporary folders below a link.
    pub fn create(root: &Path) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(root)?;
        let paths = Self { root: root.canonicalize()? };
        for folder in ["pods", "volumes", "mnt"] {
            std::fs::create_dir_all(paths.root.join(folder))?;
        }
        Ok(paths)
    }

    /// The folder `root` as it is, which may not exist.
    pub fn of(root: &Path) -> Self {
        Self { root: root.canonicalize().unwrap_or_else(|_| root.to_owned()) }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Locked while a daemon serves this folder.
    pub fn lock(&self) -> PathBuf {
        self.root.join("daemon.lock")
    }

    /// Locked while somebody starts a daemon.
    pub fn start_lock(&self) -> PathBuf {
        self.root.join("start.lock")
    }

    /// Address and key of the daemon.
    pub fn daemon(&self) -> PathBuf {
        self.root.join("daemon.json")
    }

    pub fn daemon_log(&self) -> PathBuf {
        self.root.join("daemon.log")
    }

    /// Pods, volumes and what they cost.
    pub fn document(&self) -> PathBuf {
        self.root.join("cloud.json")
    }

    pub fn requests(&self) -> PathBuf {
        self.root.join("requests.jsonl")
    }

    /// Below it lie the paths at which pods mount volumes.
    pub fn mounts(&self) -> PathBuf {
        self.root.join("mnt")
    }

    pub fn volume(&self, id: &str) -> PathBuf {
        self.root.join("volumes").join(id)
    }

    pub fn pod(&self, id: &str) -> PathBuf {
        self.root.join("pods").join(id)
    }
}

/// Replaces `path` by `text` in one step, readable by this user alone.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut file, text.as_bytes())?;
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Opens a file to be locked, readable by this user alone.
pub fn open_lock(path: &Path) -> io::Result<std::fs::File> {
    std::fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)
}
