//! Campaigns that go well, and what a dry run says of them.

use super::{RULE, campaign, fixture, jobs, lines, link, never_terminated, record, run};
use crate::flows::fixture::Fixture;
use serde_json::{Value, json};
use std::fs;

/// One link that leaves a file, a log with rewards and a marker; one that is pinned to that file.
fn links() -> String {
    let weights = podtether::digest::sha256_hex(b"weights\n");
    format!(
        r#"
  - name: train
    command: |
      echo run >>runs; mkdir -p out; echo weights >out/model_1.pt
      for i in 0 1; do printf 'Learning iteration %s/2\n  Mean reward: 9%s.50\n' $i $i; {RULE}; done
    max_runtime_sec: 60
    pull: out
    max_usd: 1.5
    gates: {{before: {{forbid: [out/model_1.pt]}}, after: {{require: [out/model_1.pt]}}}}
    expect: {{artifacts: ["model_*.pt"], reward_lines: 2, reward: [91, 92]}}
  - name: look
    command: echo run >>runs
    max_runtime_sec: 60
    max_usd: 1.5
    needs: [train]
    pins: [{{pod: out/model_1.pt, sha256: {weights}}}]
  - name: home
    sync: out
    max_usd: 1
    expect: {{artifacts: [model_1.pt]}}
  - name: off
    stop: true
"#
    )
}

fn last_word(record: &Value) -> Value {
    json!(["state", "process_exit_code", "pod_may_still_be_running"].map(|key| &record[key]))
}

/// Every link runs once, is held to what it must leave, and the pod is off and its fuse called off; the
/// same again finds everything done.
#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_runs_each_link_once_and_ends_off_the_bill() {
    let fixture = fixture();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    campaign(&fixture, &links());
    let outcome = run(&fixture, &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    let found = record(&fixture, &outcome);
    assert_eq!(last_word(&found), json!(["done", 0, false]));
    assert_eq!((jobs(&fixture), lines(&fixture, "runs")), (2, 2));
    let train = link(&found, "train");
    assert_eq!(json!([train["outcome"], train["reward_lines"]]), json!(["succeeded", 2]));
    let home = fixture.path("logs/out/model_1.pt");
    assert_eq!(train["artifacts"][0]["path"], home.to_str().unwrap());
    assert!(train["spent_usd"].is_number() || train["spent_usd"].is_string(), "{train:#}");
    assert_eq!(fixture.status().await, "EXITED");
    assert!(!fixture.path("logs/deadman.pid").exists(), "{outcome:#?}");
    never_terminated(&fixture);

    // Its pod is off, and nothing of it is to be run.
    let again = run(&fixture, &[]).await;
    assert_eq!(again.code, 0, "{again:#?}");
    assert!(again.stderr.contains("link 1/4 train: done"), "{}", again.stderr);
    assert_eq!((jobs(&fixture), lines(&fixture, "runs")), (2, 2));
}

/// What is done is skipped; what it left being gone, or another command, runs it again, and what builds on
/// it: what needs it, and a pull of what it left.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_run_again_when_what_it_left_is_gone_or_when_it_is_another() {
    let fixture = fixture();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let one = |command: &str| {
        format!(
            "  - {{name: one, command: '{command}; mkdir -p out; date +%N >out/a', pull: out, max_runtime_sec: 60, max_usd: 1.5, expect: {{artifacts: [a]}}}}\n  - {{name: two, command: 'echo 2 >>twos', max_runtime_sec: 60, max_usd: 1.5, needs: [one]}}\n  - {{name: three, command: 'echo 3 >>threes; mkdir -p three; cp threes three', max_runtime_sec: 60, max_usd: 1.5}}\n  - {{name: home, sync: three, max_usd: 1}}\n  - {{name: off, stop: true}}\n"
        )
    };
    campaign(&fixture, &one("echo 1 >>ones"));
    assert_eq!(run(&fixture, &[]).await.code, 0);
    let count = |fixture: &Fixture| ["ones", "twos", "threes"].map(|file| lines(fixture, file));
    assert_eq!(count(&fixture), [1, 1, 1]);
    fixture.running(&tether).await;
    fs::remove_file(fixture.path("logs/out/a")).unwrap();
    let preview = run(&fixture, &["--dry-run"]).await;
    let standings = |told: &Value| -> Vec<Value> {
        let links = told["links"].as_array().unwrap().iter();
        links.map(|link| link["standing"].clone()).collect()
    };
    let expected = json!(["to_run", "to_run", "done", "to_run", "end"]);
    assert_eq!(json!(standings(&preview.summary)), expected, "{preview:#?}");
    let again = run(&fixture, &[]).await;
    assert_eq!(again.code, 0);
    assert_eq!(count(&fixture), [2, 2, 1]);
    assert!(again.stderr.contains("link 3/5 three: done"), "{}", again.stderr);
    assert!(again.stderr.contains("link one, which it builds on, was run after it"), "{again:#?}");
    fixture.running(&tether).await;
    campaign(&fixture, &one("echo again >>ones"));
    assert_eq!(run(&fixture, &[]).await.code, 0);
    assert_eq!(count(&fixture), [3, 3, 1]);
    fixture.running(&tether).await;
    let pulled = || fs::read_to_string(fixture.path("logs/three/threes")).unwrap();
    assert_eq!(pulled(), "3\n");
    assert_eq!(run(&fixture, &["--again", "three"]).await.code, 0);
    assert_eq!(count(&fixture), [3, 3, 2]);
    assert_eq!(pulled(), "3\n3\n", "what is pulled is what was left last");
}

/// The dry run prints what a run begins with, and nothing is changed: no job, no request, no record.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_prints_every_link_and_the_sum_and_changes_nothing() {
    let fixture = fixture();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id.0;
    campaign(&fixture, &links());
    let changes = fixture.changes().len();
    let outcome = run(&fixture, &["--dry-run"]).await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert_eq!((fixture.changes().len(), jobs(&fixture)), (changes, 0));
    assert!(!fixture.path("logs/campaign-trial.json").exists());
    assert_eq!(fixture.status().await, "RUNNING");
    let preview = &outcome.summary;
    assert_eq!(preview["pod_id"], pod.as_str());
    let links = preview["links"].as_array().unwrap();
    let names: Vec<&Value> = links.iter().map(|link| &link["name"]).collect();
    assert_eq!(json!(names), json!(["train", "look", "home", "off"]));
    // Ceiling, kill grace, backstop, capture, looks.
    assert_eq!(links[0]["worst_case_sec"], 60 + 60 + 300 + 3_600 + 600);
    assert_eq!(json!([links[0]["standing"], links[3]["standing"]]), json!(["to_run", "end"]));
    let counted = preview["counted"].to_string();
    assert!(counted.contains("all links"), "{counted}");
    assert_eq!(preview["refusals"], json!([]));
    // The same for people, from the folder that it is read in.
    assert!(preview["worst_case_usd"] != Value::Null && preview["counted_usd"] != Value::Null);
}

/// Everything that can be known before the first link is refused before anything is changed: no pod,
/// envelopes, the sum, a gate or a pin of the first link.
#[tokio::test(flavor = "multi_thread")]
async fn what_will_not_do_is_refused_before_anything_is_changed() {
    let fixture = fixture();
    let tether = fixture.tether().await;
    let refused = async |links: &str, words: &[&str]| {
        campaign(&fixture, links);
        let changes = fixture.changes().len();
        for more in [&["--dry-run"][..], &[]] {
            let outcome = run(&fixture, more).await;
            assert_eq!(outcome.code, 2, "{outcome:#?}");
            let told = format!("{}{}", outcome.stderr, outcome.summary);
            for word in words {
                assert!(told.contains(word), "{word}: {told}");
            }
        }
        assert_eq!((fixture.changes().len(), jobs_of(&fixture)), (changes, 0));
    };
    let off = "\n  - {name: off, stop: true}\n";
    let one =
        |more: &str| format!("  - {{name: one, command: 'true', max_runtime_sec: 60{more}}}{off}");
    refused(&one(", max_usd: 1.5"), &["ensure_pod", "has no pod"]).await;
    fixture.running(&tether).await;
    refused(
        &one(", max_usd: 0.1"),
        &["link one can cost $", "more than its max_usd", "would pass"],
    )
    .await;
    refused(
        &one(", max_usd: 1.5, gates: {before: {require: [markers/ready]}}"),
        &["link one: ", "/workspace/markers/ready is not there and must be"],
    )
    .await;
    let zeros = "0".repeat(64);
    refused(
        &one(&format!(", max_usd: 1.5, pins: [{{here: podtether.yaml, sha256: {zeros}}}]")),
        &["podtether.yaml is not what is pinned"],
    )
    .await;
    refused(
        &one(&format!(", max_usd: 1.5, pins: [{{pod: none.py, sha256: {zeros}}}]")),
        &["/workspace/none.py is pinned and cannot be compared: it is not there"],
    )
    .await;
    // Each link fits its envelope, and all of them together not the budget.
    let config = fs::read_to_string(fixture.config_file()).unwrap();
    fs::write(fixture.config_file(), config.replace("budget_usd: 50", "budget_usd: 3")).unwrap();
    let link = |name: &str| {
        format!("  - {{name: {name}, command: 'true', max_runtime_sec: 60, max_usd: 1.5}}\n")
    };
    let three = ["a", "b", "c"].map(link).concat();
    refused(&format!("{three}{off}"), &["all links", "limits.budget_usd"]).await;
    assert_eq!(fixture.status().await, "RUNNING");
}

fn jobs_of(fixture: &Fixture) -> usize {
    let volumes = fs::read_dir(fixture.state().join("volumes")).into_iter().flatten().flatten();
    volumes.map(|volume| fs::read_dir(volume.path().join("jobs")).map_or(0, Iterator::count)).sum()
}
