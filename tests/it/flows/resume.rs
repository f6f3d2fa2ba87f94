//! `podtether supervise --resume`: a run whose process is gone is taken up by another.

use super::fixture::{Fixture, VEHICLE};
use super::signals::WAITS;
use super::summary::has_its_shape;
use super::supervised::{Run, summary};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// Prints two blocks as a training does, then waits for the file `go`, and says that it ran.
const TRAINS: &str = "echo run >>runs; for i in 3 4; do printf 'Learning iteration %s/10\\n  Mean reward: %s.50\\n\\n' $i $i; done; until test -e go; do sleep 0.05; done";

/// A run that was launched and killed with its whole group. Its summary, as it was left.
async fn killed(fixture: &Fixture, command: &str, more: &[&str]) -> (PathBuf, Value) {
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let mut run = Run::of(fixture, command, &[&["--interval", "1"], more].concat());
    run.says("launched:").await;
    fixture.until("a look", async || summary(fixture).1["state"] == "running").await;
    run.kill_group();
    summary(fixture)
}

fn ran(fixture: &Fixture) -> usize {
    let runs = fs::read_to_string(fixture.volume().join("runs")).unwrap_or_default();
    assert_eq!(fs::read_dir(fixture.volume().join("jobs")).unwrap().count(), 1);
    runs.lines().count()
}

fn go(fixture: &Fixture) {
    fs::write(fixture.volume().join("go"), "").unwrap();
}

/// C01: the same job, the same deadline, the same file; nothing is launched again.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_process_is_gone_is_followed_to_its_end_and_its_pod_is_stopped() {
    let fixture = Fixture::new();
    let (path, before) = killed(&fixture, TRAINS, &[]).await;
    has_its_shape(&before);
    let told = ["pod_may_still_be_running", "ended_at", "resumed"].map(|key| before[key].clone());
    assert_eq!(json!(told), json!([true, null, 0]));
    let mut run = Run::resume(&fixture, &path, &[]);
    run.says("taken up: job").await;
    run.says("iteration 3/10").await;
    // Whoever comes second is told that somebody follows it already.
    let second = Run::resume(&fixture, &path, &[]);
    let second = second.end().await;
    assert_eq!(second.code, 2, "{second:#?}");
    assert!(second.stderr.contains("lives and follows job"), "{second:#?}");
    let way_out = format!("podtether stop --vehicle {VEHICLE}\n");
    assert!(second.stderr.contains(&way_out), "{second:#?}");
    go(&fixture);
    let outcome = run.end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    let after = outcome.file();
    has_its_shape(&after);
    for key in ["job_id", "pod_id", "started_at", "max_wait_sec", "spec", "pod_started_at"] {
        assert_eq!(after[key], before[key], "{key}");
    }
    let told = ["resumed", "state", "capture_complete"].map(|key| after[key].clone());
    assert_eq!(json!(told), json!([1, "succeeded", true]));
    assert_eq!(after["metrics"]["iteration"], 3, "the log is read from its beginning");
    assert_eq!((ran(&fixture), fixture.status().await.as_str()), (1, "EXITED"));
    // It is over now.
    let again = Run::resume(&fixture, &path, &[]).end().await;
    assert_eq!(again.code, 2, "{again:#?}");
    assert!(again.stderr.contains("that run is over since"), "{again:#?}");
    assert_eq!(summary(&fixture).1, after, "a refusal leaves the summary alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_ended_meanwhile_is_captured_and_its_pod_is_stopped() {
    let fixture = Fixture::new();
    let (path, before) = killed(&fixture, WAITS, &[]).await;
    go(&fixture);
    let job = fixture.volume().join("jobs").join(before["job_id"].as_str().unwrap());
    fixture.until("the job's end", async || job.join("exit_code").exists()).await;
    let outcome = Run::resume(&fixture, &path, &["--vehicle", VEHICLE]).end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    let told = ["state", "capture_complete", "pod_may_still_be_running"];
    let told = told.map(|key| outcome.file()[key].clone());
    assert_eq!(json!(told), json!(["succeeded", true, false]));
    assert_eq!(fixture.status().await, "EXITED");
}

/// What was left by SIGTERM is no end: it can be taken up too.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_left_is_taken_up_and_ended_by_its_own_deadline() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let mut run = Run::of(&fixture, WAITS, &["--max-wait", "3"]);
    run.says("launched:").await;
    run.signal(rustix::process::Signal::TERM);
    let left = run.end().await;
    assert_eq!(left.code, 6, "{left:#?}");
    let path = left.summary["summary_path"].as_str().unwrap().to_owned();
    let way_out = format!("supervise --resume '{}'", path.replace('\'', "'\\''"));
    assert!(left.stderr.contains(&way_out), "{}: {way_out}", left.stderr);
    // C02: a new process gives no more time than the first one had.
    let started = left.summary["started_at"].as_str().unwrap().to_owned();
    let outcome = Run::resume(&fixture, path.as_ref(), &[]).end().await;
    assert_eq!(outcome.code, 1, "{outcome:#?}");
    let after = outcome.file();
    let told = ["force_stopped", "started_at", "max_wait_sec"].map(|key| after[key].clone());
    assert_eq!(json!(told), json!([true, started, 3]));
    assert_eq!(fixture.status().await, "EXITED");
}

/// E08: somebody else ended the bill. There is nothing to capture, and that is said.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_is_off_ends_the_run_with_what_is_home() {
    let fixture = Fixture::new();
    let (path, before) = killed(&fixture, WAITS, &["--pull-every-sec", "1"]).await;
    let tether = fixture.tether().await;
    assert!(tether.stop_pod(VEHICLE).await.unwrap().is_off());
    let outcome = Run::resume(&fixture, &path, &[]).end().await;
    assert_eq!(outcome.code, 1, "{outcome:#?}");
    let after = outcome.file();
    has_its_shape(&after);
    let told = ["pod_may_still_be_running", "capture_complete", "process_exit_code", "resumed"];
    let told = told.map(|key| after[key].clone());
    assert_eq!(json!(told), json!([false, false, 1, 1]));
    assert_eq!(after["job_id"], before["job_id"]);
    let errors = after["errors"].to_string();
    assert!(errors.contains("EXITED before the job was seen to end"), "{errors}");
    // What was so while it was tried is not so at the end.
    assert!(!outcome.stderr.contains("still billing"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("nothing can be captured"), "{}", outcome.stderr);
}

/// What somebody started since is not this run's to stop, by a new boot or by another job.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_of_this_run_is_never_stopped_by_it() {
    let fixture = Fixture::new();
    let (path, before) = killed(&fixture, WAITS, &[]).await;
    let left = fs::read(&path).unwrap();
    let refused = async |words: &str| {
        let outcome = Run::resume(&fixture, &path, &[]).end().await;
        assert_eq!(outcome.code, 2, "{outcome:#?}");
        assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
        assert_eq!(fs::read(&path).unwrap(), left, "a refusal leaves the summary alone");
        assert_eq!(fixture.status().await, "RUNNING");
    };
    // Its job ends, and another session uses the pod.
    go(&fixture);
    let job = fixture.volume().join("jobs").join(before["job_id"].as_str().unwrap());
    fixture.until("the job's end", async || job.join("exit_code").exists()).await;
    let tether = fixture.tether().await;
    // Ids are told apart by the second.
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let other = podtether::ops::RunJobRequest {
        name: "other".into(),
        command: "sleep 600".into(),
        max_runtime_sec: Some(600),
        ..podtether::ops::RunJobRequest::default()
    };
    let other = tether.run_job(&other).await.unwrap();
    refused(&format!("job {} lives on pod", other.job_id)).await;
    // A new boot, as the provider tells it, a minute or more later.
    let mut older: Value = serde_json::from_slice(&left).unwrap();
    older["pod_started_at"] = json!("2026-07-03T13:00:00Z");
    fs::write(&path, older.to_string()).unwrap();
    let outcome = Run::resume(&fixture, &path, &[]).end().await;
    assert_eq!(outcome.code, 2, "{outcome:#?}");
    assert!(outcome.stderr.contains("was started again at"), "{}", outcome.stderr);
    assert_eq!(fixture.status().await, "RUNNING");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_taken_up_is_refused_by_name() {
    let fixture = Fixture::new();
    let example =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/state/supervise-v1.json");
    let mine = fixture.path("mine.json");
    let changed = |key: &str, value: Value| {
        let mut summary: Value = serde_json::from_slice(&fs::read(&example).unwrap()).unwrap();
        summary["cloud"] = json!("local");
        summary["spec"]["vehicle"] = json!(VEHICLE);
        summary[key] = value;
        fs::write(&mine, summary.to_string()).unwrap();
        mine.clone()
    };
    let elsewhere = example.clone();
    for (path, more, words) in [
        (fixture.config_file(), &[][..], "is no summary of podtether supervise"),
        (fixture.path("none.json"), &[], "could not be read"),
        (elsewhere, &[], "is of a run on another cloud"),
        (
            changed(
                "spec",
                json!({"vehicle": "glider", "name": "x", "command": "x", "no_stop": false}),
            ),
            &[],
            "which this config does not declare",
        ),
    ] {
        let outcome = Run::resume(&fixture, &path, more).end().await;
        assert_eq!(outcome.code, 2, "{outcome:#?}");
        assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
        // The run that was meant may have left its pod running: that it has not is nobody's to say.
        assert_eq!(outcome.summary["failure"]["still_billing"], "unknown", "{outcome:#?}");
    }
    let path = changed("version", json!(99));
    let outcome = Run::resume(&fixture, &path, &[]).end().await;
    assert!(outcome.code == 2 && outcome.stderr.contains("newer podtether"), "{outcome:#?}");
    let path = changed("resumed", json!(0));
    let outcome = Run::resume(&fixture, &path, &["--vehicle", "glider"]).end().await;
    let words = format!("is of a run of vehicle {VEHICLE}, not of glider");
    assert!(outcome.code == 2 && outcome.stderr.contains(&words), "{outcome:#?}");
    for (flag, value) in [
        ("--job-name", Some("x")),
        ("--command", Some("true")),
        ("--workdir", Some("/")),
        ("--max-runtime-sec", Some("5")),
        ("--max-wait", Some("5")),
        ("--backstop", Some("5")),
        ("--sync-subdir", Some("none")),
        ("--summary-path", Some("x")),
        ("--no-stop", None),
        ("--force", None),
    ] {
        let more: Vec<&str> = [flag].into_iter().chain(value).collect();
        let outcome = Run::resume(&fixture, &path, &more).end().await;
        assert_eq!(outcome.code, 2, "{outcome:#?}");
        assert!(
            outcome.stderr.contains(flag) && outcome.stderr.contains("--resume"),
            "{outcome:#?}"
        );
    }
}
