//! The real program, started to be killed: as a command, or as an MCP server that is asked for one
//! tool.

use super::cell::Scenario;
use super::rig::Rig;
use crate::flows::fixture::VEHICLE;
use crate::flows::twin::CEILING;
use crate::local_cloud::program;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

/// How it ended.
#[derive(Debug)]
pub enum Ended {
    /// By this signal.
    Killed(i32),
    /// By itself, with this to say.
    Done { code: Option<i32>, answer: Value },
}

/// Started, and not waited for yet.
pub struct Victim {
    child: Child,
    answer: mpsc::Receiver<Value>,
}

/// A job that appends a line to the file `runs` and ends when there is a file `go`.
pub const WAITING_JOB: &str = "echo run >>runs; until test -e go; do sleep 0.05; done";
/// The same, until its end is waited for: then a run that follows it waits in every case.
const SHORT_JOB: &str = "echo run >>runs; until test -e held; do sleep 0.05; done";

/// The arguments of the tool that a scenario calls.
pub fn tool_call(scenario: Scenario) -> Option<(&'static str, Value)> {
    match scenario {
        Scenario::Create | Scenario::Start => Some(("ensure_pod", json!({"wait_sec": 0}))),
        Scenario::Launch => Some((
            "run_job",
            json!({"name": "job", "command": WAITING_JOB, "max_runtime_sec": 120}),
        )),
        Scenario::StopByTool => Some(("stop_pod", json!({"vehicle": VEHICLE}))),
        Scenario::Supervise | Scenario::StopVehicle | Scenario::StopAll => None,
    }
}

fn arguments(scenario: Scenario) -> Vec<&'static str> {
    match scenario {
        Scenario::StopVehicle => vec!["stop", "--json", "--vehicle", VEHICLE],
        Scenario::StopAll => vec!["stop", "--json", "--all"],
        Scenario::Supervise => vec![
            "supervise",
            "--json",
            "--job-name",
            "job",
            "--command",
            SHORT_JOB,
            "--sync-subdir",
            "none",
            "--interval",
            "1",
        ],
        _ => vec!["mcp"],
    }
}

/// The program on the rig's config, with no more than a shell would give it.
pub fn command(rig: &Rig, arguments: &[&str], largest_file: Option<u64>) -> Command {
    let mut words: Vec<OsString> = Vec::new();
    if let Some(bytes) = largest_file {
        // The write that crosses the limit is cut off there, and the next one is the end (SIGXFSZ).
        words.extend(["prlimit".into(), format!("--fsize={bytes}").into(), "--core=0".into()]);
    }
    words.push(program().into());
    words.extend(arguments.iter().map(Into::into));
    words.extend(["--config".into(), rig.fixture.config_file().into()]);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(rig.fixture.path("")).env_clear();
    command.env("HOME", rig.fixture.path("")).env("PATH", std::env::var_os("PATH").unwrap());
    command
}

impl Victim {
    pub fn start(rig: &Rig, scenario: Scenario, largest_file: Option<u64>) -> Self {
        let mut command = command(rig, &arguments(scenario), largest_file);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        std::thread::spawn(move || stderr.read_to_end(&mut Vec::new()));
        let mut stdin = child.stdin.take().unwrap();
        let call = tool_call(scenario);
        if let Some((tool, arguments)) = &call {
            for message in conversation(tool, arguments) {
                // It may be dead before it has read everything.
                let _ = writeln!(stdin, "{message}");
            }
        }
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, answer) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message: Value = serde_json::from_str(&line).unwrap_or_default();
                if call.is_none() || message["id"] == 2 {
                    let _ = send.send(message);
                    break;
                }
            }
            // The client stays until it has its answer, and then it leaves.
            drop(stdin);
        });
        Self { child, answer }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn ended(mut self) -> Ended {
        let start = std::time::Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < CEILING, "neither killed nor done");
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        match status.signal() {
            Some(signal) => Ended::Killed(signal),
            None => Ended::Done {
                code: status.code(),
                answer: self.answer.recv_timeout(CEILING).unwrap_or_default(),
            },
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn conversation(tool: &str, arguments: &Value) -> [Value; 3] {
    [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "victim", "version": "1"},
        }}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments,
        }}),
    ]
}
