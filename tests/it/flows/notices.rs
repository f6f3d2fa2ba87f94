//! Notices of whole commands, and that a broken channel changes nothing about them.

use super::fixture::{Fixture, POD, Request};
use super::signals::WAITS;
use super::supervised::{Outcome, Run};
use crate::local_cloud::program;
use crate::notify::{Mood, Receiver, fake_screen, recorded};
use podtether::notify::Screen;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;
use tokio::process::Command;

const URL: &str = "PODTETHER_WEBHOOK_URL";

/// A fixture whose config has a webhook of ntfy's.
fn told() -> Fixture {
    Fixture::with("notify: {webhook: ntfy}\n")
}

/// Runs a job that succeeds, with a pod that runs already.
async fn supervised(fixture: &Fixture, address: &str, more: &[&str]) -> Outcome {
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    Run::of_with(fixture, "true", more, &[(URL, address)]).end().await
}

fn troubles(outcome: &Outcome) -> Vec<String> {
    let errors = outcome.file()["errors"].as_array().unwrap().clone();
    let notify = errors.into_iter().filter(|trouble| trouble["step"] == "notify");
    notify.map(|trouble| trouble["error"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_tells_its_end_and_its_stop_in_order() {
    let fixture = told();
    let receiver = Receiver::start(Mood::Takes).await;
    let outcome = supervised(&fixture, &format!("{}/topic", receiver.base), &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert_eq!(outcome.file()["errors"], json!([]), "{outcome:#?}");
    assert_eq!(receiver.tags(), ["ended", "stopped"]);
    let bodies: Vec<Value> = receiver.received().into_iter().map(|one| one.body).collect();
    assert_eq!(bodies[0]["title"], "podtether (local cloud, $0): rover: run ended");
    let id = outcome.summary["job_id"].as_str().unwrap();
    let words = bodies[0]["message"].as_str().unwrap();
    assert!(words.starts_with(&format!("job {id}: job succeeded")), "{words}");
    assert!(bodies[1]["message"].as_str().unwrap().contains("EXITED was read back"), "{bodies:?}");
}

/// A notice that hangs is under way while the pod is stopped; neither the stop nor the outcome waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_hangs_does_not_hold_up_the_stop() {
    let fixture = told();
    let receiver = Receiver::start(Mood::Hangs).await;
    let outcome = supervised(&fixture, &format!("{}/topic", receiver.base), &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    let first = &receiver.received()[0];
    assert_eq!(first.body["tags"], json!(["ended"]));
    // The laptop's fuse has asked before whether it may stop, with a pod that does not exist.
    let pod = fixture.pods_named(POD).await[0]["id"].as_str().unwrap().to_owned();
    let is_stop = |change: &Request| change.body["action"] == "stop" && change.path.contains(&pod);
    let stop = fixture.changes().into_iter().find(is_stop).unwrap();
    let asked: chrono::DateTime<chrono::Utc> = stop.at.parse().unwrap();
    let given_up = first.over_at.unwrap();
    assert!(asked > first.at && asked < given_up, "{:?} {asked} {given_up}", first.at);
    assert_eq!(outcome.summary["stop"]["status"], "stopped");
    assert!(
        troubles(&outcome).iter().any(|said| said.contains("no answer in time")),
        "{outcome:?}"
    );
    let ended: chrono::DateTime<chrono::Utc> =
        outcome.summary["ended_at"].as_str().unwrap().parse().unwrap();
    assert!(ended < given_up, "the run was over before the notice: {ended} {given_up}");
}

/// Whatever is wrong with a channel, the run is what it was: the same exit code, the same stop, and a
/// line in the summary that shows no address.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_channel_changes_nothing_but_the_list_of_errors() {
    let fixture = told();
    let broken = Receiver::start(Mood::Says(500)).await;
    for (address, word) in [
        (format!("{}/MARKERMARKER", broken.base), "answered 500"),
        ("http://127.0.0.1:9/MARKERMARKER".to_owned(), "no connection"),
        ("http://example.org/MARKERMARKER".to_owned(), "clear text"),
        (String::new(), "no address of a webhook found"),
    ] {
        let outcome = supervised(&fixture, &address, &[]).await;
        assert_eq!(outcome.code, 0, "{outcome:#?}");
        assert_eq!(outcome.summary["stop"]["status"], "stopped");
        let said = troubles(&outcome);
        assert!(said.len() == 1 && said[0].contains(word), "{address}: {said:?}");
        assert!(!format!("{outcome:?}").contains("MARKERMARKER"), "{outcome:?}");
    }
    // Each was sent again, and none without end.
    let tags = broken.tags();
    for kind in ["ended", "stopped"] {
        let sent = tags.iter().filter(|tag| *tag == kind).count();
        assert!((2..=5).contains(&sent), "{kind}: {tags:?}");
    }
}

/// A receiver that is away for a moment costs nothing but that moment: the notice is sent again, in order,
/// and nobody is told of the try that was lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_notice_that_was_lost_is_sent_again() {
    let fixture = told();
    let receiver = Receiver::start(Mood::SaysFirst(1, 503)).await;
    let outcome = supervised(&fixture, &format!("{}/topic", receiver.base), &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert_eq!(receiver.tags(), ["ended", "ended", "stopped"]);
    assert_eq!(troubles(&outcome), [""; 0]);
}

/// What says no to a notice is not asked again: the address or the notice is wrong, and stays so.
#[tokio::test(flavor = "multi_thread")]
async fn a_notice_that_was_refused_is_not_sent_again_and_told_once() {
    let fixture = told();
    let receiver = Receiver::start(Mood::Says(404)).await;
    let outcome = supervised(&fixture, &format!("{}/topic", receiver.base), &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert_eq!(receiver.tags(), ["ended", "stopped"]);
    assert_eq!(troubles(&outcome).len(), 1, "{outcome:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_fails_is_told_at_once_and_at_the_end() {
    let fixture = told();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let receiver = Receiver::start(Mood::Takes).await;
    let address = format!("{}/topic", receiver.base);
    // A key that may not stop starts nothing; what locks a pod is not known before.
    fixture.set_faults(&["locked"]).await;
    let budget = ["--stop-budget-sec", "1"];
    let outcome = Run::of_with(&fixture, "exit 3", &budget, &[(URL, &address)]).end().await;
    assert_eq!(outcome.code, 6, "{outcome:#?}");
    assert_eq!(receiver.tags(), ["failed", "stop_failed", "stop_failed"]);
    let received = receiver.received();
    assert!(received[0].body["message"].as_str().unwrap().contains("exit code 3"));
    let last = received[2].body["message"].as_str().unwrap();
    assert!(last.contains("IT MAY STILL BILL") && last.contains("locked"), "{last}");
    assert_eq!(received[2].body["priority"], 5);

    // The command that only stops tells it too, after it has said so itself.
    let stop = ["stop", "--all", "--stop-budget-sec", "1"];
    let (code, said) = podtether(&fixture, &stop, &[(URL, &address)]).await;
    assert_eq!(code, 6, "{said}");
    let told = receiver.received().pop().unwrap().body;
    assert_eq!(told["tags"], json!(["stop_failed"]));
    assert!(told["message"].as_str().unwrap().contains("SOMETHING MAY STILL BILL"), "{told}");
    fixture.set_faults(&[]).await;
    let (code, said) = podtether(&fixture, &["stop", "--all"], &[(URL, &address)]).await;
    assert_eq!(
        (code, receiver.received().len()),
        (0, 4),
        "a stop that worked is no notice: {said}"
    );
}

/// C01: who ends the supervisor ends what would have stopped the pod.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_told_to_leave_says_that_the_pod_bills() {
    let fixture = told();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let receiver = Receiver::start(Mood::Takes).await;
    let address = format!("{}/topic", receiver.base);
    let mut run = Run::of_with(&fixture, WAITS, &[], &[(URL, &address)]);
    run.says("launched:").await;
    run.signal(Signal::TERM);
    let outcome = run.end().await;
    assert_eq!(outcome.code, 6, "{outcome:#?}");
    assert_eq!(receiver.tags(), ["stop_failed"]);
    let words = receiver.received()[0].body["message"].as_str().unwrap().to_owned();
    assert!(
        words.contains("told to leave at once") && words.contains("--vehicle rover"),
        "{words}"
    );
}

/// Who asks to leave at once waits 2 s for a notice, not 5, and the summary was true before that.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_told_to_leave_does_not_wait_for_a_webhook_that_hangs() {
    let fixture = told();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let receiver = Receiver::start(Mood::Hangs).await;
    let address = format!("{}/topic", receiver.base);
    let mut run = Run::of_with(&fixture, WAITS, &[], &[(URL, &address)]);
    run.says("launched:").await;
    run.signal(Signal::TERM);
    let outcome = run.end().await;
    assert_eq!(outcome.code, 6, "{outcome:#?}");
    assert_eq!(troubles(&outcome), ["webhook: 1 not sent within 2 s"]);
    let summary = outcome.file();
    assert_eq!(
        json!([summary["process_exit_code"], summary["pod_may_still_be_running"]]),
        json!([6, true])
    );
}

/// $16.80 of $20.00 were billed before the run: the first look at the bill tells it, and none after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_budget_that_is_nearly_used_up_is_told_once() {
    let hour = |ago| chrono::Utc::now() - chrono::TimeDelta::hours(ago);
    let past = json!({
        "of": "old1", "rate": 16_800_000, "disk_rate": 0, "start": hour(6), "end": hour(5),
    });
    let fixture = Fixture::with_past(&[past], &[]);
    let config = fs::read_to_string(fixture.config_file()).unwrap();
    let config = config.replace("budget_usd: 5", "budget_usd: 20");
    fs::write(fixture.config_file(), format!("{config}notify: {{webhook: ntfy}}\n")).unwrap();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let receiver = Receiver::start(Mood::Takes).await;
    let address = format!("{}/topic", receiver.base);
    let run = Run::of_with(&fixture, WAITS, &[], &[(URL, &address)]);
    fixture.until("a notice", async || receiver.tags() == ["about_to_exceed"]).await;
    let words = receiver.received()[0].body["message"].as_str().unwrap().to_owned();
    assert!(
        words.contains("$16.80 of limits.budget_usd $20.00") && words.contains("80 %"),
        "{words}"
    );
    fs::write(fixture.volume().join("go"), "").unwrap();
    let outcome = run.end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert_eq!(receiver.tags(), ["about_to_exceed", "ended", "stopped"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_pages_by_the_webhook() {
    let fixture = told();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let receiver = Receiver::start(Mood::Takes).await;
    let address = format!("{}/topic", receiver.base);
    let request = podtether::ops::RunJobRequest {
        name: "train".to_owned(),
        command: "printf 'Traceback (most recent call last):\\n  File \"a\", in <module>\\nOSError: [Errno 28] No space left on device\\n'; exit 3".to_owned(),
        ..Default::default()
    };
    let id = tether.run_job(&request).await.unwrap().job_id;
    let arguments = ["watch", "--interval", "1", "--job-id", &id];
    let (code, said) = podtether(&fixture, &arguments, &[(URL, &address)]).await;
    assert_eq!(code, 4, "{said}");
    assert_eq!(receiver.tags(), ["paged"]);
    let words = receiver.received()[0].body["message"].as_str().unwrap().to_owned();
    assert!(words.contains(&id) && words.contains("disk full"), "{words}");

    // A job that ends well is told too, once: a watch that is started again has seen it end.
    let request = podtether::ops::RunJobRequest { command: "true".to_owned(), ..request };
    let id = tether.run_job(&request).await.unwrap().job_id;
    let arguments = ["watch", "--interval", "1", "--job-id", &id];
    for _ in 0..2 {
        let (code, said) = podtether(&fixture, &arguments, &[(URL, &address)]).await;
        assert_eq!(code, 0, "{said}");
    }
    assert_eq!(receiver.tags(), ["paged", "ended"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn notify_test_tries_every_channel_and_says_what_became_of_each() {
    let fixture = Fixture::with("notify: {webhook: slack, desktop: true}\n");
    let screen = Screen::of_this_system().program();
    fake_screen(&fixture.path(""), screen, "exit 0");
    let path = format!("{}:/usr/bin:/bin", fixture.path("").display());
    let receiver = Receiver::start(Mood::Takes).await;
    let good = [(URL, receiver.base.as_str()), ("PATH", &path)];
    let (code, said) = podtether(&fixture, &["notify", "--test", "--json"], &good).await;
    assert_eq!(code, 0, "{said}");
    let said: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    let expected =
        json!({"ok": true, "channels": [{"channel": "desktop"}, {"channel": "webhook"}]});
    assert_eq!(said, expected);
    let text = receiver.received()[0].body["text"].as_str().unwrap().to_owned();
    assert_eq!(text, "podtether (local cloud, $0): test\nIf you can read this, notices reach you.");
    assert!(recorded(&fixture.path("")).iter().any(|word| word.contains("If you can read this")));

    let bad = [(URL, "http://127.0.0.1:9/MARKERMARKER"), ("PATH", &path)];
    let (code, said) = podtether(&fixture, &["notify", "--test"], &bad).await;
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("desktop: taken") && said.contains("webhook: "), "{said}");
    assert!(!said.contains("MARKERMARKER"), "{said}");

    let (code, said) = podtether(&Fixture::new(), &["notify", "--test"], &[]).await;
    assert!(code == 2 && said.contains("no channel is set"), "{code} {said}");
    let (code, _) = podtether(&fixture, &["notify"], &good).await;
    assert_eq!(code, 2);
}

/// A command on the fixture's config: its exit code, and stdout with stderr behind it.
async fn podtether(
    fixture: &Fixture,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> (i32, String) {
    let (first, rest) = arguments.split_first().unwrap();
    let output = Command::new(program())
        .arg(first)
        .arg("--config")
        .arg(fixture.config_file())
        .args(rest)
        .env_clear()
        .env("HOME", fixture.path(""))
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8_lossy(&said).into_owned())
}
