//! The list of faults: documented, used by tests, and read from a scenario.

use super::rig::{Rig, program};
use podtether::cloud::local::{FAULTS, FaultValue};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(at: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// A fault that no test plays is a fault that nobody knows to work.
#[test]
fn every_fault_is_used_by_a_test() {
    let texts: String = sources(&root().join("tests"))
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let is_used =
        |name: &str| ["\"", "=", "@"].iter().any(|end| texts.contains(&format!("\"{name}{end}")));
    let unused: Vec<&str> =
        FAULTS.iter().map(|kind| kind.name).filter(|name| !is_used(name)).collect();
    assert!(unused.is_empty(), "no test uses {unused:?}");
    assert!(!is_used("no-such-fault-at-all".trim_end_matches("-at-all")));
}

#[test]
fn the_list_in_the_documentation_is_the_list_in_the_program() {
    let rows: Vec<String> = FAULTS
        .iter()
        .map(|kind| {
            let value = match kind.value {
                FaultValue::Times(None) => "times; every time".to_owned(),
                FaultValue::Times(Some(times)) => format!("times; {times}"),
                FaultValue::Seconds(seconds) => format!("seconds; {seconds}"),
            };
            let requests = if kind.meets_requests { "yes" } else { "" };
            format!("| `{}` | {value} | {requests} | {} |", kind.name, kind.meaning)
        })
        .collect();
    let page = fs::read_to_string(root().join("docs/faults.md")).unwrap();
    let documented: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(documented, rows, "docs/faults.md must have these rows:\n{}", rows.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scenario_is_switched_on_from_the_start_and_a_wrong_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a bad day");
    let wrong = "retired\n\nlist-leg=3 # a slip\n";
    for (text, words) in
        [(Some(wrong), "line 3: there is no fault `list-leg`"), (None, "a bad day")]
    {
        match text {
            Some(text) => fs::write(&file, text).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        let refused = Command::new(program())
            .args(["local-cloud", "--state"])
            .arg(folder.path().join("state"))
            .arg("--faults")
            .arg(&file)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!((refused.status.code(), said.contains(words)), (Some(2), true), "{said}");
        assert!(refused.stdout.is_empty() && !folder.path().join("state").exists());
    }
    let text = "# edge first\nedge-html=1@on:list\n\nretired@on:list@after:3600 # later\n";
    fs::write(&file, text).unwrap();
    let rig = Rig::start_with(&["--fault", "price-zero", "--faults", file.to_str().unwrap()]).await;
    let (_, on) = rig.api("GET", "/_local/faults", None).await;
    assert_eq!(
        on["faults"],
        json!(["price-zero", "edge-html=1@on:list", "retired@on:list@after:3600"])
    );
    let volumes = "/v2/billing/network-volumes";
    assert_eq!(rig.api("GET", volumes, None).await.0, 200, "it meets lists only");
    for expected in [502, 200] {
        assert_eq!(rig.api("GET", "/v2/pods", None).await.0, expected);
    }
}

/// I04: billing that is late, and billing with holes, whose totals do not match its records.
#[tokio::test(flavor = "multi_thread")]
async fn billing_can_be_late_and_have_holes() {
    let rig = Rig::start_with(&["--billing-lag-sec", "0"]).await;
    let (first, _) = rig.pod(None).await;
    let (second, _) = rig.pod(None).await;
    let billed = || async {
        let (status, body) = rig.api("GET", "/v2/billing/pods?bucketSize=year", None).await;
        assert_eq!(status, 200, "{body}");
        let ids: Vec<String> = body["records"]
            .as_array()
            .unwrap()
            .iter()
            .map(|record| record["podId"].as_str().unwrap().to_owned())
            .collect();
        (ids, body["metadata"]["totals"]["totalAmount"].as_f64().unwrap())
    };
    let (ids, total) = billed().await;
    assert!(ids.contains(&first) && ids.contains(&second), "{ids:?}");
    rig.set_faults(&["billing-holes"]).await;
    let (left, total_with_holes) = billed().await;
    assert!(left.len() < ids.len() && total_with_holes >= total, "{left:?}");
    rig.set_faults(&["billing-lag=86400"]).await;
    assert_eq!(billed().await, (Vec::new(), 0.0));
}
