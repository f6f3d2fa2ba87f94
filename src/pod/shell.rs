//! A pod's shell: the port that everything on a pod goes through.

use crate::domain::{Pod, RemoteCommand, Vehicle};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

/// Bounds of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecLimits {
    /// How long to wait for it. When it passes, the command on the pod may live on.
    pub timeout: Duration,
    /// How many bytes of stdout are kept, from the end.
    pub stdout_bytes: usize,
    /// How many bytes of stderr are kept, from the end.
    pub stderr_bytes: usize,
}

/// The end of a stream, and how long the whole of it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The last bytes.
    pub bytes: Vec<u8>,
    /// Length of the whole stream in bytes.
    pub total: u64,
}

impl Captured {
    /// Whether bytes at the start were dropped.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.total > self.bytes.len() as u64
    }

    /// The text; invalid UTF-8 is replaced, never an error (G09).
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecStatus {
    /// With an exit code.
    Code(u32),
    /// By a signal, such as `KILL`.
    Signal(String),
}

/// A command that ran to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecOutput {
    /// How it ended.
    pub status: ExecStatus,
    /// What it wrote on stdout.
    pub stdout: Captured,
    /// What it wrote on stderr.
    pub stderr: Captured,
}

impl ExecOutput {
    /// Whether it ended with exit code 0.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.status == ExecStatus::Code(0)
    }
}

/// Kinds of failure of the way to a pod, kept apart because they call for different advice (F06).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShellErrorKind {
    /// The provider names no direct SSH endpoint (F08: the proxy is never used instead).
    NoEndpoint,
    /// Nobody listens at the address.
    Refused,
    /// The address does not answer, or not in time.
    Unreachable,
    /// Something answers that is no SSH server, or speaks none of our algorithms.
    Handshake,
    /// The server shows another host key than the one pinned for this boot.
    HostKey,
    /// What answers there is not the pod, or has not shown that it is. It was sent nothing else.
    Identity,
    /// The server does not accept our key.
    Auth,
    /// Our own key file or known_hosts file cannot be used.
    Local,
    /// The connection was lost. The command may or may not have run, and may still run (F04).
    Lost,
    /// The command did not end in time. It may still run.
    Timeout,
}

/// A command that could not be run to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{tried} failed: {detail}")]
pub struct ShellError {
    /// The kind.
    pub kind: ShellErrorKind,
    /// What was tried.
    pub tried: String,
    /// Why it failed.
    pub detail: String,
}

/// The pod's shell.
#[async_trait]
pub trait Shell: Send + Sync {
    /// Runs one command to its end and captures what it writes.
    async fn run(
        &self,
        command: &RemoteCommand,
        limits: ExecLimits,
    ) -> Result<ExecOutput, ShellError>;
}

/// Where the shells of pods come from: SSH, unless somebody else stands in for the pods.
pub trait Shells: Send + Sync {
    /// The shell of a pod as the provider tells it now.
    ///
    /// # Errors
    /// When the provider names no way to it. Nothing is connected yet.
    fn of(&self, vehicle: &Vehicle, pod: &Pod) -> Result<Arc<dyn Shell>, ShellError>;
}
