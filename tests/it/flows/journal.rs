//! The journal: every change is announced before it is made, and what a crash or a lost answer left
//! open is looked up before anything new is started.

use super::fixture::{Fixture, POD, QUICK, VEHICLE, ensure};
use podtether::apply::Settings;
use podtether::domain::Usd;
use podtether::error::{FailureKind, StillBilling};
use podtether::ledger::{Action, Event, Ledger};
use podtether::ops::{EnsureStatus, PodState, RunJobAnswer, RunJobRequest, StopStatus, Tether};
use std::time::Duration;

fn open_intents(fixture: &Fixture) -> usize {
    fixture.ledger().book().unwrap().open_intents().len()
}

fn creates(fixture: &Fixture) -> usize {
    fixture.changes().iter().filter(|change| change.path == "/v2/pods").count()
}

/// B03, B04: the id is on disk before anybody waits for the pod, and every intent has its end.
#[tokio::test(flavor = "multi_thread")]
async fn every_change_is_announced_and_ended() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.set_faults(&["slow-boot=60"]).await;
    let answer = tether.ensure_pod(&ensure(0)).await.unwrap();
    assert_eq!(answer.status, Some(EnsureStatus::StillInitializing), "{answer:?}");
    let book = fixture.ledger().book().unwrap();
    assert_eq!(book.known_pods(), [answer.pod.unwrap().id]);
    assert_eq!(book.open_intents(), []);
    assert_eq!(tether.stop_pod(VEHICLE).await.unwrap().status, StopStatus::Stopped);
    tether.terminate_pod(VEHICLE, &format!("terminate {POD}")).await.unwrap();
    assert_eq!(open_intents(&fixture), 0);
    let text = std::fs::read_to_string(fixture.ledger().path()).unwrap();
    for word in ["create_volume", "create_pod", "stop_pod", "terminate_pod"] {
        assert_eq!(text.matches(&format!("\"kind\":\"{word}\"")).count(), 1, "{word}\n{text}");
    }
    assert!(text.contains("\"micros_per_hour\":690000"), "{text}");
}

/// B01, B02, B04: while the outcome of a create is unknown nothing else is created; then it is found.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_create_stays_open_until_it_is_found() {
    let fixture = Fixture::new();
    let blind = fixture.tether().await.with_settings(Settings { settle: Duration::ZERO, ..QUICK });
    fixture.set_faults(&["create-reply-lost", "list-lag=600"]).await;
    let failure = blind.ensure_pod(&ensure(0)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unconfirmed, "{failure:?}");
    assert_eq!((creates(&fixture), open_intents(&fixture)), (1, 1));
    // Another process, which knows nothing but the journal.
    let other = fixture.tether().await;
    let failure = other.ensure_pod(&ensure(0)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Refused, "{failure:?}");
    assert!(failure.message.contains("$0.69/h"), "{}", failure.message);
    assert_eq!(creates(&fixture), 1);
    fixture.set_faults(&[]).await;
    let answer = other.ensure_pod(&ensure(45)).await.unwrap();
    assert_eq!(answer.status, Some(EnsureStatus::Running), "{answer:?}");
    assert_eq!((creates(&fixture), open_intents(&fixture)), (1, 0));
    assert_eq!(fixture.pods_named(POD).await.len(), 1);
}

fn announce(ledger: &Ledger) {
    let action = Action::CreatePod { name: POD.into(), nonce: "never sent".into() };
    let rate = Usd::from_micros(690_000);
    let make = |id| Event::Intend {
        id,
        vehicle: VEHICLE.into(),
        action,
        micros_per_hour: Some(rate.micros()),
    };
    ledger.intend(make).unwrap();
}

/// B04: a process that died between the intent and the call left nothing behind, which takes time to
/// prove (A05). Until then nobody says that nothing bills.
#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_was_never_sent_is_proven_absent_after_a_while() {
    let fixture = Fixture::new();
    announce(&fixture.ledger());
    let tether = fixture.tether().await;
    let failure = tether.ensure_pod(&ensure(0)).await.unwrap_err();
    let told = (failure.kind, failure.still_billing, failure.retryable);
    assert_eq!(told, (FailureKind::Refused, StillBilling::Unknown, true), "{failure:?}");
    let status = tether.pod_status(None).await.unwrap();
    let stop = tether.stop_pod(VEHICLE).await.unwrap();
    let told = (status.status, stop.status, stop.is_off());
    assert_eq!(told, (PodState::Unknown, StopStatus::StopUnconfirmed, false));
    for message in [status.message, stop.message] {
        assert!(message.contains("MAY BILL $0.69/h"), "{message}");
    }
    assert_eq!((creates(&fixture), open_intents(&fixture)), (0, 1));
    let at_once = Settings { absent_after: Duration::ZERO, ..QUICK };
    let other = fixture.tether().await.with_settings(at_once);
    assert_eq!(other.pod_status(None).await.unwrap().status, PodState::NoPod);
    assert_eq!(other.stop_pod(VEHICLE).await.unwrap().status, StopStatus::NoPod);
    let later = tether.with_settings(Settings { absent_after: Duration::ZERO, ..QUICK });
    let answer = later.ensure_pod(&ensure(45)).await.unwrap();
    assert_eq!(answer.status, Some(EnsureStatus::Running), "{answer:?}");
    assert_eq!((creates(&fixture), open_intents(&fixture)), (1, 0));
}

/// A journal that cannot be used starts nothing, and stops everything.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_journal_nothing_is_started_and_a_stop_works() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let path = fixture.ledger().path();
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert_eq!(tether.stop_pod(VEHICLE).await.unwrap().status, StopStatus::Stopped);
    let before = fixture.changes().len();
    let failure = tether.ensure_pod(&ensure(0)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Config, "{failure:?}");
    assert!(failure.hint.contains("stop_pod works"), "{failure:?}");
    assert_eq!(fixture.changes().len(), before);
}

/// A process that was suspended while it held the journal keeps nobody from a stop.
#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_somebody_holds_does_not_hold_up_a_stop() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let path = fixture.ledger().path().with_file_name("journal.lock");
    let held = std::fs::File::options().append(true).open(path).unwrap();
    held.lock().unwrap();
    assert_eq!(tether.stop_pod(VEHICLE).await.unwrap().status, StopStatus::Stopped);
    let before = fixture.changes().len();
    let failure = tether.ensure_pod(&ensure(0)).await.unwrap_err();
    assert_eq!((failure.kind, failure.retryable), (FailureKind::Conflict, true), "{failure:?}");
    assert_eq!(fixture.changes().len(), before);
}

/// B05: two sessions at once make one pod.
#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_at_once_make_one_pod() {
    let fixture = Fixture::new();
    let (one, other) = (fixture.tether().await, fixture.tether().await);
    let request = ensure(45);
    let (a, b) = tokio::join!(one.ensure_pod(&request), other.ensure_pod(&request));
    let running = Some(EnsureStatus::Running);
    assert_eq!((a.unwrap().status, b.unwrap().status), (running, running));
    assert_eq!((creates(&fixture), fixture.pods_named(POD).await.len()), (1, 1));
}

/// B05: two sessions that both see no live job do not both launch one.
#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_at_once_launch_one_job() {
    let fixture = Fixture::new();
    let (one, other) = (fixture.tether().await, fixture.tether().await);
    fixture.running(&one).await;
    let job = |name: &str| RunJobRequest {
        name: name.into(),
        command: "sleep 300".into(),
        ..RunJobRequest::default()
    };
    let (first, second) = (job("first"), job("second"));
    let (a, b) = tokio::join!(one.run_job(&first), other.run_job(&second));
    let (launched, refused): (Vec<_>, Vec<_>) = [a, b].into_iter().partition(Result::is_ok);
    assert_eq!((launched.len(), refused.len()), (1, 1), "{launched:?} {refused:?}");
    let failure = refused.into_iter().find_map(Result::err).unwrap();
    assert_eq!(failure.kind, FailureKind::Refused, "{failure:?}");
}

/// What a session leaves that died with the last command of this launch sent and not arrived; its plan.
pub async fn left_on_its_way(
    fixture: &Fixture,
    tether: &Tether,
    dry: &RunJobRequest,
) -> RunJobAnswer {
    let left = tether.run_job(dry).await.unwrap();
    let folder = fixture.volume().join("jobs").join(&left.job_id);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("cmd.sh"), "touch late\n").unwrap();
    let pod = tether.pod_status(None).await.unwrap().pod.unwrap().id;
    let action = Action::LaunchJob {
        pod,
        job: left.job_id.clone(),
        ceiling_sec: 3600,
        tail_sec: 600,
        until: chrono::Utc::now() + chrono::TimeDelta::hours(2),
        provenance: Default::default(),
    };
    let vehicle = VEHICLE.to_owned();
    let intend = |id| Event::Intend { id, vehicle, action, micros_per_hour: Some(690_000) };
    fixture.ledger().intend(intend).unwrap();
    left
}

/// F04: a session died with the launch of a job sent and not begun. The next launch calls it off, shows
/// that in its dry run, and gives back what was held for it; whatever arrives late starts nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_launch_that_a_dead_session_left_on_its_way_is_called_off_by_the_next() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let request = RunJobRequest {
        name: "train".to_owned(),
        command: "sleep 1000".to_owned(),
        ..RunJobRequest::default()
    };
    let plan = RunJobRequest { dry_run: true, ..request.clone() };
    let left = left_on_its_way(&fixture, &tether, &plan).await;
    let (launch, placed) = left.plan.as_ref().unwrap().split_last().unwrap();
    let command = |step: &podtether::ops::StepView| step.command.clone().unwrap();
    assert_eq!(placed.len(), 4);
    let folder = fixture.volume().join("jobs").join(&left.job_id);

    let shown = tether.run_job(&plan).await.unwrap().plan.unwrap();
    assert!(command(&shown[0]).contains("call_off_launch.sh"), "{shown:?}");
    let answer = tether.run_job(&request).await.unwrap();
    assert!(!answer.already_started);
    assert_eq!(open_intents(&fixture), 0);
    let status = tether.job_status(&left.job_id, 1, None).await.unwrap();
    assert_eq!(status.state, podtether::domain::JobState::NotFound);
    // The command that was on its way arrives now.
    let late = std::process::Command::new("bash")
        .args(["-c", &command(launch)])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert_eq!(late.status.code(), Some(1), "{late:?}");
    assert!(String::from_utf8_lossy(&late.stderr).contains("was called off"), "{late:?}");
    assert!(!folder.join("pid").exists());
}
