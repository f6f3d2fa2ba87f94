//! Campaigns on the local cloud: whole ones, refused ones, broken ones, and ones that are gone on with.

mod broken;
mod example;
mod file;
mod gates;
mod gone_on;
mod newer;
mod schema;
mod whole;

use crate::flows::fixture::Fixture;
use crate::flows::supervised::{Outcome, Run};
use podtether::ops::Tether;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// A fixture whose budget has room for the worst cases of several links.
pub fn fixture() -> Fixture {
    with_room(Fixture::new())
}

/// The same for a fixture that is made otherwise.
pub fn with_room(fixture: Fixture) -> Fixture {
    let config = fs::read_to_string(fixture.config_file()).unwrap();
    fs::write(fixture.config_file(), config.replace("budget_usd: 5", "budget_usd: 50")).unwrap();
    fixture
}

/// What a block of a log ends with: without it nobody knows whether the block is whole.
pub const RULE: &str = "printf %.0s- $(seq 80); echo";

/// Writes the campaign's file.
pub fn campaign(fixture: &Fixture, links: &str) -> PathBuf {
    let path = fixture.path("campaign.yaml");
    fs::write(&path, format!("campaign: trial\nvehicle: rover\nlinks:\n{links}")).unwrap();
    path
}

/// Begins the campaign, without the pauses that a person has time for.
pub fn start(fixture: &Fixture, more: &[&str]) -> Run {
    let path = fixture.path("campaign.yaml");
    let base = ["--interval", "1", "--pull-every-sec", "1", "--rest-sec", "0"];
    let file = ["--chain", path.to_str().unwrap()];
    Run::start(fixture, &[&base[..], &file, more].concat())
}

/// A fixture whose campaign of these links, beside the last stop, has launched its first job.
pub async fn launched(links: &str) -> (Fixture, Tether, Run) {
    let fixture = fixture();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    campaign(&fixture, &format!("{links}  - {{name: off, stop: true}}\n"));
    let mut run = start(&fixture, &[]);
    run.says("launched:").await;
    (fixture, tether, run)
}

pub async fn run(fixture: &Fixture, more: &[&str]) -> Outcome {
    start(fixture, more).end().await
}

/// What is recorded of a link.
pub fn link<'a>(record: &'a Value, name: &str) -> &'a Value {
    let links = record["links"].as_array().unwrap();
    links.iter().find(|link| link["name"] == name).unwrap_or(&Value::Null)
}

/// The record on disk, which must be the one that was printed.
pub fn record(fixture: &Fixture, outcome: &Outcome) -> Value {
    let found = record_now(fixture);
    assert_eq!(found, outcome.summary, "{outcome:#?}");
    found
}

/// The record on disk.
pub fn record_now(fixture: &Fixture) -> Value {
    let text = fs::read(fixture.path("logs/campaign-trial.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// How many jobs were ever begun.
pub fn jobs(fixture: &Fixture) -> usize {
    fs::read_dir(fixture.volume().join("jobs")).map_or(0, Iterator::count)
}

/// How often the links' commands wrote a line.
pub fn lines(fixture: &Fixture, file: &str) -> usize {
    fs::read_to_string(fixture.volume().join(file)).unwrap_or_default().lines().count()
}

/// Nothing ever deletes a pod.
pub fn never_terminated(fixture: &Fixture) {
    let deletes = fixture.requests().into_iter().filter(|request| request.method == "DELETE");
    assert_eq!(deletes.count(), 0);
}
