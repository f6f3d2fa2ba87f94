//! Money that is promised, money that was wasted, and money that nobody can explain: the journal
//! beside the twin's bill.

use super::fixture::{Fixture, POD, QUICK, VEHICLE, ensure};
use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use podtether::apply::Settings;
use podtether::clock::Clock;
use podtether::domain::{PodId, Usd};
use podtether::error::{Failure, FailureKind};
use podtether::ledger::{Action, Event, Ledger};
use podtether::ops::{EnsureRequest, EnsureStatus, RunJobRequest, SpendReport, StopStatus, Tether};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A second vehicle, and half an hour for a pod that nobody watches.
const SCOUT: &str = "  scout:
    pod_name: scout-pod
    network_volume_name: scout-volume
    datacenter_preference: [EU-RO-1]
    known_hosts_file: known_hosts_scout
    local_log_dir: logs-scout
fuse:
  auto_arm_hours: 0.5
";

/// Puts another line below `limits:`.
fn limit(fixture: &Fixture, line: &str) {
    let text = std::fs::read_to_string(fixture.config_file()).unwrap();
    let name = line.split(':').next().unwrap();
    let lines = text.lines().filter(|old| !old.trim_start().starts_with(&format!("{name}:")));
    let text: String = lines.map(|old| format!("{old}\n")).collect();
    let text = text.replacen("limits:\n", &format!("limits:\n  {line}\n"), 1);
    std::fs::write(fixture.config_file(), text).unwrap();
}

fn job(vehicle: &str, hours: i64) -> RunJobRequest {
    RunJobRequest {
        name: "job".to_owned(),
        command: "sleep 600".to_owned(),
        max_runtime_sec: Some(hours * 3600),
        vehicle: Some(vehicle.to_owned()),
        ..RunJobRequest::default()
    }
}

async fn both_running(fixture: &Fixture, tether: &Tether) {
    fixture.running(tether).await;
    let scout = EnsureRequest { vehicle: Some("scout".to_owned()), ..ensure(45) };
    let answer = tether.ensure_pod(&scout).await.unwrap();
    assert_eq!(answer.status, Some(EnsureStatus::Running), "{answer:?}");
}

async fn report(fixture: &Fixture) -> SpendReport {
    fixture.tether().await.spend_report().await.unwrap()
}

fn cents(usd: Usd) -> i64 {
    usd.micros() / 10_000
}

/// Two sessions that each see room for one launch: the second sees what the first was promised.
#[tokio::test(flavor = "multi_thread")]
async fn two_vehicles_cannot_together_break_the_budget() {
    let fixture = Fixture::with(SCOUT);
    limit(&fixture, "budget_usd: 4");
    let (one, other) = (fixture.tether().await, fixture.tether().await);
    both_running(&fixture, &one).await;
    // Each start holds a quarter of an hour of boot and half an hour without a watch: $0.5175.
    let before = report(&fixture).await;
    assert_eq!((before.committed.len(), cents(before.committed_usd)), (2, 103), "{before:?}");
    // Each launch: 3 h, a minute of grace, and the 37 minutes that the watchdog takes at most after the
    // longest job: $2.51. One fits beside the other's start.
    let (rover, scout) = (job(VEHICLE, 3), job("scout", 3));
    let (a, b) = tokio::join!(one.run_job(&rover), other.run_job(&scout));
    let (launched, refused): (Vec<_>, Vec<Failure>) = match (a, b) {
        (Ok(a), Err(b)) => (vec![a], vec![b]),
        (Err(a), Ok(b)) => (vec![b], vec![a]),
        other => panic!("{other:?}"),
    };
    let (winner, refused) = (&launched[0], &refused[0]);
    assert_eq!(refused.kind, FailureKind::Refused, "{refused}");
    let held = format!("job {} of {}", winner.job_id, winner.vehicle);
    for words in ["limits.budget_usd = 4.00", "committed: pod ", &held, "max_runtime_sec="] {
        assert!(refused.message.contains(words), "{words}: {refused}");
    }
    let after = report(&fixture).await;
    assert!((302..=303).contains(&cents(after.committed_usd)), "{after:?}");
    assert!(after.committed.iter().any(|line| line.what.contains(&held)), "{after:?}");
    let remaining = Usd::from_micros(4_000_000)
        .saturating_sub(after.total_usd)
        .saturating_sub(after.committed_usd);
    assert_eq!(after.remaining_usd, Some(remaining));

    // A second job on the winner's pod adds nothing but the time beyond, since a pod bills once.
    let again = RunJobRequest { force: true, ..job(&winner.vehicle, 3) };
    one.run_job(&again).await.unwrap();
    let forced = report(&fixture).await;
    assert!((302..=303).contains(&cents(forced.committed_usd)), "{forced:?}");

    // What was promised is given back with the pod, and then the other may.
    let loser = if winner.vehicle == VEHICLE { "scout" } else { VEHICLE };
    assert_eq!(one.stop_pod(&winner.vehicle).await.unwrap().status, StopStatus::Stopped);
    other.run_job(&job(loser, 3)).await.unwrap();
    assert_eq!(other.stop_pod(loser).await.unwrap().status, StopStatus::Stopped);
    let over = report(&fixture).await;
    assert_eq!((over.committed_usd, over.committed), (Usd::ZERO, vec![]));
}

/// What a job did not use is free again when it is seen to have ended; the time after it is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_ended_holds_only_the_time_after_it() {
    let fixture = Fixture::with("fuse:\n  auto_arm_hours: 1\n");
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let request = RunJobRequest { command: "true".to_owned(), ..job(VEHICLE, 4) };
    let job = tether.run_job(&request).await.unwrap();
    let held = report(&fixture).await;
    // 4 h, a minute, and the 37 minutes of the watchdog.
    assert_eq!(cents(held.committed_usd), 319, "{held:?}");
    fixture
        .until("the end of the job", async || {
            let status = tether.job_status(&job.job_id, 1, None).await.unwrap();
            status.state.has_ended()
        })
        .await;
    let ended = report(&fixture).await;
    // What is left is the start's own hour and a quarter, and the watchdog's deadline is before that.
    assert!((68..=86).contains(&cents(ended.committed_usd)), "{ended:?}");
    // Somebody else stops the pod; the next look sees it.
    let pod = PodId(fixture.pods_named(POD).await[0]["id"].as_str().unwrap().to_owned());
    let path = format!("/v2/pods/{pod}/action");
    fixture.api("POST", &path, Some(json!({"action": "stop"}))).await;
    assert_eq!(report(&fixture).await.committed, []);
    let run = fixture.ledger().book().unwrap().runs().last().unwrap().clone();
    assert!(run.off.is_some() && run.pod == pod, "{run:?}");
}

/// B02, B04: a create that may have made a pod counts until it is found or proven absent.
#[tokio::test(flavor = "multi_thread")]
async fn a_create_of_unknown_outcome_is_in_the_report() {
    let fixture = Fixture::new();
    let action = Action::CreatePod { name: POD.into(), nonce: "never sent".into() };
    let make =
        |id| Event::Intend { id, vehicle: VEHICLE.into(), action, micros_per_hour: Some(690_000) };
    fixture.ledger().intend(make).unwrap();
    let held = report(&fixture).await;
    // A quarter of an hour of boot and three hours without a watch.
    assert_eq!(held.committed_usd, Usd::from_micros(2_242_500), "{held:?}");
    assert!(held.committed[0].what.contains("outcome unknown"), "{held:?}");
    assert!(held.remaining_usd <= Some(Usd::from_micros(5_000_000 - 2_242_500)), "{held:?}");
    let later = Settings { absent_after: Duration::ZERO, ..QUICK };
    let tether = fixture.tether().await.with_settings(later);
    tether.ensure_pod(&EnsureRequest { dry_run: true, ..ensure(0) }).await.unwrap();
    assert_eq!(report(&fixture).await.committed, []);
}

/// B04: a launch whose end is not known keeps what it was promised, for another process as well.
#[tokio::test(flavor = "multi_thread")]
async fn a_launch_without_an_end_holds_its_worst_case() {
    let fixture = Fixture::with("fuse:\n  auto_arm_hours: 1\n");
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id;
    // As a process leaves it that died after the intent.
    let action = Action::LaunchJob {
        pod,
        job: "20260703-132525_lost_00ab".to_owned(),
        ceiling_sec: 4 * 3600,
        tail_sec: 3600,
        until: Utc::now() + TimeDelta::hours(5),
        provenance: Default::default(),
    };
    let make =
        |id| Event::Intend { id, vehicle: VEHICLE.into(), action, micros_per_hour: Some(690_000) };
    fixture.ledger().intend(make).unwrap();
    let refused = tether.run_job(&job(VEHICLE, 7)).await.unwrap_err();
    assert!(refused.message.contains("limits.budget_usd"), "{refused}");
    let held = report(&fixture).await;
    assert_eq!(cents(held.committed_usd), 344, "{held:?}");
    tether.ensure_pod(&ensure(0)).await.unwrap();
    assert_eq!(fixture.ledger().book().unwrap().open_intents().len(), 1);
    tether.stop_pod(VEHICLE).await.unwrap();
    tether.ensure_pod(&EnsureRequest { dry_run: true, ..ensure(0) }).await.unwrap();
    assert_eq!(fixture.ledger().book().unwrap().open_intents(), []);
    assert_eq!(report(&fixture).await.committed, []);
}

/// I05: what never came up is listed with its cost, and is not tried again without end. No limit
/// stands in the way of a stop, or of a pod that runs already.
#[tokio::test(flavor = "multi_thread")]
async fn boots_are_limited_per_hour_and_those_that_failed_are_listed() {
    let fixture = Fixture::with("boot_max_sec: 1\n");
    limit(&fixture, "max_boots_per_hour: 2");
    let tether = fixture.tether().await;
    fixture.set_faults(&["no-capacity"]).await;
    let none = tether.ensure_pod(&ensure(0)).await.unwrap();
    assert_eq!(none.status, Some(EnsureStatus::StartFailedNoGpu), "{none:?}");
    fixture.set_faults(&["slow-boot=600"]).await;
    for _ in 0..2 {
        let failure = tether.ensure_pod(&ensure(45)).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Timeout, "{failure}");
    }
    let changes = fixture.changes().len();
    let dry = EnsureRequest { dry_run: true, ..ensure(0) };
    for request in [&dry, &ensure(1)] {
        let refused = tether.ensure_pod(request).await.unwrap_err();
        assert_eq!(refused.kind, FailureKind::Refused, "{refused}");
        for words in [
            "limits.max_boots_per_hour = 2",
            "the next is allowed at",
            "2 of them never came up and cost $0.00",
        ] {
            assert!(refused.message.contains(words), "{words}: {refused}");
        }
    }
    assert_eq!(fixture.changes().len(), changes);
    let pod = fixture.pods_named(POD).await[0]["id"].as_str().unwrap().to_owned();
    let spent = report(&fixture).await;
    assert_eq!(spent.failed_boots.len(), 2, "{spent:?}");
    for boot in &spent.failed_boots {
        let known = boot.usd.is_some_and(|usd| usd > Usd::ZERO);
        assert!(boot.pod.0 == pod && boot.vehicle == VEHICLE && boot.seconds >= 1 && known);
    }
    assert!(spent.not_yet_billed_usd > Usd::ZERO, "{spent:?}");

    // Somebody started it by hand: it is taken over, which is no start, and is stopped.
    fixture.set_faults(&[]).await;
    let path = format!("/v2/pods/{pod}/action");
    fixture.api("POST", &path, Some(json!({"action": "start"}))).await;
    fixture.until("a running pod", async || fixture.status().await == "RUNNING").await;
    tether.ensure_pod(&ensure(0)).await.unwrap();
    assert_eq!(tether.stop_pod(VEHICLE).await.unwrap().status, StopStatus::Stopped);
}

/// What was stopped within the last hour is on no bill and in no list of running pods; it was spent
/// all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_was_just_stopped_is_spent_before_it_is_billed() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let running = report(&fixture).await;
    assert!(running.running_usd > Usd::ZERO, "{running:?}");
    assert_eq!(running.not_yet_billed_usd, Usd::ZERO);
    tether.stop_pod(VEHICLE).await.unwrap();
    let stopped = report(&fixture).await;
    assert_eq!((stopped.compute_usd, stopped.running_usd), (Usd::ZERO, Usd::ZERO));
    assert!(stopped.not_yet_billed_usd >= running.running_usd, "{stopped:?}");
    assert_eq!(stopped.total_usd, stopped.not_yet_billed_usd);
    assert_eq!((stopped.unexplained_usd, stopped.unexplained), (Some(Usd::ZERO), vec![]));
    // The budget counts the same.
    limit(&fixture, "budget_usd: 0.000001");
    let refused = fixture.tether().await.ensure_pod(&ensure(0)).await.unwrap_err();
    assert!(!refused.message.contains("$0.00 spent so far"), "{refused}");
}

/// A clock that stands still, to write what happened some hours ago.
struct At(DateTime<Utc>);

impl Clock for At {
    fn now(&self) -> DateTime<Utc> {
        self.0
    }
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// Six hours ago, at the full hour.
fn base() -> DateTime<Utc> {
    Utc::now().duration_trunc(TimeDelta::hours(1)).unwrap() - TimeDelta::hours(6)
}

fn span(of: &str, from_hour: i64, to_hour: i64) -> Value {
    let at = |hour| base() + TimeDelta::hours(hour);
    json!({"of": of, "rate": 690_000, "disk_rate": 0, "start": at(from_hour), "end": at(to_hour)})
}

/// Notes that podtether created a pod and stopped it, so many hours after [`base`].
fn ran(fixture: &Fixture, pod: &str, from_hour: i64, to_hour: i64) {
    let folder = fixture.ledger().path().parent().unwrap().to_owned();
    let at = |hour| {
        let clock = Arc::new(At(base() + TimeDelta::hours(hour)));
        Ledger::new(folder.clone(), Path::new("podtether.yaml"), clock)
    };
    let note = |ledger: &Ledger, action: Action, observed: &str| {
        let make = |id| Event::Intend {
            id,
            vehicle: VEHICLE.into(),
            action,
            micros_per_hour: Some(690_000),
        };
        let id = ledger.intend(make).unwrap();
        let pod = Some(PodId(pod.to_owned()));
        ledger.append(Event::Done { id, pod, observed: observed.into() }).unwrap();
    };
    let nonce = format!("nonce of {pod}");
    note(&at(from_hour), Action::CreatePod { name: POD.into(), nonce }, "created, PROVISIONING");
    note(&at(to_hour), Action::StopPod { pod: PodId(pod.to_owned()) }, "EXITED");
}

/// I04: a bill that is late or has holes is no cheaper. "Expected X, billed Y" is said.
#[tokio::test(flavor = "multi_thread")]
async fn a_bill_that_is_late_or_has_holes_is_no_saving() {
    let fixture = Fixture::with_past(&[span("old1", 0, 3)], &[]);
    ran(&fixture, "old1", 0, 3);
    let whole = report(&fixture).await;
    let three_hours = Usd::from_micros(3 * 690_000);
    assert_eq!((whole.compute_usd, whole.total_usd), (three_hours, three_hours), "{whole:?}");
    assert_eq!(whole.expected_not_billed, []);
    for (fault, at_most) in [("billing-holes", 2 * 690_000), ("billing-lag=86400", 0)] {
        fixture.set_faults(&[fault]).await;
        let short = report(&fixture).await;
        assert_eq!(short.total_usd, three_hours, "{fault}: {short:?}");
        assert!(short.compute_usd.micros() <= at_most, "{fault}: {short:?}");
        let line = &short.expected_not_billed[0];
        let told = (line.pod.as_str(), line.expected_usd, line.billed_usd);
        assert_eq!(told, ("old1", three_hours, short.compute_usd), "{fault}");
        assert_eq!(
            short.expected_not_billed_usd,
            three_hours.saturating_sub(short.compute_usd),
            "{fault}"
        );
        // No stop and no reservation comes of it, and nothing is called unexplained.
        assert_eq!((short.unexplained, short.committed), (vec![], vec![]), "{fault}");
    }
}

/// Every dollar that no pod or volume of ours explains has a line with its id.
#[tokio::test(flavor = "multi_thread")]
async fn dollars_that_nothing_explains_are_told_by_pod_and_volume() {
    let spans = [span("own1", 0, 1), span("long1", 0, 3), span("gone9", 1, 2)];
    let fixture = Fixture::with_past(&spans, &[span("vol9", 0, 2)]);
    ran(&fixture, "own1", 0, 1);
    ran(&fixture, "long1", 0, 1);
    let report = report(&fixture).await;
    // In the first hours of a month the journal began in the month before, which is told as a whole.
    if report.from < base() && base() < start_of_month() {
        println!("skipped: the month began within the last hours");
        return;
    }
    let hour = Usd::from_micros(690_000);
    let lines: Vec<_> =
        report.unexplained.iter().map(|line| (line.id.as_str(), line.usd)).collect();
    let two = Usd::from_micros(1_380_000);
    assert_eq!(lines, [("long1", two), ("vol9", two), ("gone9", hour)], "{report:?}");
    let why = |at: usize| report.unexplained[at].why.as_str();
    assert_eq!(why(0), "billed $2.07, but it was up for no more than $0.69");
    assert!(why(1).contains("network volume that is gone"), "{}", why(1));
    assert!(why(2).contains("the journal does not know"), "{}", why(2));
    assert_eq!(report.unexplained_usd, Some(Usd::from_micros(3_450_000)));
    // A stranger is named; what we billed ourselves is none of it.
    assert!(report.covers.contains("the journal knows nothing"), "{}", report.covers);
}

fn start_of_month() -> DateTime<Utc> {
    podtether::domain::BudgetWindow::Month.start(Utc::now())
}
