//! What the provider does to people: lost answers, no machine, slow boots, stops without effect.

use super::fixture::{Fixture, POD, QUICK, VEHICLE, ensure, exec};
use chrono::{DateTime, TimeDelta};
use podtether::apply::{OffSettings, Settings};
use podtether::error::{FailureKind, StillBilling};
use podtether::ops::{EnsureStatus, RunJobRequest, StopStatus};
use serde_json::json;
use std::time::{Duration, Instant};

/// B01, B02, A05: the answer to a create is lost after it took effect.
#[tokio::test(flavor = "multi_thread")]
async fn a_create_whose_answer_was_lost_is_found_and_never_sent_again() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.set_faults(&["create-reply-lost"]).await;
    let answer = tether.ensure_pod(&ensure(45)).await.unwrap();
    assert_eq!(answer.status, Some(EnsureStatus::Adopted), "{answer:?}");
    let creates = || fixture.changes().iter().filter(|change| change.path == "/v2/pods").count();
    assert_eq!((creates(), fixture.pods_named(POD).await.len()), (1, 1));
    assert_eq!(tether.exec_on_pod(&exec("true")).await.unwrap().exit_code, Some(0));
    // From now on it is the vehicle's pod like any other.
    let answer = tether.ensure_pod(&ensure(45)).await.unwrap();
    assert_eq!(answer.status, Some(EnsureStatus::Running));
    assert_eq!((creates(), fixture.pods_named(POD).await.len()), (1, 1));
}

/// I08: no machine is an answer with ways out, and what is on the bill all the same is said.
#[tokio::test(flavor = "multi_thread")]
async fn no_capacity_is_an_answer_with_ways_out() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.set_faults(&["no-capacity"]).await;
    let answer = tether.ensure_pod(&ensure(45)).await.unwrap();
    assert_eq!(answer.status, Some(EnsureStatus::StartFailedNoGpu), "{answer:?}");
    assert!(fixture.pods_named(POD).await.is_empty());
    let ways = answer.recovery.join("\n");
    assert!(ways.contains("gpu_availability") && ways.contains("ensure_pod"), "{ways}");
    assert!(!ways.contains("terminate_pod"), "there is no pod to terminate: {ways}");
    // The volume came before the pod and bills.
    fixture.volume_id().await;
    assert!(
        answer.message.contains("rover-volume") && answer.message.contains("a month"),
        "{}",
        answer.message
    );
    // The second try has nothing left to create but the pod.
    let again = tether.ensure_pod(&ensure(45)).await.unwrap();
    assert!(!again.message.contains("rover-volume"), "{}", again.message);
    fixture.volume_id().await;

    // A stopped pod whose host is full keeps its data and is not replaced behind anybody's back.
    fixture.set_faults(&[]).await;
    let pod = fixture.running(&tether).await.pod.unwrap().id.0;
    tether.stop_pod(VEHICLE).await.unwrap();
    fixture.set_faults(&["no-capacity"]).await;
    let answer = tether.ensure_pod(&ensure(45)).await.unwrap();
    assert_eq!(answer.status, Some(EnsureStatus::StartFailedNoGpu), "{answer:?}");
    let ways = answer.recovery.join("\n");
    assert!(ways.contains("confirm=\"terminate rover-pod\""), "{ways}");
    let pods = fixture.pods_named(POD).await;
    assert_eq!(
        (pods.len(), &pods[0]["id"], &pods[0]["status"]),
        (1, &json!(pod), &json!("EXITED"))
    );
}

/// B03: a pod that is not ready in time is named in the answer, and the next call goes on with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_boot_is_waited_for_over_several_calls() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.set_faults(&["slow-boot=4"]).await;
    let start = Instant::now();
    let answer = tether.ensure_pod(&ensure(1)).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert_eq!(answer.status, Some(EnsureStatus::StillInitializing), "{answer:?}");
    let pod = answer.pod.unwrap();
    assert!(answer.message.contains(&pod.id.0) && answer.message.contains("on the bill"));
    let answer = tether.ensure_pod(&ensure(80)).await.unwrap();
    assert_eq!(answer.status, Some(EnsureStatus::Running), "{answer:?}");
    assert_eq!(answer.pod.unwrap().id, pod.id);
    assert_eq!(fixture.pods_named(POD).await.len(), 1);
}

/// I05, A12: a boot past boot_max_sec is stopped, read back, and its cost is said.
#[tokio::test(flavor = "multi_thread")]
async fn a_boot_without_end_is_stopped_and_its_cost_is_said() {
    let fixture = Fixture::with("boot_max_sec: 2\n");
    let tether = fixture.tether().await;
    fixture.set_faults(&["slow-boot=600"]).await;
    let failure = tether.ensure_pod(&ensure(45)).await.unwrap_err();
    let pods = fixture.pods_named(POD).await;
    assert_eq!((pods.len(), &pods[0]["status"]), (1, &json!("EXITED")));
    assert_eq!((failure.kind, failure.still_billing), (FailureKind::Timeout, StillBilling::No));
    for said in
        [pods[0]["id"].as_str().unwrap(), "boot_max_sec 2", "cost $", "EXITED was read back"]
    {
        assert!(failure.message.contains(said), "{said}: {failure}");
    }

    // The same holds for a pod that has run before, counted from its own start.
    fixture.set_faults(&[]).await;
    fixture.running(&tether).await;
    tether.stop_pod(VEHICLE).await.unwrap();
    fixture.set_faults(&["slow-boot=600"]).await;
    let failure = tether.ensure_pod(&ensure(45)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Timeout, "{failure}");
    assert_eq!(fixture.status().await, "EXITED");
}

/// D01: who called before the pod was up leaves its boot noted. A pod that took a command or a job is none
/// that never came up: however its shell fails later, what runs on it is not stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_is_in_use_is_never_given_up_as_a_boot() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id;
    let note = fixture.path("logs/.podtether/boot.json");
    let left_over = || {
        std::fs::create_dir_all(note.parent().unwrap()).unwrap();
        let boot = json!({ "pod": pod, "asked_at": "1970-01-01T00:00:00Z" });
        std::fs::write(&note, boot.to_string()).unwrap();
    };
    left_over();
    assert_eq!(tether.exec_on_pod(&exec("true")).await.unwrap().exit_code, Some(0));
    assert!(!note.exists(), "a command");
    left_over();
    let job =
        RunJobRequest { name: "x".into(), command: "sleep 1000".into(), ..Default::default() };
    tether.run_job(&job).await.unwrap();
    assert!(!note.exists(), "a job");
    tether.stop_pod(VEHICLE).await.unwrap();
}

/// I05 the other way round: a start is not given up on because the pod was made long ago.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_older_than_boot_max_is_started_again() {
    let fixture = Fixture::with("boot_max_sec: 3\n");
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    tether.stop_pod(VEHICLE).await.unwrap();
    let created = fixture.pods_named(POD).await[0]["createdAt"].as_str().unwrap().to_owned();
    let created = DateTime::parse_from_rfc3339(&created).unwrap();
    fixture
        .until("a pod older than boot_max_sec", async || {
            chrono::Utc::now() - created.to_utc() > TimeDelta::seconds(4)
        })
        .await;
    fixture.set_faults(&["slow-boot=1"]).await;
    let answer = tether.ensure_pod(&ensure(45)).await.unwrap();
    assert_eq!(answer.status, Some(EnsureStatus::Running), "{answer:?}");
}

/// A04: a stop that was answered with 200 and did nothing is asked again.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_without_effect_is_asked_again_until_exited_is_read() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    fixture.set_faults(&["stop-without-effect=1"]).await;
    let stopped = tether.stop_pod(VEHICLE).await.unwrap();
    assert_eq!(stopped.status, StopStatus::Stopped, "{stopped:?}");
    assert!(stopped.asked >= 2, "{stopped:?}");
    assert_eq!(fixture.status().await, "EXITED");
}

/// A01, A04: within the budget, and with the words that it may bill.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_never_takes_effect_is_never_called_stopped() {
    let fixture = Fixture::new();
    let off = OffSettings { budget: Duration::from_secs(1), ..QUICK.off };
    let tether = fixture.tether().await.with_settings(Settings { off, ..QUICK });
    fixture.running(&tether).await;
    fixture.set_faults(&["stop-without-effect"]).await;
    let start = Instant::now();
    let stopped = tether.stop_pod(VEHICLE).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!(stopped.status, StopStatus::StopUnconfirmed, "{stopped:?}");
    assert!(!stopped.is_off() && stopped.asked >= 2, "{stopped:?}");
    assert!(stopped.message.contains("MAY STILL BILL"), "{}", stopped.message);
    assert_eq!(stopped.observed.as_deref(), Some("RUNNING"));
    let asked = fixture.changes().iter().filter(|change| change.body["action"] == "stop").count();
    assert_eq!(u32::try_from(asked).unwrap(), stopped.asked);
}

/// A09: a 429 is waited out for as long as it says, and what was asked is done in the end.
#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limit_is_waited_out_as_told() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.set_faults(&["rate-limited=4"]).await;
    fixture.running(&tether).await;
    fixture.set_faults(&["rate-limited=1"]).await;
    assert!(tether.stop_pod(VEHICLE).await.unwrap().is_off());
    let requests = fixture.requests();
    let at = |text: &str| DateTime::parse_from_rfc3339(text).unwrap();
    let mut limited = 0;
    for (i, request) in requests.iter().enumerate() {
        if request.status != Some(429) {
            continue;
        }
        limited += 1;
        let same = |other: &&super::fixture::Request| {
            (&other.method, &other.path) == (&request.method, &request.path)
        };
        let next = requests[i + 1..].iter().find(same).unwrap();
        let pause = at(&next.at) - at(&request.at);
        // The twin says Retry-After: 1. Its record has whole milliseconds.
        assert!(pause >= TimeDelta::milliseconds(999), "{pause}: {request:?}");
    }
    assert_eq!(limited, 5);
}
