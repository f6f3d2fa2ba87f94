//! A refused launch stops nothing and starts nothing, ends with 2 and says so in a summary.

use super::fixture::{Fixture, VEHICLE};
use super::supervised::{Outcome, Run, summaries};
use podtether::ops::RunJobRequest;
use serde_json::{Value, json};
use std::fs;

fn assert_refused(outcome: &Outcome, says: &str) {
    assert_eq!(outcome.code, 2, "{outcome:#?}");
    let summary = outcome.file();
    let told = ["job_id", "refused", "process_exit_code", "stop", "spend"];
    let told = told.map(|key| summary[key].clone());
    assert_eq!(json!(told), json!([null, true, 2, null, null]), "{summary:#}");
    assert!(summary["reason"].as_str().unwrap().contains(says), "{summary:#}");
    assert!(outcome.stderr.contains(says), "{}", outcome.stderr);
    let path = summary["summary_path"].as_str().unwrap();
    assert!(path.contains("/logs/supervise-refused-"), "{path}");
}

/// A21 among them: no ceiling means unlimited, whatever is written there.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_launch_stops_nothing() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;

    // Nothing runs yet.
    let outcome = Run::of(&fixture, "true", &[]).end().await;
    assert_refused(&outcome, "no pod named");
    assert_eq!(outcome.summary["pod_may_still_be_running"], false);

    let pod = fixture.running(&tether).await.pod.unwrap().id.0;
    let job = RunJobRequest {
        name: "first".to_owned(),
        command: "until test -e go; do sleep 0.05; done".to_owned(),
        max_runtime_sec: Some(600),
        ..RunJobRequest::default()
    };
    let first = tether.run_job(&job).await.unwrap().job_id;
    let changes = fixture.changes().len();

    let outcome = Run::of(&fixture, "touch ran", &[]).end().await;
    assert_refused(&outcome, &first);
    assert!(!outcome.stderr.contains("refused: refused"), "{}", outcome.stderr);
    for ceiling in ["0", "-1", "604801"] {
        let outcome = Run::of(&fixture, "touch ran", &["--max-runtime-sec", ceiling]).end().await;
        assert_refused(&outcome, "not a ceiling");
    }
    let named = ["--job-name", "../x", "--command", "touch ran", "--sync-subdir", "none"];
    assert_refused(&Run::start(&fixture, &named).end().await, "job name");
    let outcome = Run::of(&fixture, "touch ran", &["--workdir", "x"]).end().await;
    assert_refused(&outcome, "workdir=");
    // The pod runs on, whatever was refused.
    assert!(outcome.stderr.contains("what runs bills: podtether audit"), "{}", outcome.stderr);
    // What could not be pulled at the end is no surprise of the end.
    for folder in ["../logs", "/logs", "a//b", "-x"] {
        let pulls = format!("--sync-subdir={folder}");
        let named = ["--job-name", "job", "--command", "touch ran", &pulls];
        assert_refused(&Run::start(&fixture, &named).end().await, "subdir=");
    }

    // What clap or the config turns down has no vehicle's folder for a summary.
    for (arguments, says) in [
        (["--max-runtime-sec", "off"], "off"),
        (["--interval", "0"], "--interval"),
        (["--vehicle", "rovr"], VEHICLE),
    ] {
        let outcome = Run::of(&fixture, "touch ran", &arguments).end().await;
        assert_eq!(outcome.code, 2, "{outcome:#?}");
        assert!(outcome.stderr.contains(says), "{}", outcome.stderr);
    }
    let outcome =
        Run::start(&fixture, &["--job-name", "job", "--command", "touch ran"]).end().await;
    assert_eq!((outcome.code, &outcome.summary), (2, &Value::Null), "--sync-subdir is required");

    assert_eq!(fixture.changes().len(), changes);
    // Nor is a summary that cannot be written: from it a run is taken up.
    fs::write(fixture.path("file"), "").unwrap();
    for place in [fixture.path(""), fixture.path("file/summary.json")] {
        let more = ["--summary-path", place.to_str().unwrap(), "--force"];
        let outcome = Run::of(&fixture, "touch ran", &more).end().await;
        assert_refused(&outcome, "cannot be written");
    }
    // Each refusal has a summary of its own, however fast they come.
    let refused = summaries(&fixture).len();
    let both = [Run::of(&fixture, "", &[]), Run::of(&fixture, "", &[])];
    for run in both {
        assert_refused(&run.end().await, "command is empty");
    }
    assert_eq!(summaries(&fixture).len(), refused + 2);

    assert_eq!(fixture.status().await, "RUNNING");
    assert!(!fixture.volume().join("ran").exists());
    let jobs = fs::read_dir(fixture.volume().join("jobs")).unwrap().count();
    assert_eq!(jobs, 1, "no folder was made for a job that was refused");
    let status = tether.job_status(&first, 1, None).await.unwrap();
    assert_eq!(status.state, podtether::domain::JobState::Running, "{status:?}");

    // Stopped behind its back: again a refusal.
    fixture.api("POST", &format!("/v2/pods/{pod}/action"), Some(json!({"action": "stop"}))).await;
    let outcome = Run::of(&fixture, "touch ran", &[]).end().await;
    assert_refused(&outcome, "EXITED, not RUNNING");
}
