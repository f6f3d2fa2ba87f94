//! The record of one job: `runs/<job_id>.json` in the vehicle's log folder. Written at the launch with
//! what is known then, completed when results come home. A file outlives versions: keys are added with
//! a default, and the version grows when one changes its meaning.

use super::left::Results;
use crate::domain::{JobId, Usd};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of this shape.
pub const VERSION: u32 = 1;

/// What is kept of one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The version of this shape.
    pub version: u32,
    /// `runpod` or `local`: runs of the two never count for each other.
    pub cloud: String,
    /// The job.
    pub job_id: String,
    /// The vehicle.
    pub vehicle: String,
    /// The pod that it was launched on.
    pub pod_id: String,
    /// The job's name.
    pub name: String,
    /// Its command.
    pub command: String,
    /// The folder it started in.
    pub workdir: String,
    /// The longest it might run, in seconds; null when nobody here launched it and its folder does not say.
    #[serde(default)]
    pub ceiling_sec: Option<u32>,
    /// When it was launched.
    pub launched_at: DateTime<Utc>,
    /// What the pod billed for an hour, in micro-dollars; null when that was not known.
    #[serde(default)]
    pub micros_per_hour: Option<i64>,
    /// Where it comes from, as in its `meta.json`.
    #[serde(default)]
    pub provenance: BTreeMap<String, Value>,
    /// Its state as it was last seen; null before anybody looked.
    #[serde(default)]
    pub seen: Option<Seen>,
    /// When it ended: by its own exit code's file, or when its end was seen.
    #[serde(default)]
    pub ended_at: Option<DateTime<Utc>>,
    /// The last numbers in its log.
    #[serde(default)]
    pub metrics: Option<Numbers>,
    /// How many iterations its log tells of.
    #[serde(default)]
    pub iterations_done: Option<u64>,
    /// What it cost.
    #[serde(default)]
    pub cost: Option<Cost>,
    /// Of a training: what its run has left.
    #[serde(default)]
    pub results: Option<Results>,
    /// What of it is on this computer.
    #[serde(default)]
    pub home: Vec<Home>,
    /// The supervise that followed it, at its end.
    #[serde(default)]
    pub supervised: Option<Supervised>,
}

/// A state that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// In the words of job_status, or `not_started` when the launch failed before anything ran.
    pub state: String,
    /// The job's exit code.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// When.
    pub at: DateTime<Utc>,
}

/// The last numbers in a log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Numbers {
    /// The iteration as the log prints it; most count from 0.
    pub iteration: u64,
    /// How many there were to be.
    #[serde(default)]
    pub total_iterations: Option<u64>,
    /// Mean reward.
    #[serde(default)]
    pub mean_reward: Option<f64>,
}

/// What a job cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// In micro-dollars.
    pub micros: i64,
    /// For how long, in seconds.
    pub seconds: u64,
    /// What the figure covers and what it does not.
    pub covers: String,
}

impl Cost {
    /// The amount.
    #[must_use]
    pub const fn usd(&self) -> Usd {
        Usd::from_micros(self.micros)
    }
}

/// A folder that was pulled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    /// The folder on the pod.
    pub from: String,
    /// Where it is here.
    pub to: String,
    /// Whether every file was here with the pod's SHA-256.
    pub complete: bool,
    /// When it was pulled.
    pub at: DateTime<Utc>,
}

/// A supervise that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supervised {
    /// Its exit code.
    pub exit_code: u8,
    /// Its summary.
    #[serde(default)]
    pub summary: Option<String>,
    /// What was read back of the pod's stop.
    #[serde(default)]
    pub stop: Option<String>,
}

/// Why a file is no record that this version reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotARecord {
    /// A later version wrote it.
    #[error("was written by a newer podtether (version {0} of a record, this one knows {VERSION})")]
    Newer(u64),
    /// It is something else, or broken.
    #[error("is no record of a run: {0}")]
    Foreign(String),
}

impl RunRecord {
    /// The name of the record's file.
    #[must_use]
    pub fn file_name(job: &JobId) -> String {
        format!("{job}.json")
    }

    /// A job that was launched, and of which nothing more is known.
    #[must_use]
    pub fn launched(cloud: &str, vehicle: &str, job_id: &str, at: DateTime<Utc>) -> Self {
        Self {
            version: VERSION,
            cloud: cloud.to_owned(),
            job_id: job_id.to_owned(),
            vehicle: vehicle.to_owned(),
            pod_id: String::new(),
            name: String::new(),
            command: String::new(),
            workdir: String::new(),
            ceiling_sec: None,
            launched_at: at,
            micros_per_hour: None,
            provenance: BTreeMap::new(),
            seen: None,
            ended_at: None,
            metrics: None,
            iterations_done: None,
            cost: None,
            results: None,
            home: Vec::new(),
            supervised: None,
        }
    }

    /// Reads a record; `name` is its file's name.
    ///
    /// # Errors
    /// [`NotARecord`]. A record that lies under another job's name is foreign.
    pub fn read(name: &str, text: &[u8]) -> Result<Self, NotARecord> {
        let foreign = |why: &str| NotARecord::Foreign(why.to_owned());
        let id = name.strip_suffix(".json").and_then(JobId::parse);
        let id = id.ok_or_else(|| foreign("its name is no job's id"))?;
        let value: Value =
            serde_json::from_slice(text).map_err(|error| NotARecord::Foreign(error.to_string()))?;
        match value.get("version").and_then(Value::as_u64) {
            Some(version) if version > u64::from(VERSION) => {
                return Err(NotARecord::Newer(version));
            }
            Some(_) => {}
            None => return Err(foreign("it has no version")),
        }
        let record: Self = serde_json::from_value(value)
            .map_err(|error| NotARecord::Foreign(error.to_string()))?;
        if record.job_id != id.as_str() {
            return Err(foreign("it tells of another job than its name"));
        }
        Ok(record)
    }

    /// Of a training: what its launch noted of it.
    #[must_use]
    pub fn training(&self) -> Option<&Value> {
        self.provenance.get("training")
    }

    /// Takes up a folder that was pulled, in place of an earlier pull of it.
    pub fn came_home(&mut self, home: Home) {
        self.home.retain(|before| before.from != home.from);
        self.home.push(home);
    }

    /// Takes a state that was seen, unless an end was seen before: an end is not taken back by a look
    /// that could not tell.
    pub fn saw(&mut self, seen: Seen) {
        let is_final = |seen: &Seen| is_end(&seen.state);
        if is_final(&seen) || !self.seen.as_ref().is_some_and(is_final) {
            self.seen = Some(seen);
        }
    }

    /// Whether it was seen to have begun and ended.
    #[must_use]
    pub fn ran_to_an_end(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| is_end(&seen.state) && seen.state != NOT_STARTED)
    }

    /// Reckons what the job cost, once its price and its end are known.
    pub fn reckon(&mut self) {
        let Some((rate, end)) = self.micros_per_hour.zip(self.ended_at) else { return };
        let time = (end - self.launched_at).to_std().unwrap_or_default();
        let rate = crate::domain::UsdPerHour::new(Usd::from_micros(rate));
        self.cost = Some(Cost {
            micros: rate.cost_of(time).micros(),
            seconds: time.as_secs(),
            covers: format!(
                "the pod at {rate} from the launch to the job's end; boot, idle time, the stop, disks and volumes are not in it"
            ),
        });
    }
}

/// Whether a word of job_status is an end after which the job does nothing more.
#[must_use]
pub(super) fn is_end(state: &str) -> bool {
    matches!(state, "succeeded" | "failed" | "timed_out" | "orphaned" | NOT_STARTED)
}

/// A launch that started nothing.
pub(super) const NOT_STARTED: &str = "not_started";

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn what_is_no_record_of_its_name_or_of_a_later_version_is_told() {
        let record = sample::record("20260703-132525_train_00ab");
        let text = serde_json::to_string(&record).unwrap();
        let read = |name: &str, text: &str| RunRecord::read(name, text.as_bytes());
        assert_eq!(read("20260703-132525_train_00ab.json", &text), Ok(record));
        let says = |name: &str, text: &str| read(name, text).unwrap_err().to_string();
        let own = "20260703-132525_train_00ab.json";
        assert!(says("20260703-132525_train_00ac.json", &text).contains("another job"));
        for name in ["../x.json", "x.json", "20260703-132525_tr ain_00ab.json", "notes.txt"] {
            assert!(says(name, &text).contains("no job's id"), "{name}");
        }
        let newer = text.replace("\"version\":1", "\"version\":7");
        assert_eq!(read(own, &newer), Err(NotARecord::Newer(7)));
        for text in ["", "{", "[]", "{}", r#"{"version": 1}"#, r#"{"version": "1"}"#] {
            assert!(matches!(read(own, text), Err(NotARecord::Foreign(_))), "{text}");
        }
    }

    /// Every released shape is read, and written again with every key that it had.
    #[test]
    fn the_records_of_every_released_version_are_read() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/state");
        let mut read = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if !name.starts_with("run-v") {
                continue;
            }
            let text = std::fs::read(path).unwrap();
            let old: Value = serde_json::from_slice(&text).unwrap();
            let own = format!("{}.json", old["job_id"].as_str().unwrap());
            let record = RunRecord::read(&own, &text).unwrap();
            assert!(record.results.is_some() && record.cost.is_some(), "{name}");
            let new = serde_json::to_value(&record).unwrap();
            for key in old.as_object().unwrap().keys() {
                assert_eq!(new.get(key), old.get(key), "{name}: {key}");
            }
            read += 1;
        }
        assert_eq!(read, 1);
    }

    #[test]
    fn an_end_that_was_seen_is_not_taken_back_and_the_cost_is_of_the_job_alone() {
        let mut record = sample::record("20260703-132525_train_00ab");
        let seen =
            |state: &str| Seen { state: state.into(), exit_code: None, at: DateTime::UNIX_EPOCH };
        for (state, kept) in [
            ("starting", "starting"),
            ("unknown", "unknown"),
            ("running", "running"),
            ("failed", "failed"),
            ("unknown", "failed"),
            ("succeeded", "succeeded"),
        ] {
            record.saw(seen(state));
            assert_eq!(record.seen.as_ref().unwrap().state, kept);
        }
        record.cost = None;
        record.reckon();
        assert_eq!(record.cost, None, "it has no end yet");
        record.ended_at = Some(record.launched_at + chrono::TimeDelta::seconds(3600));
        record.reckon();
        let cost = record.cost.clone().unwrap();
        assert_eq!((cost.micros, cost.seconds), (690_000, 3600));
        // A pod's clock may be behind.
        record.ended_at = Some(record.launched_at - chrono::TimeDelta::seconds(3600));
        record.reckon();
        assert_eq!(record.cost.unwrap().micros, 0);
    }
}
