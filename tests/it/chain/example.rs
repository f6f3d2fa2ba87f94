//! The campaigns that are shipped: one is run as it is, the other is read.

use super::{link, never_terminated, record};
use crate::flows::fixture::Fixture;
use crate::flows::supervised::Run;
use crate::swim::of_repository;
use crate::swim::quickstart::with_example;
use podtether::config::{self, Environment};
use podtether::digest::sha256_hex;
use podtether::domain::{LinkEnd, PinnedFile};
use serde_json::json;
use std::fs;
use std::path::Path;

/// The quickstart's campaign with its setup from PyPI, on the fixture's vehicle.
#[tokio::test(flavor = "multi_thread")]
async fn the_quickstarts_campaign_sets_up_trains_twice_and_ends_off_the_bill() {
    let fixture: Fixture = with_example();
    let text = fs::read_to_string(of_repository("examples/quickstart/campaign.yaml")).unwrap();
    let text = text.replace("vehicle: quickstart", "vehicle: rover");
    let text = text.replace("campaign: cartpole", "campaign: trial");
    let path = fixture.path("campaign.yaml");
    fs::write(&path, text).unwrap();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let path = path.to_str().unwrap();
    let run = Run::start(&fixture, &["--interval", "1", "--chain", path]);
    let outcome = run.end_within(std::time::Duration::from_secs(900)).await;
    let no_network = ["Could not find a version", "Connection", "Temporary failure"];
    if outcome.code != 0 && std::env::var_os("CI").is_none() {
        let logs = fs::read_dir(fixture.path("logs/jobs")).into_iter().flatten().flatten();
        let logs: String =
            logs.filter_map(|job| fs::read_to_string(job.path().join("out.log")).ok()).collect();
        if no_network.iter().any(|word| logs.contains(word)) {
            println!("skipped: PyPI is out of reach: {logs}");
            return;
        }
    }
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    let found = record(&fixture, &outcome);
    for name in ["narrow", "wide"] {
        let one = link(&found, name);
        assert_eq!(json!([one["outcome"], one["reward_lines"]]), json!(["succeeded", 12]));
        // Twelve checkpoints and the result.
        assert_eq!(one["artifacts"].as_array().unwrap().len(), 13, "{one:#}");
    }
    assert_ne!(link(&found, "narrow")["run_dir"], link(&found, "wide")["run_dir"]);
    assert_eq!(fixture.status().await, "EXITED");
    never_terminated(&fixture);
}

/// What it pins is what is shipped, and each envelope holds its link's worst case at the example's own
/// limit on the price.
#[test]
fn the_example_of_learning_to_swim_is_read_and_pins_what_is_shipped() {
    let folder = of_repository("examples/learning-to-swim");
    let env = Environment::isolated([("HOME", "/home/ann")]);
    let config = config::load(&folder.join("podtether.yaml"), &env).unwrap();
    let campaign = config::load_campaign(&folder.join("campaign.yaml"), &config, &env).unwrap();
    assert_eq!(campaign.vehicle.0, "bluerov2");
    let ends: Vec<LinkEnd> = campaign.links.iter().map(|link| link.end).collect();
    assert_eq!(ends.iter().filter(|end| **end == LinkEnd::Pause { stops: true }).count(), 1);
    assert_eq!(ends.last(), Some(&LinkEnd::Stop));
    let pins: Vec<_> = campaign.links.iter().flat_map(|link| &link.pins).collect();
    assert_eq!(pins.len(), 2);
    for pin in pins {
        let PinnedFile::Here(path) = &pin.file else { panic!("{pin:?}") };
        assert_eq!(sha256_hex(&fs::read(path as &Path).unwrap()), pin.sha256);
    }
}
