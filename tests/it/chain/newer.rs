//! What a newer podtether has left of a campaign: its meaning is not guessed at, nothing is launched and
//! nothing stopped.

use super::{jobs, launched, link, record_now, run};
use crate::flows::signals::WAITS;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn set_version(path: &Path, version: u32) {
    let mut value: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert!(value["version"].is_u64(), "{value:#}");
    value["version"] = json!(version);
    fs::write(path, value.to_string()).unwrap();
}

/// The record of the campaign and the summary of the link in flight, each from a newer version: both
/// are named, with what to do. With the version that is known the campaign goes on, so that nothing but
/// the version had been in the way.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_or_a_summary_of_a_newer_version_is_refused_by_name_and_changes_nothing() {
    let one = format!("  - {{name: one, command: '{WAITS}', max_runtime_sec: 60, max_usd: 1.5}}\n");
    let (fixture, _tether, first) = launched(&one).await;
    first.signal(Signal::TERM);
    assert_eq!(first.end().await.code, 6);
    let record = fixture.path("logs/campaign-trial.json");
    let summary =
        PathBuf::from(link(&record_now(&fixture), "one")["summary_path"].as_str().unwrap());
    let changes = fixture.changes().len();
    for path in [&record, &summary] {
        set_version(path, 9);
        let left = fs::read(path).unwrap();
        let outcome = run(&fixture, &[]).await;
        assert_eq!(outcome.code, 2, "{outcome:#?}");
        let told = format!("{}{}", outcome.stderr, outcome.summary);
        for word in ["newer podtether", path.to_str().unwrap(), "update podtether"] {
            assert!(told.contains(word), "{word}: {told}");
        }
        assert_eq!(fs::read(path).unwrap(), left, "it is left as it was");
        assert_eq!((fixture.changes().len(), jobs(&fixture)), (changes, 1));
        assert_eq!(fixture.status().await, "RUNNING");
        set_version(path, 1);
    }
    fs::write(fixture.volume().join("go"), "").unwrap();
    let outcome = run(&fixture, &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert_eq!((jobs(&fixture), fixture.status().await.as_str()), (1, "EXITED"));
}
