//! What comes after a crash: a new process, which must name what bills, make no second pod, launch
//! nothing twice, and stop everything.

use super::cell::{Cell, Crash, Scenario};
use super::rig::Rig;
use super::victim::{command, tool_call};
use crate::flows::fixture::VEHICLE;
use crate::mcp::client::{Client, Era};
use podtether::ledger::{Action, OpenIntent};
use serde_json::{Value, json};
use std::fs;

/// Says of which kind the journal's end is; it was written before anybody repaired it.
fn is_torn(journal: &[u8]) -> bool {
    journal.last().is_some_and(|byte| *byte != b'\n')
}

pub fn recover(rig: &Rig, cell: &Cell) {
    let torn = is_torn(&rig.journal());
    let truth = rig.truth();
    let launched = launched(rig);
    let open = rig.announced();
    let announced = open.iter().any(|action| matches!(action, Action::CreatePod { .. }));
    was_announced(cell, &open);
    tells_the_truth_in_its_summary(rig, truth.as_ref());

    let mut client = Client::start(command(rig, &["mcp"], None), Era::Initialize);
    let status = client.call("pod_status", json!({}));
    names_what_bills(&status, truth.as_ref(), announced);
    for job in jobs(rig) {
        if let Some((_, "RUNNING")) = truth.as_ref().map(|(id, status)| (id, status.as_str())) {
            let status = client.call("job_status", json!({"job_id": job}));
            assert_ne!(status["state"], "unknown", "{status}");
        }
    }
    let mut unaccounted = false;
    match cell.scenario {
        Scenario::Create | Scenario::Start => {
            unaccounted = goes_on_with_the_pod(rig, &mut client, cell, truth.as_ref(), announced);
        }
        Scenario::Launch => launches_once(rig, &mut client, cell, launched),
        _ => {
            // Looks up what is open and changes nothing; above all it starts no stopped pod (A22).
            client.call("ensure_pod", json!({"dry_run": true}));
            assert_eq!(rig.truth(), truth, "a dry run has changed something");
        }
    }
    let book = rig.fixture.ledger().book().unwrap();
    assert_eq!(book.set_aside(), None, "the journal could be read");
    client.close_stdin();
    client.ended();
    // What it wrote last is read in a thread of its own.
    let said = || String::from_utf8_lossy(&client.heard()).contains("a crash had cut off");
    rig.runtime.block_on(rig.fixture.until("the word of the repair", async || said() || !torn));
    assert_eq!(said(), torn, "a repair was told and there was none");
    drop(client);
    if cell.scenario == Scenario::Supervise {
        is_taken_up(rig, truth.as_ref());
    }

    stops_everything(rig, unaccounted);
    let book = rig.fixture.ledger().book().unwrap();
    // `podtether stop` writes no journal: a launch of unknown outcome is settled by the next look.
    // A volume is proven absent by time, and is in nobody's way at a stop.
    let is_settled_later = |intent: &&OpenIntent| {
        matches!(intent.action, Action::LaunchJob { .. } | Action::CreateVolume { .. })
    };
    let open: Vec<_> =
        book.open_intents().iter().filter(|intent| !is_settled_later(intent)).collect();
    assert_eq!(open.len(), usize::from(unaccounted), "{open:?}");
    let changes = rig.fixture.changes();
    let count = |path: &str| changes.iter().filter(|change| change.path == path).count();
    assert!(count("/v2/pods") <= 1 && count("/v2/network-volumes") <= 1, "{changes:#?}");
    let terminates = |change: &crate::flows::fixture::Request| {
        change.method == "DELETE" || change.body["action"] == "terminate"
    };
    assert!(!changes.iter().any(terminates), "{changes:#?}");
    let ran = fs::read_to_string(runs(rig)).unwrap_or_default().lines().count();
    assert!(ran <= 1, "the job ran {ran} times");
}

/// Whoever dies at a request that changes something has announced it before. `podtether stop` needs no
/// journal.
fn was_announced(cell: &Cell, open: &[Action]) {
    let Crash::Request(key, _) = &cell.crash else { return };
    if matches!(cell.scenario, Scenario::StopVehicle | Scenario::StopAll) {
        return;
    }
    let is_it: fn(&Action) -> bool = match key.split('#').next().unwrap() {
        "POST /v2/pods" => |action| matches!(action, Action::CreatePod { .. }),
        "POST /v2/network-volumes" => |action| matches!(action, Action::CreateVolume { .. }),
        "POST /v2/pods/{pod}/action start" => |action| matches!(action, Action::StartPod { .. }),
        "POST /v2/pods/{pod}/action stop" => |action| matches!(action, Action::StopPod { .. }),
        other => {
            assert!(other.starts_with("GET ") || other == "POST /graphql", "{other}");
            return;
        }
    };
    assert!(open.iter().any(is_it), "it was not announced: {open:?}");
}

fn names_what_bills(status: &Value, truth: Option<&(String, String)>, announced: bool) {
    let said = status["status"].as_str().unwrap();
    match truth {
        None if announced => says_that_a_hidden_pod_may_bill(status, "unknown"),
        None => assert_eq!(said, "no_pod", "{status}"),
        Some((id, status_word)) => {
            assert_eq!(status["pod"]["id"], *id, "{status}");
            match status_word.as_str() {
                "EXITED" => assert_eq!(said, "stopped", "{status}"),
                _ => assert!(["running", "running_ssh_pending"].contains(&said), "{status}"),
            }
        }
    }
}

/// The summary of a supervised run is the last truth that was known: it never says that a pod is
/// off that bills.
fn tells_the_truth_in_its_summary(rig: &Rig, truth: Option<&(String, String)>) {
    let Ok(logs) = fs::read_dir(rig.fixture.path("logs")) else { return };
    for path in logs.map(|entry| entry.unwrap().path()) {
        if path.extension().is_some_and(|extension| extension == "json") {
            let summary: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            if truth.is_some_and(|(_, status)| status != "EXITED") {
                assert_eq!(summary["pod_may_still_be_running"], true, "{summary:#}");
            }
        }
    }
}

/// `--resume` of a run that left a summary ends its bill, and never launches. A run that had said its
/// last word is refused.
fn is_taken_up(rig: &Rig, truth: Option<&(String, String)>) {
    let logs = fs::read_dir(rig.fixture.path("logs")).into_iter().flatten();
    let paths = logs.map(|entry| entry.unwrap().path());
    let mut paths = paths.filter(|path| path.extension().is_some_and(|it| it == "json"));
    let Some(path) = paths.next() else {
        assert!(!launched(rig), "a job was launched before there was a summary");
        return;
    };
    let words = ["supervise", "--interval", "1", "--resume", path.to_str().unwrap()];
    let output = command(rig, &words, None).output().unwrap();
    let code = output.status.code();
    assert!(matches!(code, Some(0..=2)), "{output:?}");
    let summary: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(summary["pod_may_still_be_running"], false, "{summary:#} {output:?}");
    assert_eq!(rig.truth().unwrap().1, "EXITED", "{output:?}");
    if code == Some(2) {
        assert_eq!(truth.unwrap().1, "EXITED", "{output:?}");
        assert_eq!(summary["process_exit_code"], 0, "{summary:#}");
    }
}

/// Calls the scenario's tool once more; its answer or its failure.
pub fn call_again(client: &mut Client, cell: &Cell) -> Result<Value, Value> {
    let (tool, arguments) = tool_call(cell.scenario).unwrap();
    let id = client.begin_call(tool, arguments);
    let message = client.wait(id);
    if message["result"]["isError"] == true {
        return Err(Client::failure(&message));
    }
    Ok(message["result"]["structuredContent"].clone())
}

/// Returns whether a create is open whose outcome nobody knows.
fn goes_on_with_the_pod(
    rig: &Rig,
    client: &mut Client,
    cell: &Cell,
    truth: Option<&(String, String)>,
    announced: bool,
) -> bool {
    match (call_again(client, cell), truth) {
        (Ok(answer), truth) => {
            assert!(truth.is_some() || !announced, "a create may be under way: {answer}");
            let (id, status) = rig.truth().expect("a pod");
            assert_eq!(answer["pod"]["id"], id, "{answer}");
            assert_ne!(status, "EXITED", "{answer}");
            if let Some((before, _)) = truth {
                assert_eq!(*before, id, "another pod than the one that there was");
            }
            false
        }
        // A05: the pod may be hidden; its absence is not proven yet, and that is said.
        (Err(failure), None) => {
            let told = ["kind", "still_billing"].map(|key| failure[key].as_str().unwrap());
            assert_eq!(told, ["refused", "unknown"], "{failure}");
            let message = failure["message"].as_str().unwrap();
            if !announced {
                // Whoever died while a volume was asked for: a second of its name is not asked for
                // while the first may still come.
                for words in
                    ["network volume was sent", "its outcome is not known", "in two minutes"]
                {
                    assert!(message.contains(words), "{words}: {message}");
                }
                return false;
            }
            for words in ["its outcome is not known; it may bill $0.69/h", "in two minutes"] {
                assert!(message.contains(words), "{words}: {message}");
            }
            assert_eq!(rig.truth(), None);
            let stop = client.call("stop_pod", json!({"vehicle": VEHICLE}));
            says_that_a_hidden_pod_may_bill(&stop, "stop_unconfirmed");
            true
        }
        (Err(failure), Some(pod)) => panic!("{pod:?} is there: {failure}"),
    }
}

fn jobs(rig: &Rig) -> Vec<String> {
    if rig.truth().is_none() {
        return Vec::new();
    }
    let folders = fs::read_dir(rig.fixture.volume().join("jobs")).into_iter().flatten();
    folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Whether a job was started, or is about to be.
fn launched(rig: &Rig) -> bool {
    let jobs = jobs(rig);
    jobs.iter().any(|job| rig.fixture.volume().join("jobs").join(job).join("launched").exists())
}

fn runs(rig: &Rig) -> std::path::PathBuf {
    rig.truth().map_or_else(|| rig.fixture.path("no volume"), |_| rig.fixture.volume().join("runs"))
}

/// F04: the same work is not begun twice when the first launch took effect.
fn launches_once(rig: &Rig, client: &mut Client, cell: &Cell, launched: bool) {
    match call_again(client, cell) {
        Ok(answer) => assert!(!launched, "launched twice: {answer}"),
        Err(failure) => {
            assert!(launched, "{failure}");
            assert_eq!(failure["kind"], "refused", "{failure}");
            let message = failure["message"].as_str().unwrap();
            assert!(message.contains("a job is still running"), "{message}");
        }
    }
    rig.runtime.block_on(rig.fixture.until("the job's first word", async || {
        fs::read_to_string(runs(rig)).is_ok_and(|text| text == "run\n")
    }));
}

/// `podtether stop --all`, the last word of which is never that nothing bills when something may.
pub fn stops_everything(rig: &Rig, unaccounted: bool) {
    let output = command(rig, &["stop", "--all", "--json"], None).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!(output.status.code(), Some(if unaccounted { 6 } else { 0 }), "{output:?}");
    assert_eq!(answer["may_still_bill"], unaccounted, "{answer}");
    if unaccounted {
        let told = answer["unaccounted"][0].as_str().unwrap();
        assert!(told.contains(VEHICLE) && told.contains("MAY BILL $0.69/h"), "{answer}");
        return;
    }
    match rig.truth() {
        None => assert_eq!(answer["no_pod"], json!([VEHICLE]), "{answer}"),
        Some((id, status)) => {
            assert_eq!(status, "EXITED", "{answer}");
            let told = ["pod", "off"].map(|key| answer["pods"][0][key].clone());
            assert_eq!(json!(told), json!([id, true]), "{answer}");
        }
    }
}

/// What pod_status and stop_pod say while a create is neither found nor proven absent.
pub fn says_that_a_hidden_pod_may_bill(answer: &Value, status: &str) {
    assert_eq!(answer["status"], status, "{answer}");
    let message = answer["message"].as_str().unwrap();
    for words in ["MAY BILL $0.69/h", "in two minutes"] {
        assert!(message.contains(words), "{words}: {answer}");
    }
}
