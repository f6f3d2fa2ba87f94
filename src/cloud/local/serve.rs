//! Runs one local cloud on one state folder: lock, address, key, requests, end.

use super::api;
use super::document::VERSION;
use super::error::ServeError;
use super::faults::{Fault, Faults};
use super::paths::{self, Paths};
use super::timing::Timing;
use super::twin::{Parts, Twin, new_key};
use crate::clock::SharedClock;
use crate::held::Held;
use crate::secret::Secret;
use serde_json::json;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// How long a daemon waits for the lock of its folder: somebody who only looks whether it is held
/// holds it for a moment.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
/// How often a daemon looks whether its folder is still there.
const FOLDER_PAUSE: Duration = Duration::from_secs(2);

/// What to serve.
#[derive(Clone, Debug)]
pub struct Options {
    /// The state folder; created when missing.
    pub state: PathBuf,
    /// Port on loopback; 0 for the one of last time, else any.
    pub port: u16,
    /// Faults that are on from the start.
    pub faults: Vec<Fault>,
    /// This program, which the stand-ins on a pod call.
    pub program: PathBuf,
    /// How long things take.
    pub timing: Timing,
}

/// A local cloud that is ready to answer.
pub struct LocalCloud {
    twin: Arc<Twin>,
    listener: TcpListener,
    /// Held until the end; the system lets go of it however this process ends.
    _lock: Held,
}

impl std::fmt::Debug for LocalCloud {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalCloud").field("url", &self.twin.url).finish_non_exhaustive()
    }
}

impl LocalCloud {
    /// Takes the folder and its address, and goes on with the pods that a killed daemon left.
    ///
    /// # Errors
    /// [`ServeError`] when the folder is served already, or cannot be used.
    pub async fn start(options: Options, clock: SharedClock) -> Result<Self, ServeError> {
        let state = options.state;
        let io_error = |doing, path: &Path| {
            let path = path.to_owned();
            move |source| ServeError::Io { doing, path, source }
        };
        let paths = Paths::create(&state).map_err(io_error("create", &state))?;
        let lock = take_lock(&paths).await?;
        let before = Ready::read(&paths);
        let listener = listen(options.port, before.as_ref()).await?;
        let address = listener
            .local_addr()
            .map_err(|source| ServeError::Listen { port: options.port, source })?;
        // Key and port outlive the daemon: a watchdog on a pod and a client on the laptop have them.
        let key = before.and_then(|ready| Secret::new(&ready.key));
        let key = key.or_else(|| Secret::new(&new_key(""))).ok_or_else(|| {
            ServeError::Document { path: paths.daemon(), detail: "no key".to_owned() }
        })?;
        let twin = Arc::new(Twin::open(Parts {
            timing: options.timing,
            program: options.program,
            url: format!("http://{address}"),
            key,
            faults: Faults::new(options.faults, Arc::clone(&clock)),
            clock,
            paths,
        })?);
        let ready = json!({
            "version": VERSION,
            "url": twin.url,
            "pid": std::process::id(),
            "key": twin.key.reveal(),
            "started_at": twin.clock.now(),
        });
        let path = twin.paths.daemon();
        paths::replace(&path, &ready.to_string()).map_err(io_error("write", &path))?;
        twin.recover();
        Ok(Self { twin, listener, _lock: lock })
    }

    /// Its address, such as `http://127.0.0.1:40123`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.twin.url
    }

    /// The key of the account.
    #[must_use]
    pub fn key(&self) -> Secret {
        self.twin.key.clone()
    }

    /// Answers requests until `end` is over or the state folder is gone, then stops every pod.
    ///
    /// # Errors
    /// When the socket fails.
    pub async fn serve(self, end: impl Future<Output = ()>) -> io::Result<()> {
        let router = api::router(Arc::clone(&self.twin));
        let serving = async { axum::serve(self.listener, router).await };
        let outcome = tokio::select! {
            outcome = serving => outcome,
            () = end => Ok(()),
            () = gone(&self.twin.paths) => Ok(()),
            () = self.twin.play_on_pods() => Ok(()),
        };
        self.twin.close();
        self.twin.stop_all().await;
        outcome
    }
}

/// Waits until somebody has removed the state folder: a daemon that nobody can find any more must
/// not stay for ever.
async fn gone(paths: &Paths) {
    while paths.lock().exists() {
        tokio::time::sleep(FOLDER_PAUSE).await;
    }
}

async fn take_lock(paths: &Paths) -> Result<Held, ServeError> {
    let path = paths.lock();
    let failed = |source| ServeError::Io { doing: "lock", path: paths.lock(), source };
    let file = paths::open_lock(&path).map_err(failed)?;
    let held = Held::alone_within(&file, LOCK_PATIENCE).await.map_err(failed)?;
    held.ok_or_else(|| ServeError::AlreadyServed(paths.root().to_owned()))
}

async fn listen(port: u16, before: Option<&Ready>) -> Result<TcpListener, ServeError> {
    if port == 0
        && let Some(last) = before.and_then(Ready::port)
        && let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, last)).await
    {
        return Ok(listener);
    }
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
    bound.map_err(|source| ServeError::Listen { port, source })
}

/// `daemon.json`: where a daemon is, or was.
#[derive(Clone, Debug, serde::Deserialize)]
pub(super) struct Ready {
    pub url: String,
    pub pid: u32,
    pub key: String,
}

impl Ready {
    /// What stands in the folder; nothing when it names no address on loopback or no local key.
    pub fn read(paths: &Paths) -> Option<Self> {
        let text = std::fs::read_to_string(paths.daemon()).ok()?;
        let ready: Self = serde_json::from_str(&text).ok()?;
        (ready.port().is_some() && ready.key.starts_with("local-")).then_some(ready)
    }

    fn port(&self) -> Option<u16> {
        let address: SocketAddr = self.url.strip_prefix("http://")?.parse().ok()?;
        address.ip().is_loopback().then(|| address.port())
    }
}
