//! One fuse: armed, seen, extended, called off, fired.

use super::{arm, command, deadman, ended, kill, lives, pid_of, record, status, summaries, word};
use crate::flows::fixture::{Fixture, POD, VEHICLE};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::json;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

#[tokio::test(flavor = "multi_thread")]
async fn it_stops_the_pod_at_its_deadline_and_leaves_a_summary() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    assert_eq!(word(&status(&fixture)), ("not_armed".into(), 0));
    let armed = arm(&fixture, "0.004", &[]);
    assert_eq!(armed.code, 0, "{armed:?}");
    assert_eq!(armed.json["vehicle"]["state"], "armed", "{armed:?}");
    assert!(armed.json["vehicle"]["if_it_sleeps"].as_str().unwrap().contains("/h from 20"));
    let fuse = record(&fixture);
    assert_eq!(
        (&fuse["proof"]["read"], &fuse["proof"]["stop"]),
        (&json!("proven"), &json!("proven"))
    );
    assert_eq!(fuse["pod_id"], fixture.pods_named(POD).await[0]["id"]);
    let summary = ended(&fixture).await;
    assert_eq!(fixture.status().await, "EXITED");
    let told = ["outcome", "stop_status", "pod_may_still_be_running", "exit_code", "vehicle"];
    let told = told.map(|key| summary[key].clone());
    assert_eq!(json!(told), json!(["stopped", "EXITED", false, 0, VEHICLE]), "{summary:#}");
    for key in
        ["armed_at", "fire_at", "hours", "retries", "spacing_sec", "pid", "pod_name", "ended_at"]
    {
        assert!(!summary[key].is_null(), "{key} of {summary:#}");
    }
    assert_eq!(summary["attempts"][0]["result"], "off");
    assert_eq!(word(&status(&fixture)), ("stopped".into(), 0));
    let deleted = fixture.requests().iter().filter(|request| request.method == "DELETE").count();
    assert_eq!(deleted, 0, "a fuse never terminates");
}

/// C01: a harness ends the whole group of what it started, with SIGKILL; and a terminal that closes,
/// and whoever ends everything with SIGTERM, reach the fuse and do not end it.
#[tokio::test(flavor = "multi_thread")]
async fn it_outlives_the_group_that_armed_it_a_hangup_and_sigterm() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let script = format!(
        "\"$0\" deadman arm --vehicle {VEHICLE} --hours 0.004 >&2; touch armed; sleep 600; :"
    );
    let mut shell = Command::new("bash");
    let template = command(&fixture, &[]);
    shell.arg("-c").arg(script).arg(template.get_program()).current_dir(fixture.path(""));
    shell.env_clear().envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.process_group(0).stdin(Stdio::null());
    let mut shell = shell.spawn().unwrap();
    fixture.until("the fuse", async || fixture.path("armed").exists()).await;
    let fuse = pid_of(&record(&fixture));
    let group = Pid::from_raw(i32::try_from(shell.id()).unwrap()).unwrap();
    kill_process_group(group, Signal::KILL).unwrap();
    shell.wait().unwrap();
    assert!(lives(fuse));
    if cfg!(target_os = "linux") {
        let stat = fs::read_to_string(format!("/proc/{}/stat", fuse.as_raw_nonzero())).unwrap();
        let fields: Vec<i32> = stat
            .rsplit_once(") ")
            .unwrap()
            .1
            .split(' ')
            .skip(1)
            .take(3)
            .map(|word| word.parse().unwrap())
            .collect();
        let [parent, own_group, session] = fields[..] else { panic!("{stat}") };
        let shell_id = group.as_raw_nonzero().get();
        assert!(parent != shell_id && own_group != shell_id && session != shell_id, "{stat}");
    }
    for signal in [Signal::HUP, Signal::TERM, Signal::INT] {
        kill_process(fuse, signal).unwrap();
    }
    assert_eq!(ended(&fixture).await["outcome"], "stopped");
    assert_eq!(fixture.status().await, "EXITED");
}

/// C01: also when the signal comes while the fuse is still being armed.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_while_it_is_being_armed_does_not_end_it() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    // It proves its key after its file is there: time enough for a signal.
    fixture.set_faults(&["reply-delayed=1"]).await;
    let mut arming = command(&fixture, &["arm", "--vehicle", VEHICLE, "--hours", "0.004"]);
    let mut arming = arming.stdin(Stdio::null()).spawn().unwrap();
    fixture.until("the fuse's file", async || fixture.path("logs/deadman.pid").exists()).await;
    let fuse = pid_of(&record(&fixture));
    for signal in [Signal::HUP, Signal::TERM, Signal::INT] {
        kill_process(fuse, signal).unwrap();
    }
    assert!(arming.wait().unwrap().success());
    assert_eq!(pid_of(&record(&fixture)), fuse);
    assert_eq!(ended(&fixture).await["outcome"], "stopped");
    assert_eq!(fixture.status().await, "EXITED");
}

/// H04, C11: the key goes over a pipe: it is in no argument, no environment and no file, and a config
/// that is gone by then changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn it_needs_nothing_but_memory_when_it_fires_and_shows_no_key() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    assert_eq!(arm(&fixture, "0.004", &[]).code, 0);
    let key = fixture.running_cloud().key.reveal().to_owned();
    let fuse = pid_of(&record(&fixture)).as_raw_nonzero();
    if cfg!(target_os = "linux") {
        for name in ["cmdline", "environ"] {
            let text = fs::read(format!("/proc/{fuse}/{name}")).unwrap();
            assert!(!String::from_utf8_lossy(&text).contains(&key), "{name}");
        }
        // Whoever waits for the end of the starter's pipes does not wait for the fuse.
        let open = |number: u32| fs::read_link(format!("/proc/{fuse}/fd/{number}")).ok();
        let null = Some("/dev/null".into());
        fixture.until("let go of its pipes", async || open(0) == null && open(1) == null).await;
    }
    fs::remove_file(fixture.config_file()).unwrap();
    assert_eq!(ended(&fixture).await["outcome"], "stopped");
    assert_eq!(fixture.status().await, "EXITED");
    for entry in fs::read_dir(fixture.path("logs")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read(&path).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&text).contains(&key), "{}", path.display());
    }
    assert_eq!(status(&fixture).code, 2, "without a config nobody knows the folders");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_arm_extends_and_never_shortens_and_a_cancel_ends_it() {
    let fixture = Fixture::new();
    let _ = fixture.tether().await;
    // What is said to be done about it can be done as it stands there; and whether a pod runs was not asked.
    let none = deadman(&fixture, &["extend", "--vehicle", VEHICLE, "--hours", "1", "--json"]);
    assert_eq!((none.code, &none.json["failure"]["still_billing"]), (1, &json!("unknown")));
    let way_out = format!("podtether deadman arm --vehicle {VEHICLE}");
    assert_eq!(none.json["failure"]["hint"], format!("arm it: {way_out}"));
    assert_eq!(arm(&fixture, "1", &[]).json["how"], "armed now");
    let first = record(&fixture);
    let shorter = arm(&fixture, "0.5", &["--retries", "9"]);
    assert!(shorter.json["how"].as_str().unwrap().contains("not shortened"), "{shorter:?}");
    // What else was asked for is not passed over in silence.
    assert!(shorter.stderr.contains("it stays at --retries 5 --spacing-sec 300"), "{shorter:?}");
    assert_eq!(record(&fixture)["fire_at"], first["fire_at"]);
    let longer = arm(&fixture, "2", &[]);
    assert!(longer.json["how"].as_str().unwrap().contains("extended"), "{longer:?}");
    let second = record(&fixture);
    assert_eq!(second["pid"], first["pid"], "one fuse");
    assert!(second["fire_at"].as_str() > first["fire_at"].as_str());
    let extended = deadman(&fixture, &["extend", "--vehicle", VEHICLE, "--hours", "3", "--json"]);
    assert_eq!((extended.code, extended.json["how"].as_str()), (0, Some("extended")));
    let fuse = pid_of(&second);
    let cancelled = deadman(&fixture, &["cancel", "--vehicle", VEHICLE]);
    assert_eq!(cancelled.code, 0, "{cancelled:?}");
    fixture.until("the fuse to go", async || !lives(fuse)).await;
    assert_eq!(word(&status(&fixture)), ("cancelled".into(), 0));
    assert_eq!(summaries(&fixture).pop().unwrap()["pod_may_still_be_running"], true);
    assert_eq!(deadman(&fixture, &["cancel", "--vehicle", VEHICLE]).code, 0);
}

/// A17, C-lying: a file that names the number of somebody else's process is LOST; nobody signals that
/// process, and a new fuse takes the place.
#[tokio::test(flavor = "multi_thread")]
async fn a_pid_file_that_lies_is_lost_and_its_number_is_never_signalled() {
    let fixture = Fixture::new();
    let _ = fixture.tether().await;
    assert_eq!(arm(&fixture, "1", &[]).code, 0);
    let mut lie = record(&fixture);
    kill(&fixture, pid_of(&lie)).await;
    let mut other = Command::new("sleep").arg("600").spawn().unwrap();
    lie["pid"] = json!(other.id());
    fs::write(fixture.path("logs/deadman.pid"), lie.to_string()).unwrap();
    let lost = status(&fixture);
    assert_eq!(word(&lost), ("LOST".into(), 1));
    assert!(lost.json["vehicles"][0]["message"].as_str().unwrap().contains("MAY BILL"));
    let again = arm(&fixture, "1", &[]);
    assert!(again.json["how"].as_str().unwrap().contains("LOST"), "{again:?}");
    kill(&fixture, pid_of(&record(&fixture))).await;
    fs::write(fixture.path("logs/deadman.pid"), lie.to_string()).unwrap();
    let cancelled = deadman(&fixture, &["cancel", "--vehicle", VEHICLE]);
    assert!(cancelled.stdout.contains("LOST"), "{cancelled:?}");
    assert_eq!(word(&status(&fixture)), ("cancelled".into(), 0));
    assert!(other.try_wait().unwrap().is_none(), "somebody else's process was ended");
    other.kill().unwrap();
    other.wait().unwrap();
}

/// A17: a power cut or a full disk leaves a file that cannot be read. That a fuse was armed is known all
/// the same: it is LOST, a new one takes its place, and a person can write it off.
#[tokio::test(flavor = "multi_thread")]
async fn a_pid_file_that_cannot_be_read_is_lost_and_never_not_armed() {
    let fixture = Fixture::new();
    let _ = fixture.tether().await;
    assert_eq!(arm(&fixture, "1", &[]).code, 0);
    kill(&fixture, pid_of(&record(&fixture))).await;
    for torn in ["", "{\"pid\": 1", "null"] {
        fs::write(fixture.path("logs/deadman.pid"), torn).unwrap();
        let lost = status(&fixture);
        assert_eq!(word(&lost), ("LOST".into(), 1), "{torn:?}: {lost:?}");
        let message = lost.json["vehicles"][0]["message"].as_str().unwrap();
        assert!(message.contains("MAY BILL") && message.contains("cannot be read"), "{message}");
        let tick = deadman(&fixture, &["tick"]);
        assert!(tick.code == 1 && tick.stderr.contains("THE POD MAY BILL"), "{tick:?}");
        let again = arm(&fixture, "1", &[]);
        assert!(again.json["how"].as_str().unwrap().contains("LOST"), "{again:?}");
        kill(&fixture, pid_of(&record(&fixture))).await;
        fs::write(fixture.path("logs/deadman.pid"), torn).unwrap();
        let cancelled = deadman(&fixture, &["cancel", "--vehicle", VEHICLE]);
        assert!(cancelled.code == 0 && cancelled.stdout.contains("LOST"), "{cancelled:?}");
        assert_ne!(word(&status(&fixture)).0, "LOST");
    }
}

/// A fuse that hangs answers nobody: that is said, and a cancel in vain is not answered hours later.
#[tokio::test(flavor = "multi_thread")]
async fn a_fuse_that_does_not_answer_is_said_and_the_question_is_taken_back() {
    let fixture = Fixture::new();
    let _ = fixture.tether().await;
    assert_eq!(arm(&fixture, "1", &[]).code, 0);
    let fuse = pid_of(&record(&fixture));
    kill_process(fuse, Signal::STOP).unwrap();
    let cancelled = deadman(&fixture, &["cancel", "--vehicle", VEHICLE]);
    assert!(cancelled.code == 1 && cancelled.stderr.contains("does not answer"), "{cancelled:?}");
    kill_process(fuse, Signal::CONT).unwrap();
    let longer = arm(&fixture, "2", &[]);
    assert!(longer.json["how"].as_str().unwrap().contains("extended"), "{longer:?}");
    assert_eq!(pid_of(&record(&fixture)), fuse);
}

/// Several vehicles have a fuse each, and the worst of them is the exit code.
#[tokio::test(flavor = "multi_thread")]
async fn every_vehicle_has_a_fuse_of_its_own_and_the_worst_code_wins() {
    let second = "  second:\n    pod_name: second-pod\n    network_volume_name: second-volume\n    datacenter_preference: [EU-RO-1]\n    known_hosts_file: known_hosts_2\n    local_log_dir: logs2\n";
    let fixture = Fixture::with(second);
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    assert_eq!(arm(&fixture, "0.004", &[]).code, 0);
    let other = deadman(&fixture, &["arm", "--vehicle", "second", "--json"]);
    assert_eq!(other.code, 0, "{other:?}");
    assert_eq!(ended(&fixture).await["outcome"], "stopped");
    let both = deadman(&fixture, &["status", "--json"]);
    let states: Vec<_> =
        both.json["vehicles"].as_array().unwrap().iter().map(|one| one["state"].clone()).collect();
    assert_eq!((both.code, json!(states)), (0, json!(["stopped", "armed"])));
    let text = fs::read(fixture.path("logs2/deadman.pid")).unwrap();
    let text: serde_json::Value = serde_json::from_slice(&text).unwrap();
    kill_process(pid_of(&text), Signal::KILL).unwrap();
    fixture.until("LOST", async || deadman(&fixture, &["status", "--json"]).code == 1).await;
    assert_eq!(deadman(&fixture, &["status", "--vehicle", VEHICLE]).code, 0);
}
