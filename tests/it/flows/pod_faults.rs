//! What goes wrong on a pod that runs, as the tools tell it: never done, never idle, never healthy
//! unless it is.

use super::fixture::{Fixture, VEHICLE, exec};
use podtether::domain::JobState;
use podtether::error::FailureKind;
use podtether::ops::{JobStatusAnswer, RunJobRequest, StopStatus, Tether};
use std::fs;
use std::time::{Duration, Instant};

/// A job that says that it has begun and ends once `go` is there.
const WAITS: &str = "echo begun; touch begun; until [ -e go ]; do sleep 0.1; done; exit 3";

fn job(command: &str) -> RunJobRequest {
    RunJobRequest {
        name: "job".to_owned(),
        command: command.to_owned(),
        ..RunJobRequest::default()
    }
}

/// A running pod with a job that waits.
async fn waiting(fixture: &Fixture, tether: &Tether) -> String {
    fixture.running(tether).await;
    let id = tether.run_job(&job(WAITS)).await.unwrap().job_id;
    fixture.until("the job", async || fixture.volume().join("begun").exists()).await;
    id
}

async fn state(tether: &Tether, id: &str) -> JobStatusAnswer {
    tether.job_status(id, 10, None).await.unwrap()
}

async fn becomes(
    fixture: &Fixture,
    tether: &Tether,
    id: &str,
    wanted: JobState,
) -> JobStatusAnswer {
    fixture.until(wanted.as_str(), async || state(tether, id).await.state == wanted).await;
    state(tether, id).await
}

/// E14: a volume that hangs is told in time, nothing is started on it, what ran on runs on, and the pod
/// can be stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_volume_is_told_and_refuses_a_job_and_never_a_stop() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let id = waiting(&fixture, &tether).await;
    fixture.set_faults(&["frozen-volume"]).await;
    let start = Instant::now();
    let told = state(&tether, &id).await;
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!((told.state, told.log_bytes), (JobState::Running, None), "{told:?}");
    assert!(told.note.contains("volume unresponsive"), "{}", told.note);
    assert_eq!(told.machine.gpu_util_percent, Some(0));
    assert!(told.machine.disk_free_gb.is_some() && told.live_jobs.is_none());
    let pod = tether.pod_status(None).await.unwrap();
    assert!(pod.message.contains("unresponsive"), "{pod:?}");
    assert!(pod.live_jobs_unknown.as_ref().unwrap().contains("unresponsive"));
    assert_eq!(pod.machine.as_ref().unwrap().gpu_util_percent, Some(0));
    let forced = RunJobRequest { force: true, ..job("touch ran") };
    let refused = tether.run_job(&forced).await.unwrap_err();
    assert_eq!(refused.kind, FailureKind::Refused, "{refused}");
    assert!(refused.message.contains("it is unresponsive"), "{refused}");
    fixture.set_faults(&[]).await;
    assert_eq!(becomes(&fixture, &tether, &id, JobState::Running).await.log_tail, "begun");
    assert!(!fixture.volume().join("ran").exists());
    fixture.set_faults(&["frozen-volume"]).await;
    let stopped = tether.stop_pod(VEHICLE).await.unwrap();
    assert_eq!((stopped.status, fixture.status().await.as_str()), (StopStatus::Stopped, "EXITED"));
}

/// E04: no job starts where it could not write. Said in the dry run, refused in the call, and over when
/// there is room again.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_volume_takes_no_job() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    fixture.set_faults(&["full-disk"]).await;
    for dry_run in [true, false] {
        let request = RunJobRequest { dry_run, force: true, ..job("touch ran") };
        let refused = tether.run_job(&request).await.unwrap_err();
        assert_eq!(refused.kind, FailureKind::Refused, "{refused}");
        assert!(refused.message.contains("No space left on device"), "{refused}");
    }
    let copied = tether.exec_on_pod(&exec("cp /etc/passwd \"$PWD/copy\"")).await.unwrap();
    assert!(copied.stderr.contains("No space left"), "{copied:?}");
    let pod = tether.pod_status(None).await.unwrap();
    assert_eq!(pod.live_jobs, Some(vec![]));
    assert_eq!(pod.machine.unwrap().volume_free_gb, Some(0));
    fixture.set_faults(&[]).await;
    let dry = tether.run_job(&RunJobRequest { dry_run: true, ..job("touch ran") }).await.unwrap();
    assert!(dry.hint.contains("took a small file") && dry.hint.contains("GB free"), "{}", dry.hint);
    assert!(!fixture.volume().join("ran").exists() && !fixture.volume().join("jobs").exists());
    let id = tether.run_job(&job("touch ran")).await.unwrap().job_id;
    becomes(&fixture, &tether, &id, JobState::Succeeded).await;
}

/// D08, E14: a mount that leads nowhere is not an empty volume.
#[tokio::test(flavor = "multi_thread")]
async fn a_stale_mount_is_not_a_volume_without_jobs() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let id = waiting(&fixture, &tether).await;
    fixture.set_faults(&["stale-mount"]).await;
    let told = state(&tether, &id).await;
    assert_eq!(told.state, JobState::Unknown, "{told:?}");
    let pod = tether.pod_status(None).await.unwrap();
    assert!(pod.live_jobs.is_none() && pod.live_jobs_unknown.is_some(), "{pod:?}");
    let refused = tether.run_job(&RunJobRequest { force: true, ..job("true") }).await.unwrap_err();
    assert!(refused.message.contains("gone stale"), "{refused}");
    fixture.set_faults(&[]).await;
    assert_eq!(state(&tether, &id).await.state, JobState::Running);
}

/// E06: the wrapper is killed for want of memory. That is no end of the job, which still counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_wrapper_is_told_and_its_job_still_counts() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let id = waiting(&fixture, &tether).await;
    fixture.set_faults(&["wrapper-killed"]).await;
    let told = becomes(&fixture, &tether, &id, JobState::WrapperLost).await;
    assert!(told.note.contains("live on"), "{}", told.note);
    assert_eq!(told.live_jobs.unwrap(), [id.as_str()]);
    let refused = tether.run_job(&job("true")).await.unwrap_err();
    assert!(refused.message.contains(&id), "{refused}");
    fs::write(fixture.volume().join("go"), "").unwrap();
    fixture
        .until("the end of the job", async || {
            state(&tether, &id).await.live_jobs.is_some_and(|jobs| jobs.is_empty())
        })
        .await;
    assert_eq!(state(&tether, &id).await.exit_code, None);
}

/// A17: another boot, or another owner of the pid, is neither a running job nor one that ended well.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_an_earlier_boot_or_another_process_is_orphaned() {
    for fault in ["reboot", "pid-reused"] {
        let fixture = Fixture::new();
        let tether = fixture.tether().await;
        let id = waiting(&fixture, &tether).await;
        fixture.set_faults(&[fault]).await;
        let status = async || fixture.status().await;
        fixture.until("the pod", async || status().await == "RUNNING").await;
        fixture.running(&tether).await;
        let told = becomes(&fixture, &tether, &id, JobState::Orphaned).await;
        assert_eq!((told.exit_code, told.live_jobs), (None, Some(vec![])), "{fault}");
        let next = tether.run_job(&job("true")).await.unwrap().job_id;
        becomes(&fixture, &tether, &next, JobState::Succeeded).await;
    }
}

/// F03: a command that takes too long is ended on the pod, and that is said.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_timed_out_does_not_run_on() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let mut request = exec("sleep 1000 & echo $$ $! >pids; wait");
    request.timeout_sec = 2;
    let failure = tether.exec_on_pod(&request).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Timeout, "{failure}");
    assert!(failure.message.contains("was ended on the pod"), "{failure}");
    let pids = fs::read_to_string(fixture.volume().join("pids")).unwrap();
    for pid in pids.split_whitespace() {
        let gone = async || !crate::local_cloud::is_alive(pid);
        fixture.until("the end of the command", gone).await;
    }
}
