//! Campaigns that are gone on with: after a stop point, and after their process is gone.

use super::{campaign, fixture, jobs, launched, lines, link, record, record_now, run, start};
use crate::flows::fixture::Fixture;
use crate::flows::signals::WAITS;
use podtether::ops::RunJobRequest;
use std::fs;

fn two(second: &str, between: &str) -> String {
    format!(
        "  - {{name: one, command: 'echo 1 >>ones', max_runtime_sec: 60, max_usd: 1.5{between}}}\n  - {{name: two, command: '{second}', max_runtime_sec: 60, max_usd: 1.5}}\n  - {{name: off, stop: true}}\n"
    )
}

/// C01: SIGKILL in a link. The rerun skips what is done, takes up what runs, launches nothing twice.
#[tokio::test(flavor = "multi_thread")]
async fn killed_in_a_link_it_is_gone_on_with_and_nothing_is_launched_twice() {
    let fixture = fixture();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    campaign(&fixture, &two(&format!("echo 2 >>twos; {WAITS}"), ""));
    let mut first = start(&fixture, &[]);
    fixture.until("the second link", async || lines(&fixture, "twos") == 1).await;
    assert!(!first.has_ended());
    // Two at once: the second is told so.
    let beside = run(&fixture, &[]).await;
    assert_eq!(beside.code, 2, "{beside:#?}");
    assert!(beside.stderr.contains("another process runs campaign trial now"), "{beside:#?}");
    first.kill_group();
    let left = record_now(&fixture);
    assert_eq!(left["pod_may_still_be_running"], true);
    assert_eq!(link(&left, "two")["outcome"], "in_flight");
    // Nobody is there, and the laptop's fuse is.
    assert!(fixture.path("logs/deadman.pid").exists());
    let mut second = start(&fixture, &[]);
    second.says("taken up: job").await;
    fs::write(fixture.volume().join("go"), "").unwrap();
    let outcome = second.end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert!(outcome.stderr.contains("link 1/3 one: done"), "{}", outcome.stderr);
    assert_eq!((jobs(&fixture), lines(&fixture, "ones"), lines(&fixture, "twos")), (2, 1, 1));
    assert_eq!(record(&fixture, &outcome)["state"], "done");
    assert_eq!(fixture.status().await, "EXITED");
}

/// Killed as soon as a link is recorded as begun, wherever its launch is, and between two links.
#[tokio::test(flavor = "multi_thread")]
async fn killed_around_a_launch_or_between_links_nothing_runs_twice() {
    for phase in ["begun", "between"] {
        let fixture = fixture();
        let tether = fixture.tether().await;
        fixture.running(&tether).await;
        campaign(&fixture, &two("echo 2 >>twos", ""));
        let mut first = start(&fixture, &[]);
        let path = fixture.path("logs/campaign-trial.json");
        let is_there = || {
            let text = fs::read_to_string(&path).unwrap_or_default();
            match phase {
                "begun" => text.contains("supervise-"),
                _ => text.contains("\"succeeded\""),
            }
        };
        fixture.until(phase, async || is_there() || first.has_ended()).await;
        first.kill_group();
        let outcome = run(&fixture, &[]).await;
        // A launch that was never made is captured by nobody: the link is begun then, once.
        assert_eq!(outcome.code, 0, "{phase}: {outcome:#?}");
        assert_eq!((lines(&fixture, "ones"), lines(&fixture, "twos")), (1, 1), "{outcome:#?}");
        assert_eq!(fixture.status().await, "EXITED");
    }
}

/// A stop point: the pod is off, exit code 0; the same command goes on with the link after it.
#[tokio::test(flavor = "multi_thread")]
async fn at_a_stop_point_the_pod_is_off_and_the_same_command_goes_on() {
    let fixture = fixture();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    campaign(&fixture, &two("echo 2 >>twos", ", pause: stop"));
    let outcome = run(&fixture, &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    let found = record(&fixture, &outcome);
    assert_eq!(found["state"], "paused");
    assert!(link(&found, "one")["paused_at"].is_string());
    assert_eq!((fixture.status().await.as_str(), lines(&fixture, "twos")), ("EXITED", 0));
    // The way on can be gone as it stands: the pod is off.
    let way = "go on:    ensure_pod with vehicle=rover first, then podtether supervise --chain";
    assert!(outcome.stderr.contains(way), "{}", outcome.stderr);
    // Without a pod it says what to do.
    let outcome = run(&fixture, &[]).await;
    assert!(outcome.code == 2 && outcome.stderr.contains("ensure_pod"), "{outcome:#?}");
    fixture.running(&tether).await;
    let outcome = run(&fixture, &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert_eq!((jobs(&fixture), lines(&fixture, "ones"), lines(&fixture, "twos")), (2, 1, 1));
    assert_eq!(fixture.status().await, "EXITED");
}

/// One that leaves the pod leaves it with its fuses, and says that it bills.
#[tokio::test(flavor = "multi_thread")]
async fn at_a_stop_point_that_leaves_the_pod_it_runs_on_with_its_fuse() {
    let fixture = fixture();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    campaign(&fixture, &two("echo 2 >>twos", ", pause: leave"));
    let outcome = run(&fixture, &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert_eq!(fixture.status().await, "RUNNING");
    assert!(outcome.stderr.contains("left running and bills"), "{}", outcome.stderr);
    assert!(fixture.path("logs/deadman.pid").exists());
    let outcome = run(&fixture, &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert_eq!((jobs(&fixture), lines(&fixture, "twos")), (2, 1));
    assert_eq!(fixture.status().await, "EXITED");
}

/// A job that succeeded and whose pod was stopped before anybody looked is brought home, not run again.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_succeeded_in_an_earlier_boot_is_brought_home_and_not_run_again() {
    let one = format!(
        "  - {{name: one, command: '{WAITS}; mkdir out; echo 1 >out/a', pull: out, max_runtime_sec: 60, max_usd: 1.5, expect: {{artifacts: [a]}}}}\n"
    );
    let (fixture, tether, first) = launched(&one).await;
    first.kill_group();
    fs::write(fixture.volume().join("go"), "").unwrap();
    let ended = |fixture: &Fixture| {
        let jobs = fs::read_dir(fixture.volume().join("jobs")).unwrap().flatten();
        jobs.filter(|job| job.path().join("exit_code").exists()).count() == 1
    };
    fixture.until("the job's end", async || ended(&fixture)).await;
    assert!(tether.stop_pod("rover").await.unwrap().is_off());
    fixture.running(&tether).await;
    // The provider tells starts to the second, and two within a minute are taken for one.
    let path = fixture.path("logs/campaign-trial.json");
    let mut left = record_now(&fixture);
    left["links"][0]["pod_started_at"] = "2026-07-03T13:00:00Z".into();
    fs::write(&path, left.to_string()).unwrap();
    let outcome = run(&fixture, &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert!(fixture.path("logs/out/a").exists());
    assert_eq!(jobs(&fixture), 1);
}

/// A job of somebody else lives on the pod: the campaign does not begin, and does not end that job.
#[tokio::test(flavor = "multi_thread")]
async fn a_live_job_of_somebody_else_is_left_alone() {
    let fixture = fixture();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let other = RunJobRequest {
        name: "other".into(),
        command: "sleep 600".into(),
        max_runtime_sec: Some(600),
        ..RunJobRequest::default()
    };
    let other = tether.run_job(&other).await.unwrap();
    campaign(&fixture, &two("true", ""));
    let outcome = run(&fixture, &[]).await;
    assert_eq!(outcome.code, 2, "{outcome:#?}");
    assert!(outcome.stderr.contains(&other.job_id), "{}", outcome.stderr);
    assert_eq!((jobs(&fixture), fixture.status().await.as_str()), (1, "RUNNING"));
}
