//! The local cloud of one test: in this process with a boot that takes no time, or as the daemon
//! that users have, for tests that kill it. Either is gone with its pods when it is dropped.

use crate::local_cloud::program;
use podtether::clock::SystemClock;
use podtether::cloud::local::{LocalCloud, Options, Timing, find};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long anything is waited for, far beyond what a slow machine needs.
pub const CEILING: Duration = Duration::from_secs(90);

const FAST: Timing = Timing {
    provisioning: Duration::from_millis(5),
    starting: Duration::from_millis(5),
    ssh_after: Duration::from_millis(5),
    billing_lag: Duration::from_secs(3600),
};

/// In this process. It has a thread and a runtime of its own, so that it can be taken down after a
/// panic of the test.
pub struct Inside {
    pub url: String,
    pub key: String,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Inside {
    pub fn start(state: &Path) -> Self {
        let options = Options {
            state: state.to_owned(),
            port: 0,
            faults: Vec::new(),
            program: program().to_owned(),
            timing: FAST,
        };
        let (ready, is_ready) = mpsc::channel();
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let cloud = LocalCloud::start(options, SystemClock::shared()).await.unwrap();
                let key = cloud.key().reveal().to_owned();
                ready.send((cloud.url().to_owned(), key)).unwrap();
                cloud.serve(async { drop(ended.await) }).await.unwrap();
            });
            runtime.shutdown_background();
        });
        let (url, key) = is_ready.recv_timeout(CEILING).unwrap();
        Self { url, key, end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A daemon, as `podtether local-cloud` runs it.
pub struct Daemon {
    state: PathBuf,
    port: u16,
    child: Child,
}

impl Daemon {
    pub fn start(state: &Path) -> Self {
        let port = quiet_port();
        Self { state: state.to_owned(), port, child: spawn(state, port) }
    }

    /// As a crash does: nothing is stopped, every connection breaks.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// It goes on with the pods of the one that was killed, at the same address.
    pub fn start_again(&mut self) {
        self.child = spawn(&self.state, self.port);
    }
}

/// A port that nobody is given by chance: below those that the system hands out, so that no test
/// beside this one takes it while the daemon is away.
fn quiet_port() -> u16 {
    (0..)
        .map(|_| 20_000 + rand::random::<u16>() % 10_000)
        .find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .unwrap()
}

fn spawn(state: &Path, port: u16) -> Child {
    let mut command = Command::new(program());
    command.args(["local-cloud", "--port", &port.to_string(), "--state"]).arg(state);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    while find(state).is_none_or(|cloud| cloud.pid != child.id()) {
        assert!(start.elapsed() < CEILING && child.try_wait().unwrap().is_none(), "no daemon");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            // A killed daemon leaves its pods; the next one stops them.
            self.start_again();
        }
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        let _ = kill_process(pid, Signal::TERM);
        let _ = self.child.wait();
    }
}
