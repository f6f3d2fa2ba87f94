//! `podtether drill` as people have it: the real binary against the local cloud, where the truth is
//! read past podtether.

use crate::flows::fixture::{Fixture, POD, VEHICLE, ensure};
use crate::local_cloud::program;
use podtether::error::FailureKind;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// The longest step of a drill on the local cloud, and then some for a loaded machine.
const NET: Duration = Duration::from_secs(240);

fn command(fixture: &Fixture, words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(["drill", "--json", "--vehicle", VEHICLE])
        .args(words)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", fixture.path(""))
        .env("PODTETHER_CONFIG", fixture.config_file())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Its exit code, and what it printed.
async fn ended(child: Child) -> (i32, Value) {
    let output = child.wait_with_output().await.unwrap();
    let said = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {:?}", String::from_utf8_lossy(&output.stderr));
    });
    (output.status.code().unwrap_or(-1), said)
}

async fn drill(fixture: &Fixture, words: &[&str]) -> (i32, Value) {
    ended(command(fixture, words).spawn().unwrap()).await
}

/// Each fuse with its outcome.
fn outcomes(report: &Value) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let fuses = report["fuses"].as_array().unwrap_or_else(|| panic!("{report}"));
    fuses.iter().map(|fuse| (word(&fuse["fuse"]), word(&fuse["outcome"]))).collect()
}

fn told(words: &[(&str, &str)]) -> Vec<(String, String)> {
    words.iter().map(|(fuse, outcome)| ((*fuse).to_owned(), (*outcome).to_owned())).collect()
}

fn observed<'a>(report: &'a Value, fuse: &str) -> &'a str {
    let fuses = report["fuses"].as_array().unwrap();
    fuses.iter().find(|one| one["fuse"] == fuse).unwrap()["observed"].as_str().unwrap()
}

/// Adds a line to the config's limits.
fn limit(fixture: &Fixture, line: &str) {
    let text = fs::read_to_string(fixture.config_file()).unwrap();
    let text = text.replacen("limits:\n", &format!("limits:\n  {line}\n"), 1);
    fs::write(fixture.config_file(), text).unwrap();
}

fn no_net_is_left(fixture: &Fixture) {
    let net = fixture.path("logs/.podtether/drill");
    assert!(net.join("deadman.lock").exists(), "there was one");
    assert!(!net.join("deadman.pid").exists(), "it was taken away");
}

async fn running(fixture: &Fixture) {
    fixture
        .until("a running pod", async || {
            let pods = fixture.pods_named(POD).await;
            pods.first().is_some_and(|pod| pod["status"] == "RUNNING")
        })
        .await;
}

/// Six strikes, each of which left its own traces; and only then may a launch that asks for proof go
/// ahead. A07: what was only promised counts for nothing.
#[tokio::test(flavor = "multi_thread")]
async fn all_six_fuses_strike_by_themselves_and_their_receipts_let_a_pod_start() {
    let fixture = Fixture::new();
    limit(&fixture, "require_proven_fuses: 2");
    // Six for the drill, and some for what follows.
    limit(&fixture, "max_boots_per_hour: 9");
    let refused = fixture.tether().await.ensure_pod(&ensure(0)).await.unwrap_err();
    assert_eq!(refused.kind, FailureKind::Refused, "{refused}");
    assert!(refused.message.contains("podtether drill --vehicle rover"), "{refused}");
    assert_eq!(fixture.changes(), []);

    let (code, report) = drill(&fixture, &[]).await;
    let proven =
        ["auto_stop", "watchdog_idle", "watchdog_deadline", "lease", "deadman", "supervise"];
    assert_eq!(outcomes(&report), told(&proven.map(|fuse| (fuse, "proven"))), "{report:#}");
    assert_eq!((code, report["ok"].as_bool()), (0, Some(true)), "{report:#}");
    assert_eq!(fixture.status().await, "EXITED");
    no_net_is_left(&fixture);
    let by_account = |word: &str| {
        // A fuse proves its key with a stop of a pod that does not exist.
        let changes = fixture.changes().into_iter();
        let real = changes.filter(|change| !change.path.contains("podtetherprobe"));
        real.filter(|change| change.body["action"] == word).count()
    };
    // The pod struck four times by its own key; the laptop's two fuses with the account's.
    assert_eq!((by_account("start"), by_account("stop")), (5, 2), "{:?}", fixture.changes());
    let spent = report["spent_usd"].as_f64().unwrap();
    assert!(spent > 0.0 && spent < report["plan"]["worst_case_usd"].as_f64().unwrap(), "{spent}");

    let receipts = report["receipts"].as_str().unwrap();
    let text = fs::read_to_string(receipts).unwrap();
    let key = fixture.running_cloud().key.reveal().to_owned();
    assert!(!text.contains(&key) && text.contains("\"cloud\": \"local\""), "{text}");

    // Each row tells it beside its live state, and a changed circumstance takes it back.
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let status = tether.pod_status(None).await.unwrap();
    for fuse in &status.fuses {
        let words = fuse.proof.as_ref().unwrap_or(&fuse.why);
        assert!(words.contains("proven by drill"), "{fuse:?}");
    }
    tether.stop_pod(VEHICLE).await.unwrap();
    let config = fs::read_to_string(fixture.config_file()).unwrap();
    fs::write(fixture.config_file(), format!("{config}    image_name: another:1\n")).unwrap();
    let refused = fixture.tether().await.ensure_pod(&ensure(0)).await.unwrap_err();
    assert!(refused.message.contains("the image changed since"), "{refused}");
}

/// Peers' trap: some accounts' pods may not stop themselves, and only a drill tells.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_may_not_stop_itself_fails_its_fuse_and_the_drill_goes_on() {
    let fixture = Fixture::new();
    fixture.set_faults(&["pod-key-read-only"]).await;
    let (code, report) = drill(&fixture, &["--fuses", "deadman,watchdog_idle"]).await;
    let expected = told(&[("watchdog_idle", "failed"), ("deadman", "proven")]);
    assert_eq!((code, outcomes(&report)), (1, expected), "{report:#}");
    assert!(observed(&report, "watchdog_idle").contains("still RUNNING"), "{report:#}");
    assert_eq!(fixture.status().await, "EXITED");
    no_net_is_left(&fixture);
}

/// A19: a watchdog without a key is found out when it is armed, and an auto-stop when it is due.
#[tokio::test(flavor = "multi_thread")]
async fn a_watchdog_without_a_key_fails_at_once_and_the_pod_is_off_at_the_end() {
    let fixture = Fixture::new();
    fixture.set_faults(&["environment-cut"]).await;
    let (code, report) = drill(&fixture, &["--fuses", "lease"]).await;
    assert_eq!((code, outcomes(&report)), (1, told(&[("lease", "failed")])), "{report:#}");
    assert!(observed(&report, "lease").contains("verdict 91"), "{report:#}");
    assert_eq!(fixture.status().await, "EXITED");
    let kept: Value =
        serde_json::from_slice(&fs::read(report["receipts"].as_str().unwrap()).unwrap()).unwrap();
    assert_eq!(kept["fuses"][0]["outcome"], "failed");
}

/// A stop that is answered with 200 and does nothing is no stop (A04), whoever asked for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_without_effect_is_not_proven_and_the_drills_own_stop_is_said_not_to_be_confirmed() {
    let fixture = Fixture::new();
    fixture.set_faults(&["stop-without-effect"]).await;
    let words = ["--fuses", "deadman,supervise", "--stop-budget-sec", "1"];
    let (code, report) = drill(&fixture, &words).await;
    let expected = told(&[("deadman", "failed"), ("supervise", "not_tried")]);
    assert_eq!((code, outcomes(&report)), (6, expected), "{report:#}");
    assert_eq!(report["pod_may_still_be_running"], true);
    assert_eq!(fixture.status().await, "RUNNING");
    // The net was left where it is, and ends the bill once a stop works again.
    fixture.set_faults(&[]).await;
    off_by_the_net(&fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_laptops_fuse_that_was_killed_fails_and_the_next_one_is_tried() {
    let fixture = Fixture::new();
    let child = command(&fixture, &["--fuses", "deadman,supervise"]).spawn().unwrap();
    let file = fixture.path("logs/deadman.pid");
    let record = || serde_json::from_slice::<Value>(&fs::read(&file).ok()?).ok();
    // Armed once its key is proven, and due seconds later.
    let is_armed = |record: Value| record["proof"]["stop"] == "proven";
    fixture.until("the fuse", async || record().is_some_and(is_armed)).await;
    let pid = i32::try_from(record().unwrap()["pid"].as_u64().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let (code, report) = ended(child).await;
    let expected = told(&[("deadman", "failed"), ("supervise", "proven")]);
    assert_eq!((code, outcomes(&report)), (1, expected), "{report:#}");
    assert_eq!(fixture.status().await, "EXITED");
    no_net_is_left(&fixture);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cap_that_is_too_small_a_pod_in_use_and_a_dry_run_change_nothing() {
    let fixture = Fixture::new();
    let (code, said) = drill(&fixture, &["--max-usd", "0.01"]).await;
    assert_eq!((code, &said["failure"]["kind"]), (2, &"refused".into()), "{said}");
    assert!(said["failure"]["hint"].as_str().unwrap().contains("--max-usd 0."), "{said}");
    let (code, plan) = drill(&fixture, &["--dry-run", "--fuses", "lease"]).await;
    assert_eq!(code, 0, "{plan:#}");
    // The lease, and a boot that reads what it left.
    assert_eq!(plan["plan"]["boots"].as_array().unwrap().len(), 2);
    assert_eq!(plan["plan"]["first_requests"][1]["request"]["path"], "/v2/pods");
    limit(&fixture, "max_boots_per_hour: 1");
    let (code, said) = drill(&fixture, &["--fuses", "lease"]).await;
    assert_eq!(code, 2, "{said}");
    assert!(said["failure"]["message"].as_str().unwrap().contains("max_boots_per_hour"), "{said}");
    assert_eq!(fixture.changes(), []);
    assert!(!fixture.path("logs/.podtether/drill").exists());

    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let before = fixture.changes().len();
    let (code, said) = drill(&fixture, &["--fuses", "deadman"]).await;
    assert_eq!((code, &said["failure"]["kind"]), (2, &"refused".into()), "{said}");
    assert_eq!((fixture.changes().len(), fixture.status().await.as_str()), (before, "RUNNING"));
    tether.stop_pod(VEHICLE).await.unwrap();
}

/// C01: whatever ends the drill, its net ends the bill. Meanwhile nobody else starts the pod, and
/// anybody may stop it.
#[tokio::test(flavor = "multi_thread")]
async fn a_drill_that_is_killed_midway_leaves_a_net_that_ends_the_bill() {
    let fixture = Fixture::new();
    let mut child = command(&fixture, &["--fuses", "supervise"]).spawn().unwrap();
    running(&fixture).await;
    let tether = fixture.tether().await;
    let refused = tether.ensure_pod(&ensure(0)).await.unwrap_err();
    assert_eq!(refused.kind, FailureKind::Conflict, "{refused}");
    assert!(refused.message.contains("a drill of vehicle rover is under way"), "{refused}");
    // A second one is refused; 1 would say that it ended with the pod off.
    let (code, said) = drill(&fixture, &["--fuses", "deadman"]).await;
    assert_eq!((code, &said["failure"]["kind"]), (2, &"conflict".into()), "{said}");
    child.start_kill().unwrap();
    child.wait().await.unwrap();
    assert_eq!(fixture.status().await, "RUNNING", "it was killed while the pod was on");
    off_by_the_net(&fixture).await;
}

/// Waits until the net, which nobody helps, has the pod off.
async fn off_by_the_net(fixture: &Fixture) {
    let start = Instant::now();
    while fixture.status().await != "EXITED" {
        assert!(start.elapsed() < NET, "the net did not strike");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let folder = fixture.path("logs/.podtether/drill");
    fixture.until("the net's end", async || !folder.join("deadman.pid").exists()).await;
    let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let summary = names.filter(|path| path.extension().is_some_and(|end| end == "json")).max();
    let summary: Value = serde_json::from_slice(&fs::read(summary.unwrap()).unwrap()).unwrap();
    assert_eq!(summary["outcome"], "stopped", "{summary}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_a_drill_with_the_pod_off() {
    let fixture = Fixture::new();
    let child = command(&fixture, &["--fuses", "deadman"]).spawn().unwrap();
    running(&fixture).await;
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let (code, report) = ended(child).await;
    assert_eq!((code, outcomes(&report)), (1, told(&[("deadman", "not_tried")])), "{report:#}");
    assert_eq!(fixture.status().await, "EXITED");
    no_net_is_left(&fixture);
}
