//! Runs a program that prints a key: clean environment, no stdin, bounded output, bounded wait.

use super::KeyError;
use crate::clock::{Clock as _, SystemClock};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The most that is read of either stream, in bytes. A key has about 50.
const MAX_OUTPUT: u64 = 4096;
/// How often an end is looked for.
const TICK: Duration = Duration::from_millis(10);
/// How long the pipes may stay open after the program ended.
const DRAIN: Duration = Duration::from_secs(1);

/// A program with its environment and the longest wait.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub path: PathBuf,
    pub env: Vec<(&'static str, OsString)>,
    pub wait: Duration,
}

/// What came of it. `Debug` is not derived: stdout is the key.
pub(super) struct Outcome {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Program {
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Runs it to its end, or ends it with everything it started.
    pub fn run(&self, args: &[&str]) -> Result<Outcome, KeyError> {
        let failed = |detail: String| KeyError::Failed { tried: self.name(), detail };
        #[expect(
            clippy::disallowed_methods,
            reason = "the keychains' own programs are asked here and nowhere else"
        )]
        let mut command = std::process::Command::new(&self.path);
        command
            .args(args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(Path::new("/"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own, so that a time-out ends what it started as well.
            .process_group(0);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => KeyError::NoProgram { program: self.name() },
            _ => failed(error.to_string()),
        })?;
        let stdout = child.stdout.take().map(drain);
        let stderr = child.stderr.take().map(drain);
        let clock = SystemClock::new();
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if clock.monotonic() >= self.wait => {
                    end(&mut child);
                    return Err(KeyError::TimedOut { program: self.name(), waited: self.wait });
                }
                Ok(None) => std::thread::sleep(TICK),
                Err(error) => {
                    end(&mut child);
                    return Err(failed(error.to_string()));
                }
            }
        };
        let text = |stream: Option<Receiver<Vec<u8>>>| {
            let bytes = stream.and_then(|stream| stream.recv_timeout(DRAIN).ok());
            String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
        };
        Ok(Outcome { code: status.code(), stdout: text(stdout), stderr: text(stderr) })
    }
}

impl Outcome {
    /// The first line of stderr for a message, scrubbed and cut; stdout is never shown.
    pub fn complaint(&self) -> String {
        let line = self.stderr.trim().lines().next().unwrap_or("").trim();
        let clean = crate::secret::scrub(line, &[]);
        let words: String = clean.chars().filter(|c| !c.is_control()).take(300).collect();
        match self.code {
            Some(code) if words.is_empty() => format!("exit code {code}, no explanation"),
            Some(code) => format!("exit code {code}: {words}"),
            None => format!("ended by a signal {words}"),
        }
    }
}

/// Reads a stream to its end beside the wait, so that a full pipe holds up nobody.
fn drain(stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut stream = stream.take(MAX_OUTPUT);
        let _ = stream.read_to_end(&mut bytes);
        let _ = sender.send(bytes);
        // What is beyond is thrown away, but read: a closed pipe would change how it ends.
        let _ = std::io::copy(&mut stream.into_inner(), &mut std::io::sink());
    });
    receiver
}

/// Kills the program's whole group and collects it.
fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}
