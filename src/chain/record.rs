//! The record of a campaign: one JSON file beside the summaries, replaced whole at every step, from
//! which a later process goes on; and the lock that keeps two from running it at once.

use crate::domain::{Campaign, PodId, Usd, Vehicle};
use crate::error::{Failure, FailureKind};
use crate::held::Held;
use crate::ops::CloudName;
use crate::whole_file::{self, Unwritten};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The version of this shape. It grows when a key changes its meaning, not when one is added.
const VERSION: u32 = 1;

/// How far a link has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was begun, and its end is not recorded yet.
    InFlight,
    /// It ended well, left what it must and stayed within its envelope.
    Succeeded,
    /// It did not.
    Failed,
}

/// A file that a link has left, as it was when the link ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Where it is on this computer.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// SHA-256.
    pub sha256: String,
}

/// What is recorded of one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// Its name.
    pub name: String,
    /// How far it has come.
    pub outcome: Outcome,
    /// SHA-256 over what it is: its keys, the recipe and files that it runs, and the links it needs.
    pub inputs_sha256: String,
    /// Its job; null for a link that is none.
    pub job_id: Option<String>,
    /// The summary of its run.
    pub summary_path: Option<PathBuf>,
    /// The pod that it ran on.
    pub pod_id: Option<PodId>,
    /// When that pod was started, as the provider says; another time is another boot.
    pub pod_started_at: Option<DateTime<Utc>>,
    /// When it began, UTC.
    pub started_at: DateTime<Utc>,
    /// When it ended; null while it is in flight.
    pub ended_at: Option<DateTime<Utc>>,
    /// What it could cost at worst when it began.
    #[serde(default, deserialize_with = "amount")]
    pub worst_case_usd: Option<Usd>,
    /// What it has cost, by its time at the pod's price; null when the price is not known.
    #[serde(default, deserialize_with = "amount")]
    pub spent_usd: Option<Usd>,
    /// What it has left of what it must leave.
    #[serde(default)]
    pub artifacts: Vec<Artifact>,
    /// The run's folder, of a training.
    #[serde(default)]
    pub run_dir: Option<String>,
    /// How often its log tells a mean reward, of a training.
    #[serde(default)]
    pub reward_lines: Option<usize>,
    /// The last mean reward in its log.
    #[serde(default)]
    pub reward: Option<f64>,
    /// Why it failed.
    #[serde(default)]
    pub reason: Option<String>,
    /// When the stop point after it was reached.
    #[serde(default)]
    pub paused_at: Option<DateTime<Utc>>,
}

impl LinkRecord {
    /// A link that begins now, and of which nothing more is known.
    pub(super) fn begun(name: &str, inputs_sha256: &str, at: DateTime<Utc>) -> Self {
        Self {
            name: name.to_owned(),
            outcome: Outcome::InFlight,
            inputs_sha256: inputs_sha256.to_owned(),
            job_id: None,
            summary_path: None,
            pod_id: None,
            pod_started_at: None,
            started_at: at,
            ended_at: None,
            worst_case_usd: None,
            spent_usd: None,
            artifacts: Vec::new(),
            run_dir: None,
            reward_lines: None,
            reward: None,
            reason: None,
            paused_at: None,
        }
    }
}

/// The record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The version of this shape.
    pub version: u32,
    /// The campaign's name.
    pub campaign: String,
    /// Its file, as it was run last.
    pub file: PathBuf,
    /// Which cloud it runs on.
    pub cloud: CloudName,
    /// The vehicle.
    pub vehicle: String,
    /// What is recorded of each link that was begun, in the order in which they were.
    pub links: Vec<LinkRecord>,
    /// How it stands: `running`, `done`, `paused`, `failed`, `interrupted`, `left`, `refused`.
    pub state: String,
    /// Why it is not done.
    pub reason: Option<String>,
    /// The stop, as it was told.
    pub stop: Option<String>,
    /// Whether the pod may still be running and billing.
    pub pod_may_still_be_running: bool,
    /// What did not go as it should, besides.
    pub errors: Vec<String>,
    /// When this process began with it, UTC.
    pub started_at: DateTime<Utc>,
    /// When it ended; null while it runs.
    pub ended_at: Option<DateTime<Utc>>,
    /// The process.
    pub pid: u32,
    /// The process's exit code; null while it runs.
    pub process_exit_code: Option<u8>,
    /// Where this record is.
    pub record_path: PathBuf,
    /// Whether what lies there is older than this.
    #[serde(skip)]
    pub unwritten: Unwritten,
}

/// An amount as it was written: by its digits, so that no float ever holds it.
fn amount<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Usd>, D::Error> {
    let number = Option::<serde_json::Number>::deserialize(from)?;
    Ok(number.and_then(|number| Usd::from_decimal(&number.to_string()).ok()))
}

/// How much trouble is written down.
const MAX_ERRORS: usize = 100;

/// Where the record of a campaign is.
pub(super) fn path(campaign: &Campaign, vehicle: &Vehicle) -> PathBuf {
    vehicle.local_log_dir.join(format!("campaign-{}.json", campaign.name))
}

impl Record {
    /// The record as it was left, or a new one.
    ///
    /// # Errors
    /// When it cannot be read, is of a newer podtether, or of another cloud or vehicle: what was done
    /// is not known then, and nothing is guessed.
    pub(super) fn open(
        campaign: &Campaign,
        vehicle: &Vehicle,
        cloud: CloudName,
        now: DateTime<Utc>,
    ) -> Result<Self, Failure> {
        let path = path(campaign, vehicle);
        let earlier = match std::fs::read(&path) {
            Ok(text) => Some(parse(&text, &path)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(unusable(&path, &error)),
        };
        if let Some(earlier) = &earlier
            && (earlier.cloud != cloud || earlier.vehicle != vehicle.name.0)
        {
            let message = format!(
                "{} is the record of campaign {} on vehicle {} of cloud {:?}; this one is on vehicle {} of cloud {cloud:?}",
                path.display(),
                earlier.campaign,
                earlier.vehicle,
                earlier.cloud,
                vehicle.name
            );
            let hint = "give this campaign another name, or --config; nothing was changed";
            return Err(Failure::new(FailureKind::Refused, message, hint));
        }
        let links = earlier.map(|earlier| earlier.links).unwrap_or_default();
        Ok(Self {
            version: VERSION,
            campaign: campaign.name.clone(),
            file: campaign.path.clone(),
            cloud,
            vehicle: vehicle.name.0.clone(),
            links,
            state: "running".to_owned(),
            reason: None,
            stop: None,
            pod_may_still_be_running: true,
            errors: Vec::new(),
            started_at: now,
            ended_at: None,
            pid: std::process::id(),
            process_exit_code: None,
            record_path: path,
            unwritten: Unwritten::default(),
        })
    }

    /// What is recorded of the link.
    pub(super) fn of(&self, name: &str) -> Option<&LinkRecord> {
        self.links.iter().find(|link| link.name == name)
    }

    pub(super) fn of_mut(&mut self, name: &str) -> Option<&mut LinkRecord> {
        self.links.iter_mut().find(|link| link.name == name)
    }

    /// Where a link stands in the order in which they were run.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.links.iter().position(|link| link.name == name)
    }

    /// Records a link anew, in place of what was recorded of it.
    pub(super) fn begin(&mut self, link: LinkRecord) {
        self.links.retain(|other| other.name != link.name);
        self.links.push(link);
    }

    pub(super) fn trouble(&mut self, what: impl Into<String>) {
        let what = what.into();
        if self.errors.len() < MAX_ERRORS && !self.errors.contains(&what) {
            self.errors.push(what);
        }
    }

    /// Writes it, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(&self) -> std::io::Result<()> {
        whole_file::replace(&self.record_path, self).map(|_| ())
    }
}

fn parse(text: &[u8], path: &Path) -> Result<Record, Failure> {
    let value: serde_json::Value =
        serde_json::from_slice(text).map_err(|error| unusable(path, &error))?;
    if value["version"].as_u64().is_some_and(|version| version > u64::from(VERSION)) {
        return Err(unusable(path, &"it was written by a newer podtether; update podtether"));
    }
    serde_json::from_value(value).map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(
        FailureKind::Refused,
        format!("the campaign's record {} cannot be used: {why}", path.display()),
        "mend it, or move it away: then every link is run again; nothing was changed",
    )
}

/// Takes the campaign for this process alone.
///
/// # Errors
/// When another process runs it, or the lock cannot be made.
pub(super) async fn lock(campaign: &Campaign, vehicle: &Vehicle) -> Result<Held, Failure> {
    let path = path(campaign, vehicle).with_extension("lock");
    let failed = |error: &dyn std::fmt::Display| {
        let message = format!("{} cannot be locked: {error}", path.display());
        Failure::new(FailureKind::Internal, message, "mend the log folder; nothing was changed")
    };
    std::fs::create_dir_all(&vehicle.local_log_dir).map_err(|error| failed(&error))?;
    let file = File::options().create(true).append(true).open(&path);
    let file = file.map_err(|error| failed(&error))?;
    let held = Held::alone_within(&file, std::time::Duration::from_secs(1)).await;
    held.map_err(|error| failed(&error))?.ok_or_else(|| {
        Failure::new(
            FailureKind::Refused,
            format!("another process runs campaign {} now", campaign.name),
            "wait for it, or end it in order with Ctrl-C; nothing was changed",
        )
    })
}
