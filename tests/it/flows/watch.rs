//! `podtether watch` as a process of its own beside a job on the local cloud.

use super::fixture::{Fixture, POD};
use super::twin::CEILING;
use crate::local_cloud::program;
use podtether::ops::{RunJobRequest, Tether};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::process::{Child, Command};

/// What a job's command begins with: a block as rsl_rl prints it, of iteration $1 with reward $2; and a wait
/// for a file on the volume.
const FUNCTIONS: &str = r#"
block() {
  printf '%080d\n' 0 | tr 0 '#'
  printf '\n Learning iteration %s/500\n\n    Mean reward: %s\n%s\nETA: 1.0s\n\n' "$1" "$2" ---------------------
}
wait_for() { until [ -e "$1" ]; do sleep 0.05; done; }
"#;

/// The keys that the contract names (section 11).
const KEYS: [&str; 17] = [
    "job_id",
    "spec",
    "iteration",
    "total_iterations",
    "mean_reward",
    "trend",
    "plateau_fired",
    "failure_detected",
    "exit_code_artifact",
    "gone_from_active",
    "stalled",
    "offset_bytes",
    "artifacts",
    "started_at",
    "updated_at",
    "ended_at",
    "process_exit_code",
];

struct Watched {
    code: i32,
    status: Value,
    stderr: String,
}

fn start(fixture: &Fixture, arguments: &[&str]) -> Child {
    Command::new(program())
        .args(["watch", "--json", "--interval", "1", "--config"])
        .arg(fixture.config_file())
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", fixture.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// Waits for the end; the status that was printed must be the one on disk.
async fn end(child: Child) -> Watched {
    let output = tokio::time::timeout(CEILING, child.wait_with_output()).await.unwrap().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let status: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    if let Some(path) = status["status_path"].as_str() {
        let file: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        assert_eq!(file, status);
    }
    Watched { code: output.status.code().unwrap_or(-1), status, stderr }
}

pub async fn job(tether: &Tether, command: &str) -> String {
    let request = RunJobRequest {
        name: "train".to_owned(),
        command: format!("{FUNCTIONS}{command}"),
        ..RunJobRequest::default()
    };
    tether.run_job(&request).await.unwrap().job_id
}

pub fn status_file(fixture: &Fixture, job: &str) -> PathBuf {
    fixture.path("logs").join(format!("watch-{job}.json"))
}

fn status(fixture: &Fixture, job: &str) -> Value {
    let bytes = fs::read(status_file(fixture, job)).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or(Value::Null)
}

/// It is advisory: whatever it sees, nothing is changed at the provider, and the pod bills on.
#[tokio::test(flavor = "multi_thread")]
async fn a_watched_job_ends_in_its_exit_code_and_nothing_was_changed() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let good = job(&tether, "for i in 0 1 2; do block $i 5.$i; done; wait_for go").await;
    let before = fixture.changes();
    let watch = start(&fixture, &[]);
    fixture.until("three blocks", async || status(&fixture, &good)["iteration"] == 2).await;
    assert_eq!(status(&fixture, &good)["process_exit_code"], Value::Null);
    fs::write(fixture.volume().join("go"), "").unwrap();
    let watched = end(watch).await;
    assert_eq!(watched.code, 0, "{}", watched.stderr);
    let keys: BTreeSet<&str> =
        watched.status.as_object().unwrap().keys().map(String::as_str).collect();
    for key in KEYS {
        assert!(keys.contains(key), "{key} is missing");
    }
    let told = ["iteration", "total_iterations", "mean_reward", "exit_code_artifact"];
    let told = told.map(|key| watched.status[key].clone());
    assert_eq!(json!(told), json!([2, 500, 5.2, 0]));
    assert_eq!(watched.status["job_id"], good.as_str());
    assert!(watched.stderr.contains("iteration 2/500 · reward 5.20"), "{}", watched.stderr);
    assert!(watched.stderr.contains("what runs bills: podtether audit"), "{}", watched.stderr);

    let crash = "printf 'Traceback (most recent call last):\\n  File \"a\"\\nOSError: [Errno 28] No space left on device\\n'; exit 3";
    let bad = job(&tether, crash).await;
    let watched = end(start(&fixture, &["--job-id", &bad])).await;
    assert_eq!(watched.code, 4, "{}", watched.stderr);
    assert_eq!(watched.status["failure_detected"]["cause"], "disk_full");
    assert_eq!(watched.status["exit_code_artifact"], 3);
    assert!(watched.stderr.contains("PAGE: failure (disk full)"), "{}", watched.stderr);
    assert_eq!(fixture.changes(), before);
    assert_eq!(fixture.status().await, "RUNNING");
}

/// A round looks once: state, log and GPU come in one command over one connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_round_of_a_watch_is_one_command_on_the_pod() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id.0;
    let id = job(&tether, "block 0 5.0; wait_for go").await;
    let watch = start(&fixture, &[]);
    fixture.until("the first block", async || status(&fixture, &id)["iteration"] == 0).await;
    let before = fixture.sessions(&pod).len();
    let mut rounds = BTreeSet::new();
    fixture
        .until("five rounds", async || {
            rounds.insert(status(&fixture, &id)["updated_at"].to_string());
            rounds.len() >= 5
        })
        .await;
    // One that had begun when the others were counted, and one that has not told yet.
    let commands = fixture.sessions(&pod).len() - before;
    assert!(commands <= rounds.len() + 1, "{commands} commands in {} rounds", rounds.len());
    fs::write(fixture.volume().join("go"), "").unwrap();
    assert_eq!(end(watch).await.code, 0);
}

/// E08: a watch that is killed and started again reads on where it was, and a plateau that was paged is
/// not paged again.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_was_killed_goes_on_and_pages_a_plateau_once() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let command = "for i in 0 1 2 3; do block $i $i$i; done; wait_for one
        for i in 4 5 6 7 8 9; do block $i 44.5; done; wait_for two; block 10 44.5; wait_for three";
    let id = job(&tether, command).await;
    let rule = ["--startup-grace", "0", "--plateau-window", "5", "--job-id", &id];
    let mut first = start(&fixture, &rule);
    fixture.until("four blocks", async || status(&fixture, &id)["iteration"] == 3).await;
    first.kill().await.unwrap();
    let offset = status(&fixture, &id)["offset_bytes"].as_u64().unwrap();
    let length =
        fs::metadata(fixture.volume().join("jobs").join(&id).join("out.log")).unwrap().len();
    assert!(offset > 0 && offset <= length);

    fs::write(fixture.volume().join("one"), "").unwrap();
    let watched = end(start(&fixture, &rule)).await;
    assert_eq!(watched.code, 3, "{}", watched.stderr);
    assert!(watched.stderr.contains("going on with the watch of"), "{}", watched.stderr);
    assert!(watched.stderr.contains("PAGE: plateau"), "{}", watched.stderr);
    assert_eq!(
        (&watched.status["plateau_fired"], &watched.status["iteration"]),
        (&json!(true), &json!(9))
    );

    fs::write(fixture.volume().join("two"), "").unwrap();
    let third = start(&fixture, &rule);
    fixture.until("the next block", async || status(&fixture, &id)["iteration"] == 10).await;
    fs::write(fixture.volume().join("three"), "").unwrap();
    let watched = end(third).await;
    assert_eq!(watched.code, 0, "{}", watched.stderr);
    assert!(!watched.stderr.contains("PAGE"), "{}", watched.stderr);
}

/// E10, E11: a silent log beside a GPU at work is quiet, beside an idle one it is a stall. A watch that is begun
/// again reads from the last block on: the words that stood after it are no growth, and the stall is the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_log_is_a_stall_only_when_the_gpu_rests_too() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id.0;
    let gpu = fixture.state().join("pods").join(&pod).join("disk/tmp/gpu-use");
    fs::write(&gpu, "90 8000").unwrap();
    let id = job(&tether, "block 1 2.0; echo saving; wait_for go").await;
    let rule = ["--startup-grace", "0", "--stall-sec", "3", "--job-id", &id];
    let watch = start(&fixture, &rule);
    fixture.until("a quiet log", async || status(&fixture, &id)["quiet"] == true).await;
    assert_eq!(status(&fixture, &id)["stalled"], false);
    fs::write(&gpu, "0 8000").unwrap();
    let watched = end(watch).await;
    assert_eq!(watched.code, 5, "{}", watched.stderr);
    assert_eq!(watched.status["stalled"], true);
    assert!(watched.stderr.contains("PAGE: stall"), "{}", watched.stderr);

    let updated = || status(&fixture, &id)["updated_at"].as_str().unwrap_or_default().to_owned();
    let ended: chrono::DateTime<chrono::Utc> = updated().parse().unwrap();
    let again = start(&fixture, &rule);
    // Longer than the limit of silence, by its own words.
    let late = ended + chrono::TimeDelta::seconds(8);
    fixture
        .until("more silence", async || {
            updated().parse().is_ok_and(|at: chrono::DateTime<chrono::Utc>| at > late)
        })
        .await;
    fs::write(fixture.volume().join("go"), "").unwrap();
    let watched = end(again).await;
    assert_eq!(watched.code, 0, "{}", watched.stderr);
    assert!(!watched.stderr.contains("PAGE"), "{}", watched.stderr);
}

/// E08: the pod is gone; the provider is asked and the watch ends with its word.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_is_stopped_ends_the_watch() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id.0;
    let id = job(&tether, "block 1 2.0; wait_for never").await;
    let watch = start(&fixture, &["--job-id", &id]);
    fixture.until("a block", async || status(&fixture, &id)["iteration"] == 1).await;
    fixture.api("POST", &format!("/v2/pods/{pod}/action"), Some(json!({"action": "stop"}))).await;
    let watched = end(watch).await;
    assert_eq!(watched.code, 5, "{}", watched.stderr);
    assert!(watched.stderr.contains("the pod is EXITED"), "{}", watched.stderr);
    let again = end(start(&fixture, &["--job-id", &id])).await;
    assert_eq!(again.code, 5, "{}", again.stderr);
    assert!(!again.stderr.contains("PAGE"), "{}", again.stderr);
    assert_eq!(fixture.pods_named(POD).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_job_or_with_wrong_arguments_the_exit_code_is_usage() {
    let fixture = Fixture::new();
    let watched = end(start(&fixture, &[])).await;
    assert_eq!(watched.code, 2, "no pod: {}", watched.stderr);
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let watched = end(start(&fixture, &["--startup-grace", "0"])).await;
    assert_eq!(watched.code, 2, "{}", watched.stderr);
    assert!(watched.stderr.contains("no live job came up"), "{}", watched.stderr);
    for wrong in [
        ["--plateau-min-delta", "nan"],
        ["--metrics-pattern", "("],
        ["--metrics-pattern", "no groups"],
        ["--family", "tensorflow"],
        ["--job-id", "../../etc"],
        ["--replay", "no such file"],
    ] {
        let watched = end(start(&fixture, &wrong)).await;
        assert_eq!(watched.code, 2, "{wrong:?}: {}", watched.stderr);
    }
}

/// A log of one's own is judged without a config, a key or a pod.
#[tokio::test(flavor = "multi_thread")]
async fn a_finished_log_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("out.log");
    let flat = |at: u32| format!("step {at}/200 | loss {}\n", if at < 20 { 90 - at } else { 70 });
    fs::write(&log, (0..100).map(flat).collect::<String>()).unwrap();
    let replay = async |more: &[&str]| {
        let mut command = Command::new(program());
        command.args(["watch", "--replay"]).arg(&log).args(["--metrics-pattern"]);
        command.arg(r"step (?P<iteration>\d+)/(?P<total>\d+) \| loss (?P<value>\S+)");
        let output =
            command.args(more).current_dir(folder.path()).env_clear().output().await.unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let found: Value = serde_json::from_str(&replay(&["--json"]).await).unwrap();
    let page = &found["pages"][0];
    assert_eq!(
        (&page["kind"], &page["iteration"], &page["exit_code"]),
        (&json!("plateau"), &json!(68), &json!(3))
    );
    assert_eq!(
        (&page["saved"]["iterations"], &page["saved"]["iterations_to_come"]),
        (&json!(31), &json!(100))
    );
    let told = replay(&[]).await;
    assert!(told.contains("would have paged at iteration 68: plateau"), "{told}");
    assert!(replay(&["--plateau-after", "100"]).await.contains("no page would have gone out"));
}
