//! What was last seen to be equal on both sides: path, size, SHA-256, when, and by which marks a later
//! change of either side is known. It saves reading every byte on both sides at every pull, and it is
//! what a pull leaves behind as its manifest.

use super::PulledFile;
use super::manifest::{Manifest, Stamp};
use crate::digest::hex;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What changes whenever a file here does. Nobody can set an inode's time of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Here {
    size: u64,
    /// Nanoseconds of the Unix epoch, as text of two numbers would be longer.
    modified: (i64, i64),
    changed: (i64, i64),
    inode: u64,
}

impl Here {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let meta = fs::symlink_metadata(path)?;
        Ok(Self {
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
            inode: meta.ino(),
        })
    }

    /// Whether it is the same file after a rename, which only the inode's time of change shows.
    pub(super) fn is_renamed(&self, to: &Self) -> bool {
        Self { changed: to.changed, ..*self } == *to
    }
}

/// One file that was equal on both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    path: PathBuf,
    size: u64,
    sha256: String,
    /// When the hashes were compared.
    pub(super) verified_at: DateTime<Utc>,
    there: Stamp,
    here: Here,
}

impl Known {
    /// The file as a report tells of it; none when its name is no text.
    pub(super) fn told(&self) -> Option<PulledFile> {
        let path = self.path.to_str()?.to_owned();
        Some(PulledFile { path, bytes: self.size, sha256: self.sha256.clone() })
    }
}

/// The first line of the file.
#[derive(Serialize, Deserialize)]
struct Head {
    podtether_manifest: u32,
    pod_folder: String,
}

const VERSION: u32 = 1;

/// Everything that was equal.
#[derive(Debug, Default)]
pub(super) struct Verified {
    files: BTreeMap<PathBuf, Known>,
}

impl Verified {
    /// Reads what the pull before has left. What cannot be read is not trusted, and hashed again.
    pub(super) fn read(path: &Path, folder: &str) -> Self {
        let read = || -> Option<Self> {
            let mut lines = BufReader::new(fs::File::open(path).ok()?).lines();
            let head: Head = serde_json::from_str(&lines.next()?.ok()?).ok()?;
            if head.podtether_manifest != VERSION || head.pod_folder != folder {
                return None;
            }
            let mut files = BTreeMap::new();
            for line in lines {
                let known: Known = serde_json::from_str(&line.ok()?).ok()?;
                files.insert(known.path.clone(), known);
            }
            Some(Self { files })
        };
        read().unwrap_or_default()
    }

    /// Writes it anew, in one step.
    pub(super) fn write(&self, path: &Path, folder: &str) -> io::Result<()> {
        let parent = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent)?;
        let mut file = BufWriter::new(tempfile::NamedTempFile::new_in(parent)?);
        let head = Head { podtether_manifest: VERSION, pod_folder: folder.to_owned() };
        serde_json::to_writer(&mut file, &head)?;
        file.write_all(b"\n")?;
        for known in self.files.values() {
            // A name that is no text cannot be written, and is hashed every time.
            if known.path.to_str().is_some() {
                serde_json::to_writer(&mut file, known)?;
                file.write_all(b"\n")?;
            }
        }
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// What is known of a file, when neither side has changed since. `here` is where it lies now.
    pub(super) fn unchanged(
        &self,
        path: &Path,
        size: u64,
        there: &Stamp,
        here: &Path,
    ) -> Option<&Known> {
        let known = self.files.get(path)?;
        let same = known.size == size && known.there == *there;
        (same && Here::of(here).is_ok_and(|now| now == known.here)).then_some(known)
    }

    /// Takes up a file that was just found equal, unless it may still change without a trace.
    pub(super) fn add(
        &mut self,
        found: Found<'_>,
        manifest: &Manifest,
        settled: Duration,
        now: DateTime<Utc>,
    ) {
        if !manifest.is_settled(found.there, settled) {
            return;
        }
        let known = Known {
            path: found.path.to_owned(),
            size: found.size,
            sha256: hex(found.hash),
            verified_at: now,
            there: found.there.clone(),
            here: found.here,
        };
        self.files.insert(known.path.clone(), known);
    }

    /// Keeps what is known.
    pub(super) fn keep(&mut self, known: &Known) {
        self.files.insert(known.path.clone(), known.clone());
    }
}

/// A file that was found equal.
pub(super) struct Found<'a> {
    pub(super) path: &'a Path,
    pub(super) size: u64,
    pub(super) hash: &'a [u8; 32],
    pub(super) there: &'a Stamp,
    pub(super) here: Here,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_trusted_only_while_neither_side_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().join("a");
        fs::write(&here, "whole").unwrap();
        let manifest = Manifest { taken_at: 1000, ..Manifest::default() };
        let there = Stamp("10.5/10.5/7".to_owned());
        let mut verified = Verified::default();
        let found = |there| Found {
            path: Path::new("a"),
            size: 5,
            hash: &[0; 32],
            there,
            here: Here::of(&here).unwrap(),
        };
        let settled = Duration::from_secs(60);
        let young = Stamp("999.5/10.5/7".to_owned());
        verified.add(found(&young), &manifest, settled, DateTime::UNIX_EPOCH);
        assert!(verified.unchanged(Path::new("a"), 5, &young, &here).is_none());
        verified.add(found(&there), &manifest, settled, DateTime::UNIX_EPOCH);

        let file = folder.path().join("state/manifest.jsonl");
        verified.write(&file, "/w/jobs").unwrap();
        assert!(Verified::read(&file, "/w/other").files.is_empty());
        let read = Verified::read(&file, "/w/jobs");
        let trusts = |size, there: &Stamp| read.unchanged(Path::new("a"), size, there, &here);
        assert_eq!(trusts(5, &there).map(|known| known.verified_at), Some(DateTime::UNIX_EPOCH));
        assert!(trusts(6, &there).is_none() && trusts(5, &young).is_none());
        // Size and time put back as they were: the inode's own time tells.
        let time = fs::metadata(&here).unwrap().modified().unwrap();
        let start = fs::metadata(&here).unwrap().ctime_nsec();
        while fs::metadata(&here).unwrap().ctime_nsec() == start {
            fs::write(&here, "WHOLE").unwrap();
        }
        fs::File::options().write(true).open(&here).unwrap().set_modified(time).unwrap();
        assert!(read.unchanged(Path::new("a"), 5, &there, &here).is_none());

        fs::write(&file, "{\"podtether_manifest\":1,\"pod_folder\":\"/w/jobs\"}\n{").unwrap();
        assert!(Verified::read(&file, "/w/jobs").files.is_empty());
    }
}
