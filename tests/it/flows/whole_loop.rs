//! One vehicle from nothing to gone, through the library that both faces call.

use super::fixture::{Fixture, POD, VEHICLE, exec};
use crate::local_cloud::is_alive;
use podtether::domain::JobState;
use podtether::error::FailureKind;
use podtether::ops::{PodState, RunJobRequest, StopStatus, TerminateStatus};
use std::fs;

/// D09: the whole of it below a folder whose name has a space and a quote. F05: a boot's host key is
/// accepted once. F01: the address is another one after a start.
#[tokio::test(flavor = "multi_thread")]
async fn a_vehicle_is_created_used_stopped_started_again_and_deleted() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let first = fixture.running(&tether).await.pod.unwrap();
    let pod = first.id.clone();
    let host_key = fixture.state().join("pods").join(&pod.0).join("ssh_host_ed25519_key");
    let first_key = fs::read(&host_key).unwrap();

    let answer = tether.exec_on_pod(&exec("echo kept >kept; echo lost >~/lost; pwd -P")).await;
    let answer = answer.unwrap();
    assert_eq!(answer.exit_code, Some(0), "{answer:?}");
    assert_eq!(answer.stdout.trim_end(), fixture.volume().to_str().unwrap());

    // The job waits for the test, so that it is seen to run.
    let job = RunJobRequest {
        name: "make-results".to_owned(),
        command: "mkdir -p 'out put' && head -c 100000 /dev/urandom >\"out put/it's \\$(x)\" \
                  && echo begun && until test -e go; do sleep 0.05; done && echo done"
            .to_owned(),
        max_runtime_sec: Some(120),
        ..RunJobRequest::default()
    };
    let id = tether.run_job(&job).await.unwrap().job_id;
    let mut seen = Vec::new();
    fixture
        .until("a job that runs", async || {
            let status = tether.job_status(&id, 10, None).await.unwrap();
            seen.push(status.state);
            status.state == JobState::Running && status.log_tail.contains("begun")
        })
        .await;
    assert!(seen.iter().all(|state| matches!(state, JobState::Starting | JobState::Running)));
    let status = tether.pod_status(None).await.unwrap();
    assert_eq!((status.status, status.live_jobs), (PodState::Running, Some(vec![id.clone()])));
    fs::write(fixture.volume().join("go"), "").unwrap();
    let mut last = None;
    fixture
        .until("the end of the job", async || {
            let status = tether.job_status(&id, 10, None).await.unwrap();
            let ended = status.state.has_ended();
            last = Some(status);
            ended
        })
        .await;
    let last = last.unwrap();
    assert_eq!((last.state, last.exit_code), (JobState::Succeeded, Some(0)), "{last:?}");
    assert!(last.log_tail.ends_with("done"), "{}", last.log_tail);

    for (subdir, name) in [("out put", "it's $(x)".to_owned()), ("jobs", format!("{id}/out.log"))] {
        let synced = tether.sync_logs(subdir, None, false, |_| {}).await.unwrap();
        assert!(synced.complete && synced.missing.is_empty(), "{synced:?}");
        let here = fs::read(fixture.path("logs").join(subdir).join(&name)).unwrap();
        let there = fs::read(fixture.volume().join(subdir).join(&name)).unwrap();
        assert!(here == there && !here.is_empty(), "{name} differs");
    }

    let stopped = tether.stop_pod(VEHICLE).await.unwrap();
    assert_eq!((stopped.status, fixture.status().await.as_str()), (StopStatus::Stopped, "EXITED"));
    let again = tether.stop_pod(VEHICLE).await.unwrap();
    assert_eq!((again.status, again.asked), (StopStatus::AlreadyStopped, 0));
    let failure = tether.exec_on_pod(&exec("true")).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::NoPod, "{failure}");

    let second = fixture.running(&tether).await.pod.unwrap();
    assert_eq!(second.id, pod);
    assert_ne!(second.ssh, first.ssh, "the port of the boot before was not given again");
    assert_ne!(fs::read(&host_key).unwrap(), first_key, "every boot has a host key of its own");
    let pins = fs::read_to_string(fixture.path("known_hosts")).unwrap();
    assert_eq!(pins.lines().filter(|line| line.starts_with(&pod.0)).count(), 1, "{pins}");
    let answer = tether.exec_on_pod(&exec("cat kept; test ! -e ~/lost")).await.unwrap();
    assert_eq!((answer.exit_code, &*answer.stdout), (Some(0), "kept\n"), "{answer:?}");
    // The job's end is remembered on the volume, over a stop.
    let status = tether.job_status(&id, 1, None).await.unwrap();
    assert_eq!(status.state, JobState::Succeeded);

    let changes = fixture.changes().len();
    for wrong in ["", "yes", POD, "terminate", "Terminate rover-pod", "terminate rover-pod "] {
        let failure = tether.terminate_pod(VEHICLE, wrong).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Refused, "{wrong:?}: {failure}");
        assert!(failure.message.contains("\"terminate rover-pod\""), "{failure}");
    }
    assert_eq!((fixture.changes().len(), fixture.status().await.as_str()), (changes, "RUNNING"));
    let gone = tether.terminate_pod(VEHICLE, "terminate rover-pod").await.unwrap();
    assert_eq!(gone.status, TerminateStatus::Terminated);
    assert!(fixture.pods_named(POD).await.is_empty());
    assert_eq!(fs::read_to_string(fixture.volume().join("kept")).unwrap(), "kept\n");
    let gone = tether.terminate_pod(VEHICLE, "terminate rover-pod").await.unwrap();
    assert_eq!(gone.status, TerminateStatus::NoPod);
    let stopped = tether.stop_pod(VEHICLE).await.unwrap();
    assert_eq!(stopped.status, StopStatus::NoPod);
}

/// What every test here relies on: no pod, no process and no folder outlives its test.
#[test]
fn a_test_that_panics_leaves_nothing_behind() {
    let (tell, told) = std::sync::mpsc::channel();
    let body = || async move {
        let fixture = Fixture::new();
        let tether = fixture.tether().await;
        fixture.running(&tether).await;
        let job = RunJobRequest {
            name: "endless".to_owned(),
            command: "echo $$ >part && mv part pid && sleep 600".to_owned(),
            ..RunJobRequest::default()
        };
        tether.run_job(&job).await.unwrap();
        let file = fixture.volume().join("pid");
        fixture.until("the job's process", async || file.exists()).await;
        tell.send((fixture.path(""), fs::read_to_string(file).unwrap())).unwrap();
        panic!("on purpose");
    };
    let broken = std::thread::spawn(|| tokio::runtime::Runtime::new().unwrap().block_on(body()));
    assert!(broken.join().is_err());
    let (folder, pid) = told.recv().unwrap();
    assert!(!folder.exists(), "{}", folder.display());
    assert!(!is_alive(pid.trim()), "{pid} lives");
}
