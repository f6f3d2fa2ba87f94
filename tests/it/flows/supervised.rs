//! `podtether supervise` as a process of its own, as people and agents start it.

use super::fixture::Fixture;
use super::twin::CEILING;
use crate::local_cloud::program;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A run that goes on. Killed when it is dropped before its end.
pub struct Run {
    child: Child,
    started: Instant,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// A run that is over.
#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    pub took: Duration,
    /// What `--json` printed; null when nothing was.
    pub summary: Value,
    pub stderr: String,
}

impl Run {
    /// Starts `podtether supervise` on the fixture's config, with only what a shell would give it.
    pub fn start(fixture: &Fixture, arguments: &[&str]) -> Self {
        Self::start_with(fixture, arguments, &[])
    }

    /// The same with more variables.
    pub fn start_with(fixture: &Fixture, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let number = RUNS.fetch_add(1, Relaxed);
        let file = |name: &str| fixture.path(&format!("{name}-{number}"));
        let (stdout, stderr) = (file("stdout"), file("stderr"));
        let child = Command::new(program())
            .args(["supervise", "--json", "--config"])
            .arg(fixture.config_file())
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", fixture.path(""))
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(File::create(&stdout).unwrap())
            .stderr(File::create(&stderr).unwrap())
            .process_group(0)
            .spawn()
            .unwrap();
        Self { child, started: Instant::now(), stdout, stderr }
    }

    /// A run of `command` that pulls nothing but the job's folder.
    pub fn of(fixture: &Fixture, command: &str, more: &[&str]) -> Self {
        Self::of_with(fixture, command, more, &[])
    }

    /// The same with more variables.
    pub fn of_with(
        fixture: &Fixture,
        command: &str,
        more: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let base = ["--job-name", "job", "--command", command, "--sync-subdir", "none"];
        Self::start_with(fixture, &[&base[..], more].concat(), variables)
    }

    /// Takes up the run that left this summary.
    pub fn resume(fixture: &Fixture, summary: &Path, more: &[&str]) -> Self {
        let base = ["--interval", "1", "--resume", summary.to_str().unwrap()];
        Self::start(fixture, &[&base[..], more].concat())
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().try_into().unwrap()).unwrap()
    }

    /// SIGKILL to it and to everything in its process group, as harnesses do (C01).
    pub fn kill_group(mut self) {
        // It may have ended by itself.
        let _ = kill_process_group(self.pid(), Signal::KILL);
        self.child.wait().unwrap();
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap()
    }

    /// Waits for words on stderr.
    pub async fn says(&mut self, words: &str) {
        let start = Instant::now();
        while !self.stderr().contains(words) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?} without {words:?}: {}", self.stderr());
            assert!(start.elapsed() < CEILING, "never said {words:?}: {}", self.stderr());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn end(self) -> Outcome {
        self.end_within(CEILING).await
    }

    /// The same for what takes longer than most.
    pub async fn end_within(mut self, ceiling: Duration) -> Outcome {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < ceiling, "still running: {}", self.stderr());
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let printed = fs::read_to_string(&self.stdout).unwrap();
        assert!(printed.lines().count() <= 1, "stdout carries data and nothing else: {printed}");
        Outcome {
            code: status.code().unwrap_or(-1),
            took: self.started.elapsed(),
            summary: serde_json::from_str(&printed).unwrap_or(Value::Null),
            stderr: self.stderr(),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Outcome {
    /// The summary on disk, which must be the one that was printed.
    pub fn file(&self) -> Value {
        let path = self.summary["summary_path"].as_str().unwrap();
        let file: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        assert_eq!(file, self.summary, "{path}");
        file
    }
}

/// The summaries in the vehicle's log folder, of runs and of refusals.
pub fn summaries(fixture: &Fixture) -> Vec<PathBuf> {
    let entries = fs::read_dir(fixture.path("logs")).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_one = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("supervise-") && name.ends_with(".json")
    };
    paths.filter(is_one).collect()
}

/// The one summary there is, and where it is.
pub fn summary(fixture: &Fixture) -> (PathBuf, Value) {
    let [path] = &summaries(fixture)[..] else { panic!("{:?}", summaries(fixture)) };
    (path.clone(), serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
}
