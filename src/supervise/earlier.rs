//! Reads the summary that an earlier process left, and says what keeps it from being taken up.

use super::options::ResumeOptions;
use super::summary::{Summary, VERSION};
use crate::domain::Vehicle;
use crate::error::{Failure, FailureKind, StillBilling};
use crate::ops::Tether;
use std::path::Path;

/// The summary, when it is one of a run that is not over and that this config can go on with.
///
/// # Errors
/// What it is instead, in words. Nothing was changed.
pub(super) fn read(tether: &Tether, asked: &ResumeOptions) -> Result<(Summary, Vehicle), Failure> {
    // The run that is meant may have left its pod running, whatever is wrong with what was named.
    let found = known(asked).map_err(|failure| failure.billing(StillBilling::Unknown))?;
    if let Some(why) = nothing_to_take_up(&found) {
        let may_run =
            if found.pod_may_still_be_running { StillBilling::Unknown } else { StillBilling::No };
        return Err(Failure::new(
            FailureKind::BadInput,
            format!("{}: {why}", asked.summary.display()),
            "nothing was changed; pod_status tells how the pod is, `podtether audit` what bills",
        )
        .billing(may_run));
    }
    let vehicle = its_vehicle(tether, asked, &found);
    vehicle.map_err(|failure| failure.billing(StillBilling::Unknown)).map(|it| (found, it))
}

fn known(asked: &ResumeOptions) -> Result<Summary, Failure> {
    let path = asked.summary.display();
    read_summary(&asked.summary)?.ok_or_else(|| {
        Failure::bad_input(format!("the summary {path} could not be read: there is no such file"))
    })
}

fn its_vehicle(
    tether: &Tether,
    asked: &ResumeOptions,
    summary: &Summary,
) -> Result<Vehicle, Failure> {
    let path = asked.summary.display();
    let (theirs, ours) = (summary.cloud, tether.cloud_name());
    if theirs != ours {
        return Err(Failure::bad_input(format!(
            "{path} is of a run on another cloud ({theirs:?}); this config is for {ours:?}. Give --config"
        )));
    }
    let name = &summary.spec.vehicle;
    if let Some(asked) = asked.vehicle.as_ref().filter(|asked| *asked != name) {
        return Err(Failure::bad_input(format!(
            "{path} is of a run of vehicle {name}, not of {asked}"
        )));
    }
    tether.vehicle(Some(name)).map_err(|failure| {
        Failure::bad_input(format!(
            "{path} is of a run of vehicle {name}, which this config does not declare: {}",
            failure.message
        ))
    })
}

/// The summary of a run; `None` when there is no such file.
///
/// # Errors
/// When it cannot be read, is none, or was written by a newer podtether.
pub(crate) fn read_summary(path: &Path) -> Result<Option<Summary>, Failure> {
    match std::fs::read(path) {
        Ok(text) => parse(&text, path).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::bad_input(format!(
            "the summary {} could not be read: {error}",
            path.display()
        ))),
    }
}

fn parse(text: &[u8], path: &Path) -> Result<Summary, Failure> {
    let path = path.display();
    let is_none = |why: String| {
        Failure::bad_input(format!(
            "{path} is no summary of podtether supervise ({why}); a run keeps its own as supervise-<job_id>.json in the vehicle's log folder"
        ))
    };
    let value: serde_json::Value =
        serde_json::from_slice(text).map_err(|error| is_none(error.to_string()))?;
    if let Some(version) = value["version"].as_u64().filter(|it| *it > u64::from(VERSION)) {
        return Err(Failure::bad_input(format!(
            "{path} was written by a newer podtether (version {version} of a summary, this one knows {VERSION}); update podtether"
        )));
    }
    serde_json::from_value(value).map_err(|error| is_none(error.to_string()))
}

/// Why there is nothing to go on with, if so.
fn nothing_to_take_up(summary: &Summary) -> Option<String> {
    if summary.refused || summary.job_id.is_none() || summary.pod_id.is_none() {
        let why = summary.reason.as_deref().unwrap_or("it has no job");
        return Some(format!("that run never began: {why}"));
    }
    // 6 is a run that was left, or that could not stop its pod: just what is to be taken up.
    match (summary.ended_at, summary.process_exit_code) {
        (Some(at), Some(code)) if code != 6 => Some(format!(
            "that run is over since {} with exit code {code}{}",
            at.format("%Y-%m-%d %H:%M:%S UTC"),
            if summary.pod_may_still_be_running { ", and left its pod running" } else { "" }
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn released() -> Vec<(String, Vec<u8>)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/state");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        files
            .filter(|path| name(path).starts_with("supervise-v"))
            .map(|path| (name(&path), std::fs::read(&path).unwrap()))
            .collect()
    }

    /// A run that was begun by an older podtether can be taken up by this one.
    #[test]
    fn every_released_shape_of_a_summary_is_read() {
        let released = released();
        assert!(!released.is_empty());
        for (name, text) in released {
            let summary = parse(&text, Path::new(&name)).unwrap();
            assert_eq!(nothing_to_take_up(&summary), None, "{name}");
            assert!(summary.metrics.latest().is_some(), "{name}");
            // What is written again has every key that was read, and the same truth under both names.
            let old: Value = serde_json::from_slice(&text).unwrap();
            let new = serde_json::to_value(summary.taken_up("x.json".into())).unwrap();
            assert_eq!(new["metrics"], old["latest_metrics"], "{name}");
            for key in old.as_object().unwrap().keys() {
                assert!(new.get(key).is_some(), "{name}: {key}");
            }
        }
    }

    #[test]
    fn what_is_no_summary_or_of_a_run_that_is_over_is_said_to_be_so() {
        let whole: Value = serde_json::from_slice(&released()[0].1).unwrap();
        let with = |changes: Value| {
            let mut value = whole.clone();
            for (key, change) in changes.as_object().unwrap() {
                value[key] = change.clone();
            }
            value.to_string()
        };
        let path = Path::new("it.json");
        for text in ["", "{", "[]", "{}", r#"{"vehicle": "rover", "armed_at": 1}"#] {
            let message = parse(text.as_bytes(), path).unwrap_err().message;
            assert!(message.starts_with("it.json is no summary"), "{message}");
        }
        let newer = parse(with(json!({"version": 2})).as_bytes(), path).unwrap_err();
        assert!(newer.message.contains("newer podtether"), "{newer}");
        let why = |changes| nothing_to_take_up(&parse(with(changes).as_bytes(), path).unwrap());
        let ended = "2026-07-03T13:00:00Z";
        let over = why(json!({"ended_at": ended, "process_exit_code": 0})).unwrap();
        assert_eq!(
            over,
            "that run is over since 2026-07-03 13:00:00 UTC with exit code 0, and left its pod running"
        );
        assert_eq!(why(json!({"ended_at": ended, "process_exit_code": 6})), None);
        let refused = why(json!({"job_id": null, "refused": true, "reason": "no"})).unwrap();
        assert_eq!(refused, "that run never began: no");
    }
}
