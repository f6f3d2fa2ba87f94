//! The fuse when the provider, the key or the network has a bad day.

use super::{arm, deadman, ended, record, status, word};
use crate::flows::fixture::{Fixture, POD, VEHICLE};
use podtether::deadman::{ArmError, Wish, ensure_armed, extend};
use podtether::domain::PodId;
use serde_json::json;

/// A07: a key that may read and not stop is no fuse, and that is said when it is armed.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_may_not_stop_is_refused_when_it_is_armed() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    fixture.set_faults(&["read-only-key"]).await;
    let refused = arm(&fixture, "1", &[]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("refused to arm"), "{refused:?}");
    assert!(!fixture.path("logs/deadman.pid").exists());
    assert_eq!(word(&status(&fixture)), ("refused".into(), 0));
    assert_eq!(fixture.status().await, "RUNNING");
}

/// A07, A10: what the edge says proves nothing either way, and the fuse says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_permission_that_could_not_be_asked_is_unproven_and_armed() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    fixture.set_faults(&["edge-1010=1@on:stop"]).await;
    let armed = arm(&fixture, "0.004", &[]);
    assert_eq!(armed.code, 0, "{armed:?}");
    let message = armed.json["vehicle"]["message"].as_str().unwrap();
    assert!(message.starts_with("armed (stop permission unproven)"), "{message}");
    assert_eq!(ended(&fixture).await["outcome"], "stopped");
    assert_eq!(fixture.status().await, "EXITED");
}

/// A02: a key that was revoked after it was armed: asked gracefully and by force, tried again as often
/// as agreed, and then in words and with a code; never "stopped".
#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_ends_in_stop_failed_and_in_words() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    assert_eq!(arm(&fixture, "0.004", &["--retries", "1", "--spacing-sec", "1"]).code, 0);
    fixture.set_faults(&["revoked-key"]).await;
    let summary = ended(&fixture).await;
    let told = ["outcome", "pod_may_still_be_running", "exit_code"].map(|key| summary[key].clone());
    assert_eq!(json!(told), json!(["stop_failed", true, 1]), "{summary:#}");
    let forms: Vec<_> =
        summary["attempts"].as_array().unwrap().iter().map(|one| one["form"].clone()).collect();
    assert_eq!(json!(forms), json!(["graceful", "forced", "graceful", "forced"]));
    assert!(summary["message"].as_str().unwrap().contains("MAY STILL BILL"));
    let told = status(&fixture);
    assert_eq!(word(&told), ("stop_failed".into(), 1));
    assert_eq!(fixture.status().await, "RUNNING");
}

/// C02, A09, A10: requests that are lost and pages of the edge use up no try.
#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_is_away_for_a_while_uses_up_no_try() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    assert_eq!(arm(&fixture, "0.004", &["--retries", "0", "--spacing-sec", "1"]).code, 0);
    fixture.set_faults(&["request-lost=9@for:8", "edge-html=1000@for:8"]).await;
    let summary = ended(&fixture).await;
    assert_eq!(summary["outcome"], "stopped", "{summary:#}");
    assert_eq!(fixture.status().await, "EXITED");
}

/// C02, A01: nobody answers at all, as after waking without a network. The fuse goes on, says so, and
/// stops the pod once there is somebody.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_cannot_be_reached_is_asked_until_it_answers() {
    let mut fixture = Fixture::with_daemon();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    assert_eq!(arm(&fixture, "0.004", &["--retries", "0", "--spacing-sec", "1"]).code, 0);
    fixture.daemon().kill();
    fixture
        .until("an ask in vain", async || {
            record(&fixture)["attempts"].as_array().is_some_and(|asks| !asks.is_empty())
        })
        .await;
    assert_eq!(record(&fixture)["attempts"][0]["result"], "unreachable");
    let told = status(&fixture);
    assert_eq!(told.json["vehicles"][0]["state"], "armed");
    assert!(told.json["vehicles"][0]["message"].as_str().unwrap().starts_with("fires since"));
    // A start during a stop that is under way is refused (A22).
    let vehicle = tether.vehicle(None).unwrap();
    let wish = Wish::new(&vehicle, chrono::Utc::now() + chrono::TimeDelta::hours(1));
    let late = ensure_armed(tether.arming().unwrap(), &wish, tether.clock()).await;
    assert!(matches!(late, Err(ArmError::Firing { .. })), "{late:?}");
    fixture.daemon().start_again();
    let summary = ended(&fixture).await;
    assert_eq!(summary["outcome"], "stopped", "{summary:#}");
    let pods = fixture.pods_named(POD).await;
    assert!(pods.iter().all(|pod| pod["status"] == "EXITED"), "{pods:?}");
}

/// B08: a pod that was renamed by hand is nobody's that we know: left alone, and said to bill.
#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_is_never_stopped() {
    let fixture = Fixture::new();
    let _ = fixture.tether().await;
    let stranger = fixture.other_pod("somebody-elses").await;
    assert_eq!(arm(&fixture, "0.004", &[]).code, 0);
    // Told from outside that this is the pod it was armed for.
    let vehicle = fixture.tether().await.vehicle(Some(VEHICLE)).unwrap();
    let wish = Wish {
        pod: Some(PodId(stranger.clone())),
        ..Wish::new(&vehicle, chrono::DateTime::UNIX_EPOCH)
    };
    extend(&wish).await.unwrap();
    let summary = ended(&fixture).await;
    assert_eq!(summary["outcome"], "refused", "{summary:#}");
    assert_eq!(word(&status(&fixture)), ("refused".into(), 1));
    let pods = fixture.pods_named("somebody-elses").await;
    assert_ne!(pods[0]["status"], "EXITED");
    let stops = fixture.changes();
    assert!(stops.iter().all(|request| !request.path.contains(&stranger)), "{stops:?}");
}

/// A08: a locked pod is told apart and ends in words, not in a loop.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_pod_ends_in_stop_failed_with_the_way_out() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    assert_eq!(arm(&fixture, "0.004", &["--retries", "0", "--spacing-sec", "1"]).code, 0);
    fixture.set_faults(&["locked"]).await;
    let summary = ended(&fixture).await;
    assert_eq!(summary["outcome"], "stop_failed", "{summary:#}");
    assert!(summary["message"].as_str().unwrap().contains("unlock"), "{summary:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_that_cannot_be_read_is_a_config_error() {
    let fixture = Fixture::new();
    std::fs::write(fixture.config_file(), "vehicles: [").unwrap();
    let told = deadman(&fixture, &["status", "--json"]);
    assert_eq!((told.code, told.json["state"].as_str()), (2, Some("config_error")), "{told:?}");
    assert!(told.stderr.contains("config_error"));
    assert_eq!(told.json["failure"]["still_billing"], "unknown", "nobody knows the fuses");
}
