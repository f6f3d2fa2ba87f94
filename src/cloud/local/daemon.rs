//! Finds, starts and stops the daemon of a state folder.

use super::loopback::request;
use super::paths::{self, Paths};
use super::serve::Ready;
use crate::held::Held;
use crate::secret::Secret;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// How long a daemon may take to answer, or to stop its pods.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(25);

/// A daemon that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningCloud {
    /// Address, such as `http://127.0.0.1:40123`; the API's paths begin with `/v2`.
    pub url: String,
    /// The key of the account.
    pub key: Secret,
    /// Process id.
    pub pid: u32,
}

/// A daemon that cannot be started or stopped.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file of the state folder.
    #[error("could not {doing} {}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The daemon does not answer.
    #[error("the local cloud of {} did not answer within {waited_sec} s: {detail}", state.display())]
    NotReady {
        /// The state folder.
        state: PathBuf,
        /// How long it was waited for, in seconds.
        waited_sec: u64,
        /// The end of its log, or what is known.
        detail: String,
    },
    /// The faults asked for were refused.
    #[error("the local cloud refused the faults: {0}")]
    Faults(String),
    /// The daemon does not go away.
    #[error("the local cloud of {} (process {pid}) did not stop", state.display())]
    NotStopped {
        /// The state folder.
        state: PathBuf,
        /// Its process id.
        pid: u32,
    },
}

/// The daemon of a folder, when one holds its lock. Says nothing about whether it answers.
#[must_use]
pub fn find(state_dir: &Path) -> Option<RunningCloud> {
    let paths = Paths::of(state_dir);
    let file = File::open(paths.lock()).ok()?;
    // A shared lock: two who look at once do not see each other.
    if !matches!(Held::beside_others(&file), Ok(None)) {
        return None;
    }
    let ready = Ready::read(&paths)?;
    let key = Secret::new(&ready.key)?;
    Some(RunningCloud { url: ready.url, key, pid: ready.pid })
}

/// The daemon of a folder, when it answers as itself.
async fn answering(state_dir: &Path) -> Option<RunningCloud> {
    let cloud = find(state_dir)?;
    let (status, body) =
        request("GET", &cloud.url, "/_local", cloud.key.reveal(), None).await.ok()?;
    // A new daemon has the key and the port of the one before; the file may still be the old one's.
    (status == 200 && body.get("pid").and_then(Value::as_u64) == Some(cloud.pid.into()))
        .then_some(cloud)
}

/// The daemon of `state_dir`, started with `program` when none answers. `faults` are switched on
/// when there are any; an empty list leaves those of a running daemon alone. Callers that come at
/// once get the same daemon.
///
/// # Errors
/// [`StartError`] when it cannot be started or does not answer in half a minute.
pub async fn ensure_running(
    state_dir: &Path,
    program: &Path,
    faults: &[String],
) -> Result<RunningCloud, StartError> {
    let cloud = match answering(state_dir).await {
        Some(cloud) => cloud,
        None => start(state_dir, program).await?,
    };
    if !faults.is_empty() {
        let body = json!({"faults": faults});
        let path = "/_local/faults";
        match request("PUT", &cloud.url, path, cloud.key.reveal(), Some(body)).await {
            Ok((200, _)) => {}
            Ok((_, answer)) => {
                let detail = answer.get("detail").and_then(Value::as_str).unwrap_or_default();
                return Err(StartError::Faults(detail.to_owned()));
            }
            Err(detail) => return Err(StartError::Faults(detail)),
        }
    }
    Ok(cloud)
}

async fn start(state_dir: &Path, program: &Path) -> Result<RunningCloud, StartError> {
    let failed = |doing, path: &Path| {
        let path = path.to_owned();
        move |source| StartError::Io { doing, path, source }
    };
    let paths = Paths::create(state_dir).map_err(failed("create", state_dir))?;
    let path = paths.start_lock();
    let turn = paths::open_lock(&path).map_err(failed("open", &path))?;
    // A turn that does not come is not worth more than this: two daemons sort it out themselves.
    let _turn = Held::alone_within(&turn, PATIENCE).await;
    if let Some(cloud) = answering(state_dir).await {
        return Ok(cloud);
    }
    let log_path = paths.daemon_log();
    let log = File::create(&log_path).map_err(failed("write", &log_path))?;
    let errors = log.try_clone().map_err(failed("write", &log_path))?;
    #[expect(clippy::disallowed_methods, reason = "the daemon outlives whoever needed it first")]
    let mut command = tokio::process::Command::new(program);
    let mut child = command
        .args(["local-cloud", "--detach", "--state"])
        .arg(paths.root())
        // Whatever its first user has in the environment, a real key among it, is not the daemon's.
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .spawn()
        .map_err(failed("start", program))?;
    let mut waited = Duration::ZERO;
    while waited < PATIENCE {
        if let Some(cloud) = answering(state_dir).await {
            return Ok(cloud);
        }
        if let Ok(Some(_)) = child.try_wait() {
            break;
        }
        tokio::time::sleep(PAUSE).await;
        waited += PAUSE;
    }
    let log = std::fs::read_to_string(&log_path).unwrap_or_default();
    let detail = log.lines().last().unwrap_or("it wrote nothing").to_owned();
    Err(StartError::NotReady {
        state: paths.root().to_owned(),
        waited_sec: waited.as_secs(),
        detail,
    })
}

/// Stops the daemon of a folder with its pods. Returns whether there was one.
///
/// # Errors
/// [`StartError::NotStopped`] when it is still there after half a minute.
pub async fn stop(state_dir: &Path) -> Result<bool, StartError> {
    let Some(cloud) = find(state_dir) else { return Ok(false) };
    let pid = i32::try_from(cloud.pid).ok().and_then(Pid::from_raw);
    let mut waited = Duration::ZERO;
    let mut asked = false;
    while waited < PATIENCE {
        if find(state_dir).is_none() {
            return Ok(true);
        }
        // Only a process that answers as the daemon is signalled: a number may have a new owner.
        if !asked && answering(state_dir).await.as_ref() == Some(&cloud) {
            asked = pid.is_some_and(|pid| kill_process(pid, Signal::TERM).is_ok());
        }
        tokio::time::sleep(PAUSE).await;
        waited += PAUSE;
    }
    Err(StartError::NotStopped { state: state_dir.to_owned(), pid: cloud.pid })
}
