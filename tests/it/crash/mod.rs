//! The crash matrix: the real program is killed at every request and every write of its journal, and
//! at every command on the pod, of create, start, launch and stop. Then a new process must find the
//! pod stopped, or name it as on the bill, or say that it may be. No hook in the product is needed:
//! a proxy kills at requests, a file-size limit at writes, a stand-in for bash on the pod.

mod cell;
mod pod_steps;
mod proxy;
mod recovery;
mod rig;
mod victim;

use crate::flows::fixture::VEHICLE;
use crate::mcp::client::{Client, Era};
use cell::{Cell, Crash, Record, Scenario, When};
use rig::Rig;
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex};
use std::time::Instant;
use victim::Ended;

const SIGKILL: i32 = 9;
const SIGXFSZ: i32 = 25;

/// Cells that run at once, over all scenarios.
static SEATS: (Mutex<usize>, Condvar) = (Mutex::new(8), Condvar::new());

/// Runs in turn with the other scenarios' cells.
fn seated<T>(work: impl FnOnce() -> T) -> T {
    let (free, is_free) = &SEATS;
    let mut seats = is_free.wait_while(free.lock().unwrap(), |free| *free == 0).unwrap();
    *seats -= 1;
    drop(seats);
    let done = catch_unwind(AssertUnwindSafe(work));
    *free.lock().unwrap() += 1;
    is_free.notify_one();
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The run by which the places are listed, followed by the same questions as after a crash.
fn undisturbed(scenario: Scenario) -> Record {
    let cell = Cell { scenario, crash: Crash::Never };
    let rig = Rig::new();
    rig.prepare(&cell);
    let (ended, record) = rig.run(&cell, None);
    let Ended::Done { code: Some(0), answer } = &ended else { panic!("{cell}: {ended:?}") };
    assert_ne!(answer["result"]["isError"], true, "{cell}: {answer}");
    recovery::recover(&rig, &cell);
    record
}

/// Whether the write was cut off where it was to be. The length of a line depends on its time, whose
/// last zeros are not written, so once in some hundred runs it is not.
fn landed(plan: (usize, cell::Cut), ended: &Ended, planned: &Record, found: &Record) -> bool {
    let (line, cut) = plan;
    let tail = found.lines.get(line).copied().unwrap_or_default();
    let expected = planned.limit(line, cut) - planned.lines[..line].iter().sum::<u64>();
    matches!(ended, Ended::Killed(SIGXFSZ))
        && found.lines[..line.min(found.lines.len())] == planned.lines[..line]
        && tail == expected
}

fn run(cell: &Cell, record: &Record) {
    for attempt in 0..5 {
        let rig = Rig::new();
        rig.prepare(cell);
        let (ended, found) = rig.run(cell, Some(record));
        let unknown = record.lacks(&found);
        assert!(unknown.is_empty(), "steps that no cell stands for: {unknown:?}");
        match &cell.crash {
            Crash::Journal { line, cut } => {
                if !landed((*line, *cut), &ended, record, &found) {
                    assert!(attempt < 4, "{ended:?}, {:?} for {:?}", found.lines, record.lines);
                    continue;
                }
            }
            _ => assert!(matches!(ended, Ended::Killed(SIGKILL)), "never got there: {ended:?}"),
        }
        recovery::recover(&rig, cell);
        return;
    }
}

/// All cells of these scenarios, as many at once as there are seats.
fn matrix(scenarios: &[Scenario]) {
    let start = Instant::now();
    let with_journal = cfg!(target_os = "linux");
    if !with_journal {
        println!("skipped: the cells at journal writes, which need prlimit of Linux");
    }
    for scenario in scenarios {
        let record = seated(|| undisturbed(*scenario));
        let crashes = record.crashes(with_journal);
        let count = |is: fn(&Crash) -> bool| crashes.iter().filter(|crash| is(crash)).count();
        let told = format!(
            "{} at requests, {} at commands on the pod, {} at journal writes",
            count(|crash| matches!(crash, Crash::Request(..))),
            count(|crash| matches!(crash, Crash::PodStep(..))),
            count(|crash| matches!(crash, Crash::Journal { .. })),
        );
        let failures = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for crash in crashes {
                let cell = Cell { scenario: *scenario, crash };
                let (record, failures) = (&record, &failures);
                scope.spawn(move || {
                    let done = seated(|| catch_unwind(AssertUnwindSafe(|| run(&cell, record))));
                    if let Err(panic) = done {
                        let words = panic.downcast_ref::<String>().cloned();
                        let words =
                            words.or_else(|| panic.downcast_ref::<&str>().map(|&s| s.into()));
                        let words = words.unwrap_or_default();
                        failures.lock().unwrap().push(format!("{cell}: {words}"));
                    }
                });
            }
        });
        let failures = failures.into_inner().unwrap();
        assert!(failures.is_empty(), "{} cells:\n{}", failures.len(), failures.join("\n\n"));
        println!("crash matrix: {scenario:?}: {told}; {:?}", start.elapsed());
    }
}

/// B01, B03, B04.
#[test]
fn a_create_that_dies_anywhere_leaves_one_pod_at_most_and_it_is_named() {
    matrix(&[Scenario::Create]);
}

/// B04.
#[test]
fn a_start_that_dies_anywhere_leaves_a_pod_that_is_named() {
    matrix(&[Scenario::Start]);
}

/// B04, F04.
#[test]
fn a_launch_that_dies_anywhere_runs_the_job_once_at_most() {
    matrix(&[Scenario::Launch]);
}

/// B04, C01.
#[test]
fn a_supervised_run_that_dies_anywhere_leaves_a_pod_that_is_named() {
    matrix(&[Scenario::Supervise]);
}

/// A01, B04.
#[test]
fn a_stop_that_dies_anywhere_is_asked_again_and_read_back() {
    matrix(&[Scenario::StopByTool, Scenario::StopVehicle, Scenario::StopAll]);
}

/// A05, B04: the process dies before it hears of the pod that it made, and no list shows the pod yet.
/// Nobody says that there is none, nobody makes a second one, and once it shows it is ours.
#[test]
fn a_pod_that_hides_after_a_crash_is_named_until_it_shows_and_then_stopped() {
    let crash = Crash::Request("POST /v2/pods#1".into(), When::After);
    let cell = Cell { scenario: Scenario::Create, crash };
    let rig = Rig::new();
    rig.runtime.block_on(rig.fixture.set_faults(&["list-lag=600"]));
    let (ended, _) = rig.run(&cell, None);
    assert!(matches!(ended, Ended::Killed(SIGKILL)), "{ended:?}");
    let (id, _) = rig.truth().expect("a pod that no list shows");

    let mut client = Client::start(victim::command(&rig, &["mcp"], None), Era::Initialize);
    let status = client.call("pod_status", json!({}));
    recovery::says_that_a_hidden_pod_may_bill(&status, "unknown");
    let stop = client.call("stop_pod", json!({"vehicle": VEHICLE}));
    recovery::says_that_a_hidden_pod_may_bill(&stop, "stop_unconfirmed");
    let failure = recovery::call_again(&mut client, &cell).unwrap_err();
    let told = ["kind", "still_billing", "retryable"].map(|key| failure[key].clone());
    assert_eq!(json!(told), json!(["refused", "unknown", true]), "{failure}");
    recovery::stops_everything(&rig, true);
    assert_ne!(rig.truth().unwrap().1, "EXITED");

    rig.runtime.block_on(rig.fixture.set_faults(&[]));
    let ensured = recovery::call_again(&mut client, &cell).unwrap();
    assert_eq!(ensured["pod"]["id"], id, "{ensured}");
    recovery::stops_everything(&rig, false);
    assert_eq!(rig.truth(), Some((id, "EXITED".to_owned())));
}

/// B05: two MCP servers and a supervised run, each a process of its own, at the same time.
#[test]
fn two_servers_and_a_supervised_run_at_once_make_one_pod() {
    let rig = Rig::new();
    let supervise = ["supervise", "--job-name", "job", "--command", "true"];
    let more = ["--sync-subdir", "none", "--no-stop", "--interval", "1"];
    let answers: Vec<_> = std::thread::scope(|scope| {
        let ensure = || {
            let mut client = Client::start(victim::command(&rig, &["mcp"], None), Era::Initialize);
            client.call("ensure_pod", json!({"wait_sec": 45}))
        };
        let servers = [scope.spawn(ensure), scope.spawn(ensure)];
        let mut run = victim::command(&rig, &[&supervise[..], &more].concat(), None);
        let output = run.output().unwrap();
        // It goes on with a pod that runs, and makes none: which of the two is a matter of time.
        assert!(matches!(output.status.code(), Some(0 | 2 | 6)), "{output:?}");
        servers.map(|server| server.join().unwrap()).into()
    });
    let (id, status) = rig.truth().expect("a pod");
    assert_eq!(status, "RUNNING");
    for answer in answers {
        assert_eq!((&answer["status"], &answer["pod"]["id"]), (&json!("running"), &json!(id)));
    }
    let creates = rig.fixture.changes().into_iter().filter(|change| change.path == "/v2/pods");
    assert_eq!(creates.count(), 1);
}
