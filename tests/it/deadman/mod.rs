//! The laptop's fuse as people and sessions have it: the real binary against the local cloud, where the
//! truth is read past podtether.

mod bad_days;
mod in_verbs;
mod one_fuse;
mod telling;
mod timer;

use crate::flows::fixture::{Fixture, VEHICLE};
use crate::local_cloud::program;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What one call of `podtether deadman` came to.
#[derive(Debug)]
struct Said {
    code: i32,
    /// What `--json` printed; null when nothing was.
    json: Value,
    stdout: String,
    stderr: String,
}

/// A call, with only what a shell would give it.
fn command(fixture: &Fixture, words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .arg("deadman")
        .args(words)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", fixture.path(""))
        .env("PODTETHER_CONFIG", fixture.config_file())
        .stdin(Stdio::null());
    command
}

fn deadman(fixture: &Fixture, words: &[&str]) -> Said {
    let output = command(fixture, words).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        json: serde_json::from_str(&stdout).unwrap_or(Value::Null),
        stdout,
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Arms for so many hours and says what it says of itself.
fn arm(fixture: &Fixture, hours: &str, more: &[&str]) -> Said {
    let base = ["arm", "--vehicle", VEHICLE, "--hours", hours, "--json"];
    deadman(fixture, &[&base[..], more].concat())
}

fn status(fixture: &Fixture) -> Said {
    deadman(fixture, &["status", "--vehicle", VEHICLE, "--json"])
}

/// The state's word and the exit code.
fn word(said: &Said) -> (String, i32) {
    let state = said.json["vehicles"][0]["state"].as_str().or(said.json["state"].as_str());
    (state.unwrap_or_default().to_owned(), said.code)
}

fn record(fixture: &Fixture) -> Value {
    serde_json::from_slice(&fs::read(fixture.path("logs/deadman.pid")).unwrap()).unwrap()
}

fn pid_of(record: &Value) -> Pid {
    Pid::from_raw(i32::try_from(record["pid"].as_u64().unwrap()).unwrap()).unwrap()
}

fn lives(pid: Pid) -> bool {
    test_kill_process(pid).is_ok()
}

/// Ends a fuse of this test without a word, as a power cut does.
async fn kill(fixture: &Fixture, pid: Pid) {
    kill_process(pid, Signal::KILL).unwrap();
    fixture
        .until("the fuse to be gone", async || {
            status(fixture).json["vehicles"][0]["state"] == "LOST"
        })
        .await;
}

/// The summaries in the vehicle's log folder, oldest first.
fn summaries(fixture: &Fixture) -> Vec<Value> {
    let mut paths: Vec<PathBuf> = fs::read_dir(fixture.path("logs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("deadman-") && name.ends_with(".json")
        })
        .collect();
    paths.sort();
    paths.iter().map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect()
}

/// Waits for the end of the fuse and returns its summary.
async fn ended(fixture: &Fixture) -> Value {
    fixture
        .until("the fuse's summary", async || {
            !fixture.path("logs/deadman.pid").exists() && !summaries(fixture).is_empty()
        })
        .await;
    summaries(fixture).pop().unwrap()
}
