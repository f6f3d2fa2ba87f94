//! `podtether transport`: the remote shell that rsync is given. It pipes its stdin and stdout
//! through one SSH channel on a connection of its own, so that files come under the same host-key
//! policy as everything else and no system ssh is needed.

use super::stdio;
use super::stream_mark::{AfterMark, behind_mark};
use super::words::{Words, command_line};
use crate::pod::ssh::{Connection, SshTarget, Tuning, signal_text};
use crate::pod::{ShellError, ShellErrorKind};
use bytes::BytesMut;
use russh::ChannelMsg;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// The environment variable with the path of the settings file. Not in argv, since rsync splits
/// that at spaces in ways that differ from version to version.
pub const SETTINGS_ENV: &str = "PODTETHER_TRANSPORT";

/// The exit code of a transport that failed, as ssh has it.
pub const FAILED: u8 = 255;

/// How every error line of the transport starts; the kind follows, then the words.
pub(super) const PREFIX: &str = "podtether transport: ";

/// What rsync itself says to keep a connection alive is a few bytes; more than this in one look
/// counts as progress.
const NOISE: u64 = 1024;

/// What the transport is told by whoever started rsync.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct TransportSettings {
    /// Where to.
    pub target: SshTarget,
    /// How.
    pub tuning: Tuning,
    /// What rsync does to its words.
    pub words: Words,
    /// Without progress for this long, the transport gives up. rsync's own `--timeout` does not
    /// see a remote rsync that stands still: its own keep-alives count as activity.
    pub stall: Duration,
}

impl TransportSettings {
    /// Reads the settings file, which only we may be able to read.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn read(path: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| format!("reading {}: {error}", path.display());
        let mut file = fs::File::open(path).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        if meta.mode() & 0o077 != 0 || meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(format!("{} has to be mode 600 and your own", path.display()));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        serde_json::from_str(&text).map_err(|error| format!("reading {}: {error}", path.display()))
    }
}

/// Runs the remote command that `words` hold and returns the exit code for rsync: the command's
/// own, or [`FAILED`] after one line on stderr.
pub async fn run(settings: &TransportSettings, words: &[OsString]) -> u8 {
    match pipe(settings, words).await {
        Ok(code) => code,
        Err(error) => {
            let line = format!("{PREFIX}{:?}: {error}", error.kind);
            let _ = writeln!(io::stderr(), "{}", line.replace(['\r', '\n'], " "));
            FAILED
        }
    }
}

/// The kind that a line of [`run`] on stderr names.
pub(super) fn kind_in(stderr: &str) -> Option<ShellErrorKind> {
    let after = stderr.rsplit_once(PREFIX)?.1;
    let name = after.split(':').next()?;
    [
        ShellErrorKind::Refused,
        ShellErrorKind::Unreachable,
        ShellErrorKind::Handshake,
        ShellErrorKind::HostKey,
        ShellErrorKind::Identity,
        ShellErrorKind::Auth,
        ShellErrorKind::Local,
        ShellErrorKind::Lost,
        ShellErrorKind::Timeout,
    ]
    .into_iter()
    .find(|kind| format!("{kind:?}") == name)
}

/// How much is read from rsync at once, in bytes.
const CHUNK: usize = 256 << 10;

/// How many bytes have moved.
#[derive(Default)]
pub(super) struct Moved {
    from_pod: AtomicU64,
    to_pod: AtomicU64,
}

impl Moved {
    /// Counts bytes that came; returns their sum.
    pub(super) fn add_from_pod(&self, bytes: usize) -> u64 {
        self.from_pod.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64
    }

    pub(super) fn received(&self) -> u64 {
        self.from_pod.load(Ordering::Relaxed)
    }
}

async fn pipe(settings: &TransportSettings, words: &[OsString]) -> Result<u8, ShellError> {
    let fault = |kind, detail: String| ShellError {
        kind,
        tried: format!("transport to {}", settings.target.endpoint),
        detail,
    };
    let (user, line) = command_line(words, settings.words)
        .map_err(|detail| fault(ShellErrorKind::Local, detail))?;
    if user.is_some_and(|user| user != settings.target.endpoint.user) {
        let detail = format!("the user has to be {}", settings.target.endpoint.user);
        return Err(fault(ShellErrorKind::Local, detail));
    }
    let connection = Connection::connect_pinned(&settings.target, &settings.tuning).await?;
    let running =
        connection.start(behind_mark(&line), "rsync").await.map_err(|not_started| not_started.0)?;
    let Some(mut ends) = running.into_ends() else {
        return Err(fault(ShellErrorKind::Lost, connection.lost()));
    };
    let (mut input, mut output) = (stdio::stdin(), stdio::stdout());
    let moved = Moved::default();

    let writer = ends.writer;
    let up = async {
        let mut chunk = BytesMut::new();
        loop {
            chunk.reserve(CHUNK);
            let Ok(length @ 1..) = input.read_buf(&mut chunk).await else { break };
            if writer.data_bytes(chunk.split().freeze()).await.is_err() {
                break;
            }
            moved.to_pod.fetch_add(length as u64, Ordering::Relaxed);
        }
        let _ = writer.eof().await;
        // The end comes from the other side.
        std::future::pending::<()>().await;
    };
    let down = async {
        let mut code = None;
        let mut mark = AfterMark::default();
        loop {
            match ends.reader.wait().await {
                Some(ChannelMsg::Data { data }) => {
                    moved.add_from_pod(data.len());
                    let data = mark
                        .take(data)
                        .map_err(|detail| fault(ShellErrorKind::Handshake, detail))?;
                    // Whoever read our stdout is gone: rsync was stopped.
                    let written = output.write_all(&data).await;
                    written.map_err(|error| {
                        fault(ShellErrorKind::Local, format!("rsync no longer reads: {error}"))
                    })?;
                }
                Some(ChannelMsg::ExtendedData { data, .. }) => {
                    let _ = io::stderr().write_all(&data);
                }
                Some(ChannelMsg::ExitStatus { exit_status }) => code = Some(exit_status),
                Some(ChannelMsg::ExitSignal { signal_name, .. }) => {
                    let detail = format!("the remote rsync died of {}", signal_text(&signal_name));
                    return Err(fault(ShellErrorKind::Lost, detail));
                }
                Some(ChannelMsg::Failure) => {
                    let detail = "the server does not run commands for this user".to_owned();
                    return Err(fault(ShellErrorKind::Auth, detail));
                }
                Some(ChannelMsg::Close) | None => break,
                Some(_) => {}
            }
        }
        let _ = output.flush().await;
        match code {
            Some(code) => Ok(u8::try_from(code).unwrap_or(FAILED)),
            None => Err(fault(ShellErrorKind::Lost, connection.lost())),
        }
    };
    let end = tokio::select! {
        end = down => end,
        () = up => Ok(FAILED),
        () = stalled(&moved, settings.stall) => Err(fault(
            ShellErrorKind::Lost,
            format!("no progress for {} s", settings.stall.as_secs_f32()),
        )),
    };
    connection.disconnect().await;
    end
}

/// Ends once nothing has moved for `limit`.
pub(super) async fn stalled(moved: &Moved, limit: Duration) {
    const LOOKS: u32 = 4;
    let mut quiet = 0;
    let mut before = (0, 0);
    while quiet < LOOKS {
        tokio::time::sleep(limit / LOOKS).await;
        let now = (moved.received(), moved.to_pod.load(Ordering::Relaxed));
        let is_quiet = now.0 == before.0 && now.1 - before.1 <= NOISE;
        quiet = if is_quiet { quiet + 1 } else { 0 };
        before = now;
    }
}
