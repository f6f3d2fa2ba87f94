//! A pod that no longer answers while its job is followed.

use super::fixture::Fixture;
use super::signals::WAITS;
use super::supervised::Run;
use serde_json::json;
use std::fs;
use std::time::Duration;

/// E07: neither the pod's shell nor the provider answers for a while. Unknown is not done: the run
/// goes on, and the end of the job is noticed although the held connection had been lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_outlives_a_loss_of_everything_but_the_job() {
    let mut fixture = Fixture::with_daemon();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let mut run = Run::of(&fixture, WAITS, &[]);
    run.says("launched:").await;
    fixture.daemon().kill();
    run.says("the pod did not answer").await;
    fixture.daemon().start_again();
    run.says("the provider says RUNNING").await;
    fs::write(fixture.volume().join("go"), "").unwrap();
    let outcome = run.end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert!(outcome.took < Duration::from_secs(80), "{:?}", outcome.took);
    let summary = outcome.file();
    assert_eq!(
        (&summary["state"], &summary["stop"]["status"]),
        (&json!("succeeded"), &json!("stopped"))
    );
    assert_eq!(summary["errors"][0]["step"], "follow");
    assert_eq!(fixture.status().await, "EXITED");
    let id = summary["job_id"].as_str().unwrap();
    let log = fs::read_to_string(fixture.path("logs/jobs").join(id).join("out.log")).unwrap();
    assert_eq!(log, "begun\ndone\n");
}

/// E08: somebody else stopped the pod. That is not success and not a pod that bills.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_stopped_behind_its_back_ends_the_run() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id.0;
    let mut run = Run::of(&fixture, WAITS, &[]);
    run.says("launched:").await;
    fixture.api("POST", &format!("/v2/pods/{pod}/action"), Some(json!({"action": "stop"}))).await;
    let outcome = run.end().await;
    assert_eq!(outcome.code, 1, "{outcome:#?}");
    assert!(outcome.took < Duration::from_secs(40), "{:?}", outcome.took);
    let summary = outcome.file();
    let told = ["process_exit_code", "pod_may_still_be_running", "capture_complete"];
    let told = told.map(|key| summary[key].clone());
    assert_eq!(json!(told), json!([1, false, false]));
    let errors = summary["errors"].to_string();
    assert!(errors.contains("EXITED before the job was seen to end"), "{errors}");
}

/// The container was started anew: the job is gone with it, and the pod does not stay on the bill.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_restarted_behind_its_back_ends_the_run_and_is_stopped() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id.0;
    let mut run = Run::of(&fixture, WAITS, &["--interval", "1"]);
    run.says("launched:").await;
    let action = json!({"action": "restart"});
    fixture.api("POST", &format!("/v2/pods/{pod}/action"), Some(action)).await;
    let outcome = run.end().await;
    assert_eq!(outcome.code, 1, "{outcome:#?}");
    let summary = outcome.file();
    assert_eq!(
        (&summary["state"], &summary["stop"]["status"]),
        (&json!("wrapper_lost"), &json!("stopped"))
    );
    assert_eq!(fixture.status().await, "EXITED");
}
