//! Receiving: runs rsync, or tar where one side has no rsync, and does what each end calls for.

use super::outcome::{Outcome, meaning};
use super::rsync_run::{Ended, RsyncRunner, Which};
use super::staging::Staging;
use super::{Carrier, Progress, PullRequest, TransferError, remote_rsync, tar, transport};
use crate::pod::{Shell, ShellErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often a transfer whose link breaks is taken up again.
const ATTEMPTS: u32 = 3;

/// One pull's way to its files.
pub(super) struct Receiver<'a> {
    request: &'a PullRequest,
    shell: &'a dyn Shell,
    staging: Arc<Staging>,
    /// `None` once it is clear that one side has no rsync.
    runner: Option<RsyncRunner<'a>>,
    /// What there is in all.
    of: Progress,
    /// Bytes that came over the network.
    pub(super) received: u64,
    /// What somebody should know.
    pub(super) warnings: Vec<String>,
    breaks: u32,
    has_installed: bool,
}

impl<'a> Receiver<'a> {
    pub(super) fn new(
        request: &'a PullRequest,
        shell: &'a dyn Shell,
        staging: Arc<Staging>,
        of: Progress,
    ) -> Result<Self, TransferError> {
        let mut warnings: Vec<String> =
            request.rsync.iter().filter_map(|rsync| rsync.warning()).collect();
        let runner = match &request.rsync {
            Some(rsync) => Some(RsyncRunner::new(request, rsync)?),
            None => {
                warnings.push(
                    "there is no rsync here, so tar was used, which cannot resume; brew install rsync, or apt install rsync"
                        .to_owned(),
                );
                None
            }
        };
        Ok(Self {
            request,
            shell,
            staging,
            runner,
            of,
            received: 0,
            warnings,
            breaks: 0,
            has_installed: false,
        })
    }

    pub(super) const fn carrier(&self) -> Carrier {
        if self.runner.is_some() { Carrier::Rsync } else { Carrier::Tar }
    }

    /// Receives into `tree`. `rest` is the list of what is not here yet, for tar, which compares
    /// nothing itself.
    pub(super) async fn receive(
        &mut self,
        which: Which<'_>,
        rest: &Path,
        tree: &Path,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<(), TransferError> {
        let mut was_partial = false;
        loop {
            let Some(runner) = &self.runner else {
                match tar::receive(self.request, rest, tree, self.of, progress).await {
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
            let ended = runner.run(which, tree, &self.staging, self.of, progress).await?;
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
                Outcome::Stream if !remote_rsync::is_there(self.shell).await? => {
                    self.bring_rsync_back().await;
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
                        meaning: meaning(code, &ended.stderr),
                        detail: ended.stderr,
                    });
                }
            }
        }
    }

    /// D05: installed again once; then tar.
    async fn bring_rsync_back(&mut self) {
        let installed = match self.has_installed {
            true => Err("it was installed and is gone again".to_owned()),
            false => remote_rsync::install(self.shell).await,
        };
        self.has_installed = true;
        match installed {
            Ok(()) => self.warnings.push(
                "the pod had no rsync, since a stop empties its container disk; it was installed again"
                    .to_owned(),
            ),
            Err(why) => {
                self.warnings.push(format!(
                    "the pod has no rsync and it could not be installed ({why}), so tar was used, which cannot resume"
                ));
                self.runner = None;
            }
        }
    }

    async fn broke_with(&mut self, ended: &Ended) -> Result<(), TransferError> {
        let code = ended.code.unwrap_or(-1);
        let meaning = meaning(code, &ended.stderr);
        let detail = format!("{meaning} (exit code {code}): {}", ended.stderr);
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
