//! Files from a pod: received into a private staging folder, compared with the pod's own list,
//! then renamed into place. Nothing local is ever deleted, and an interrupted pull goes on where
//! it was.

mod apart;
mod check;
mod manifest;
mod outcome;
mod place;
mod pull;
mod pulls;
mod receive;
mod remote_rsync;
mod room;
mod rsync;
mod rsync_run;
mod say;
mod staging;
mod stdio;
mod stream_mark;
mod tar;
pub mod transport;
mod verified;
mod words;

pub use manifest::{Check, MANIFEST, Marker};
pub use pull::pull;
pub use pulls::{OverSsh, Pulls};
pub use rsync::{Family, RsyncProgram};
pub use words::Words;

use crate::pod::ShellError;
use crate::pod::ssh::{SshTarget, Tuning};
use chrono::{DateTime, Utc};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to pull, from where to where.
#[derive(Clone, Debug)]
pub struct PullRequest {
    /// The pod.
    pub target: SshTarget,
    /// How its connections behave; the transfer makes its own.
    pub tuning: Tuning,
    /// This very program, which rsync is given as its remote shell.
    pub program: PathBuf,
    /// The local rsync; without one, tar over SSH does it, which cannot resume.
    pub rsync: Option<RsyncProgram>,
    /// The folder on the pod, absolute. Its content comes, not the folder itself.
    pub remote_dir: String,
    /// Where its content goes.
    pub local_dir: PathBuf,
    /// Where the staging folder is made; has to be on the file system of `local_dir`. `None` means
    /// beside `local_dir`.
    pub staging_root: Option<PathBuf>,
    /// How closely the result is compared with what the pod has.
    pub check: Check,
    /// A transfer without progress for this long is ended and tried again.
    pub stall: Duration,
    /// A file that proves that the volume is mounted and the right one; `None` asks for none.
    pub marker: Option<Marker>,
    /// Where the manifest of what was equal on both sides is kept from pull to pull. `None`, or a
    /// file that is not there, has every file hashed.
    pub manifest: Option<PathBuf>,
    /// Whether to hash every file, also those that have not changed since they were equal.
    pub rehash: bool,
    /// How long ago a file's last change has to be before it may be taken for unchanged by its
    /// times: clocks of file systems tick, and those of file servers differ from the pod's.
    pub settled: Duration,
    /// Bytes that have to stay free here.
    pub keep_free: u64,
    /// Whether names that differ only by case, or by the form of an accent, are one file here; `None`
    /// finds out.
    pub name_blind: Option<bool>,
}

impl PullRequest {
    /// A pull that is checked by hashes, staged beside `local_dir`.
    #[must_use]
    pub const fn new(
        target: SshTarget,
        tuning: Tuning,
        program: PathBuf,
        rsync: Option<RsyncProgram>,
        remote_dir: String,
        local_dir: PathBuf,
    ) -> Self {
        Self {
            target,
            tuning,
            program,
            rsync,
            remote_dir,
            local_dir,
            staging_root: None,
            check: Check::Hashes,
            stall: Duration::from_secs(120),
            marker: None,
            manifest: None,
            rehash: false,
            settled: Duration::from_secs(60),
            keep_free: 100 << 20,
            name_blind: None,
        }
    }
}

/// How far a pull is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of files that this attempt has gone through.
    pub bytes: u64,
    /// Bytes of all files that the pod had when the pull began, those that are here already among
    /// them.
    pub total_bytes: u64,
    /// Files that this attempt has brought; tar does not tell.
    pub files: u64,
    /// All files that the pod had when the pull began.
    pub total_files: u64,
}

impl fmt::Display for Progress {
    /// For people: `12.0 of 345.6 MB, 3 of 20 files`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = |bytes: u64| (bytes / 1_000_000, bytes / 100_000 % 10);
        let ((here, part), (all, rest)) = (tenths(self.bytes), tenths(self.total_bytes));
        write!(f, "{here}.{part} of {all}.{rest} MB")?;
        match self.files {
            0 => write!(f, ", {} files in all", self.total_files),
            files => write!(f, ", {files} of {} files", self.total_files),
        }
    }
}

/// What carried the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// rsync.
    Rsync,
    /// tar, since one side has no rsync.
    Tar,
}

/// A file that is here and the same as on the pod, by SHA-256.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PulledFile {
    /// Its path relative to the folder, as the pod has it.
    pub path: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its SHA-256 in hex.
    pub sha256: String,
}

/// What a pull brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullReport {
    /// Files that were put in place by this pull.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Bytes that came over the network. A run that broke off does not tell and is not counted.
    pub received_bytes: u64,
    /// Whether every file that the pod has is here and the same.
    pub complete: bool,
    /// Paths, relative to the folder, of files that are not here, or not as the pod has them.
    pub missing: Vec<String>,
    /// What somebody should know, one sentence each.
    pub warnings: Vec<String>,
    /// Files that were compared by SHA-256 in this pull and found equal.
    pub hashed: u64,
    /// All files that were compared by SHA-256, now or by an earlier pull and unchanged since. Those
    /// whose names are no text are left out.
    pub equal: Vec<PulledFile>,
    /// Files that neither side has changed since they were compared so by an earlier pull.
    pub unchanged: u64,
    /// When the first of those was compared.
    pub unchanged_since: Option<DateTime<Utc>>,
    /// What carried them.
    pub carrier: Carrier,
    /// How long it took.
    pub elapsed: Duration,
}

/// Why nothing was put in place. What has come so far waits in the staging folder.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// A remote path that is not safe to hand to rsync, or not meant (D08).
    #[error("cannot pull {path:?}: {why}")]
    BadRemotePath {
        /// The path.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The folder is not on the pod.
    #[error("the pod has no folder {folder}; is the network volume mounted?")]
    NoSuchFolder {
        /// The folder.
        folder: String,
    },
    /// The folder is empty, which is what a volume that is not mounted looks like (D08).
    #[error("{folder} on the pod is empty; nothing was pulled")]
    EmptyFolder {
        /// The folder.
        folder: String,
    },
    /// The volume's marker is not there, which is how a volume looks that is not mounted (D08).
    #[error(
        "the volume on which {folder} should be is not mounted on the pod, or is another one ({detail}); nothing was pulled"
    )]
    NotMounted {
        /// The folder.
        folder: String,
        /// What was found instead.
        detail: String,
    },
    /// Not enough room here. Nothing was moved.
    #[error(
        "{} has room for {free} bytes; {missing} are to come and {keep_free} are to stay free, so nothing was pulled",
        folder.display()
    )]
    NoRoom {
        /// The local folder.
        folder: PathBuf,
        /// Bytes that are not here yet.
        missing: u64,
        /// Bytes that have to stay free.
        keep_free: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The pod could not list the folder.
    #[error("the pod could not list {folder}: {detail}")]
    NotListed {
        /// The folder.
        folder: String,
        /// What it said.
        detail: String,
    },
    /// No rsync that works.
    #[error("no working rsync in {}; brew install rsync, or apt install rsync", list(looked))]
    NoRsync {
        /// The folders that were searched.
        looked: Vec<PathBuf>,
    },
    /// The pod's shell failed.
    #[error(transparent)]
    Shell(#[from] ShellError),
    /// The way to the pod failed time after time.
    #[error(
        "the transfer broke {attempts} times, last because {detail}; what has come is kept, pull again to go on"
    )]
    Link {
        /// How often it was tried.
        attempts: u32,
        /// rsync's or the transport's words.
        detail: String,
    },
    /// This side could not be written.
    #[error("cannot write here: {detail}")]
    LocalDisk {
        /// What failed.
        detail: String,
    },
    /// Somebody stopped it.
    #[error("the transfer was interrupted; what has come is kept, pull again to go on")]
    Interrupted,
    /// rsync or tar refused, for a reason that trying again does not mend.
    #[error("{program} failed with exit code {code}, which means that {meaning}: {detail}")]
    Program {
        /// Which program.
        program: String,
        /// Its exit code.
        code: i32,
        /// What the code means.
        meaning: &'static str,
        /// The end of its stderr.
        detail: String,
    },
    /// Another pull into the same folder is at work.
    #[error("another pull of the same folder is at work in {}", staging.display())]
    Busy {
        /// Its staging folder.
        staging: PathBuf,
    },
    /// A local file operation.
    #[error("{doing} {}: {source}", path.display())]
    Local {
        /// What was tried.
        doing: &'static str,
        /// The path.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl TransferError {
    fn local(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Local { doing, path: path.to_owned(), source }
    }
}

fn list(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}
