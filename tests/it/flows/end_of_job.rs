//! How a supervised run ends when its job does, or does not.

use super::fixture::{Fixture, POD};
use super::summary::has_its_shape;
use super::supervised::Run;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// What a run has to have left behind when its pod was stopped and read back.
fn assert_stopped(summary: &Value) {
    assert_eq!(summary["stop"]["status"], "stopped", "{summary:#}");
    assert_eq!(summary["stop"]["observed"], "EXITED");
    assert_eq!(summary["pod_may_still_be_running"], false);
    assert!(summary["ended_at"].is_string() && summary["spend"]["total_usd"].is_number());
}

/// D01: what is on the pod is here before the pod is stopped. With the default interval of 45 s the
/// end is noticed at once all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_succeeds_is_captured_and_its_pod_is_stopped() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let command = "mkdir -p results && head -c 50000 /dev/urandom >'results/a b' && echo all done";
    let run = ["--job-name", "good", "--command", command, "--sync-subdir", "results"];
    let outcome = Run::start(&fixture, &run).end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert!(outcome.took < Duration::from_secs(40), "{:?}", outcome.took);
    let summary = outcome.file();
    has_its_shape(&summary);
    assert_stopped(&summary);
    let told = ["state", "exit_code", "process_exit_code", "capture_complete", "cloud", "mode"];
    let told = told.map(|key| summary[key].clone());
    assert_eq!(json!(told), json!(["succeeded", 0, 0, true, "local", "job"]));
    assert_eq!(summary["errors"], json!([]));
    assert_eq!((&summary["refused"], &summary["force_stopped"]), (&json!(false), &json!(false)));
    assert_eq!(fixture.status().await, "EXITED");

    let id = summary["job_id"].as_str().unwrap();
    let log = fs::read_to_string(fixture.path("logs/jobs").join(id).join("out.log")).unwrap();
    assert_eq!(log, "all done\n");
    let here = fs::read(fixture.path("logs/results/a b")).unwrap();
    assert!(here == fs::read(fixture.volume().join("results/a b")).unwrap());
    for part in ["job_dir", "analysis"] {
        assert_eq!(summary["pulled"][part]["complete"], true, "{part}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_fails_is_captured_and_its_pod_is_stopped() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let outcome = Run::of(&fixture, "echo what went wrong; exit 3", &[]).end().await;
    assert_eq!(outcome.code, 1, "{outcome:#?}");
    let summary = outcome.file();
    assert_stopped(&summary);
    let told = ["state", "exit_code", "process_exit_code", "capture_complete"];
    let told = told.map(|key| summary[key].clone());
    assert_eq!(json!(told), json!(["failed", 3, 1, true]));
    let id = summary["job_id"].as_str().unwrap();
    let log = fs::read_to_string(fixture.path("logs/jobs").join(id).join("out.log")).unwrap();
    assert_eq!(log, "what went wrong\n");
    assert_eq!(fixture.status().await, "EXITED");
}

/// The pod's stop is not held up by results that do not come, and no such run is a success.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_not_there_does_not_keep_the_pod_running() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let run = ["--job-name", "job", "--command", "true", "--sync-subdir", "no/such"];
    let outcome = Run::start(&fixture, &run).end().await;
    assert_eq!(outcome.code, 1, "{outcome:#?}");
    let summary = outcome.file();
    assert_stopped(&summary);
    assert_eq!(
        (&summary["state"], &summary["capture_complete"]),
        (&json!("succeeded"), &json!(false))
    );
    assert_eq!(summary["errors"][0]["step"], "capture");
    assert_eq!(fixture.status().await, "EXITED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_at_its_ceiling_is_ended_captured_and_its_pod_is_stopped() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let outcome =
        Run::of(&fixture, "echo begun; sleep 600", &["--max-runtime-sec", "1"]).end().await;
    assert_eq!(outcome.code, 1, "{outcome:#?}");
    assert!(outcome.took < Duration::from_secs(40), "{:?}", outcome.took);
    let summary = outcome.file();
    assert_stopped(&summary);
    let told = ["state", "exit_code", "force_stopped", "capture_complete"];
    let told = told.map(|key| summary[key].clone());
    assert_eq!(json!(told), json!(["timed_out", 124, false, true]));
    assert_eq!(fixture.status().await, "EXITED");
}

/// C06: the end by force comes when it was told to, not an interval later.
#[tokio::test(flavor = "multi_thread")]
async fn past_max_wait_a_running_job_is_captured_and_its_pod_is_stopped() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let outcome = Run::of(&fixture, "echo begun; sleep 600", &["--max-wait", "3"]).end().await;
    assert_eq!(outcome.code, 1, "{outcome:#?}");
    assert!(outcome.took < Duration::from_secs(40), "{:?}", outcome.took);
    let summary = outcome.file();
    assert_stopped(&summary);
    assert_eq!((&summary["force_stopped"], &summary["max_wait_sec"]), (&json!(true), &json!(3)));
    assert_eq!(summary["state"], "running");
    let id = summary["job_id"].as_str().unwrap();
    let log = fs::read_to_string(fixture.path("logs/jobs").join(id).join("out.log")).unwrap();
    assert_eq!(log, "begun\n");
    assert_eq!(fixture.status().await, "EXITED");
}

/// A01, A04: the run ends, and says that it does not know.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_never_takes_effect_ends_in_exit_code_6() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    fixture.set_faults(&["stop-without-effect"]).await;
    let outcome = Run::of(&fixture, "true", &["--stop-budget-sec", "1"]).end().await;
    assert_eq!(outcome.code, 6, "{outcome:#?}");
    let summary = outcome.file();
    let told = ["state", "process_exit_code", "pod_may_still_be_running", "stop_escalated"];
    let told = told.map(|key| summary[key].clone());
    assert_eq!(json!(told), json!(["succeeded", 6, true, true]));
    assert_eq!(summary["stop"]["status"], "stop_unconfirmed");
    assert!(outcome.stderr.contains("MAY STILL BE RUNNING"), "{}", outcome.stderr);
    let pods = fixture.pods_named(POD).await;
    assert_eq!((pods.len(), &pods[0]["status"]), (1, &json!("RUNNING")));
}

#[tokio::test(flavor = "multi_thread")]
async fn with_no_stop_the_pod_is_left_running_and_that_is_said() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let outcome = Run::of(&fixture, "true", &["--no-stop"]).end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    let summary = outcome.file();
    assert_eq!(
        (&summary["stop"], &summary["pod_may_still_be_running"]),
        (&Value::Null, &json!(true))
    );
    assert!(outcome.stderr.contains("left running and bills"), "{}", outcome.stderr);
    assert_eq!(fixture.status().await, "RUNNING");
}
