//! Where things lie in the state folder of a local cloud.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

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

    /// The place of a mount path, which must lie below [`Self::mounts`]; `None` when it does not.
    /// The folder may be spelt through a link, as the temporary folders of macOS are.
    pub fn mount_point(&self, path: &str) -> Option<PathBuf> {
        let path = Path::new(path);
        let plain = path.components().all(|part| part != Component::ParentDir);
        if !path.is_absolute() || !plain {
            return None;
        }
        let (real, rest) = path.ancestors().skip(1).find_map(|ancestor| {
            let rest = path.strip_prefix(ancestor).ok()?;
            Some((ancestor.canonicalize().ok()?, rest))
        })?;
        let point = real.join(rest);
        (point.starts_with(self.mounts()) && point != self.mounts()).then_some(point)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_below_the_mounts_is_a_mount_point() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::create(&folder.path().join("state")).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(paths.root(), &link).unwrap();
        let point = |path: &Path| paths.mount_point(path.to_str().unwrap());
        let mounts = paths.mounts();
        for (path, expected) in [
            (mounts.join("workspace"), Some(mounts.join("workspace"))),
            (mounts.join("rover/workspace"), Some(mounts.join("rover/workspace"))),
            (link.join("mnt/workspace"), Some(mounts.join("workspace"))),
            (mounts.clone(), None),
            (mounts.join("../pods/x"), None),
            (paths.root().join("pods/x"), None),
            (PathBuf::from("/workspace"), None),
            (PathBuf::from("mnt/workspace"), None),
        ] {
            assert_eq!(point(&path), expected, "{}", path.display());
        }
        // What is below a mounted volume is on the volume.
        std::os::unix::fs::symlink(paths.root().join("volumes"), mounts.join("data")).unwrap();
        assert_eq!(point(&mounts.join("data/below")), None);
        assert_eq!(point(&mounts.join("data")), Some(mounts.join("data")));
    }
}
