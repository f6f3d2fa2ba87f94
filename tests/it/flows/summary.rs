//! The summary's keys and their types, however a run ends; and that the file is whole at every moment.

use super::fixture::Fixture;
use super::signals::WAITS;
use super::supervised::{Run, summaries, summary};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The keys of a summary, in every run (contract, section 11), and what each may be: `b` a truth value,
/// `n` a number, `s` a text, `o` an object, `a` a list, `0` null.
const KEYS: [(&str, &str); 32] = [
    ("adopted_after_launch_timeout", "b"),
    ("capture_complete", "b"),
    ("cloud", "s"),
    ("ended_at", "s0"),
    ("errors", "a"),
    ("exit_code", "n0"),
    ("force_stopped", "b"),
    ("fuse_claim", "s0"),
    ("job_id", "s0"),
    ("latest_metrics", "o0"),
    ("max_wait_sec", "n0"),
    ("metrics", "o0"),
    ("mode", "s"),
    ("pid", "n"),
    ("pod_id", "s0"),
    ("pod_may_still_be_running", "b"),
    ("pod_started_at", "s0"),
    ("process_exit_code", "n0"),
    ("pulled", "o"),
    ("reason", "s0"),
    ("refused", "b"),
    ("resumed", "n"),
    ("slept_for_sec", "n"),
    ("spec", "o"),
    ("spend", "o0"),
    ("started_at", "s"),
    ("state", "s0"),
    ("stop", "o0"),
    ("stop_escalated", "b"),
    ("stops_by", "s0"),
    ("summary_path", "s0"),
    ("version", "n"),
];

fn kind(value: &Value) -> char {
    match value {
        Value::Null => '0',
        Value::Bool(_) => 'b',
        Value::Number(_) => 'n',
        Value::String(_) => 's',
        Value::Array(_) => 'a',
        Value::Object(_) => 'o',
    }
}

/// Every key and no other, each of its type, and one truth under both names of the metrics.
pub fn has_its_shape(summary: &Value) {
    let wanted: BTreeMap<&str, &str> = KEYS.into_iter().collect();
    let found: Vec<&str> = summary.as_object().unwrap().keys().map(String::as_str).collect();
    let mut sorted = found.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, wanted.keys().copied().collect::<Vec<_>>());
    for (key, kinds) in wanted {
        assert!(kinds.contains(kind(&summary[key])), "{key}: {}", summary[key]);
    }
    assert_eq!(summary["metrics"], summary["latest_metrics"]);
    for trouble in summary["errors"].as_array().unwrap() {
        assert!(trouble["step"].is_string() && trouble["error"].is_string(), "{trouble}");
    }
    for key in ["job_dir", "analysis", "while_running"] {
        assert!(summary["pulled"].get(key).is_some(), "pulled.{key}");
    }
}

#[test]
fn the_frozen_example_has_the_shape_of_today() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/state/supervise-v1.json");
    has_its_shape(&serde_json::from_slice(&fs::read(path).unwrap()).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_has_the_shape_of_a_summary_with_a_reason() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let outcome = Run::of(&fixture, "true", &["--max-runtime-sec", "600000"]).end().await;
    assert_eq!(outcome.code, 2, "{outcome:#?}");
    let summary = outcome.file();
    has_its_shape(&summary);
    let told = ["job_id", "refused", "process_exit_code", "stop"].map(|key| summary[key].clone());
    assert_eq!(json!(told), json!([null, true, 2, null]));
    assert!(summary["reason"].as_str().unwrap().contains("limits.budget_usd"), "{summary:#}");
}

/// While a run goes on its file is read all the time: from the launch on it is there, whole, with every
/// key, and never says that a pod is off that was not read so.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_finds_the_whole_summary_at_every_moment() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let mut run = Run::of(&fixture, WAITS, &["--interval", "1"]);
    fixture.until("a summary", async || !summaries(&fixture).is_empty()).await;
    let path = summaries(&fixture).remove(0);
    let (mut reads, mut was_following, mut states) = (0, false, Vec::new());
    while !run.has_ended() {
        let text = fs::read(&path).unwrap();
        let found: Value = serde_json::from_slice(&text).unwrap();
        has_its_shape(&found);
        if found["pod_may_still_be_running"] == false {
            assert_eq!(found["stop"]["observed"], "EXITED", "{found:#}");
        }
        if found["state"] == "running" && !was_following {
            was_following = true;
            fs::write(fixture.volume().join("go"), "").unwrap();
        }
        if states.last() != Some(&found["state"]) {
            states.push(found["state"].clone());
        }
        reads += 1;
        tokio::task::yield_now().await;
    }
    assert!(reads > 50, "read {reads} times");
    let last: Vec<_> = states.iter().rev().take(2).rev().cloned().collect();
    assert_eq!(json!(last), json!(["running", "succeeded"]), "{states:?}");
    assert_eq!(run.end().await.code, 0);
    assert_eq!(summary(&fixture).1["process_exit_code"], 0);
}

/// SIGTERM in the middle, an orderly end, and an end by force: the same keys.
#[tokio::test(flavor = "multi_thread")]
async fn however_a_run_ends_its_summary_has_every_key() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    for (signal, more, code) in [
        (Some(Signal::TERM), None, 6),
        (Some(Signal::INT), None, 1),
        (None, Some(["--max-wait", "2"]), 1),
    ] {
        fixture.running(&tether).await;
        let more = more.iter().flatten().copied().chain(["--force"]).collect::<Vec<_>>();
        let mut run = Run::of(&fixture, WAITS, &more);
        run.says("launched:").await;
        if let Some(signal) = signal {
            run.signal(signal);
        }
        let outcome = run.end().await;
        assert_eq!(outcome.code, code, "{outcome:#?}");
        has_its_shape(&outcome.file());
        assert_eq!(outcome.summary["force_stopped"], signal.is_none());
    }
}

/// E04: what keeps the summary from being written is told once, stands in what is printed, and nobody is sent
/// to an old file for the truth.
#[tokio::test(flavor = "multi_thread")]
async fn a_summary_that_cannot_be_written_any_more_is_told_once_and_not_pointed_at() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let folder = fixture.path("out");
    let path = folder.join("summary.json");
    let mut run = Run::of(&fixture, WAITS, &["--summary-path", path.to_str().unwrap()]);
    run.says("running 0:").await;
    // The run may be making the folder anew at this very moment.
    let takes_its_place = async || {
        let _ = fs::remove_dir_all(&folder);
        fs::write(&folder, "").is_ok()
    };
    fixture.until("a file in place of the folder", takes_its_place).await;
    fs::write(fixture.volume().join("go"), "").unwrap();
    let outcome = run.end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    let said = &outcome.stderr;
    assert_eq!(
        said.matches("could not be written").count(),
        2,
        "as it goes, and at the end: {said}"
    );
    assert!(said.contains("summary: NOT WRITTEN"), "{said}");
    assert!(outcome.summary["errors"].to_string().contains("\"step\":\"summary\""), "{said}");
    assert_eq!(fixture.status().await, "EXITED");
}
