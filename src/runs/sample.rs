//! A record and a launch of one job, for unit tests.

use super::record::RunRecord;
use crate::domain::{PodId, Usd};
use crate::ledger::{Action, Entry, Event, Launch, Launches};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn provenance() -> BTreeMap<String, Value> {
    let training = json!({
        "name": "curee", "level": "DR_2", "values": {"radius": "0.05"}, "seed": 1, "iterations": 400,
    });
    BTreeMap::from([
        ("training".to_owned(), training),
        ("gpu".to_owned(), json!("1 x NVIDIA GeForce RTX 4090")),
        ("git".to_owned(), json!({"commit": "c0ffee", "dirty": false, "diff_sha256": null})),
        ("lockfiles".to_owned(), json!({"uv.lock": "aa"})),
    ])
}

fn launched_at() -> DateTime<Utc> {
    DateTime::from_timestamp(1_783_085_125, 0).unwrap()
}

/// A training that was launched and of which nothing more is known.
pub fn record(job: &str) -> RunRecord {
    RunRecord {
        pod_id: "pod1".to_owned(),
        name: "train-curee-dr-2-s1".to_owned(),
        command: "./train.sh --seed 1".to_owned(),
        workdir: "/workspace/IsaacLab".to_owned(),
        ceiling_sec: Some(3600),
        micros_per_hour: Some(690_000),
        provenance: provenance(),
        ..RunRecord::launched("runpod", "hippocampus", job, launched_at())
    }
}

/// The same as the journal has it.
pub fn launch(job: &str) -> Launch {
    let action = Action::LaunchJob {
        pod: PodId("pod1".into()),
        job: job.to_owned(),
        ceiling_sec: 3600,
        tail_sec: 0,
        until: launched_at(),
        provenance: provenance(),
    };
    let event = Event::Intend {
        id: 1,
        vehicle: "hippocampus".to_owned(),
        action,
        micros_per_hour: Some(Usd::from_micros(690_000).micros()),
    };
    let mut launches = Launches::default();
    launches.add(&Entry { at: launched_at(), up: None, event });
    launches.all()[0].clone()
}
