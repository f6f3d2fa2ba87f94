//! A pod that no longer answers while its job is followed.

use super::fixture::{Fixture, VEHICLE, exec};
use super::signals::WAITS;
use super::supervised::Run;
use podtether::error::FailureKind;
use podtether::ops::StopStatus;
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::io::Write as _;
use std::time::Duration;

/// E07: neither the pod's shell nor the provider answers for a while. Unknown is not done: the run
/// goes on, and the end of the job is noticed although the held connection had been lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_outlives_a_loss_of_everything_but_the_job() {
    let mut fixture = Fixture::with_daemon();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let mut run = Run::of(&fixture, WAITS, &[]);
    run.says("launched:").await;
    fixture.daemon().kill();
    run.says("the pod did not answer").await;
    fixture.daemon().start_again();
    run.says("the provider says RUNNING").await;
    fs::write(fixture.volume().join("go"), "").unwrap();
    let outcome = run.end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert!(outcome.took < Duration::from_secs(80), "{:?}", outcome.took);
    let summary = outcome.file();
    assert_eq!(
        (&summary["state"], &summary["stop"]["status"]),
        (&json!("succeeded"), &json!("stopped"))
    );
    assert_eq!(summary["errors"][0]["step"], "follow");
    assert_eq!(fixture.status().await, "EXITED");
    let id = summary["job_id"].as_str().unwrap();
    let log = fs::read_to_string(fixture.path("logs/jobs").join(id).join("out.log")).unwrap();
    assert_eq!(log, "begun\ndone\n");
}

/// E08: somebody else stopped the pod. That is not success and not a pod that bills.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_stopped_behind_its_back_ends_the_run() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id.0;
    let mut run = Run::of(&fixture, WAITS, &[]);
    run.says("launched:").await;
    fixture.api("POST", &format!("/v2/pods/{pod}/action"), Some(json!({"action": "stop"}))).await;
    let outcome = run.end().await;
    assert_eq!(outcome.code, 1, "{outcome:#?}");
    assert!(outcome.took < Duration::from_secs(40), "{:?}", outcome.took);
    let summary = outcome.file();
    let told = ["process_exit_code", "pod_may_still_be_running", "capture_complete"];
    let told = told.map(|key| summary[key].clone());
    assert_eq!(json!(told), json!([1, false, false]));
    let errors = summary["errors"].to_string();
    assert!(errors.contains("EXITED before the job was seen to end"), "{errors}");
}

/// The container was started anew: the job is gone with it, and the pod does not stay on the bill.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_restarted_behind_its_back_ends_the_run_and_is_stopped() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id.0;
    let mut run = Run::of(&fixture, WAITS, &["--interval", "1"]);
    run.says("launched:").await;
    let action = json!({"action": "restart"});
    fixture.api("POST", &format!("/v2/pods/{pod}/action"), Some(action)).await;
    let outcome = run.end().await;
    assert_eq!(outcome.code, 1, "{outcome:#?}");
    let summary = outcome.file();
    assert_eq!(
        (&summary["state"], &summary["stop"]["status"]),
        (&json!("wrapper_lost"), &json!("stopped"))
    );
    assert_eq!(fixture.status().await, "EXITED");
}

/// F01: stopped and started by somebody else, the pod has another address and another host key. The
/// run finds it there, sees that the job is gone, and takes the pod off the bill.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_started_again_behind_its_back_is_found_at_its_new_address() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap();
    let mut run = Run::of(&fixture, WAITS, &[]);
    run.says("launched:").await;
    // It must not see the pod in between, which would end the run.
    run.signal(Signal::STOP);
    for action in ["stop", "start"] {
        let path = format!("/v2/pods/{}/action", pod.id);
        fixture.api("POST", &path, Some(json!({"action": action}))).await;
    }
    let started = fixture.running(&tether).await.pod.unwrap();
    assert_ne!(started.ssh, pod.ssh);
    run.signal(Signal::CONT);
    let outcome = run.end().await;
    assert_eq!(outcome.code, 1, "{outcome:#?}");
    assert!(outcome.took < Duration::from_secs(40), "{:?}", outcome.took);
    let summary = outcome.file();
    assert_eq!(summary["state"], "wrapper_lost", "{summary:#}");
    assert_eq!(
        (&summary["capture_complete"], &summary["stop"]["status"]),
        (&json!(true), &json!("stopped"))
    );
    assert_eq!(fixture.status().await, "EXITED");
}

/// F05: within a boot a pod keeps its host key. Who shows another one is not asked anything and gets
/// nothing, and a stop, which goes by the provider, is not held up.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_key_that_changes_in_mid_boot_ends_the_talk_and_not_the_stop() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap();
    let before = fixture.sessions(&pod.id.0).len();
    // The machine at the address has another key than the one that was pinned: seen from here it is
    // the same whether the key there or the pin here is the other one.
    let pins = fixture.path("known_hosts");
    let text = fs::read_to_string(&pins).unwrap();
    let other = fixture.path("id_ed25519.pub");
    let other = fs::read_to_string(&other).unwrap();
    let other = other.split_whitespace().nth(1).unwrap();
    let changed: String = text
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            format!("{}\n", line.replace(words[2], other))
        })
        .collect();
    assert_ne!(changed, text);
    fs::write(&pins, changed).unwrap();
    let later = fixture.tether().await;
    let failure = later.exec_on_pod(&exec("touch was-here")).await.unwrap_err();
    assert_eq!((failure.kind, failure.retryable), (FailureKind::HostKey, false), "{failure:?}");
    assert!(failure.hint.contains("stop_pod"), "{failure:?}");
    let failure = later.sync_logs("jobs", None, false, |_| {}).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::HostKey, "{failure:?}");
    assert_eq!(fixture.sessions(&pod.id.0).len(), before);
    assert!(!fixture.volume().join("was-here").exists());
    assert_eq!(later.stop_pod(VEHICLE).await.unwrap().status, StopStatus::Stopped);
}

/// F04: the answer to a launch is lost after the job was begun. It is looked up by its id and
/// followed, never launched again.
#[tokio::test(flavor = "multi_thread")]
async fn a_launch_whose_answer_was_lost_is_adopted() {
    let mut fixture = Fixture::with_daemon();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id.0;
    // The wrapper reads the pod's environment before it shows itself, and the launch waits for it:
    // that holds the answer back until the connection is gone.
    let environment = fixture.state().join("pods").join(&pod).join("disk/etc/rp_environment");
    let held =
        format!("until test -e \"{}/go-on\"; do sleep 0.02; done\n", fixture.volume().display());
    let mut file = fs::OpenOptions::new().append(true).open(environment).unwrap();
    file.write_all(held.as_bytes()).unwrap();
    let run = Run::of(&fixture, "echo begun >>begun", &[]);
    let jobs = fixture.volume().join("jobs");
    let launched = || -> Vec<_> {
        let folders = fs::read_dir(&jobs).into_iter().flatten().flatten();
        folders.filter(|folder| folder.path().join("launched").exists()).collect()
    };
    fixture.until("a launch", async || launched().len() == 1).await;
    fixture.daemon().kill();
    fs::write(fixture.volume().join("go-on"), "").unwrap();
    fixture.daemon().start_again();
    let outcome = run.end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    let summary = outcome.file();
    let told = ["adopted_after_launch_timeout", "state", "capture_complete"];
    let told = told.map(|key| summary[key].clone());
    assert_eq!(json!(told), json!([true, "succeeded", true]), "{summary:#}");
    assert_eq!(summary["errors"][0]["step"], "launch");
    assert_eq!(fs::read_to_string(fixture.volume().join("begun")).unwrap(), "begun\n");
    assert_eq!(fs::read_dir(&jobs).unwrap().count(), 1);
}
