//! What a supervised run does when somebody ends it.

use super::fixture::Fixture;
use super::supervised::Run;
use podtether::domain::JobState;
use rustix::process::Signal;
use serde_json::json;

/// Runs until the test makes the file `go`.
pub const WAITS: &str = "echo begun; until test -e go; do sleep 0.05; done; echo done";

/// C01: the harness of an agent ends what it started with SIGTERM. The job goes on, the pod runs and
/// bills, and the summary says so.
#[tokio::test(flavor = "multi_thread")]
async fn sigterm_leaves_at_once_and_says_that_the_pod_may_bill() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let mut run = Run::of(&fixture, WAITS, &[]);
    run.says("launched:").await;
    let changes = fixture.changes().len();
    run.signal(Signal::TERM);
    let outcome = run.end().await;
    assert_eq!(outcome.code, 6, "{outcome:#?}");
    let summary = outcome.file();
    let told = ["process_exit_code", "pod_may_still_be_running", "refused", "stop"];
    let told = told.map(|key| summary[key].clone());
    assert_eq!(json!(told), json!([6, true, false, null]));
    assert!(summary["ended_at"].is_string());
    assert_eq!((fixture.changes().len(), fixture.status().await.as_str()), (changes, "RUNNING"));
    let status = tether.job_status(summary["job_id"].as_str().unwrap(), 5, None).await.unwrap();
    assert_eq!(status.state, JobState::Running, "{status:?}");
}

/// One Ctrl-C is an orderly end: what there is comes home and the pod is off.
#[tokio::test(flavor = "multi_thread")]
async fn sigint_once_captures_and_stops() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let mut run = Run::of(&fixture, WAITS, &[]);
    run.says("launched:").await;
    let id = std::fs::read_dir(fixture.volume().join("jobs")).unwrap().next().unwrap().unwrap();
    let log = id.path().join("out.log");
    fixture
        .until("the job's first line", async || {
            std::fs::read(&log).is_ok_and(|text| text == b"begun\n")
        })
        .await;
    run.signal(Signal::INT);
    let outcome = run.end().await;
    assert_eq!(outcome.code, 1, "{outcome:#?}");
    let summary = outcome.file();
    assert_eq!(summary["stop"]["status"], "stopped", "{summary:#}");
    let told = ["process_exit_code", "pod_may_still_be_running", "capture_complete"];
    let told = told.map(|key| summary[key].clone());
    assert_eq!(json!(told), json!([1, false, true]));
    let here = fixture.path("logs/jobs").join(id.file_name()).join("out.log");
    assert_eq!(std::fs::read_to_string(here).unwrap(), "begun\n");
    assert_eq!(fixture.status().await, "EXITED");
}

/// Whoever asks for an end while the plan is made wants no launch.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_before_the_launch_launches_nothing() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let (before, changes) = (fixture.requests().len(), fixture.changes().len());
    let run = Run::of(&fixture, WAITS, &[]);
    fixture.until("the first look", async || fixture.requests().len() > before).await;
    run.signal(Signal::INT);
    let outcome = run.end().await;
    assert_eq!(outcome.code, 6, "{outcome:#?}");
    let summary = outcome.file();
    assert!(summary["reason"].as_str().unwrap().contains("before anything was launched"));
    let told = ["job_id", "refused", "pod_may_still_be_running"].map(|key| summary[key].clone());
    assert_eq!(json!(told), json!([null, false, true]));
    assert!(!fixture.volume().join("jobs").exists());
    let is_stop = |change: &super::fixture::Request| {
        change.body["action"] == "stop" && !change.path.contains("podtetherprobe")
    };
    assert!(!fixture.changes()[changes..].iter().any(is_stop));
    assert_eq!(fixture.status().await, "RUNNING");
}

/// A run that leaves its pod running says so when it is asked to end, too: nobody is to go to bed on it.
#[tokio::test(flavor = "multi_thread")]
async fn an_orderly_end_with_no_stop_does_not_promise_a_stop() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let mut run = Run::of(&fixture, WAITS, &["--no-stop"]);
    run.says("running 0:").await;
    run.signal(Signal::INT);
    let outcome = run.end().await;
    assert_eq!(outcome.code, 1, "{outcome:#?}");
    let said = &outcome.stderr;
    assert!(said.contains("the pod is left running and bills (--no-stop)"), "{said}");
    assert!(!said.contains("the pod is stopped"), "{said}");
    assert!(said.contains("last seen running; the pod was left running and bills"), "{said}");
    assert_eq!(fixture.status().await, "RUNNING");
}

/// Nor does a provider that does not answer keep anybody from leaving: nothing was begun that has an order.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_before_the_launch_does_not_wait_for_the_provider() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    for signal in [Signal::INT, Signal::TERM] {
        fixture.set_faults(&["reply-delayed=300"]).await;
        let before = fixture.requests().len();
        let run = Run::of(&fixture, WAITS, &[]);
        fixture.until("the first look", async || fixture.requests().len() > before).await;
        run.signal(signal);
        let outcome = run.end().await;
        fixture.set_faults(&[]).await;
        assert_eq!(outcome.code, 6, "{outcome:#?}");
        let reason = outcome.file()["reason"].to_string();
        assert!(reason.contains("before the pod was seen"), "{reason}");
        assert!(outcome.stderr.contains("stop it:   podtether stop"), "{}", outcome.stderr);
        assert!(!fixture.volume().join("jobs").exists());
    }
    assert_eq!(fixture.status().await, "RUNNING");
}
