//! Results that come home while the job runs.

use super::fixture::Fixture;
use super::supervised::Run;
use serde_json::json;
use std::fs;
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// D01: most of the results are here before the job ends, and the last pull carries the rest. The end
/// is noticed at once all the same, with an interval that is longer than the whole run.
#[tokio::test(flavor = "multi_thread")]
async fn most_bytes_come_home_before_the_job_ends_and_the_end_is_noticed_at_once() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let job = "mkdir results; head -c 8388608 /dev/urandom >results/early; echo begun; until test -e go; do sleep 0.05; done; echo late >results/late; date +%s >ended";
    let run = ["--job-name", "job", "--command", job, "--sync-subdir", "results"];
    let more = ["--interval", "600", "--pull-every-sec", "1"];
    let mut run = Run::start(&fixture, &[&run[..], &more].concat());
    let early = fixture.path("logs/results/early");
    let there = fixture.volume();
    fixture
        .until("the results while the job runs", async || {
            early.metadata().is_ok_and(|meta| meta.len() == 8 * MIB)
        })
        .await;
    assert!(!run.has_ended() && !there.join("results/late").exists());
    run.says("results come home while the job runs").await;
    fs::write(there.join("go"), "").unwrap();
    let outcome = run.end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert!(outcome.took < Duration::from_secs(100), "{:?}", outcome.took);
    let summary = outcome.file();
    let pulled = &summary["pulled"];
    let bytes = |value: &serde_json::Value| value["bytes"].as_u64().unwrap();
    let last = bytes(&pulled["job_dir"]) + bytes(&pulled["analysis"]);
    let early = bytes(&pulled["while_running"]);
    assert!(early >= 8 * MIB && last < MIB, "{early} early, {last} at the end");
    assert_eq!(summary["capture_complete"], true);
    // The last pull still vouches for every file.
    let proof = pulled["analysis"]["proof"].as_str().unwrap();
    assert!(proof.contains("compared by SHA-256"), "{proof}");
    assert_eq!(fs::read_to_string(fixture.path("logs/results/late")).unwrap(), "late\n");
    assert_eq!(summary["errors"], json!([]), "what did not come early is no error");
}

/// E14: a volume that hangs keeps the early pull, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn a_pull_that_hangs_holds_up_neither_the_end_nor_the_last_pull() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id;
    // Every list that the pod makes for a pull hangs as long as there is a file `frozen`.
    let steps = fixture.path("steps");
    fs::create_dir(&steps).unwrap();
    fs::write(steps.join("frozen"), "").unwrap();
    let bash = fixture.state().join("pods").join(&pod.0).join("bin/bash");
    let folder = podtether::domain::join_quoted([steps.to_str().unwrap()]);
    let script = format!(
        "#!/bin/bash\nif [ \"${{3-}}\" = manifest.sh ]; then echo asked >>{folder}/log; while [ -e {folder}/frozen ]; do sleep 0.05; done; fi\nexec /bin/bash \"$@\"\n"
    );
    fs::write(&bash, script).unwrap();
    fs::set_permissions(&bash, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let job = "until test -e go; do sleep 0.05; done";
    let mut run = Run::of(&fixture, job, &["--interval", "1", "--pull-every-sec", "1"]);
    fixture.until("an early pull", async || steps.join("log").exists()).await;
    // The run goes on looking beside it.
    run.says("running").await;
    let looks = || fixture.sessions(&pod.0).len();
    let before = looks();
    fixture.until("more looks", async || looks() > before + 3).await;
    fs::write(fixture.volume().join("go"), "").unwrap();
    fixture
        .until("the end to be seen", async || {
            super::supervised::summary(&fixture).1["state"] == "succeeded"
        })
        .await;
    fs::remove_file(steps.join("frozen")).unwrap();
    let outcome = run.end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert_eq!(outcome.file()["capture_complete"], true);
    assert_eq!(outcome.summary["errors"], json!([]));
}
