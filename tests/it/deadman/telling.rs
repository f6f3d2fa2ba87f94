//! What a fuse tells people who are not there, as a webhook receives it, and in dollars what is at risk.

use super::{Said, arm, command, ended, kill, pid_of, record, status, word};
use crate::flows::fixture::{Fixture, VEHICLE};
use crate::notify::{Mood, Receiver};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use std::process::Stdio;

const NTFY: &str = "notify: {webhook: ntfy}\n";

/// Arms a fuse that fires in some seconds and has this address to tell.
fn arm_telling(fixture: &Fixture, receiver: &Receiver, more: &[&str]) {
    let base = ["arm", "--vehicle", VEHICLE, "--hours", "0.003", "--json"];
    let armed = command(fixture, &[&base[..], more].concat())
        .env("PODTETHER_WEBHOOK_URL", format!("{}/topic", receiver.base))
        .output()
        .unwrap();
    assert!(armed.status.success(), "{armed:?}");
}

fn messages(receiver: &Receiver) -> Vec<String> {
    let text = |body: Value| body["message"].as_str().unwrap().to_owned();
    receiver.received().into_iter().map(|one| text(one.body)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_tells_that_it_fires_and_that_the_pod_is_off() {
    let fixture = Fixture::with(NTFY);
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let receiver = Receiver::start(Mood::Takes).await;
    arm_telling(&fixture, &receiver, &[]);
    assert_eq!(ended(&fixture).await["outcome"], "stopped");
    fixture.until("two notices", async || receiver.received().len() >= 2).await;
    assert_eq!(receiver.tags(), ["paged", "stopped"]);
    let told = messages(&receiver);
    assert!(told[0].contains("fuse fires") && told[0].contains("/h"), "{told:?}");
    assert!(told[1].contains("EXITED was read back"), "{told:?}");
    let key = fixture.running_cloud().key.reveal().to_owned();
    assert!(told.iter().all(|words| !words.contains(&key)), "{told:?}");
    let title = receiver.received()[0].body["title"].as_str().unwrap().to_owned();
    assert!(title.starts_with("podtether (local cloud, $0): rover"), "{title}");
}

/// The stop comes first: a webhook that hangs is still being waited for when the pod is off and said to be.
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_hangs_does_not_hold_up_the_stop() {
    let fixture = Fixture::with(NTFY);
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let receiver = Receiver::start(Mood::Hangs).await;
    arm_telling(&fixture, &receiver, &[]);
    let summary = ended(&fixture).await;
    assert_eq!(summary["outcome"], "stopped", "{summary:#}");
    let off: chrono::DateTime<chrono::Utc> = summary["ended_at"].as_str().unwrap().parse().unwrap();
    fixture
        .until("the first notice", async || {
            receiver.received().first().is_some_and(|first| first.over_at.is_some())
        })
        .await;
    let first = &receiver.received()[0];
    assert_eq!(first.body["tags"], json!(["paged"]));
    let given_up = first.over_at.unwrap();
    assert!(off < given_up, "the pod was off at {off}, the notice over at {given_up}");
}

/// A08: what it could not stop it tells as loudly as there is.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_fails_is_told_with_what_it_costs() {
    let fixture = Fixture::with(NTFY);
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let receiver = Receiver::start(Mood::Takes).await;
    arm_telling(&fixture, &receiver, &["--retries", "1", "--spacing-sec", "1"]);
    fixture.set_faults(&["locked"]).await;
    assert_eq!(ended(&fixture).await["outcome"], "stop_failed");
    fixture.until("three notices", async || receiver.received().len() >= 3).await;
    assert_eq!(receiver.tags(), ["paged", "stop_failed", "stop_failed"]);
    let told = messages(&receiver);
    assert!(told[1].contains("goes on asking") && told[1].contains("/h"), "{told:?}");
    assert!(told[2].contains("THE POD MAY STILL BILL"), "{told:?}");
    assert_eq!(receiver.received()[2].body["priority"], 5);
}

/// C05: nobody reads what a scheduler's program writes. A fuse that is gone and cannot be had again is told to
/// who is far away, once and not with every look; a look that is well again says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_that_can_arm_nothing_tells_it_once_and_says_that_the_pod_may_bill() {
    let fixture = Fixture::with(NTFY);
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let receiver = Receiver::start(Mood::Takes).await;
    let look = || {
        let mut command = command(&fixture, &["tick", "--json"]);
        let url = format!("{}/topic", receiver.base);
        let ran = command.env("PODTETHER_WEBHOOK_URL", url).output().unwrap();
        let said: Value = serde_json::from_slice(&ran.stdout).unwrap();
        (ran.status.code().unwrap(), said, String::from_utf8(ran.stderr).unwrap())
    };
    assert_eq!(arm(&fixture, "2", &[]).code, 0);
    let before = record(&fixture);
    kill(&fixture, pid_of(&before)).await;
    fixture.set_faults(&["read-only-key"]).await;
    for _ in 0..2 {
        let (code, said, words) = look();
        assert_eq!((code, &said["taken_over"]), (1, &json!([])), "{said}");
        assert_eq!(said["may_bill"][0]["vehicle"], VEHICLE, "{said}");
        assert!(words.contains("THE POD MAY BILL"), "{words}");
        // What keeps it from arming is a refusal; the fuse that was promised is not forgotten for that.
        assert_eq!(word(&status(&fixture)), ("LOST".into(), 1));
    }
    assert_eq!(receiver.tags(), ["stop_failed"]);
    assert!(messages(&receiver)[0].contains("podtether stop --vehicle rover"));
    fixture.set_faults(&[]).await;
    let (code, said, _) = look();
    assert_eq!((code, &said["may_bill"]), (0, &json!([])), "{said}");
    assert_eq!(said["taken_over"][0]["pid"], record(&fixture)["pid"], "{said}");
}

/// C05: each vehicle whose fuse is gone is told of; that one was told is no word for the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_tells_of_every_vehicle_whose_fuse_is_gone() {
    let other = "  other:\n    pod_name: other-pod\n    network_volume_name: other-volume\n    datacenter_preference: [EU-RO-1]\n    known_hosts_file: known_hosts_other\n    local_log_dir: logs-other\n";
    let fixture = Fixture::with(&format!("{other}{NTFY}"));
    for folder in ["logs", "logs-other"] {
        std::fs::create_dir_all(fixture.path(folder)).unwrap();
        std::fs::write(fixture.path(folder).join("deadman.pid"), "").unwrap();
    }
    let receiver = Receiver::start(Mood::Takes).await;
    let url = format!("{}/topic", receiver.base);
    for _ in 0..2 {
        let mut look = command(&fixture, &["tick"]);
        let looked = look.env("PODTETHER_WEBHOOK_URL", &url).output().unwrap();
        assert_eq!(looked.status.code(), Some(1), "{looked:?}");
    }
    let told = messages(&receiver);
    assert_eq!(told.len(), 2, "{told:?}");
    for vehicle in [VEHICLE, "other"] {
        let stop = format!("podtether stop --vehicle {vehicle}");
        assert!(told.iter().any(|words| words.contains(&stop)), "{told:?}");
    }
}

/// C03: before it sleeps somebody knows what that costs, in dollars.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_at_risk_is_said_in_dollars_when_it_is_armed_and_after() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let armed = arm(&fixture, "2", &[]);
    for vehicle in [&armed.json["vehicle"], &status(&fixture).json["vehicles"][0]] {
        let risk = vehicle["at_risk"].as_str().unwrap();
        assert!(risk.starts_with("at risk until it fires, if its pod runs: $1."), "{risk}");
        let usd = vehicle["usd_at_risk"].as_f64().unwrap();
        assert!(usd > 1.3 && usd <= 1.38, "{usd}: two hours at $0.69");
        let asleep = vehicle["if_it_sleeps"].as_str().unwrap();
        assert!(asleep.contains("$0.69/h") && asleep.contains("$16.56 a day"), "{asleep}");
    }
    let lines = super::deadman(&fixture, &["status"]);
    assert!(lines.stdout.contains("at risk until it fires, if its pod runs: $1."), "{lines:?}");
    // A file of an earlier boot is said to be one; its number is nobody's any more (A17).
    super::kill(&fixture, pid_of(&record(&fixture))).await;
    let mut of_before = record(&fixture);
    of_before["boot_id"] = json!("an earlier boot");
    of_before["fire_at"] = json!(chrono::Utc::now() - chrono::TimeDelta::hours(1));
    std::fs::write(fixture.path("logs/deadman.pid"), of_before.to_string()).unwrap();
    let lost = status(&fixture);
    assert_eq!(word(&lost), ("LOST".into(), 1));
    let words = lost.json["vehicles"][0]["message"].as_str().unwrap();
    for part in ["ended with this machine's last boot", "($0.69 since then)", "MAY BILL $0.69/h"] {
        assert!(words.contains(part), "{part}: {words}");
    }
}

/// C02: a machine that stood still through the deadline: nothing is stopped meanwhile, and the first thing
/// that the fuse does when it goes on is to stop the pod.
#[tokio::test(flavor = "multi_thread")]
async fn a_fuse_that_stood_still_through_its_deadline_fires_when_it_goes_on() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    assert_eq!(arm(&fixture, "0.003", &[]).code, 0);
    let fuse = record(&fixture);
    kill_process(pid_of(&fuse), Signal::STOP).unwrap();
    let due: chrono::DateTime<chrono::Utc> = fuse["fire_at"].as_str().unwrap().parse().unwrap();
    let past = due + chrono::TimeDelta::seconds(2);
    fixture.until("the deadline", async || chrono::Utc::now() > past).await;
    assert_eq!(fixture.status().await, "RUNNING");
    kill_process(pid_of(&fuse), Signal::CONT).unwrap();
    assert_eq!(ended(&fixture).await["outcome"], "stopped");
    assert_eq!(fixture.status().await, "EXITED");
}

/// Nothing is asked on stdin: one that stays open and says nothing keeps nobody waiting.
#[tokio::test(flavor = "multi_thread")]
async fn no_call_of_it_waits_for_words_on_stdin() {
    let fixture = Fixture::new();
    let _ = fixture.tether().await;
    for words in
        [&["arm", "--vehicle", VEHICLE][..], &["status"], &["cancel", "--vehicle", VEHICLE]]
    {
        let mut child = command(&fixture, words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let open = child.stdin.take();
        fixture.until("its end", async || child.try_wait().unwrap().is_some()).await;
        assert!(child.wait().unwrap().success(), "{words:?}");
        drop(open);
    }
}

/// Without a channel nothing is looked up and nobody is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_fuse_without_a_channel_tells_nobody() {
    let fixture = Fixture::new();
    let _ = fixture.tether().await;
    let receiver = Receiver::start(Mood::Takes).await;
    arm_telling(&fixture, &receiver, &[]);
    let cancelled: Said = super::deadman(&fixture, &["cancel", "--vehicle", VEHICLE]);
    assert_eq!(cancelled.code, 0, "{cancelled:?}");
    assert_eq!(receiver.received().len(), 0);
}
