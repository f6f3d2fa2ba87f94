//! What would stop a pod by itself, as pod_status and ensure_pod tell it, and what a stop leaves known.

use super::fixture::{Fixture, VEHICLE, ensure};
use super::supervised::Run;
use podtether::domain::{FuseName, FuseReport, FuseState};
use podtether::error::{FailureKind, StillBilling};
use podtether::ops::{Grade, PodStatusAnswer, RunJobRequest, StopStatus, Tether};
use rustix::process::Signal;

async fn status(tether: &Tether) -> PodStatusAnswer {
    tether.pod_status(None).await.unwrap()
}

fn states(fuses: &[FuseReport]) -> Vec<(FuseName, FuseState)> {
    fuses.iter().map(|fuse| (fuse.name, fuse.state)).collect()
}

fn of(answer: &PodStatusAnswer, name: FuseName) -> Vec<FuseReport> {
    answer.fuses.iter().filter(|fuse| fuse.name == name).cloned().collect()
}

/// A07, A17, A22: a fuse is armed only for what was proven. A supervise is one while its process lives;
/// killed, it is dead, whoever gets its number; and on a pod whose key may not stop it, watchdog and
/// auto-stop are promises.
#[tokio::test(flavor = "multi_thread")]
async fn every_fuse_is_told_with_its_proof_and_the_bill_with_the_slowest_proven_one() {
    use FuseName::{AutoStop, Deadman, Supervise, Watchdog};
    use FuseState::{Armed, Dead, Off, Unproven};
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.set_faults(&["pod-key-read-only"]).await;
    let ensured = fixture.running(&tether).await;
    let none = [(AutoStop, Off), (Supervise, Off), (Watchdog, Unproven), (Deadman, Off)];
    assert_eq!(states(&ensured.fuses), none);
    let open_ended = "no fuse is proven: the bill is open-ended, $0.69 for every hour";
    let text = ensured.unattended.unwrap().text;
    assert!(text.starts_with(open_ended) && text.contains("watchdog promises 3 h"), "{text}");
    let answer = status(&tether).await;
    assert_eq!(states(&answer.fuses), none);
    assert!(answer.message.contains("$0.69 for every hour"), "{}", answer.message);

    let job = RunJobRequest {
        name: "long".to_owned(),
        command: "sleep 600".to_owned(),
        auto_stop: true,
        max_runtime_sec: Some(600),
        ..RunJobRequest::default()
    };
    tether.run_job(&job).await.unwrap();
    let answer = status(&tether).await;
    let [auto_stop] = &of(&answer, AutoStop)[..] else { panic!("{answer:?}") };
    assert_eq!((auto_stop.state, &auto_stop.proof), (Unproven, &None));
    // The ceiling, the kill grace and every try of the pod's own stop.
    let within = auto_stop.stops_within_sec.unwrap();
    assert!((4_000..=600 + 60 + 3_800).contains(&within), "{within}");
    let text = answer.unattended.unwrap().text;
    assert!(text.starts_with(open_ended) && text.contains("auto_stop promises"), "{text}");

    let mut run = Run::of(&fixture, "sleep 600", &["--force", "--max-runtime-sec", "600"]);
    run.says("launched").await;
    let answer = status(&tether).await;
    let [supervise] = &of(&answer, Supervise)[..] else { panic!("{answer:?}") };
    assert_eq!(supervise.state, Armed, "{supervise:?}");
    assert!(supervise.proof.is_some() && supervise.age_sec.unwrap() < 60);
    // It armed the laptop's fuse, which is slower and bounds what the pod costs.
    let [deadman] = &of(&answer, Deadman)[..] else { panic!("{answer:?}") };
    assert_eq!(deadman.state, Armed, "{deadman:?}");
    assert!(deadman.stops_within_sec > supervise.stops_within_sec);
    let unattended = answer.unattended.unwrap();
    assert_eq!(unattended.seconds, deadman.stops_within_sec);
    assert!(unattended.usd.is_some());
    let words = "if everything but the slowest proven fuse fails: ";
    assert!(unattended.text.starts_with(words), "{}", unattended.text);

    run.signal(Signal::KILL);
    let mut last = None;
    fixture
        .until("a supervise that is known to be dead", async || {
            let answer = status(&tether).await;
            let is_dead = of(&answer, Supervise).iter().any(|fuse| fuse.state == Dead);
            last = Some(answer);
            is_dead
        })
        .await;
    // What is dead bounds nothing; the fuse that it armed outlives it.
    let last = last.unwrap();
    let [deadman] = &of(&last, Deadman)[..] else { panic!("{last:?}") };
    assert_eq!(
        (deadman.state, last.unattended.unwrap().seconds),
        (Armed, deadman.stops_within_sec)
    );

    let stopped = tether.stop_pod(VEHICLE).await.unwrap();
    assert_eq!((stopped.status, stopped.grade), (StopStatus::Stopped, Grade::ApiSays));
    let answer = status(&tether).await;
    assert_eq!((answer.fuses.len(), answer.grade), (0, Some(Grade::ApiSays)), "{answer:?}");
    assert!(answer.evidence.iter().any(|known| known.field == "billing"), "{answer:?}");
}

/// A07: what proves that the watchdog may stop its pod proves it of a job's auto-stop, and the worst
/// case of a launch is counted until the watchdog's deadline instead of being open-ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_proven_watchdog_proves_auto_stop_and_bounds_a_job_that_is_left() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let job = |name: &str| RunJobRequest {
        name: name.to_owned(),
        command: "sleep 600".to_owned(),
        max_runtime_sec: Some(600),
        dry_run: true,
        ..RunJobRequest::default()
    };
    let plan = tether.run_job(&job("left")).await.unwrap();
    let told = plan.worst_case.join("\n");
    assert!(told.contains("until the slowest proven fuse, watchdog"), "{told}");
    assert!(!told.contains("open-ended"), "{told}");
    // Deadline, two looks and a stop: $0.69 an hour for 3 h 10 min, and the volume.
    let usd = plan.worst_case_usd.micros();
    assert!((2_100_000..2_230_000).contains(&usd), "{told}");
    let kept = RunJobRequest { auto_stop: true, dry_run: false, ..job("kept") };
    tether.run_job(&kept).await.unwrap();
    let answer = status(&tether).await;
    let [auto_stop] = &of(&answer, FuseName::AutoStop)[..] else { panic!("{answer:?}") };
    assert_eq!(auto_stop.state, FuseState::Armed, "{auto_stop:?}");
    assert!(auto_stop.proof.is_some() && auto_stop.age_sec.is_some(), "{auto_stop:?}");
    fixture.set_faults(&["pod-key-read-only"]).await;
    tether.stop_pod(VEHICLE).await.unwrap();
    fixture.running(&tether).await;
    let told = tether.run_job(&job("left")).await.unwrap().worst_case.join("\n");
    assert!(told.contains("open-ended") && !told.contains("watchdog"), "{told}");
}

/// A run that ends in good order leaves no fuse behind, and its summary carries the grade of its stop.
#[tokio::test(flavor = "multi_thread")]
async fn a_supervise_that_has_stopped_its_pod_is_no_fuse_any_more() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let outcome = Run::of(&fixture, "true", &[]).end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    let summary = outcome.file();
    assert_eq!(summary["stop"]["grade"], "api_says");
    assert!(summary["stop"]["evidence"][0]["at"].is_string(), "{summary}");
    assert!(summary["stops_by"].is_string() && summary["pid"].is_u64(), "{summary}");
    let left = std::fs::read_dir(fixture.path("logs")).unwrap();
    let locks: Vec<_> = left
        .flatten()
        .filter(|entry| {
            let name = entry.file_name().into_string().unwrap();
            name.starts_with("supervise-") && name.ends_with(".lock")
        })
        .collect();
    assert!(locks.is_empty(), "{locks:?}");
}

/// A22: a pod that is being stopped is not started in the midst of it: not by another session either.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_waits_for_a_stop_that_is_under_way() {
    let fixture = Fixture::new();
    let (tether, other) = (fixture.tether().await, fixture.tether().await);
    fixture.running(&tether).await;
    let actions = |action: &str| {
        fixture.changes().iter().filter(|change| change.body["action"] == action).count()
    };
    fixture.set_faults(&["stop-without-effect"]).await;
    let stop = tether.stop_pod(VEHICLE);
    tokio::pin!(stop);
    tokio::select! {
        early = &mut stop => panic!("{early:?}"),
        () = fixture.until("a request to stop", async || actions("stop") > 0) => {}
    }
    let failure = other.ensure_pod(&ensure(0)).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.still_billing),
        (FailureKind::Conflict, StillBilling::Unknown)
    );
    assert!(failure.message.contains("a stop of vehicle rover's pod is under way"), "{failure}");
    assert_eq!(actions("start"), 0);
    fixture.set_faults(&[]).await;
    assert_eq!(stop.await.unwrap().status, StopStatus::Stopped);
    other.ensure_pod(&ensure(0)).await.unwrap();
    assert_eq!(actions("start"), 1, "and then it is");
}

/// One look tells everything: pod_status and job_status run one command on the pod each, however many
/// jobs live there, and a job's auto-stop is told all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_status_is_one_round_trip() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id.0;
    let mut ids = Vec::new();
    for name in ["one", "two", "three"] {
        let job = RunJobRequest {
            name: name.to_owned(),
            command: "sleep 600".to_owned(),
            auto_stop: true,
            force: true,
            max_runtime_sec: Some(600),
            ..RunJobRequest::default()
        };
        ids.push(tether.run_job(&job).await.unwrap().job_id);
    }
    fixture
        .until("all three live", async || {
            status(&tether).await.live_jobs.is_some_and(|jobs| jobs.len() == 3)
        })
        .await;
    let before = fixture.sessions(&pod).len();
    for id in &ids {
        let answer = status(&tether).await;
        assert_eq!(of(&answer, FuseName::AutoStop).len(), 3, "{answer:?}");
        let job = tether.job_status(id, 5, None).await.unwrap();
        assert_eq!(job.live_jobs.unwrap().len(), 3);
    }
    fixture.until("the looks", async || fixture.sessions(&pod).len() >= before + 6).await;
    let sessions = fixture.sessions(&pod).split_off(before);
    assert_eq!(sessions.len(), 6, "{:?}", sessions.iter().map(|one| &one.command[..40]));
    assert!(sessions.iter().all(|one| one.command.contains("pod_look.sh")));
}
