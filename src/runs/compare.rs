//! What differs between runs.

use super::run::Run;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One thing that is not the same in all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What, such as `training.values.radius` or `git.commit`.
    pub what: String,
    /// Of each run in the order in which they were named; null where it is not known.
    pub values: Vec<Option<String>>,
}

/// What differs, and how much does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// The runs, in the order in which they were named.
    pub runs: Vec<String>,
    /// Where they come from: recipe, level, seed, code, image, machine.
    pub origin: Vec<Difference>,
    /// What became of them: state, numbers, dollars.
    pub outcome: Vec<Difference>,
    /// The SHA-256 of files of one name. Checkpoints of two runs are seldom the same.
    pub files: Vec<Difference>,
    /// How much is known and the same in all of them.
    pub equal: usize,
}

/// Compares runs.
#[must_use]
pub fn compare(runs: &[&Run]) -> Comparison {
    let origins: Vec<_> = runs.iter().map(|run| origin(run)).collect();
    let outcomes: Vec<_> = runs.iter().map(|run| outcome(run)).collect();
    let hashes: Vec<_> = runs.iter().map(|run| files(run)).collect();
    let ((origin, same), (outcome, also)) = (differences(&origins), differences(&outcomes));
    let (files, and_files) = differences(&hashes);
    Comparison {
        runs: runs.iter().map(|run| run.job_id.clone()).collect(),
        origin,
        outcome,
        files,
        equal: same + also + and_files,
    }
}

type Facts = BTreeMap<String, String>;

fn differences(all: &[Facts]) -> (Vec<Difference>, usize) {
    let keys: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    let mut differ = Vec::new();
    let mut equal = 0;
    for key in keys {
        let values: Vec<Option<String>> = all.iter().map(|facts| facts.get(key).cloned()).collect();
        if values.windows(2).all(|pair| pair[0] == pair[1]) {
            equal += 1;
        } else {
            differ.push(Difference { what: key.clone(), values });
        }
    }
    (differ, equal)
}

/// What says when a run was, and not what it is.
const OF_ITS_TIME: [&str; 1] = ["training.runs_before"];

fn origin(run: &Run) -> Facts {
    let mut facts = Facts::new();
    for (key, value) in run.provenance.iter() {
        flatten(key, value, &mut facts);
    }
    facts.retain(|key, _| !OF_ITS_TIME.iter().any(|other| key.starts_with(other)));
    facts.insert("vehicle".to_owned(), run.vehicle.clone());
    if let Some(record) = &run.record {
        facts.insert("command".to_owned(), record.command.clone());
        facts.insert("workdir".to_owned(), record.workdir.clone());
        facts.insert("pod".to_owned(), record.pod_id.clone());
        facts.extend(record.ceiling_sec.map(|sec| ("ceiling_sec".to_owned(), sec.to_string())));
    }
    facts
}

fn flatten(path: &str, value: &Value, facts: &mut Facts) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (key, value) in fields {
                flatten(&format!("{path}.{key}"), value, facts);
            }
        }
        // A file that was edited is known by its path.
        Value::Array(items) if items.iter().all(|item| item["file"].is_string()) => {
            for item in items {
                let file = item["file"].as_str().unwrap_or_default();
                for (key, value) in item.as_object().into_iter().flatten() {
                    if key != "file" {
                        flatten(&format!("{path}.{file}.{key}"), value, facts);
                    }
                }
            }
        }
        Value::String(text) => {
            facts.insert(path.to_owned(), text.clone());
        }
        other => {
            facts.insert(path.to_owned(), other.to_string());
        }
    }
}

fn outcome(run: &Run) -> Facts {
    let mut facts = Facts::new();
    let mut add = |key: &str, value: Option<String>| {
        facts.extend(value.map(|value| (key.to_owned(), value)));
    };
    add("state", Some(run.state.clone()));
    add("last iteration", run.iteration.map(|n| n.to_string()));
    add("reward", run.reward.map(|reward| format!("{reward:.2}")));
    add("reward reached", run.reward_reached.map(|reached| reached.to_string()));
    add("dollars", run.usd.map(|usd| format!("${}", usd.to_decimal())));
    add("dollars per iteration", run.usd_per_iteration.map(|usd| format!("${}", usd.to_decimal())));
    let time = run.ended_at.map(|end| end - run.launched_at);
    add("seconds", time.map(|time| time.num_seconds().to_string()));
    let Some(record) = &run.record else { return facts };
    add("exit code", record.seen.as_ref().and_then(|it| it.exit_code).map(|code| code.to_string()));
    let Some(results) = &record.results else { return facts };
    add("reward lines", Some(results.reward_lines.to_string()));
    let missing = (!results.missing.is_empty()).then(|| results.missing.join(", "));
    add("missing", missing);
    facts
}

fn files(run: &Run) -> Facts {
    let results = run.record.iter().filter_map(|record| record.results.as_ref());
    let files = results.flat_map(|results| &results.files).map(|file| {
        let hash = file.sha256.clone().unwrap_or_else(|| format!("{} bytes, no hash", file.bytes));
        (file.name.clone(), hash)
    });
    files.collect()
}

#[cfg(test)]
mod tests {
    use super::super::run::{Around, merge};
    use super::super::sample;
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_differs_is_told_and_what_is_equal_is_counted() {
        let one = sample::record("20260703-132525_train_00ab");
        let mut other = sample::record("20260703-142525_train_00ac");
        other.provenance.insert(
            "training".into(),
            json!({
                "name": "curee", "level": "DR_0", "values": {"radius": "0"}, "seed": 1,
                "iterations": 400, "runs_before": {"count": 7},
                "edits": [{"file": "/w/env.py", "sha256": "bb"}],
            }),
        );
        other.provenance.insert("git".into(), json!({"commit": "c0ffee", "dirty": true}));
        other.metrics = Some(super::super::Numbers {
            iteration: 399,
            total_iterations: Some(400),
            mean_reward: Some(97.5),
        });
        let runs =
            [one, other].map(|record| merge(Some(record), None, &Around::default()).unwrap());
        let found = compare(&[&runs[0], &runs[1]]);
        let told: Vec<String> = found
            .origin
            .iter()
            .chain(&found.outcome)
            .map(|it| format!("{}: {:?}", it.what, it.values))
            .collect();
        assert_eq!(
            told,
            [
                r#"git.dirty: [Some("false"), Some("true")]"#,
                r#"training.edits./w/env.py.sha256: [None, Some("bb")]"#,
                r#"training.level: [Some("DR_2"), Some("DR_0")]"#,
                r#"training.values.radius: [Some("0.05"), Some("0")]"#,
                r#"last iteration: [None, Some("399")]"#,
                r#"reward: [None, Some("97.50")]"#,
            ]
        );
        assert_eq!(found.equal, 12);
    }
}
