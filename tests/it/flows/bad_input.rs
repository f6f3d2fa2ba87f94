//! Arguments that are wrong are refused before anything is asked of the provider or the pod.

use super::fixture::{Fixture, ensure, exec};
use podtether::error::{Failure, FailureKind};
use podtether::ops::{EnsureRequest, ExecRequest, RunJobRequest};

fn job(name: &str, command: &str) -> RunJobRequest {
    RunJobRequest { name: name.to_owned(), command: command.to_owned(), ..RunJobRequest::default() }
}

/// H03, D08, A21.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_argument_reaches_neither_the_provider_nor_the_pod() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id.0;
    tether.exec_on_pod(&exec("touch before")).await.unwrap();
    let before = || {
        let touched = |one: &super::fixture::Session| one.command.contains("touch before");
        fixture.sessions(&pod).iter().any(touched)
    };
    fixture.until("the record of the first command", async || before()).await;
    let recorded = || (fixture.requests().len(), fixture.sessions(&pod));
    let at_first = recorded();

    let mut wrong: Vec<(String, Failure, &str)> = Vec::new();
    let mut add = |what: String, failure: Failure, says| wrong.push((what, failure, says));

    // An unknown vehicle, with the nearest name.
    let named = Some("rovr".to_owned());
    let request = EnsureRequest { vehicle: named.clone(), ..ensure(1) };
    add("ensure_pod".into(), tether.ensure_pod(&request).await.unwrap_err(), "rover");
    let request = ExecRequest { vehicle: named.clone(), ..exec("true") };
    add("exec_on_pod".into(), tether.exec_on_pod(&request).await.unwrap_err(), "rover");
    let request = RunJobRequest { vehicle: named, ..job("job", "true") };
    add("run_job".into(), tether.run_job(&request).await.unwrap_err(), "rover");
    add("stop_pod".into(), tether.stop_pod("rovr").await.unwrap_err(), "rover");
    let failure = tether.terminate_pod("rovr", "terminate rover-pod").await.unwrap_err();
    add("terminate_pod".into(), failure, "rover");
    add("pod_status".into(), tether.pod_status(Some("rovr")).await.unwrap_err(), "rover");

    for subdir in ["../x", "a/../../x", "/etc", "", ".", "-rf", "a\nb"] {
        let failure = tether.sync_logs(subdir, None, false, |_| {}).await.unwrap_err();
        add(format!("subdir {subdir:?}"), failure, "subdir=");
    }
    for workdir in ["x", "./x", "../x", "", "~", "/a\nb", "/a\0b"] {
        let workdir = Some(workdir.to_owned());
        let what = format!("workdir {workdir:?}");
        let request = ExecRequest { workdir: workdir.clone(), ..exec("true") };
        add(what.clone(), tether.exec_on_pod(&request).await.unwrap_err(), "workdir=");
        let request = RunJobRequest { workdir, ..job("job", "true") };
        add(what, tether.run_job(&request).await.unwrap_err(), "workdir=");
    }
    for timeout_sec in [0, -1, 601, i64::MAX] {
        let request = ExecRequest { timeout_sec, ..exec("true") };
        let failure = tether.exec_on_pod(&request).await.unwrap_err();
        add(format!("timeout_sec {timeout_sec}"), failure, "from 1 to 600");
    }
    for (command, says) in [("", "empty"), (" \n", "empty"), ("a\0b", "NUL")] {
        add(format!("{command:?}"), tether.exec_on_pod(&exec(command)).await.unwrap_err(), says);
        add(format!("{command:?}"), tether.run_job(&job("job", command)).await.unwrap_err(), says);
    }
    for name in ["", "../x", "a b", "$(id)", "`id`", "a\nb", "-rf", "it's", "a;b", "é"] {
        let failure = tether.run_job(&job(name, "true")).await.unwrap_err();
        add(format!("job name {name:?}"), failure, "job name");
    }
    for seconds in [0, -1, 604_801] {
        let max_runtime_sec = Some(seconds);
        let request = RunJobRequest { max_runtime_sec, ..job("job", "true") };
        add(format!("ceiling {seconds}"), tether.run_job(&request).await.unwrap_err(), "ceiling");
    }
    for id in ["", "../20260703-132525_x_00ab", "20260703-132525_$(x)_00ab"] {
        let failure = tether.job_status(id, 1, None).await.unwrap_err();
        add(format!("job id {id:?}"), failure, "job_id=");
    }

    for (what, failure, says) in &wrong {
        assert_eq!(failure.kind, FailureKind::BadInput, "{what}: {failure}");
        assert!(failure.message.contains(says), "{what}: {failure}");
        assert!(!failure.hint.is_empty(), "{what}");
    }
    assert!(wrong.len() > 40);
    assert_eq!(recorded(), at_first);
}
