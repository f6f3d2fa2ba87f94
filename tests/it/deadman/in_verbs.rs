//! The fuse where the verbs arm it by themselves.

use super::{arm, deadman, ended, pid_of, record, status, word};
use crate::flows::fixture::{Fixture, POD, VEHICLE, ensure};
use crate::flows::signals::WAITS;
use crate::flows::supervised::Run;
use crate::local_cloud::program;
use crate::mcp::client::{Client, Era};
use chrono::{DateTime, TimeDelta, Utc};
use podtether::domain::{FuseName, FuseState};
use podtether::error::FailureKind;
use podtether::ops::RunJobRequest;
use rustix::process::Signal;
use serde_json::json;
use std::process::Command;

fn fire_at(fixture: &Fixture) -> DateTime<Utc> {
    record(fixture)["fire_at"].as_str().unwrap().parse().unwrap()
}

/// A20: a pod has its fuse from its first second: it is armed before the create goes out.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_has_a_fuse_before_it_is_created() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await.arming_fuses();
    let answer = fixture.running(&tether).await;
    let changes = fixture.changes();
    let place =
        |path: &str| changes.iter().position(|request| request.path.ends_with(path)).unwrap();
    assert!(place("/podtetherprobe/action") < place("/v2/pods"), "{changes:?}");
    let fuse = answer.fuses.iter().find(|fuse| fuse.name == FuseName::Deadman).unwrap();
    assert_eq!(fuse.state, FuseState::Armed, "{fuse:?}");
    let left = fire_at(&fixture) - Utc::now();
    assert!(left > TimeDelta::minutes(170) && left <= TimeDelta::hours(3), "{left}");
    assert!(record(&fixture)["micros_per_hour"].as_i64().unwrap() > 0);
    // Looking again at a pod that runs is no reason to give it more time.
    let before = fire_at(&fixture);
    tether.ensure_pod(&ensure(5)).await.unwrap();
    assert_eq!(fire_at(&fixture), before);
    // A job is covered to its end, and a shorter one takes nothing back.
    let job = RunJobRequest {
        name: "long".into(),
        command: "true".into(),
        max_runtime_sec: Some(4 * 3600),
        ..RunJobRequest::default()
    };
    tether.run_job(&job).await.unwrap();
    assert!(fire_at(&fixture) - Utc::now() > TimeDelta::hours(4));
    assert_eq!(word(&status(&fixture)), ("armed".into(), 0));
}

/// A20, B04, C01: the server is killed in the midst of a start. The pod runs, and so does its fuse.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_in_a_start_leaves_a_fuse_that_lives() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    assert!(tether.stop_pod(VEHICLE).await.unwrap().is_off());
    fixture.set_faults(&["reply-delayed=600@on:start"]).await;
    let mut command = Command::new(program());
    command.args(["mcp", "--config"]).arg(fixture.config_file()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", fixture.path(""));
    let mut server = Client::start(command, Era::Initialize);
    server.begin_call("ensure_pod", json!({"wait_sec": 0}));
    fixture.until("a pod that runs", async || fixture.status().await == "RUNNING").await;
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    assert_eq!(word(&status(&fixture)), ("armed".into(), 0));
    assert!(super::lives(pid_of(&record(&fixture))));
}

/// A07: what nobody could stop is not started.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_may_not_stop_starts_nothing() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await.arming_fuses();
    fixture.set_faults(&["read-only-key@on:stop"]).await;
    let failure = tether.ensure_pod(&ensure(5)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Forbidden, "{failure}");
    assert!(fixture.pods_named(POD).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn off_arms_nothing_and_says_so() {
    let fixture = Fixture::with("fuse:\n  auto_arm_hours: off\n");
    // Without a fuse a pod is counted for a week, which takes a budget that allows it.
    let config = std::fs::read_to_string(fixture.config_file()).unwrap();
    let ample = config.replace("budget_usd: 5\n", "budget_usd: 500\n");
    std::fs::write(fixture.config_file(), ample).unwrap();
    let tether = fixture.tether().await.arming_fuses();
    let answer = fixture.running(&tether).await;
    assert!(!fixture.path("logs/deadman.pid").exists());
    assert!(answer.warnings.iter().any(|warning| warning.contains("off")), "{answer:?}");
    let fuse = answer.fuses.iter().find(|fuse| fuse.name == FuseName::Deadman).unwrap();
    assert_eq!(fuse.state, FuseState::Off);
}

/// supervise arms before it spends, and calls the fuse off once the pod was read back as off.
#[tokio::test(flavor = "multi_thread")]
async fn supervise_arms_before_it_launches_and_calls_off_after_the_stop() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let mut run = Run::of(&fixture, "true", &[]);
    run.says("laptop's fuse: armed, process").await;
    let outcome = run.end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    let (fuse, job) = (outcome.stderr.find("laptop's fuse"), outcome.stderr.find("launched:"));
    assert!(fuse < job, "{}", outcome.stderr);
    assert_eq!(word(&status(&fixture)), ("cancelled".into(), 0));
    assert_eq!(ended(&fixture).await["pod_may_still_be_running"], false);
}

/// A07: supervise launches nothing that nobody could stop.
#[tokio::test(flavor = "multi_thread")]
async fn supervise_launches_nothing_with_a_key_that_may_not_stop() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    fixture.set_faults(&["read-only-key"]).await;
    let outcome = Run::of(&fixture, "true", &[]).end().await;
    assert_eq!(outcome.code, 1, "{outcome:#?}");
    assert!(outcome.stderr.contains("refused to arm"), "{}", outcome.stderr);
    let summary = outcome.file();
    assert_eq!(
        (&summary["job_id"], &summary["pod_may_still_be_running"]),
        (&json!(null), &json!(true))
    );
    assert!(!fixture.volume().join("jobs").exists());
}

/// C01: SIGTERM ends supervise and leaves the fuse armed.
#[tokio::test(flavor = "multi_thread")]
async fn a_supervise_that_is_ended_leaves_its_fuse_armed() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let mut run = Run::of(&fixture, WAITS, &[]);
    run.says("launched:").await;
    run.signal(Signal::TERM);
    assert_eq!(run.end().await.code, 6);
    assert_eq!(word(&status(&fixture)), ("armed".into(), 0));
    assert!(super::lives(pid_of(&record(&fixture))));
}

/// A supervise does not shorten a fuse that was armed for longer by hand.
#[tokio::test(flavor = "multi_thread")]
async fn a_fuse_armed_by_hand_for_longer_stays_as_it_is() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await.arming_fuses();
    assert_eq!(arm(&fixture, "4", &[]).code, 0);
    let before = fire_at(&fixture);
    fixture.running(&tether).await;
    let job = RunJobRequest {
        name: "short".into(),
        command: "true".into(),
        vehicle: Some(VEHICLE.into()),
        ..RunJobRequest::default()
    };
    tether.run_job(&job).await.unwrap();
    assert!((fire_at(&fixture) - before).num_seconds().abs() <= 1);
}

/// A22: a session that begins while another one stops the pod has the fuse cover what it is about to start.
/// The one that has read the pod back keeps its hands off it then, and says so; a person's word ends it.
#[tokio::test(flavor = "multi_thread")]
async fn a_fuse_that_another_session_has_extended_is_not_called_off() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await.arming_fuses();
    fixture.running(&tether).await;
    let mut run = Run::of(&fixture, WAITS, &[]);
    run.says("launched:").await;
    assert_eq!(
        arm(&fixture, "0.5", &[]).code,
        0,
        "it fires later already, and is relied on all the same"
    );
    std::fs::write(fixture.volume().join("go"), "").unwrap();
    let outcome = run.end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert!(outcome.stderr.contains("another session has armed or extended"), "{}", outcome.stderr);
    assert_eq!(fixture.status().await, "EXITED");
    assert_eq!(word(&status(&fixture)), ("armed".into(), 0));
    assert!(super::lives(pid_of(&record(&fixture))));
    let by_hand = deadman(&fixture, &["cancel", "--vehicle", VEHICLE, "--json"]);
    assert_eq!(by_hand.code, 0, "{by_hand:?}");
    assert_eq!(word(&status(&fixture)), ("cancelled".into(), 0));
}
