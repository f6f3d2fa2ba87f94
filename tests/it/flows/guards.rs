//! Guardrails against an account that is not as declared. Nothing ever stands in the way of a stop.

use super::fixture::{Fixture, POD, VEHICLE, ensure, exec};
use podtether::error::{Failure, FailureKind};
use podtether::ops::{RunJobRequest, StopStatus, Tether};
use serde_json::json;

async fn refusals(tether: &Tether) -> [(&'static str, Failure); 4] {
    let job = RunJobRequest {
        name: "job".to_owned(),
        command: "touch ran".to_owned(),
        ..RunJobRequest::default()
    };
    let forced = RunJobRequest { force: true, ..job };
    [
        ("ensure_pod", tether.ensure_pod(&ensure(1)).await.unwrap_err()),
        ("run_job", tether.run_job(&forced).await.unwrap_err()),
        ("exec_on_pod", tether.exec_on_pod(&exec("touch ran")).await.unwrap_err()),
        ("terminate_pod", tether.terminate_pod(VEHICLE, "terminate rover-pod").await.unwrap_err()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undeclared_pod_refuses_everything_but_reads_and_stops() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let stranger = fixture.other_pod("somebody-elses").await;
    let changes = fixture.changes().len();
    for (tool, failure) in refusals(&tether).await {
        assert_eq!(failure.kind, FailureKind::Refused, "{tool}: {failure}");
        assert!(
            failure.message.contains("somebody-elses") && failure.message.contains(&stranger),
            "{tool}: {failure}"
        );
    }
    assert!(!fixture.volume().join("ran").exists());
    assert_eq!(fixture.changes().len(), changes);
    let status = tether.pod_status(None).await.unwrap();
    assert_eq!(status.unknown_pods.len(), 1, "{status:?}");
    let stopped = tether.stop_pod(VEHICLE).await.unwrap();
    assert_eq!((stopped.status, fixture.status().await.as_str()), (StopStatus::Stopped, "EXITED"));
    // B08: the stranger itself is not touched.
    let others = fixture.pods_named("somebody-elses").await;
    assert!(others[0]["status"] != "EXITED", "{others:?}");
}

/// B02: two pods of one name are told apart by nobody, so both ids are said and both are stopped.
#[tokio::test(flavor = "multi_thread")]
async fn two_pods_of_one_name_refuse_everything_and_a_stop_stops_both() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let first = fixture.running(&tether).await.pod.unwrap().id.0;
    let second = fixture.other_pod(POD).await;
    let changes = fixture.changes().len();
    for (tool, failure) in refusals(&tether).await {
        assert_eq!(failure.kind, FailureKind::Refused, "{tool}: {failure}");
        assert!(
            failure.message.contains(&first) && failure.message.contains(&second),
            "{tool}: {failure}"
        );
    }
    assert_eq!(fixture.changes().len(), changes);
    let stopped = tether.stop_pod(VEHICLE).await.unwrap();
    assert_eq!((stopped.status, stopped.asked), (StopStatus::Stopped, 2), "{stopped:?}");
    for pod in fixture.pods_named(POD).await {
        assert_eq!(pod["status"], json!("EXITED"));
    }
}
