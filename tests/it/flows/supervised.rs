//! `podtether supervise` as a process of its own, as people and agents start it.

use super::fixture::Fixture;
use super::twin::CEILING;
use crate::local_cloud::program;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
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
        let (stdout, stderr) = (fixture.path("stdout"), fixture.path("stderr"));
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

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
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

    pub async fn end(mut self) -> Outcome {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < CEILING, "still running: {}", self.stderr());
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
