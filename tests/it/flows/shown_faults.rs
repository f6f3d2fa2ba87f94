//! An account that is not as declared, as the provider's lists show it: doubt refuses what spends.

use super::fixture::{Fixture, VEHICLE, ensure};
use podtether::error::{FailureKind, StillBilling};
use podtether::ops::{EnsureStatus, StopStatus};
use serde_json::json;

/// B02, B06, B07: what lists show counts, on whichever page and of whatever kind.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_of_nobody_or_a_price_of_nothing_refuses_a_start() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id.0;
    assert!(tether.stop_pod(VEHICLE).await.unwrap().is_off());
    let changes = fixture.changes().len();
    for (faults, words) in [
        (&["stranger"][..], "somebody-elses"),
        (&["stranger", "second-page"], "somebody-elses"),
        (&["cluster-pod"], "cluster-node-0"),
        (&["cluster-pod", "second-page"], "cluster-node-0"),
        (&["duplicate"], &format!("{pod}b")),
        (&["price-zero"], "price"),
        (&["price-nan"], "price"),
    ] {
        fixture.set_faults(faults).await;
        let failure = tether.ensure_pod(&ensure(1)).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Refused, "{faults:?}: {failure}");
        assert!(failure.message.contains(words), "{faults:?}: {failure}");
    }
    assert_eq!(fixture.changes().len(), changes, "nothing was sent");
}

/// B06: a list without an end is no list. Nothing is started on it, and nothing is called off by it; the
/// pod that the journal knows is stopped all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_goes_round_and_round_starts_nothing_and_keeps_no_pod_running() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let changes = fixture.changes().len();
    fixture.set_faults(&["repeated-cursor"]).await;
    let failure = tether.ensure_pod(&ensure(1)).await.unwrap_err();
    assert!(failure.message.contains("repeats the page"), "{failure}");
    assert_ne!(failure.still_billing, StillBilling::No, "{failure}");
    assert_eq!(fixture.changes().len(), changes, "nothing was sent");
    assert_eq!(tether.stop_pod(VEHICLE).await.unwrap().status, StopStatus::Stopped);
    fixture.set_faults(&[]).await;
    assert_eq!(fixture.status().await, "EXITED");
    // Everything at once, too; what else the account has is not known then, and that is said.
    fixture.running(&tether).await;
    fixture.set_faults(&["repeated-cursor"]).await;
    let (code, told) = fixture.stop_all().await;
    assert_eq!((code, &told["pods"][0]["off"]), (6, &json!(true)), "{told}");
    assert!(told["not_listed"].as_str().unwrap().contains("repeats the page"), "{told}");
    fixture.set_faults(&[]).await;
    assert_eq!(fixture.status().await, "EXITED");
}

/// A05, E16: words that are not known, and times that cannot be, lead to no second pod and no bill
/// that is not told.
#[tokio::test(flavor = "multi_thread")]
async fn a_status_of_no_documentation_and_a_wrong_clock_make_no_second_pod() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    fixture.set_faults(&["status-unknown"]).await;
    let answer = tether.ensure_pod(&ensure(0)).await.unwrap();
    assert_eq!(answer.status, Some(EnsureStatus::StillInitializing), "{answer:?}");
    assert!(answer.message.contains("MIGRATING") && answer.message.contains("is on the bill"));
    for skew in ["clock-ahead=86400", "clock-behind=86400"] {
        fixture.set_faults(&[skew]).await;
        let answer = tether.ensure_pod(&ensure(45)).await.unwrap();
        assert_eq!(answer.status, Some(EnsureStatus::Running), "{skew}: {answer:?}");
    }
    fixture.set_faults(&[]).await;
    let creates = fixture.changes().iter().filter(|change| change.path == "/v2/pods").count();
    assert_eq!(creates, 1);
}

/// A pod that comes back from a stop without its GPU bills and is of no use; both are said.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_brings_no_gpu_is_said_and_the_pod_can_be_stopped() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    assert!(tether.stop_pod(VEHICLE).await.unwrap().is_off());
    fixture.set_faults(&["zero-gpus-on-start"]).await;
    let answer = tether.ensure_pod(&ensure(45)).await.unwrap();
    assert_eq!(answer.status, Some(EnsureStatus::StartFailedNoGpu), "{answer:?}");
    assert!(answer.message.contains("AND BILLS"), "{}", answer.message);
    let stopped = tether.stop_pod(VEHICLE).await.unwrap();
    assert_eq!(json!(stopped.status), json!(StopStatus::Stopped));
}
