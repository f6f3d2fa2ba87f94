//! The commands that see what bills and take it off the bill, as processes of their own.

use super::fixture::{Fixture, POD, VEHICLE, VOLUME};
use crate::local_cloud::program;
use podtether::domain::Usd;
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};

/// What a command came to: its exit code, the object that it printed, what it told people.
pub struct Ran {
    pub code: i32,
    pub json: Value,
    pub stderr: String,
}

/// `podtether … --json` with an environment of exactly HOME, PATH and what is given. There is no
/// session bus in it, so no key store either.
pub async fn run(fixture: &Fixture, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = Command::new(program());
    command
        .args(arguments)
        .args(["--json", "--config"])
        .arg(fixture.config_file())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", fixture.path(""))
        .envs(variables.iter().copied())
        .stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.lines().count() <= 1, "{stdout}");
    Ran {
        code: output.status.code().unwrap(),
        json: serde_json::from_str(&stdout).unwrap_or(Value::Null),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

async fn act(fixture: &Fixture, pod: &str, action: &str) {
    let path = format!("/v2/pods/{pod}/action");
    fixture.api("POST", &path, Some(json!({ "action": action }))).await;
}

fn break_config(fixture: &Fixture, text: &str) {
    fs::write(fixture.config_file(), text).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_of_everything_reads_every_vehicles_pod_back_and_leaves_strangers_alone() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let ours = fixture.running(&tether).await.pod.unwrap().id.0;
    let stranger = fixture.other_pod("somebody-elses").await;
    let ran = run(&fixture, &["stop", "--all"], &[]).await;
    assert_eq!(ran.code, 0, "{} {}", ran.json, ran.stderr);
    let pod = &ran.json["pods"][0];
    let told = [&pod["vehicle"], &pod["pod"], &pod["off"], &pod["status"]];
    assert_eq!(json!(told), json!([VEHICLE, ours, true, "EXITED"]));
    assert!(pod["read_at"].is_string(), "{pod}");
    assert_eq!(fixture.status().await, "EXITED");
    let left = &ran.json["left_alone"];
    assert_eq!(json!([left[0]["pod"], left[0]["bills"], left[1]]), json!([stranger, true, null]));
    assert!(fixture.pods_named("somebody-elses").await[0]["status"] != "EXITED");
    // What is off is said to be off, and by the vehicle's name just as well.
    let ran = run(&fixture, &["stop", "--vehicle", VEHICLE], &[]).await;
    assert_eq!((ran.code, &ran.json["pods"][0]["asked"]), (0, &json!(0)), "{}", ran.stderr);
    let ran = run(&fixture, &["stop", "--vehicle", "rovr"], &[]).await;
    assert!(ran.code == 2 && ran.stderr.contains("rover"), "{} {}", ran.code, ran.stderr);
    // A stop names what it stops.
    let ran = run(&fixture, &["stop"], &[]).await;
    assert_eq!(ran.code, 2, "{}", ran.stderr);
}

/// The config is broken or gone, there is no key store, and the pod is stopped all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_config_and_a_missing_key_store_do_not_stand_in_the_way_of_a_stop() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let cloud = fixture.running_cloud();
    let key = cloud.key.reveal().to_owned();
    let reach = [("RUNPOD_API_KEY", key.as_str()), ("PODTETHER_API_URL", cloud.url.as_str())];
    let ours = fixture.running(&tether).await.pod.unwrap().id.0;
    let namesake = fixture.other_pod(POD).await;
    for broken in [Some("vehicles: ["), Some("limits:\n  max_usd_per_hour: cheap\n"), None] {
        match broken {
            Some(text) => break_config(&fixture, text),
            None => fs::remove_file(fixture.config_file()).unwrap(),
        }
        let ran = run(&fixture, &["stop", "--all"], &reach).await;
        let told = [&ran.json["pods"][0]["pod"], &ran.json["pods"][0]["off"], &ran.json["pods"][1]];
        assert_eq!(json!(told), json!([ours, true, null]), "{}", ran.stderr);
        // B08: a name is no proof, so the namesake is not touched; and it bills, so this is no 0.
        assert_eq!(json!([ran.json["left_alone"][0]["pod"], ran.code]), json!([namesake, 6]));
        let pods = fixture.pods_named(POD).await;
        let is_exited =
            |id: &str| pods.iter().any(|pod| pod["id"] == id && pod["status"] == "EXITED");
        assert!(is_exited(&ours) && !is_exited(&namesake), "{pods:?}");
        assert!(!ran.stderr.contains(&key), "{}", ran.stderr);
        act(&fixture, &ours, "start").await;
    }
    act(&fixture, &namesake, "stop").await;
    let ran = run(&fixture, &["stop", "--all"], &reach).await;
    assert_eq!(ran.code, 0, "{} {}", ran.json, ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_cannot_be_asked_or_read_back_is_never_a_success() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    fixture.set_faults(&["stop-without-effect"]).await;
    let ran = run(&fixture, &["stop", "--all", "--stop-budget-sec", "1"], &[]).await;
    assert_eq!((ran.code, &ran.json["may_still_bill"]), (6, &json!(true)), "{}", ran.stderr);
    assert_eq!(
        json!([ran.json["pods"][0]["off"], ran.json["pods"][0]["status"]]),
        json!([false, "RUNNING"])
    );
    fixture.set_faults(&[]).await;
    // No config and no key anywhere: nothing can be asked, and that is said.
    // The address leads nowhere, so that no key of the machine's owner could reach RunPod.
    break_config(&fixture, "vehicles: [");
    let nowhere = [("PODTETHER_API_URL", "http://127.0.0.1:9")];
    let ran = run(&fixture, &["stop", "--all"], &nowhere).await;
    let told = [&ran.json["ok"], &ran.json["failure"]["still_billing"]];
    assert_eq!((ran.code, json!(told)), (1, json!([false, "unknown"])), "{}", ran.stderr);
    // Real and local are never mixed: a rehearsal's typo does not stop what runs for real.
    break_config(&fixture, "cloud: local\nvehicles: [");
    let ran =
        run(&fixture, &["stop", "--all"], &[("RUNPOD_API_KEY", "rpa_TESTONLY0123456789")]).await;
    assert!(ran.code == 1 && ran.stderr.contains("cloud: local"), "{} {}", ran.code, ran.stderr);
    assert_eq!(fixture.status().await, "RUNNING");
}

/// B06, B08: what bills and is no vehicle's is found by name, pods and volumes alike.
#[tokio::test(flavor = "multi_thread")]
async fn an_audit_tells_by_its_exit_code_whether_something_bills_that_nobody_owns() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let ours = fixture.running(&tether).await.pod.unwrap().id.0;
    let ran = run(&fixture, &["audit"], &[]).await;
    assert_eq!(ran.code, 0, "{} {}", ran.json, ran.stderr);
    let (pod, volume) = (&ran.json["pods"][0], &ran.json["volumes"][0]);
    let told = [&pod["id"], &pod["owner"]["vehicle"], &pod["status"], &pod["usd_per_hour"]];
    assert_eq!(json!(told), json!([ours, VEHICLE, "RUNNING", 0.69]));
    assert!(pod["since"].is_string(), "{pod}");
    let told = [&volume["name"], &volume["owner"]["vehicle"], &volume["usd_per_month"]];
    assert_eq!(json!(told), json!([VOLUME, VEHICLE, 4.2]));

    let body = json!({"name": "forgotten", "size": 100, "dataCenter": "EU-RO-1"});
    let forgotten = fixture.api("POST", "/v2/network-volumes", Some(body)).await["id"].clone();
    let stranger = fixture.other_pod("somebody-elses").await;
    let ran = run(&fixture, &["audit"], &[]).await;
    assert_eq!(
        (ran.code, &ran.json["unowned"]),
        (3, &json!([stranger, forgotten])),
        "{}",
        ran.stderr
    );
    assert_eq!(
        json!([ran.json["usd_per_hour_now"], ran.json["usd_per_month_at_rest"]]),
        json!([1.38, 11.2])
    );

    // Nothing known is no finding.
    break_config(&fixture, "vehicles: [");
    let ran = run(&fixture, &["audit"], &[]).await;
    let told = [&ran.json["ok"], &ran.json["failure"]["still_billing"]];
    assert_eq!((ran.code, json!(told)), (1, json!([false, "unknown"])), "{}", ran.stderr);
}

/// The balance comes from another interface than everything else.
#[tokio::test(flavor = "multi_thread")]
async fn a_spend_report_tells_the_balance_and_how_long_it_lasts() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let report = tether.spend_report().await.unwrap();
    assert_eq!(
        (report.balance_usd.map(Usd::micros), report.runway_hours),
        (Some(200_000_000), None)
    );
    fixture.running(&tether).await;
    let report = tether.spend_report().await.unwrap();
    let balance = report.balance_usd.unwrap();
    assert!(balance < Usd::from_micros(200_000_000), "{report:?}");
    // $200 less a few seconds, at $0.69 an hour.
    let runway = report.runway_hours.unwrap();
    assert!((289.0..=289.9).contains(&runway), "{report:?}");
    assert_eq!(report.balance_unknown, None);
}
