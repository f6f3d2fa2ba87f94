//! One run of rsync: its arguments, its clean environment, what it says while it runs.

use super::outcome::Outcome;
use super::rsync::RsyncProgram;
use super::staging::Staging;
use super::transport::{SETTINGS_ENV, TransportSettings};
use super::{Progress, PullRequest, TransferError};
use crate::pod::ssh::Tail;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

/// Where rsync keeps the parts of files that have not come whole, beside where the file goes.
pub(super) const PARTIAL_DIR: &str = ".podtether-partial";

/// Which files a run is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which<'a> {
    /// All of them, except what is in place already.
    All {
        /// Where that is.
        kept: &'a Path,
    },
    /// Those named in this NUL-separated list, compared by content.
    Again(&'a Path),
}

/// How a run ended.
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    pub(super) code: Option<i32>,
    /// The end of its stderr, the transport's included.
    pub(super) stderr: String,
    pub(super) received_bytes: Option<u64>,
}

/// rsync with everything that its runs share.
pub(super) struct RsyncRunner<'a> {
    rsync: &'a RsyncProgram,
    source: OsString,
    /// The transport as rsync is told it, the settings file and an empty home.
    private: Arc<tempfile::TempDir>,
}

impl<'a> RsyncRunner<'a> {
    pub(super) fn new(
        request: &PullRequest,
        rsync: &'a RsyncProgram,
    ) -> Result<Self, TransferError> {
        let private = private_folder()?;
        let failed =
            |path: &Path, error| TransferError::local("preparing the transport", path, error);
        // rsync splits its -e at spaces, so the program is named by a link without any.
        let link = private.path().join("podtether");
        symlink(&request.program, &link).map_err(|error| failed(&link, error))?;
        let home = private.path().join("home");
        fs::create_dir(&home).map_err(|error| failed(&home, error))?;
        let settings = TransportSettings {
            target: request.target.clone(),
            tuning: request.tuning.clone().for_transfer(),
            words: rsync.words(),
            stall: request.stall,
        };
        let path = private.path().join("transport.json");
        let written =
            serde_json::to_vec(&settings).map_err(std::io::Error::from).and_then(|text| {
                let mut file =
                    OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path)?;
                file.write_all(&text)
            });
        written.map_err(|error| failed(&path, error))?;
        let source = format!("pod:{}/", request.remote_dir.trim_end_matches('/')).into();
        Ok(Self { rsync, source, private: Arc::new(private) })
    }

    fn arguments(&self, which: Which<'_>, destination: &Path) -> Vec<OsString> {
        let transport = self.private.path().join("podtether");
        let mut shell = transport.into_os_string();
        shell.push(" transport");
        let mut words: Vec<OsString> = vec!["-e".into(), shell];
        // No -p, -o, -g: modes and owners are the pod's business. No -z: checkpoints do not
        // compress. --append is never used: with rsync 3 it can leave a wrong file and exit 0.
        for word in ["-rt", "--links", "--safe-links", "--no-D", "--timeout=60", "--stats"] {
            words.push(word.into());
        }
        words.push(format!("--partial-dir={PARTIAL_DIR}").into());
        let kept = match which {
            Which::All { kept } => Some(kept),
            Which::Again(list) => {
                let mut option = OsString::from("--files-from=");
                option.push(list);
                // -c: what differs may have the same size and time.
                words.extend(["-c".into(), "--from0".into(), option]);
                None
            }
        };
        words.extend(self.rsync.optional(kept).into_iter().map(OsString::from));
        if !self.rsync.total_progress {
            words.push("--progress".into());
        }
        words.extend(["--".into(), self.source.clone(), destination.into()]);
        words
    }

    /// Runs it to its end. Dropped in the middle, it asks rsync to stop, which keeps what has come.
    pub(super) async fn run(
        &self,
        which: Which<'_>,
        tree: &Path,
        staging: &Arc<Staging>,
        of: Progress,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Ended, TransferError> {
        #[expect(clippy::disallowed_methods, reason = "rsync is started here and only here")]
        let mut command = Command::new(&self.rsync.path);
        // A clean environment: rsync reads a dozen variables, and aliases from ~/.popt.
        command
            .args(self.arguments(which, tree))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("LANG", "C")
            .env("HOME", self.private.path().join("home"))
            .env(SETTINGS_ENV, self.private.path().join("transport.json"))
            .current_dir(self.private.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command
            .spawn()
            .map_err(|error| TransferError::local("starting", &self.rsync.path, error))?;
        let mut leash = Leash::new(child, Arc::clone(staging), Arc::clone(&self.private));
        let Held { child, stdout, stderr, .. } = leash.held()?;

        let mut figures = Figures::default();
        let listen = async {
            let mut chunk = vec![0; 16 << 10];
            while let Ok(read @ 1..) = stdout.read(&mut chunk).await {
                if figures.read(&chunk[..read], self.rsync.total_progress) {
                    progress(Progress { bytes: figures.bytes(), files: figures.files, ..of });
                }
            }
        };
        let mut tail = Tail::new(2000);
        let collect = async {
            let mut chunk = vec![0; 4 << 10];
            while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
                tail.push(&chunk[..read]);
            }
        };
        let ((), (), ended) = tokio::join!(listen, collect, child.wait());
        let status =
            ended.map_err(|error| TransferError::local("waiting for", &self.rsync.path, error))?;
        let code = status.code();
        leash.let_go();
        Ok(Ended {
            outcome: Outcome::of(code),
            code,
            stderr: tail.finish().text().trim().to_owned(),
            received_bytes: figures.received,
        })
    }
}

/// A folder of our own whose path rsync can split at no place.
fn private_folder() -> Result<tempfile::TempDir, TransferError> {
    let plain = |path: &Path| {
        path.to_str().is_some_and(|text| {
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./+".contains(&byte))
        })
    };
    let usual = std::env::temp_dir();
    let root = if plain(&usual) { usual } else { PathBuf::from("/tmp") };
    tempfile::Builder::new()
        .prefix("podtether-")
        .tempdir_in(&root)
        .map_err(|error| TransferError::local("creating a folder in", &root, error))
}

/// rsync on a leash. Dropped with the pull, it asks rsync to stop and sees it out: killed outright,
/// rsync would leave what has come under a name that nothing takes up again, and the next pull may
/// not begin while it still writes.
struct Leash(Option<Held>);

struct Held {
    child: Child,
    stdout: ChildStdout,
    stderr: ChildStderr,
    staging: Arc<Staging>,
    private: Arc<tempfile::TempDir>,
}

/// How long rsync may take to put away what it has.
const PUT_AWAY: Duration = Duration::from_secs(20);

impl Leash {
    fn new(mut child: Child, staging: Arc<Staging>, private: Arc<tempfile::TempDir>) -> Self {
        let pipes = child.stdout.take().zip(child.stderr.take());
        Self(pipes.map(|(stdout, stderr)| Held { child, stdout, stderr, staging, private }))
    }

    fn held(&mut self) -> Result<&mut Held, TransferError> {
        self.0.as_mut().ok_or(TransferError::Interrupted)
    }

    fn let_go(&mut self) {
        self.0 = None;
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        let Some(mut held) = self.0.take() else { return };
        let pid = held.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let (mut out, mut err) = (tokio::io::sink(), tokio::io::sink());
            let out = tokio::io::copy(&mut held.stdout, &mut out);
            let err = tokio::io::copy(&mut held.stderr, &mut err);
            let see_out = async { tokio::join!(out, err, held.child.wait()) };
            if tokio::time::timeout(PUT_AWAY, see_out).await.is_err() {
                let _ = held.child.kill().await;
            }
            drop((held.staging, held.private));
        });
    }
}

/// What rsync's stdout tells.
#[derive(Default)]
struct Figures {
    line: Vec<u8>,
    done: u64,
    current: u64,
    /// Files that are through.
    files: u64,
    received: Option<u64>,
}

impl Figures {
    const fn bytes(&self) -> u64 {
        self.done + self.current
    }

    /// Takes up output; `true` when the figure moved. With `total` a progress line counts all
    /// files, otherwise one.
    fn read(&mut self, bytes: &[u8], total: bool) -> bool {
        let before = (self.bytes(), self.files);
        for byte in bytes {
            if !matches!(byte, b'\r' | b'\n') {
                // File names are of no interest and of any length.
                if self.line.len() < 200 {
                    self.line.push(*byte);
                }
                continue;
            }
            let line = String::from_utf8_lossy(&self.line).into_owned();
            self.line.clear();
            if let Some(figure) = line.strip_prefix("Total bytes received:") {
                self.received = number(figure);
            }
            let mut words = line.split_whitespace();
            let (Some(first), Some(percent)) = (words.next(), words.next()) else { continue };
            let (Some(bytes), Some(percent)) =
                (number(first), percent.strip_suffix('%').and_then(number))
            else {
                continue;
            };
            self.current = bytes;
            // "(xfr#2, to-chk=0/3)" counts the files; versions before 3.1 write "xfer#".
            let counted = line.split_once("(xfr#").or_else(|| line.split_once("(xfer#"));
            let counted = counted.and_then(|(_, rest)| number(rest.split(',').next()?));
            self.files = counted.unwrap_or(self.files);
            if !total && percent == 100 {
                self.done += bytes;
                self.current = 0;
                if counted.is_none() {
                    self.files += 1;
                }
            }
        }
        (self.bytes(), self.files) != before
    }
}

/// rsync groups digits by commas, or by dots in some locales.
fn number(text: &str) -> Option<u64> {
    let digits: String = text.trim().chars().filter(|c| !matches!(c, ',' | '.')).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_from_either_kind_of_line() {
        let mut total = Figures::default();
        assert!(
            total.read(b"\r  1,234,567  45%   10.2MB/s    0:00:12", true) || total.bytes() == 0
        );
        assert!(total.read(b"\r      2,000,000 100%  1MB/s 0:00:01 (xfr#2, to-chk=0/3)\n", true));
        assert_eq!((total.bytes(), total.files), (2_000_000, 2));
        total.read(b"\nTotal bytes sent: 89\nTotal bytes received: 1,999\n", true);
        assert_eq!(total.received, Some(1999));

        let mut each = Figures::default();
        each.read(b"a\n  10  50%\r  20 100%\nname with 5% in it\n  7  70%\r", false);
        assert_eq!((each.bytes(), each.files), (27, 1));
    }
}
