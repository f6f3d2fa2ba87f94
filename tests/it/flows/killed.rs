//! SIGKILL of supervise and its whole process group, as harnesses do it (C01), in each of its phases.
//! The bill is ended afterwards, by `--resume` or by the laptop's fuse; the summary told the truth;
//! nothing was launched twice. (`tests/it/crash` kills at every single request and command.)

use super::fixture::{Fixture, Request, VEHICLE};
use super::summary::has_its_shape;
use super::supervised::{Run, summaries, summary};
use crate::local_cloud::program;
use serde_json::Value;
use std::fs;
use std::process::Command;

/// Where it is killed: as soon as the world shows that it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Plan,
    Arm,
    Launch,
    Follow,
    Pull,
    Capture,
    Stop,
    After,
}

/// What the job does: it counts its runs, leaves something to pull, and waits.
const JOB: &str = "echo run >>runs; mkdir -p results; head -c 1048576 /dev/urandom >results/a; until test -e go; do sleep 0.02; done";

fn is_stop(request: &Request) -> bool {
    request.body["action"] == "stop" && !request.path.contains("podtetherprobe")
}

/// Whether the run has got there.
fn is_reached(phase: Phase, fixture: &Fixture, before: usize) -> bool {
    let told = |holds: fn(&Value) -> bool| {
        let texts = summaries(fixture).into_iter().filter_map(|path| fs::read(path).ok());
        texts
            .filter_map(|text| serde_json::from_slice(&text).ok())
            .any(|found: Value| holds(&found))
    };
    match phase {
        Phase::Plan => fixture.requests().len() > before,
        Phase::Arm => fixture.path("logs/deadman.pid").exists() || !summaries(fixture).is_empty(),
        Phase::Launch => !summaries(fixture).is_empty(),
        Phase::Follow => told(|found| found["state"] == "running"),
        // The folder in which a pull receives.
        Phase::Pull => {
            let entries = fs::read_dir(fixture.path("logs")).into_iter().flatten().flatten();
            let mut names = entries.map(|entry| entry.file_name().into_string().unwrap());
            names.any(|name| name.starts_with(".podtether-staging-"))
        }
        Phase::Capture => told(|found| found["state"] == "succeeded"),
        Phase::Stop => fixture.changes().iter().any(is_stop),
        Phase::After => told(|found| found["pod_may_still_be_running"] == false),
    }
}

/// Starts a run and kills its group in the phase. Without a pod in the lists nothing could be told.
async fn killed_in(fixture: &Fixture, phase: Phase) {
    let before = fixture.requests().len();
    let run = ["--job-name", "job", "--command", JOB, "--sync-subdir", "results"];
    let more = ["--interval", "1", "--pull-every-sec", "1"];
    let mut run = Run::start(fixture, &[&run[..], &more].concat());
    if phase >= Phase::Capture {
        run.says("launched:").await;
        fs::write(fixture.volume().join("go"), "").unwrap();
    }
    fixture
        .until("the phase", async || is_reached(phase, fixture, before) || run.has_ended())
        .await;
    run.kill_group();
}

/// The file says what is so, whatever moment it was left at.
async fn tells_the_truth(fixture: &Fixture) {
    let status = fixture.status().await;
    for path in summaries(fixture) {
        let found: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        has_its_shape(&found);
        if status != "EXITED" {
            assert_eq!(found["pod_may_still_be_running"], true, "{found:#}");
        }
        if !found["process_exit_code"].is_null() {
            assert_eq!(status, "EXITED", "{found:#}");
        }
    }
}

fn ran_once_at_most(fixture: &Fixture) {
    let runs = fs::read_to_string(fixture.volume().join("runs")).unwrap_or_default();
    assert!(runs.lines().count() <= 1, "{runs}");
    let jobs = fs::read_dir(fixture.volume().join("jobs")).into_iter().flatten().count();
    assert!(jobs <= 1, "{jobs} jobs");
}

async fn is_ended_by_resume(phase: Phase) {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    killed_in(&fixture, phase).await;
    tells_the_truth(&fixture).await;
    ran_once_at_most(&fixture);
    if summaries(&fixture).is_empty() {
        assert!(matches!(phase, Phase::Plan | Phase::Arm), "{phase:?} without a summary");
        // Nothing of it was begun: there is nothing to take up, and the pod is as it was.
        assert_eq!(fixture.status().await, "RUNNING");
        assert_eq!(fixture.stop(&["--vehicle", VEHICLE]).await.0, 0);
        return;
    }
    let (path, left) = summary(&fixture);
    let resumed = Run::resume(&fixture, &path, &["--stop-budget-sec", "20"]);
    let launched = fs::read_dir(fixture.volume().join("jobs"))
        .is_ok_and(|jobs| jobs.flatten().any(|job| job.path().join("launched").exists()));
    fs::write(fixture.volume().join("go"), "").unwrap();
    let outcome = resumed.end().await;
    assert_eq!(fixture.status().await, "EXITED", "{outcome:#?}");
    let told = &summary(&fixture).1;
    assert_eq!(told["pod_may_still_be_running"], false, "{told:#}");
    match left["process_exit_code"].as_u64() {
        // It had just said its last word.
        Some(0) => assert_eq!(outcome.code, 2, "{outcome:#?}"),
        _ if launched => assert!(
            outcome.code == 0 || (outcome.code == 1 && phase >= Phase::Stop),
            "{phase:?}: {outcome:#?}"
        ),
        _ => assert_eq!(outcome.code, 1, "{outcome:#?}"),
    }
    ran_once_at_most(&fixture);
    // The pod is off, and so is what was armed to see to it.
    assert!(!fixture.path("logs/deadman.pid").exists(), "{outcome:#?}");
}

/// The fuse was armed by hand for some seconds; supervise leaves it alone (`auto_arm_hours: off`).
async fn is_ended_by_the_fuse(phase: Phase) {
    let fixture = Fixture::with("fuse:\n  auto_arm_hours: off\n");
    // A budget for a pod that is counted for a week.
    let config = fs::read_to_string(fixture.config_file()).unwrap();
    fs::write(fixture.config_file(), config.replace("budget_usd: 5", "budget_usd: 500")).unwrap();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let armed = Command::new(program())
        .args(["deadman", "arm", "--vehicle", VEHICLE, "--hours", "0.01", "--config"])
        .arg(fixture.config_file())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", fixture.path(""))
        .output()
        .unwrap();
    assert!(armed.status.success(), "{armed:?}");
    killed_in(&fixture, phase).await;
    tells_the_truth(&fixture).await;
    fixture.until("the fuse", async || fixture.status().await == "EXITED").await;
    ran_once_at_most(&fixture);
    // And whoever looks at the run later is told so.
    let (path, _) = summary(&fixture);
    let outcome = Run::resume(&fixture, &path, &[]).end().await;
    assert_eq!(outcome.code, 1, "{outcome:#?}");
    assert_eq!(outcome.file()["pod_may_still_be_running"], false);
    ran_once_at_most(&fixture);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_it_plans_or_arms_it_has_begun_nothing() {
    is_ended_by_resume(Phase::Plan).await;
    is_ended_by_resume(Phase::Arm).await;
}

/// F04: the launch may have taken effect or not; it is not made again.
#[tokio::test(flavor = "multi_thread")]
async fn killed_in_its_launch_it_is_taken_up_and_launches_nothing() {
    is_ended_by_resume(Phase::Launch).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_it_follows_it_is_taken_up() {
    is_ended_by_resume(Phase::Follow).await;
}

/// What came half is gone on with.
#[tokio::test(flavor = "multi_thread")]
async fn killed_in_a_pull_or_in_the_capture_it_is_taken_up() {
    is_ended_by_resume(Phase::Pull).await;
    is_ended_by_resume(Phase::Capture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_stop_or_after_it_the_end_is_told_as_it_is() {
    is_ended_by_resume(Phase::Stop).await;
    is_ended_by_resume(Phase::After).await;
}

/// C01: nobody takes it up; the fuse is no child of it and fires.
#[tokio::test(flavor = "multi_thread")]
async fn killed_and_forgotten_the_fuse_ends_the_bill() {
    is_ended_by_the_fuse(Phase::Launch).await;
    is_ended_by_the_fuse(Phase::Capture).await;
}
