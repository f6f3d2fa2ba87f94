//! The server as a client on the official Python SDK meets it: PyPI `mcp`, version 2.3.0 here.
//! `PODTETHER_TEST_PYTHON` names an interpreter that has it (`run.sh test` sets it).

use crate::mcp::scene::{Scene, program};
use serde_json::{Value, json};
use std::process::Command;

const MODES: [&str; 3] = ["legacy", "auto", "2026-07-28"];

/// An interpreter with the SDK, or `None` after saying so. Whoever names one means it.
fn python() -> Option<String> {
    let named = std::env::var("PODTETHER_TEST_PYTHON").ok().filter(|name| !name.is_empty());
    let python = named.clone().unwrap_or_else(|| "python3".to_owned());
    let asked = Command::new(&python)
        .args(["-c", "import importlib.metadata as m, mcp; print(m.version('mcp')); mcp.Client"])
        .output();
    let (why, version) = match asked {
        Ok(asked) if asked.status.success() => {
            (None, String::from_utf8_lossy(&asked.stdout).trim().to_owned())
        }
        Ok(asked) => (
            String::from_utf8_lossy(&asked.stderr).lines().last().map(str::to_owned),
            String::new(),
        ),
        Err(error) => (Some(error.to_string()), String::new()),
    };
    if !version.is_empty() {
        eprintln!("Python SDK mcp {version}");
        return Some(python);
    }
    assert!(named.is_none(), "PODTETHER_TEST_PYTHON={python} has no mcp 2.x: {why:?}");
    eprintln!("SKIPPED: {python} has no PyPI package mcp 2.x ({}).", why.unwrap_or_default());
    eprintln!("SKIPPED: pip install mcp==2.3.0 and set PODTETHER_TEST_PYTHON to run this test.");
    None
}

/// Contract §2, as a client of somebody else makes the calls; the SDK checks each answer against
/// its output schema.
#[test]
fn the_official_python_client_makes_the_whole_round_in_every_mode() {
    let Some(python) = python() else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/mcp_loop.py");
    std::thread::scope(|scope| {
        for mode in MODES {
            let python = &python;
            scope.spawn(move || {
                let scene = Scene::set();
                let ran = Command::new(python)
                    .arg(script)
                    .args([program().as_os_str(), scene.config().as_os_str()])
                    .arg(mode)
                    .output()
                    .unwrap();
                let said = String::from_utf8_lossy(&ran.stderr);
                assert!(ran.status.success(), "{mode}: {said}");
                let seen: Value = serde_json::from_slice(&ran.stdout).unwrap();
                assert!(seen["tools"].as_u64() >= Some(10), "{mode}: {seen}");
                for (field, value) in [
                    ("ensure_pod", json!("running")),
                    ("job_status", json!("succeeded")),
                    ("answer", json!("42")),
                    ("stop_pod", json!("stopped")),
                    ("refused", json!("refused")),
                    ("is_error", json!(true)),
                ] {
                    assert_eq!(seen[field], value, "{mode}: {seen}");
                }
            });
        }
    });
}
