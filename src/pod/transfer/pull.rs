//! The pull: list, receive, compare, receive again what differs, put in place.

use super::check::{Checked, check};
use super::manifest::{Check, Manifest};
use super::outcome::{Outcome, meaning};
use super::place::place;
use super::rsync_run::{Ended, RsyncRunner, Which};
use super::staging::Staging;
use super::{Carrier, Progress, PullReport, PullRequest, TransferError, tar, transport};
use crate::clock::{Clock as _, SystemClock};
use crate::domain::RemoteCommand;
use crate::pod::{ExecLimits, Shell, ShellErrorKind};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often a transfer whose link breaks is taken up again.
const ATTEMPTS: u32 = 3;
/// How long the list without hashes may take: it asks for every file's size.
const LISTING: Duration = Duration::from_secs(300);
/// The slowest that a network volume is expected to be read when it is hashed, in bytes a second.
const SLOWEST_HASHING: u64 = 30_000_000;
/// Files that are never empty when they are whole (D02).
const NEVER_EMPTY: [&str; 5] = ["pt", "pth", "ckpt", "safetensors", "onnx"];

/// Pulls a folder. `shell` leads to the same pod; it lists the folder, the files come over a
/// connection of their own. `progress` is called often.
///
/// # Errors
/// [`TransferError`] when nothing was put in place. Files that are missing or differ are no error
/// but an incomplete [`PullReport`].
pub async fn pull(
    request: &PullRequest,
    shell: &dyn Shell,
    mut progress: impl FnMut(Progress) + Send,
) -> Result<PullReport, TransferError> {
    let clock = SystemClock::new();
    refuse_odd_path(&request.remote_dir)?;
    let folder = request.remote_dir.as_str();
    // Before anything else: an empty source is what an unmounted volume looks like.
    let before = Manifest::of(shell, folder, Check::Sizes, LISTING).await?;
    if before.entries.is_empty() {
        return Err(TransferError::EmptyFolder { folder: folder.to_owned() });
    }
    let total_bytes = before.bytes();
    let local_dir = prepare(&request.local_dir)?;
    let staging = Arc::new(Staging::open(request, &local_dir)?);
    let case_blind = staging.is_case_blind()?;
    let mut run = Run {
        request,
        shell,
        staging: &staging,
        runner: match &request.rsync {
            Some(rsync) => Some(RsyncRunner::new(request, rsync)?),
            None => None,
        },
        total_bytes,
        received: 0,
        warnings: request.rsync.iter().filter_map(|rsync| rsync.warning()).collect(),
        breaks: 0,
    };

    run.receive(Which::All { kept: &local_dir }, &mut progress).await?;
    let compare = async |manifest: &Manifest| {
        let (manifest, tree) = (manifest.clone(), staging.tree().to_owned());
        let (local_dir, how) = (local_dir.clone(), request.check);
        tokio::task::spawn_blocking(move || check(&manifest, &tree, &local_dir, how, case_blind))
            .await
            .map_err(|error| TransferError::LocalDisk { detail: error.to_string() })?
    };
    let hashing = LISTING + Duration::from_secs(total_bytes / SLOWEST_HASHING);
    let mut manifest = Manifest::of(shell, folder, request.check, hashing).await?;
    let mut checked = compare(&manifest).await?;
    let mut snapshots = Vec::new();
    if !checked.bad.is_empty() {
        // Once more, only what differs, compared by content.
        let list = staging.list_path();
        write_list(&list, checked.bad.keys())?;
        run.receive(Which::Again(&list), &mut progress).await?;
        let earlier = manifest;
        manifest = Manifest::of(shell, folder, request.check, hashing).await?;
        checked = compare(&manifest).await?;
        // A file that the pod itself shows differently each time is being written. What came is
        // how it was at one moment, and better than nothing; what differs otherwise is damaged.
        let moving = |path: &&PathBuf| {
            earlier.entries.get(*path) != manifest.entries.get(*path)
                && staging.tree().join(path).is_file()
        };
        snapshots = checked.bad.keys().filter(moving).cloned().collect();
    }
    let Run { received, mut warnings, runner, .. } = run;
    let carrier = if runner.is_some() { Carrier::Rsync } else { Carrier::Tar };
    drop(runner);
    let placed = place(&checked, &snapshots, staging.tree(), &local_dir)?;

    warnings.extend(sentences(&checked, &snapshots, &manifest));
    let mut missing: Vec<String> = checked.bad.keys().map(|path| shown(path)).collect();
    for (path, why) in &placed.refused {
        warnings.push(format!("{} was not put in place: {why}", shown(path)));
        if !checked.folders.contains(path) {
            missing.push(shown(path));
        }
    }
    let complete = missing.is_empty();
    if complete {
        staging.remove()?;
    }
    Ok(PullReport {
        files: placed.files,
        bytes: placed.bytes,
        received_bytes: received,
        complete,
        missing,
        warnings,
        carrier,
        elapsed: clock.monotonic(),
    })
}

struct Run<'a> {
    request: &'a PullRequest,
    shell: &'a dyn Shell,
    staging: &'a Arc<Staging>,
    /// `None` once it is clear that one side has no rsync.
    runner: Option<RsyncRunner<'a>>,
    total_bytes: u64,
    received: u64,
    warnings: Vec<String>,
    breaks: u32,
}

impl Run<'_> {
    async fn receive(
        &mut self,
        which: Which<'_>,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<(), TransferError> {
        let mut was_partial = false;
        loop {
            let Some(runner) = &self.runner else {
                let result =
                    tar::receive(self.request, self.staging, self.total_bytes, progress).await;
                match result {
                    Ok(bytes) => {
                        self.received += bytes;
                        return Ok(());
                    }
                    Err(TransferError::Shell(error)) if error.kind == ShellErrorKind::Lost => {
                        self.broke(error.to_string()).await?;
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            };
            let ended = runner.run(which, self.staging, self.total_bytes, progress).await?;
            self.received += ended.received_bytes.unwrap_or(0);
            match ended.outcome {
                Outcome::Done => return Ok(()),
                Outcome::Vanished => {
                    self.warnings
                        .push("files vanished on the pod while they were pulled".to_owned());
                    return Ok(());
                }
                Outcome::Partial if was_partial => {
                    self.warnings.push(format!("rsync: {}", ended.stderr));
                    return Ok(());
                }
                Outcome::Partial => was_partial = true,
                Outcome::Stream if !self.pod_has_rsync().await? => {
                    self.warnings.push(
                        "the pod has no rsync, so tar was used, which cannot resume; apt-get install rsync on the pod"
                            .to_owned(),
                    );
                    self.runner = None;
                }
                Outcome::Stream | Outcome::Link => self.broke_with(&ended).await?,
                Outcome::LocalDisk => {
                    return Err(TransferError::LocalDisk { detail: ended.stderr });
                }
                Outcome::Interrupted => return Err(TransferError::Interrupted),
                Outcome::Ours => {
                    let code = ended.code.unwrap_or(-1);
                    return Err(TransferError::Program {
                        program: "rsync".to_owned(),
                        code,
                        meaning: meaning(code),
                        detail: ended.stderr,
                    });
                }
            }
        }
    }

    async fn pod_has_rsync(&self) -> Result<bool, TransferError> {
        let limits =
            ExecLimits { timeout: Duration::from_secs(30), stdout_bytes: 200, stderr_bytes: 200 };
        let asked = RemoteCommand::shell_line("command -v rsync");
        Ok(self.shell.run(&asked, limits).await?.succeeded())
    }

    async fn broke_with(&mut self, ended: &Ended) -> Result<(), TransferError> {
        let code = ended.code.unwrap_or(-1);
        let detail = format!("{} (exit code {code}): {}", meaning(code), ended.stderr);
        // Some failures of the transport would only repeat themselves.
        match transport::kind_in(&ended.stderr) {
            Some(ShellErrorKind::HostKey | ShellErrorKind::Auth | ShellErrorKind::Local) => {
                Err(TransferError::Link { attempts: self.breaks + 1, detail })
            }
            _ => self.broke(detail).await,
        }
    }

    /// Waits before the next attempt, or gives up.
    async fn broke(&mut self, detail: String) -> Result<(), TransferError> {
        self.breaks += 1;
        if self.breaks >= ATTEMPTS {
            return Err(TransferError::Link { attempts: self.breaks, detail });
        }
        tokio::time::sleep(Duration::from_secs(1 << (self.breaks - 1))).await;
        Ok(())
    }
}

/// Refuses what rsync would not take literally, and what nobody means (D08).
fn refuse_odd_path(path: &str) -> Result<(), TransferError> {
    let why = if !path.starts_with('/') {
        "it has to be absolute"
    } else if path.trim_matches('/').is_empty() {
        "that is the whole pod"
    } else if path.split('/').any(|part| part == "..") {
        "it leads up"
    } else if path.contains(['*', '?', '[', '\\']) {
        "the rsync on the pod would expand wildcards"
    } else if path.chars().any(char::is_control) {
        "it holds a control character"
    } else {
        return Ok(());
    };
    Err(TransferError::BadRemotePath { path: path.to_owned(), why })
}

/// Makes the folder and returns its absolute path.
fn prepare(local_dir: &Path) -> Result<PathBuf, TransferError> {
    let failed = |error| TransferError::local("creating", local_dir, error);
    fs::create_dir_all(local_dir).map_err(failed)?;
    fs::canonicalize(local_dir).map_err(failed)
}

fn write_list<'a>(
    list: &Path,
    paths: impl Iterator<Item = &'a PathBuf>,
) -> Result<(), TransferError> {
    let mut text = Vec::new();
    for path in paths {
        // A name may begin with what rsync would take for a comment or an option.
        text.extend_from_slice(b"./");
        text.extend_from_slice(path.as_os_str().as_bytes());
        text.push(0);
    }
    fs::write(list, text).map_err(|error| TransferError::local("writing", list, error))
}

fn sentences(checked: &Checked, snapshots: &[PathBuf], manifest: &Manifest) -> Vec<String> {
    let mut said = Vec::new();
    for (path, why) in &checked.bad {
        if snapshots.contains(path) {
            said.push(format!("{} is still being written; this is how it was", shown(path)));
        } else {
            said.push(format!("{} is missing: {why}", shown(path)));
        }
    }
    for (path, why) in &checked.left_out {
        said.push(format!("{} was left out: {why}", shown(path)));
    }
    // rsync's own leftovers of an interrupted run begin with a dot and end in six letters.
    let strangers = checked.unasked.iter().filter(|path| !is_leftover(path)).count();
    if strangers > 0 {
        said.push(format!("{strangers} files that the pod does not list were left out"));
    }
    for (path, entry) in &manifest.entries {
        let never_empty = path
            .extension()
            .and_then(OsStr::to_str)
            .is_some_and(|extension| NEVER_EMPTY.contains(&extension));
        if never_empty && matches!(entry, super::manifest::Entry::File { size: 0, .. }) {
            said.push(format!("{} is empty on the pod", shown(path)));
        }
    }
    said
}

fn is_leftover(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(OsStr::to_str) else { return false };
    let Some((_, suffix)) = name.strip_prefix('.').and_then(|rest| rest.rsplit_once('.')) else {
        return false;
    };
    suffix.len() == 6 && suffix.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pull_can_be_spawned() {
        fn is_send<T: Send>(_: impl FnOnce(PullRequest, Box<dyn Shell>) -> T) {}
        is_send(async |request: PullRequest, shell: Box<dyn Shell>| {
            pull(&request, &*shell, |_| {}).await
        });
    }

    /// D08: nothing that could mean another folder is handed on.
    #[test]
    fn a_remote_path_is_absolute_and_taken_literally() {
        for path in ["", "/", "//", "jobs", "~/x", "/x/../y", "/x/*", "/a[b]", "/a\\b", "/a\nb"] {
            assert!(refuse_odd_path(path).is_err(), "{path:?}");
        }
        for path in ["/workspace/jobs/a b", "/w/it's $(x)", "/w/-n", "/w/..x", "/w/x "] {
            assert!(refuse_odd_path(path).is_ok(), "{path:?}");
        }
    }
}
