//! The demo's training as the pod runs it: a process that streams and may be ended at any time.

use podtether::watch::metrics::MetricsParser;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};

/// Ends the process when the test ends early.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_training_streams_its_blocks_and_sigterm_ends_it_with_whole_files() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let mut child = Command::new(env!("CARGO_BIN_EXE_podtether"))
        .args(["train-auv", "--iterations", "300", "--envs", "8", "--seed", "3", "--out"])
        .arg(&out)
        .stdout(Stdio::piped())
        .spawn()
        .map(Ended)
        .unwrap();

    // Each block arrives while the training goes on, or this never sees the third.
    let mut stdout = child.0.stdout.take().unwrap();
    let mut parser = MetricsParser::new();
    let mut piece = [0; 512];
    while parser.blocks().len() < 3 {
        let read = stdout.read(&mut piece).unwrap();
        assert!(read > 0, "the training ended early");
        parser.push(&piece[..read]);
    }
    kill_process(Pid::from_child(&child.0), Signal::TERM).unwrap();
    // The rest has to be read, or a full pipe would hold the process.
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    parser.push(&rest);
    assert_eq!(child.0.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));

    let iterations: Vec<u64> = parser.blocks().iter().map(|block| block.iteration).collect();
    assert!(iterations.iter().copied().eq(0..iterations.len() as u64), "{iterations:?}");
    assert!(iterations.len() < 300, "SIGTERM came too late to show anything");
    let model = std::fs::read(out.join("model_0.json")).unwrap();
    let model: serde_json::Value = serde_json::from_slice(&model).unwrap();
    assert_eq!(model["seed"], 3);
    let table = std::fs::read_to_string(out.join("progress.csv")).unwrap();
    assert!(table.lines().count() >= 3 && table.ends_with('\n'), "{table}");
}
