//! One command on a pod: a bash whose stdin, stdout, stderr and end go over an SSH channel.

use super::folder::bash;
use super::host::Pod;
use crate::cloud::local::faults::NOISY_SHELL;
use crate::digest::hex;
use bytes::{Bytes, BytesMut};
use russh::server::Handle;
use russh::{ChannelId, Sig};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;

/// From here on a sender is held back, in bytes that the command has not read yet.
const BEHIND: usize = 8 << 20;
/// A sender that does not care is cut off here.
const MOST_QUEUED: usize = 64 << 20;

/// What the start-up files of a talkative image write.
const GREETING: &[u8] = b"Enjoy your Pod #42! NVIDIA_VISIBLE_DEVICES=all\r\n\0\n";

/// What came in on stdin.
#[derive(Default)]
struct Received {
    bytes: u64,
    digest: Sha256,
}

/// The side of a command that the connection holds.
pub struct Session {
    input: Option<mpsc::UnboundedSender<Bytes>>,
    queued: Arc<AtomicUsize>,
    received: Arc<Mutex<Received>>,
    group: Option<Pid>,
    on_terminal: bool,
}

impl Drop for Session {
    /// The end of script(1), which heeds no HUP, hangs the terminal up, as the end of a connection does.
    fn drop(&mut self) {
        if self.on_terminal
            && let Some(group) = self.group
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// The side of a command that runs on its own.
pub struct Child {
    process: tokio::process::Child,
    command: Vec<u8>,
    input: mpsc::UnboundedReceiver<Bytes>,
    queued: Arc<AtomicUsize>,
    received: Arc<Mutex<Received>>,
    group: Option<Pid>,
}

impl Session {
    /// Starts `bash -c COMMAND` in a process group of its own, on a terminal if one was asked for.
    pub fn start(
        pod: &Pod,
        line: &[u8],
        environment: Vec<(String, String)>,
        on_terminal: bool,
    ) -> io::Result<(Self, Child)> {
        let program = if on_terminal { PathBuf::from("script") } else { bash() };
        #[expect(clippy::disallowed_methods, reason = "a pod's commands are processes")]
        let mut command = std::process::Command::new(program);
        match (on_terminal, cfg!(target_os = "linux")) {
            (false, _) => command.arg("-c").arg(OsStr::from_bytes(line)),
            // script(1) is what every system has for a terminal without a line of unsafe code.
            (true, true) => command.arg("-qefc").arg(OsStr::from_bytes(line)).arg("/dev/null"),
            (true, false) => {
                command.args(["-q", "/dev/null", "bash", "-c"]).arg(OsStr::from_bytes(line))
            }
        };
        command
            .env_clear()
            .envs(pod.folder.session_environment(&pod.id))
            .envs(environment)
            .current_dir(pod.folder.home())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let process = tokio::process::Command::from(command).spawn()?;
        let group = process.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        if let Some(group) = group {
            let record = pod.folder.groups().join(group.as_raw_nonzero().to_string());
            let _ = std::fs::File::create(record);
        }
        let (sender, input) = mpsc::unbounded_channel();
        let (queued, received) = (Arc::default(), Arc::default());
        let session = Self {
            input: Some(sender),
            queued: Arc::clone(&queued),
            received: Arc::clone(&received),
            group,
            on_terminal,
        };
        Ok((session, Child { process, command: line.to_vec(), input, queued, received, group }))
    }

    /// Hands over what came for stdin. `false` when far more is queued than the window allowed.
    pub fn feed(&mut self, data: Bytes) -> bool {
        let Some(input) = &self.input else { return true };
        {
            let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
            received.bytes += data.len() as u64;
            received.digest.update(&data);
        }
        let length = data.len();
        let queued = self.queued.fetch_add(length, Ordering::Relaxed) + length;
        if input.send(data).is_err() {
            self.queued.fetch_sub(length, Ordering::Relaxed);
        }
        queued <= MOST_QUEUED
    }

    pub fn end_of_input(&mut self) {
        self.input = None;
    }

    /// Whether the command reads more slowly than the sender sends.
    pub fn is_behind(&self) -> bool {
        self.queued.load(Ordering::Relaxed) > BEHIND
    }

    pub fn signal(&self, signal: &Sig) {
        let signal = match signal {
            Sig::TERM => Signal::TERM,
            Sig::KILL => Signal::KILL,
            Sig::INT => Signal::INT,
            Sig::HUP => Signal::HUP,
            _ => return,
        };
        if let Some(group) = self.group {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Child {
    /// Carries the command to its end. Like sshd it waits for the end of stdout and stderr too,
    /// which a child in the background may hold open, and like sshd it lets a command live whose
    /// connection is lost.
    pub async fn run(mut self, pod: Arc<Pod>, handle: Handle, id: ChannelId) {
        let at = pod.clock.now();
        let (stdin, stdout, stderr) =
            (self.process.stdin.take(), self.process.stdout.take(), self.process.stderr.take());
        let writing = tokio::spawn(write(stdin, self.input, self.queued));
        if pod.faults().is_on(NOISY_SHELL) {
            let _ = handle.data(id, Bytes::from_static(GREETING)).await;
        }
        let reading = tokio::spawn(read_both(stdout, stderr, handle.clone(), id));
        let status = self.process.wait().await;
        let _ = reading.await;
        writing.abort();
        if let Ok(status) = status {
            tell(&handle, id, status).await;
        }
        let _ = handle.eof(id).await;
        let _ = handle.close(id).await;
        if let Some(group) = self.group
            && test_kill_process_group(group).is_err()
        {
            let record = pod.folder.groups().join(group.as_raw_nonzero().to_string());
            let _ = std::fs::remove_file(record);
        }
        let (bytes, digest) = {
            let received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
            (received.bytes, received.digest.clone().finalize())
        };
        let digest = hex(&digest);
        let status = status.ok().map(|status| match (status.code(), status.signal()) {
            (Some(code), _) => json!(code),
            (None, signal) => json!(format!("signal {}", signal.unwrap_or_default())),
        });
        pod.journal.append(&json!({
            "at": at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
            "command": String::from_utf8_lossy(&self.command),
            "status": status,
            "stdin_bytes": bytes,
            "stdin_sha256": digest,
        }));
    }
}

async fn write(
    mut stdin: Option<ChildStdin>,
    mut input: mpsc::UnboundedReceiver<Bytes>,
    queued: Arc<AtomicUsize>,
) {
    while let Some(data) = input.recv().await {
        if let Some(pipe) = &mut stdin
            && pipe.write_all(&data).await.is_err()
        {
            // The command reads no more. What still comes is dropped, so that the sender can end.
            stdin = None;
        }
        queued.fetch_sub(data.len(), Ordering::Relaxed);
    }
}

async fn read_both(
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    handle: Handle,
    id: ChannelId,
) {
    let out = async {
        if let Some(stdout) = stdout {
            forward(stdout, &handle, id, None).await;
        }
    };
    let err = async {
        if let Some(stderr) = stderr {
            forward(stderr, &handle, id, Some(1)).await;
        }
    };
    tokio::join!(out, err);
}

async fn forward(
    mut source: impl AsyncRead + Unpin,
    handle: &Handle,
    id: ChannelId,
    extended: Option<u32>,
) {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(64 << 10);
        match source.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let data = buffer.split().freeze();
        let sent = match extended {
            None => handle.data(id, data).await,
            Some(code) => handle.extended_data(id, code, data).await,
        };
        if sent.is_err() {
            return;
        }
    }
}

async fn tell(handle: &Handle, id: ChannelId, status: ExitStatus) {
    if let Some(code) = status.code() {
        let _ = handle.exit_status_request(id, code.unsigned_abs()).await;
    } else if let Some(signal) = status.signal() {
        let signal = match signal {
            1 => Sig::HUP,
            2 => Sig::INT,
            3 => Sig::QUIT,
            6 => Sig::ABRT,
            9 => Sig::KILL,
            11 => Sig::SEGV,
            13 => Sig::PIPE,
            14 => Sig::ALRM,
            15 => Sig::TERM,
            other => Sig::Custom(format!("SIG{other}@podtether")),
        };
        let dumped = status.core_dumped();
        let _ = handle.exit_signal_request(id, signal, dumped, String::new(), String::new()).await;
    }
}
