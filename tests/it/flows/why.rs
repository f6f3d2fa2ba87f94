//! `podtether why`: what a call would come to, before it is made.

use super::fixture::{Fixture, VEHICLE};
use super::seeing::run;
use podtether::ops::RunJobRequest;
use serde_json::{Value, json};
use std::fs;

fn refused(answer: &Value) -> Vec<&str> {
    let rules = answer["rules"].as_array().unwrap();
    let refusing = rules.iter().filter(|rule| rule["verdict"] == "refuse");
    refusing.map(|rule| rule["name"].as_str().unwrap()).collect()
}

/// The account is the guard's own: what it promises to pass does, and nothing is changed by asking.
#[tokio::test(flavor = "multi_thread")]
async fn why_tells_every_rule_the_sum_and_the_one_change_that_would_pass() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let ran = run(&fixture, &["why", "ensure", "--vehicle", VEHICLE], &[]).await;
    assert_eq!(
        (ran.code, &ran.json["would_pass"]),
        (0, &json!(true)),
        "{} {}",
        ran.json,
        ran.stderr
    );
    assert_eq!(refused(&ran.json), Vec::<&str>::new());
    assert_eq!(ran.json["most"]["cheapest_usd_per_hour"], 0.69);
    let sum = ran.json["sum"].as_array().unwrap();
    let total: f64 = sum.iter().map(|line| line["usd"].as_f64().unwrap()).sum();
    assert!(sum.len() > 2 && (total - ran.json["total_usd"].as_f64().unwrap()).abs() < 1e-6);
    // Without a pod the sum of a job is told all the same, and that there is none.
    let job = ["why", "run", "--name", "x", "--command", "true"];
    let ran = run(&fixture, &job, &[]).await;
    assert_eq!((ran.code, refused(&ran.json)), (2, vec![]), "{}", ran.json);
    assert!(ran.json["not_met"][0].as_str().unwrap().contains("ensure_pod"), "{}", ran.json);
    assert!(
        fixture.changes().iter().all(|change| !change.path.starts_with("/v2")),
        "nothing is made"
    );

    fixture.running(&tether).await;
    let day = [&job[..], &["--auto-stop", "--max-runtime-sec", "86400"]].concat();
    let ran = run(&fixture, &day, &[]).await;
    assert_eq!((ran.code, refused(&ran.json)), (2, vec!["a_launch_stays_within_the_budget"]));
    let way = ran.json["to_pass"][0].as_str().unwrap().to_owned();
    assert_eq!(ran.json["to_pass"].as_array().unwrap().len(), 1, "{}", ran.json);
    let seconds: u32 = way.strip_prefix("max_runtime_sec=").unwrap().parse().unwrap();
    let most = ran.json["most"]["max_runtime_sec"].as_u64().unwrap();
    // A running pod costs a little more at every look.
    assert!(most <= u64::from(seconds) && most + 120 > u64::from(seconds), "{way} {most}");
    let less = (most - 120).to_string();
    let shorter = [&job[..], &["--auto-stop", "--max-runtime-sec", &less]].concat();
    let ran = run(&fixture, &shorter, &[]).await;
    assert_eq!(ran.code, 0, "{} {}", ran.json, ran.stderr);
}

/// A saved dry run is explained as it was asked; what is no plan is bad input.
#[tokio::test(flavor = "multi_thread")]
async fn why_reads_a_saved_dry_run() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let request = RunJobRequest {
        name: "train".to_owned(),
        command: "true".to_owned(),
        auto_stop: true,
        max_runtime_sec: Some(60),
        dry_run: true,
        ..RunJobRequest::default()
    };
    let dry = tether.run_job(&request).await.unwrap();
    let plan = fixture.path("plan.json");
    fs::write(&plan, serde_json::to_string(&dry).unwrap()).unwrap();
    let changes = fixture.changes().len();
    let ran = run(&fixture, &["why", plan.to_str().unwrap()], &[]).await;
    assert_eq!(ran.code, 0, "{} {}", ran.json, ran.stderr);
    let told = [&ran.json["call"], &ran.json["vehicle"]];
    assert_eq!(json!(told), json!(["run_job", VEHICLE]));
    // What was spent and promised before is no part of the plan.
    let before = |line: &Value| {
        let what = line["what"].as_str().unwrap();
        what.starts_with("spent so far") || what.starts_with("committed: ")
    };
    let sum = ran.json["sum"].as_array().unwrap();
    let planned: f64 =
        sum.iter().filter(|line| !before(line)).map(|line| line["usd"].as_f64().unwrap()).sum();
    let dry_sum = serde_json::to_value(dry.worst_case_usd).unwrap().as_f64().unwrap();
    // Each line that is shown is rounded to a micro-dollar, and the watchdog's deadline has come nearer by
    // the seconds since, at $0.69 an hour.
    let nearer = dry_sum - planned;
    assert!((-5e-6..0.012).contains(&nearer), "{planned} {dry_sum}");
    assert_eq!(fixture.changes().len(), changes);
    fs::write(&plan, "{}").unwrap();
    let ran = run(&fixture, &["why", plan.to_str().unwrap()], &[]).await;
    assert_eq!(
        (ran.code, &ran.json["failure"]["kind"]),
        (2, &json!("bad_input")),
        "{}",
        ran.stderr
    );
}
