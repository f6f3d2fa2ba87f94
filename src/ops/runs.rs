//! What is known of every run of a project: from its records, its journal and what came home. Needs no
//! key and no pod, and changes nothing.

use super::open::journal;
use super::run_files;
use super::run_home;
use super::vigil;
use super::{CloudName, Start};
use crate::clock::SharedClock;
use crate::config::{self, CloudChoice, Config};
use crate::domain::JobId;
use crate::error::{Failure, FailureKind};
use crate::ledger::{Launch, Ledger};
use crate::runs::{Around, Numbers, Run, RunRecord, SummarySeen, merge};
use chrono::DateTime;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Every run that is known.
#[derive(Clone, Debug, Default)]
pub struct KnownRuns {
    /// The newest first.
    pub runs: Vec<Run>,
    /// What could not be read, or is of something else, in words.
    pub troubles: Vec<String>,
    /// How many records are of the other cloud: real and local never count for each other.
    pub of_other_cloud: usize,
    /// SHA-256 of each record's file.
    sums: BTreeMap<String, String>,
}

/// One run with everything that is known of it.
#[derive(Clone, Debug, Serialize)]
pub struct RunShown {
    /// As it is listed.
    pub run: Run,
    /// Where it comes from.
    pub provenance: BTreeMap<String, Value>,
    /// Its record; null when only the journal tells of it.
    pub record: Option<RunRecord>,
    /// Whether the record is as podtether wrote it last, by the journal; null when that says nothing.
    pub record_is_as_written: Option<bool>,
}

/// Reads config, journal and records.
///
/// # Errors
/// When the config cannot be read. Whatever else cannot be is told beside the runs.
pub fn known_runs(start: &Start, clock: SharedClock) -> Result<KnownRuns, Failure> {
    let broken =
        |error| Failure::new(FailureKind::Config, error, "mend the config; nothing was changed");
    let path = config::find(start.config.as_deref(), &start.env, &start.cwd).map_err(broken)?;
    let config = config::load(&path, &start.env).map_err(broken)?;
    let cloud = match config.cloud {
        CloudChoice::Local { .. } => CloudName::Local,
        CloudChoice::RunPod => CloudName::Runpod,
    };
    let ledger = journal(start, &config, clock);
    Ok(known_of(&config, Some(&ledger), cloud))
}

/// The same for who has read config and journal.
pub(super) fn known_of(config: &Config, ledger: Option<&Ledger>, cloud: CloudName) -> KnownRuns {
    let mut known = KnownRuns::default();
    let launches = match ledger {
        Some(ledger) => {
            let (launches, troubles) = ledger.launches();
            known.troubles = troubles;
            launches.all().to_vec()
        }
        None => Vec::new(),
    };
    let folders: BTreeMap<&str, &PathBuf> = config
        .vehicles
        .iter()
        .map(|vehicle| (vehicle.name.0.as_str(), &vehicle.local_log_dir))
        .collect();
    let mut seen: BTreeSet<&PathBuf> = BTreeSet::new();
    let mut records = BTreeMap::new();
    let mut vigils = BTreeMap::new();
    for folder in folders.values().filter(|folder| seen.insert(folder)) {
        let (found, troubles) = run_files::all(folder);
        known.troubles.extend(troubles);
        for (record, sum) in found {
            if record.cloud != cloud.as_str() {
                known.of_other_cloud += 1;
                continue;
            }
            known.sums.insert(record.job_id.clone(), sum);
            records.insert(record.job_id.clone(), record);
        }
        let lives = vigil::seen(folder).into_iter().map(|seen| (seen.vigil.job_id, seen.lives));
        vigils.extend(lives);
    }
    // Of two launches under one id the later one counts.
    let launches: BTreeMap<&str, &Launch> =
        launches.iter().map(|launch| (launch.job.as_str(), launch)).collect();
    let ids: BTreeSet<String> =
        records.keys().cloned().chain(launches.keys().map(|id| (*id).to_owned())).collect();
    for id in ids {
        let (record, launch) = (records.remove(&id), launches.get(id.as_str()).copied());
        let vehicle =
            record.as_ref().map(|it| it.vehicle.as_str()).or(launch.map(|it| &*it.vehicle));
        let folder = vehicle.and_then(|name| folders.get(name));
        let around = match (folder, JobId::parse(&id)) {
            (Some(folder), Some(id)) if needs_more(record.as_ref()) => {
                around(folder, &id, vigils.get(id.as_str()).copied().flatten())
            }
            _ => Around::default(),
        };
        known.runs.extend(merge(record, launch, &around));
    }
    known.runs.sort_by(|one, other| {
        (other.launched_at, &other.job_id).cmp(&(one.launched_at, &one.job_id))
    });
    known
}

/// Whether a record does not tell how its job ended.
fn needs_more(record: Option<&RunRecord>) -> bool {
    record.is_none_or(|record| record.ended_at.is_none() || record.metrics.is_none())
}

fn around(folder: &Path, id: &JobId, lives: Option<bool>) -> Around {
    let summary = summary(&folder.join(format!("supervise-{id}.json")));
    Around {
        summary: summary.map(|summary| SummarySeen { lives, ..summary }),
        exit: run_home::exit(&folder.join(format!("jobs/{id}"))),
    }
}

/// The longest summary that is read, in bytes.
const SUMMARY_MAX: u64 = 4 << 20;

/// What a supervise's summary tells of its job.
fn summary(path: &Path) -> Option<SummarySeen> {
    let meta = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let mut text = Vec::new();
    std::fs::File::open(path).ok()?.take(SUMMARY_MAX).read_to_end(&mut text).ok()?;
    let value: Value = serde_json::from_slice(&text).ok()?;
    let metrics: Option<Numbers> = serde_json::from_value(value["latest_metrics"].clone()).ok();
    Some(SummarySeen {
        state: value["state"].as_str().map(str::to_owned),
        metrics,
        at: meta.modified().ok().map(DateTime::from),
        lives: None,
    })
}

impl KnownRuns {
    /// The run that somebody means by the beginning of its id.
    ///
    /// # Errors
    /// Bad input, with what may have been meant.
    pub fn pick(&self, given: &str) -> Result<&Run, Failure> {
        let ids = self.runs.iter().map(|run| run.job_id.as_str());
        let id = crate::runs::pick(given, ids).map_err(Failure::bad_input)?;
        let found = self.runs.iter().find(|run| run.job_id == id);
        found.ok_or_else(|| Failure::bad_input(format!("there is no run {id}")))
    }

    /// Everything that is known of one run.
    #[must_use]
    pub fn shown(&self, run: &Run) -> RunShown {
        let file = run.record.as_ref().and_then(|_| self.sums.get(&run.job_id));
        RunShown {
            record_is_as_written: file.zip(run.noted_sha256.as_ref()).map(|(is, was)| is == was),
            provenance: run.provenance.clone(),
            record: run.record.clone(),
            run: run.clone(),
        }
    }
}
