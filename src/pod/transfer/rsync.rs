//! The rsync on this machine: which family it is, and which options it really takes. Stock macOS
//! has openrsync, which calls itself "2.6.9 compatible" and rejects half of rsync 3's options (D04).

use super::TransferError;
use super::words::Words;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// Where a better rsync than the system's is found on a Mac, beside what PATH names.
const HOMEBREW: [&str; 2] = ["/opt/homebrew/bin", "/usr/local/bin"];

/// An rsync that does not answer within this is none.
const ANSWER: Duration = Duration::from_secs(10);

/// Whose rsync it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Apple's and OpenBSD's rewrite, protocol 29.
    OpenRsync,
    /// The original, by major and minor version.
    Rsync(u32, u32),
}

/// An rsync, with what it was seen to accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RsyncProgram {
    /// The program.
    pub path: PathBuf,
    /// Whose it is.
    pub family: Family,
    /// `-s`: paths travel inside the protocol.
    pub protects_args: bool,
    /// `--info=progress2 --no-inc-recursive`: one running total.
    pub total_progress: bool,
    /// `--compare-dest=DIR`: what is already here is not sent again.
    pub compare_dest: bool,
}

impl RsyncProgram {
    /// The best rsync of the folders in `path` (the value of PATH) and Homebrew's: the newest
    /// original one, else openrsync.
    ///
    /// # Errors
    /// [`TransferError::NoRsync`], naming where was looked.
    pub async fn probe(path: &OsStr) -> Result<Self, TransferError> {
        let mut folders: Vec<PathBuf> =
            std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
        for folder in HOMEBREW.map(PathBuf::from) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        let mut best: Option<Self> = None;
        for folder in &folders {
            let Some(found) = Self::inspect(&folder.join("rsync")).await else { continue };
            // Of two equal ones the first in PATH.
            if best.as_ref().is_none_or(|best| found.family > best.family) {
                best = Some(found);
            }
        }
        best.ok_or(TransferError::NoRsync { looked: folders })
    }

    /// Asks one program what it is and what it takes; `None` when it is no rsync.
    pub async fn inspect(path: &Path) -> Option<Self> {
        let meta = std::fs::metadata(path).ok()?;
        if !meta.is_file() || meta.permissions().mode() & 0o111 == 0 {
            return None;
        }
        let family = family(&run(path, &[OsStr::new("--version")]).await?.1)?;
        let mut found = Self {
            path: path.to_owned(),
            family,
            protects_args: true,
            total_progress: true,
            compare_dest: true,
        };
        // The options are tried and not looked up: builds and versions differ. A copy of an empty
        // folder tells.
        let folder = tempfile::tempdir().ok()?;
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::create_dir(&from).ok()?;
        std::fs::create_dir(&to).ok()?;
        let mut from = from.into_os_string();
        from.push("/");
        let takes = async |options: &[String]| {
            let mut words: Vec<&OsStr> = vec![OsStr::new("-rt")];
            words.extend(options.iter().map(OsStr::new));
            words.extend([OsStr::new("--"), &from, to.as_os_str()]);
            run(path, &words).await.is_some_and(|(succeeded, _)| succeeded)
        };
        if takes(&found.optional(Some(&to))).await {
            return Some(found);
        }
        let only = |protects_args, total_progress, compare_dest| {
            Self { protects_args, total_progress, compare_dest, ..found.clone() }
                .optional(Some(&to))
        };
        let alone = [only(true, false, false), only(false, true, false), only(false, false, true)];
        found.protects_args = takes(&alone[0]).await;
        found.total_progress = takes(&alone[1]).await;
        found.compare_dest = takes(&alone[2]).await;
        takes(&[]).await.then_some(found)
    }

    /// The options beyond the portable ones. `kept` is where earlier results are.
    pub(super) fn optional(&self, kept: Option<&Path>) -> Vec<String> {
        let mut options = Vec::new();
        if self.protects_args {
            options.push("-s".to_owned());
        }
        if self.total_progress {
            options.extend(["--info=progress2".to_owned(), "--no-inc-recursive".to_owned()]);
        }
        // An argument, so only a path that is text can be given.
        if let (true, Some(kept)) = (self.compare_dest, kept.and_then(Path::to_str)) {
            options.push(format!("--compare-dest={kept}"));
        }
        options
    }

    /// What it does to the words for its remote shell.
    pub(super) const fn words(&self) -> Words {
        if self.protects_args { Words::Plain } else { Words::Raw }
    }

    /// What somebody should know about this rsync: before 3.4.0 the original has published holes
    /// that a hostile pod could use, and openrsync takes files that nobody asked for. Received
    /// files are checked against the pod's list all the same.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        match self.family {
            Family::Rsync(major, minor) if (major, minor) < (3, 4) => Some(format!(
                "{} is rsync {major}.{minor}; 3.4.0 fixed holes that a hostile server can use (CVE-2024-12084 and others), unless your vendor has patched it; brew install rsync brings a new one",
                self.path.display()
            )),
            _ => None,
        }
    }
}

impl fmt::Display for RsyncProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.family {
            Family::OpenRsync => write!(f, "{} (openrsync)", self.path.display()),
            Family::Rsync(major, minor) => {
                write!(f, "{} (rsync {major}.{minor})", self.path.display())
            }
        }
    }
}

/// Reads the first lines of `--version`: "rsync  version 3.5.0  protocol version 32", or
/// "openrsync: protocol version 29" and beside it "rsync version 2.6.9 compatible".
fn family(text: &str) -> Option<Family> {
    if text.contains("openrsync") {
        return Some(Family::OpenRsync);
    }
    let version = text.split_once("version ")?.1;
    let mut numbers = version.trim_start_matches('v').split(|c: char| !c.is_ascii_digit());
    Some(Family::Rsync(numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Whether it succeeded, and its stdout.
async fn run(program: &Path, words: &[&OsStr]) -> Option<(bool, String)> {
    #[expect(clippy::disallowed_methods, reason = "asking the local rsync what it can do")]
    let mut command = Command::new(program);
    command.args(words).env_clear().stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(ANSWER, command.output()).await.ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some((output.status.success(), text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn fake(folder: &Path, body: &str) -> PathBuf {
        let path = folder.join("rsync");
        fs::write(&path, format!("#!/bin/bash\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// D04: the options are tested, not the banner.
    #[tokio::test]
    async fn a_stock_mac_rsync_gets_only_options_that_it_takes() {
        let folder = tempfile::tempdir().unwrap();
        let body = r#"[[ $1 == --version ]] && { printf 'openrsync: protocol version 29\nrsync version 2.6.9 compatible\n'; exit 0; }
for word; do case $word in -s|--info=*|--no-inc-recursive) echo "unknown option" >&2; exit 1;; esac; done"#;
        let found = RsyncProgram::inspect(&fake(folder.path(), body)).await.unwrap();
        assert_eq!(found.family, Family::OpenRsync);
        assert_eq!(
            (found.protects_args, found.total_progress, found.compare_dest),
            (false, false, true)
        );
        assert_eq!(found.words(), Words::Raw);
        assert_eq!(found.optional(Some(Path::new("/kept"))), ["--compare-dest=/kept"]);
    }

    #[tokio::test]
    async fn the_newest_rsync_is_taken_and_what_is_none_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut path = Vec::new();
        for (name, body) in [
            ("none", "exit 1"),
            ("old", "echo 'rsync  version 2.6.9  protocol version 29'"),
            ("new", "echo 'rsync  version 9.1.2  protocol version 99'"),
            ("same", "echo 'rsync  version v9.1.3  protocol version 99'"),
        ] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fake(&folder.path().join(name), body);
            path.push(folder.path().join(name));
        }
        let path = std::env::join_paths(path).unwrap();
        let found = RsyncProgram::probe(&path).await.unwrap();
        assert_eq!((found.family, found.warning()), (Family::Rsync(9, 1), None));
        assert!(found.path.ends_with("new/rsync"), "{found}");
    }
}
