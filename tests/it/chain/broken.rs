//! Links that go wrong: the campaign ends there, the pod is stopped and read back, nothing is deleted,
//! and no link after it runs.

use super::{
    RULE, campaign, fixture, jobs, launched, lines, link, never_terminated, record, run, start,
    with_room,
};
use crate::flows::fixture::{Fixture, VEHICLE};
use crate::flows::signals::WAITS;
use crate::flows::slept::Sleeper;
use crate::flows::supervised::Outcome;
use podtether::chain;
use podtether::clock::{SharedClock, SystemClock};
use podtether::config::{self, Environment};
use podtether::notify::Notifier;
use podtether::supervise::Note;
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

/// A link with this command and more keys, one that must not run, and the stop.
fn then_another(command: &str, more: &str) -> String {
    format!(
        "  - {{name: one, command: '{command}', max_runtime_sec: 60, max_usd: 1.5{more}}}\n  - {{name: two, command: 'echo 2 >>twos', max_runtime_sec: 60, max_usd: 1.5}}\n  - {{name: off, stop: true}}\n"
    )
}

/// The campaign ended at its first link, for this reason, with the pod off.
async fn ended_at_one(fixture: &Fixture, outcome: &Outcome, words: &str) {
    assert_eq!(outcome.code, 1, "{outcome:#?}");
    assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
    let found = record(fixture, outcome);
    assert_eq!(
        json!([found["state"], found["pod_may_still_be_running"]]),
        json!(["failed", false])
    );
    assert!(found["reason"].as_str().unwrap().contains(words), "{found:#}");
    assert_eq!(lines(fixture, "twos"), 0);
    assert_eq!(fixture.status().await, "EXITED");
    assert!(!fixture.path("logs/deadman.pid").exists(), "{outcome:#?}");
    never_terminated(fixture);
}

async fn ends(more: &str, command: &str, words: &str) {
    let fixture = fixture();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    campaign(&fixture, &then_another(command, more));
    let outcome = run(&fixture, &[]).await;
    ended_at_one(&fixture, &outcome, words).await;
    assert_eq!(link(&outcome.summary, "one")["outcome"], "failed");
    assert_eq!(jobs(&fixture), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_fails_ends_it() {
    ends("", "exit 3", "ended as failed, exit code 3").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_marker_that_is_not_there_after_it_ends_it() {
    let gates = ", gates: {after: {require: [markers/PASS]}}";
    ends(gates, "true", "/workspace/markers/PASS is not there and must be").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_that_is_missing_or_empty_ends_it() {
    let expect = ", pull: out, expect: {artifacts: [\"*.pt\"]}";
    ends(expect, "mkdir out; echo 1 >out/a.txt", "nothing is *.pt in").await;
    ends(expect, "mkdir out; touch out/a.pt", "a.pt is empty").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_number_of_rewards_than_expected_ends_it() {
    let log = format!("printf \"Learning iteration 0/2\\n  Mean reward: 7.00\\n\"; {RULE}");
    let log = log.as_str();
    ends(", expect: {reward_lines: 2}", log, "its log tells 1 mean rewards, not 2").await;
    ends(", expect: {reward: [8, 9]}", log, "its last mean reward is 7.00, not from 8 to 9").await;
}

/// A gate that was open for the first link closes on the second: nothing of that is begun.
#[tokio::test(flavor = "multi_thread")]
async fn a_gate_that_has_closed_ends_it_before_the_link() {
    let fixture = fixture();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    campaign(
        &fixture,
        "  - {name: one, command: 'touch patched', max_runtime_sec: 60, max_usd: 1.5}\n  - {name: two, command: 'echo 2 >>twos', max_runtime_sec: 60, max_usd: 1.5, gates: {before: {forbid: [patched]}}}\n  - {name: off, stop: true}\n",
    );
    let outcome = run(&fixture, &[]).await;
    ended_at_one(&fixture, &outcome, "/workspace/patched is there and must not be").await;
    assert_eq!(jobs(&fixture), 1);
    assert_eq!(link(&outcome.summary, "one")["outcome"], "succeeded");
}

/// F04: the answer to a link's launch is lost. Its job is adopted, and not launched again.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_launch_answer_is_no_reason_to_launch_again() {
    let mut fixture = with_room(Fixture::with_daemon());
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id.0;
    let environment = fixture.state().join("pods").join(&pod).join("disk/etc/rp_environment");
    let held =
        format!("until test -e \"{}/go-on\"; do sleep 0.02; done\n", fixture.volume().display());
    let mut file = fs::OpenOptions::new().append(true).open(environment).unwrap();
    file.write_all(held.as_bytes()).unwrap();
    campaign(&fixture, &then_another("echo 1 >>ones", ""));
    let run = start(&fixture, &[]);
    let folder = fixture.volume().join("jobs");
    let launched = || {
        let folders = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.filter(|folder| folder.path().join("launched").exists()).count()
    };
    fixture.until("a launch", async || launched() == 1).await;
    fixture.daemon().kill();
    fs::write(fixture.volume().join("go-on"), "").unwrap();
    fixture.daemon().start_again();
    let outcome = run.end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert!(outcome.stderr.contains("the job did start"), "{}", outcome.stderr);
    assert_eq!((jobs(&fixture), lines(&fixture, "ones"), lines(&fixture, "twos")), (2, 1, 1));
    assert_eq!(fixture.status().await, "EXITED");
}

/// E08: somebody stops the pod under a link. It is off, nothing more runs, and what the job came to is
/// looked up on the volume before the link would be run again.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_goes_off_under_a_link_ends_it_and_its_job_is_looked_up_later() {
    let fixture = fixture();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id.0;
    campaign(&fixture, &then_another(WAITS, ""));
    let mut run_of_one = start(&fixture, &[]);
    run_of_one.says("launched:").await;
    fixture.api("POST", &format!("/v2/pods/{pod}/action"), Some(json!({"action": "stop"}))).await;
    let outcome = run_of_one.end().await;
    ended_at_one(&fixture, &outcome, "EXITED before the job was seen to end").await;
    // Without a pod nothing is done, and nothing is forgotten.
    let outcome = run(&fixture, &[]).await;
    assert_eq!(outcome.code, 2, "{outcome:#?}");
    fixture.running(&tether).await;
    let outcome = run(&fixture, &[]).await;
    assert_eq!(outcome.code, 2, "{outcome:#?}");
    assert!(outcome.stderr.contains("ended with the boot before as"), "{}", outcome.stderr);
    assert_eq!((jobs(&fixture), fixture.status().await.as_str()), (1, "RUNNING"));
    // Then it is run anew.
    fs::write(fixture.volume().join("go"), "").unwrap();
    let outcome = run(&fixture, &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert_eq!((jobs(&fixture), lines(&fixture, "twos")), (3, 1));
}

/// A stop that has no effect: the last word is that the pod may bill, and 6.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_is_not_confirmed_is_said_and_the_fuse_stays_armed() {
    let fixture = fixture();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    fixture.set_faults(&["stop-without-effect"]).await;
    campaign(&fixture, &then_another("exit 3", ""));
    let outcome = start(&fixture, &["--stop-budget-sec", "1"]).end().await;
    assert_eq!(outcome.code, 6, "{outcome:#?}");
    assert!(outcome.stderr.contains("THE POD MAY STILL BE RUNNING AND BILLING"), "{outcome:#?}");
    assert_eq!(record(&fixture, &outcome)["pod_may_still_be_running"], true);
    assert!(fixture.path("logs/deadman.pid").exists());
    fixture.set_faults(&[]).await;
    assert_eq!(fixture.stop(&["--vehicle", VEHICLE]).await.0, 0);
}

/// One Ctrl-C in a link ends in order; SIGTERM leaves at once and says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_in_a_link_ends_the_campaign_as_it_ends_a_run() {
    for (signal, code, state) in [(Signal::INT, 1, "interrupted"), (Signal::TERM, 6, "left")] {
        let fixture = fixture();
        let tether = fixture.tether().await;
        fixture.running(&tether).await;
        campaign(&fixture, &then_another(WAITS, ""));
        let mut run = start(&fixture, &[]);
        run.says("launched:").await;
        run.signal(signal);
        let outcome = run.end().await;
        assert_eq!(outcome.code, code, "{outcome:#?}");
        assert_eq!(record(&fixture, &outcome)["state"], state);
        let off = fixture.status().await == "EXITED";
        assert_eq!(off, code == 1, "{outcome:#?}");
        assert_eq!(lines(&fixture, "twos"), 0);
        if !off {
            assert!(fixture.path("logs/deadman.pid").exists());
            assert_eq!(fixture.stop(&["--vehicle", VEHICLE]).await.0, 0);
        }
    }
}

/// E04: what keeps the record from being written is told once, and nobody is sent to an old file for the truth.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_written_any_more_is_told_once_and_not_pointed_at() {
    let one = format!("  - {{name: one, command: '{WAITS}', max_runtime_sec: 60, max_usd: 1.5}}\n");
    let (fixture, _tether, run) = launched(&one).await;
    let path = fixture.path("logs/campaign-trial.json");
    let takes_its_place = async || {
        let _ = fs::remove_file(&path);
        fs::create_dir(&path).is_ok()
    };
    fixture.until("a folder in place of the record", takes_its_place).await;
    fs::write(fixture.volume().join("go"), "").unwrap();
    let outcome = run.end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    let said = &outcome.stderr;
    let times = said.matches("the campaign's record could not be written").count();
    assert!(times >= 1 && said.contains("record: NOT WRITTEN"), "{said}");
    let errors = outcome.summary["errors"].as_array().unwrap().len();
    assert_eq!((times, errors), (1 + errors, 1), "as it goes, and among the errors: {said}");
    assert_eq!(fixture.status().await, "EXITED");
}

/// C02: a laptop that sleeps while its job ends pays for the pod all the same. What a link has really
/// cost is beyond its envelope then, and the campaign ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_cost_more_than_its_envelope_ends_it() {
    let fixture = fixture();
    let sleeper = Arc::new(Sleeper { clock: SystemClock::new(), slept_sec: AtomicI64::new(0) });
    let tether = fixture.tether_on(Arc::clone(&sleeper) as SharedClock).await;
    fixture.running(&tether).await;
    let path = campaign(&fixture, &then_another("true", ""));
    let env = Environment::isolated([("HOME", "/nowhere")]);
    let options = chain::Options {
        campaign: config::load_campaign(&path, tether.config(), &env).unwrap(),
        interval: Duration::from_secs(1),
        pull_every: Duration::from_secs(1),
        rest: Some(Duration::ZERO),
        again: Vec::new(),
        notifier: Notifier::silent(),
    };
    let (_keep, mut signals) = tokio::sync::mpsc::unbounded_channel();
    let mut said = String::new();
    let mut tell = |note: Note| {
        if let Note::Said(text) = note {
            if text.starts_with("captured:") {
                sleeper.slept_sec.store(9 * 3_600, Relaxed);
            }
            said.push_str(&format!("{text}\n"));
        }
    };
    let record = chain::run(&tether, &options, &mut signals, &mut tell).await.unwrap();
    assert_eq!(record.process_exit_code, Some(1), "{said}");
    assert!(record.reason.unwrap().contains("more than its max_usd"), "{said}");
    assert_eq!((lines(&fixture, "twos"), fixture.status().await.as_str()), (0, "EXITED"));
}
