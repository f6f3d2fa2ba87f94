//! What the run of a training has left: its folder, by the log's own line and a look at the folder of
//! all runs, and the files in it with the hashes that the pull has compared. Nothing is hashed here.

use super::Tether;
use super::run_home::LogSays;
use super::subdir::checked_subdir;
use crate::domain::{Pod, Vehicle};
use crate::pod::transfer::PulledFile;
use crate::pod::{Ask, Told};
use crate::runs::{
    FolderFound, Listing, Results, Reward, RunFile, RunRecord, is_folder_name, judge_folder,
    lines_told,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// How many files are listed.
const FILES_MAX: usize = 64;

/// A folder that was just pulled.
#[derive(Clone, Debug)]
pub(crate) struct Pull {
    /// The folder, relative to the mount path.
    pub(crate) subdir: String,
    /// Whether everything that the pod has is here.
    pub(crate) complete: bool,
    /// The files that were compared by SHA-256.
    pub(crate) files: Vec<PulledFile>,
}

/// What a training's launch noted, as far as it makes sense.
struct Noted<'a> {
    root: Option<String>,
    line: Option<&'a str>,
    before: Option<(u64, Option<&'a str>)>,
    artifacts: Vec<&'a str>,
    iterations: Option<u32>,
    reward: Option<(&'a str, &'a str)>,
}

impl<'a> Noted<'a> {
    /// From a job's record, which may have come from a pod: a folder that leads out of the volume is
    /// none.
    fn of(training: &'a Value) -> Self {
        let before = &training["runs_before"];
        let artifacts = training["artifacts"].as_array();
        let reward = &training["expect_reward"];
        Self {
            root: training["log_root"].as_str().and_then(|root| checked_subdir(root).ok()),
            line: training["run_line"].as_str(),
            before: before["count"].as_u64().map(|count| (count, before["last"].as_str())),
            artifacts: artifacts.into_iter().flatten().filter_map(Value::as_str).collect(),
            iterations: training["iterations"].as_u64().and_then(|n| u32::try_from(n).ok()),
            reward: reward["low"].as_str().zip(reward["high"].as_str()),
        }
    }
}

/// What the line begins with that names a run's folder, by the record.
pub(super) fn run_line(record: &RunRecord) -> Option<String> {
    record.training()?["run_line"].as_str().map(str::to_owned)
}

/// The folder of all runs of a record's training, relative to the mount path.
pub(super) fn log_root(record: &RunRecord) -> Option<String> {
    Noted::of(record.training()?).root
}

impl Tether {
    /// What a training's run has left; `None` for any other job. `pod` is asked for the folders that
    /// are new, when it is there. While the job has not `ended`, nothing is missing and no reward is the
    /// last.
    pub(super) async fn run_left(
        &self,
        vehicle: &Vehicle,
        pod: Option<&Pod>,
        record: &RunRecord,
        log: &LogSays,
        pulls: &[Pull],
        ended: bool,
    ) -> Option<Results> {
        let noted = Noted::of(record.training()?);
        let earlier = record.results.as_ref();
        // What was found at the end stands: later runs make folders, too.
        let settled = earlier.filter(|it| record.ended_at.is_some() && it.is_new == Some(true));
        let found = match settled {
            Some(Results { run_dir, is_new, told, .. }) => FolderFound {
                run_dir: run_dir.clone(),
                is_new: *is_new,
                told: told.first().cloned().unwrap_or_default(),
            },
            None => self.folder_of(vehicle, pod, &noted, log).await,
        };
        Some(results(&noted, found, log, pulls, earlier, (&vehicle.local_log_dir, ended)))
    }

    async fn folder_of(
        &self,
        vehicle: &Vehicle,
        pod: Option<&Pod>,
        noted: &Noted<'_>,
        log: &LogSays,
    ) -> FolderFound {
        let after = match (&noted.root, noted.before, pod) {
            (Some(root), Some((_, last)), Some(pod)) => {
                self.folders_since(vehicle, pod, root, last.unwrap_or_default()).await
            }
            _ => None,
        };
        judge_folder(noted.line, log.folder.as_deref(), noted.before, after.as_ref())
    }

    async fn folders_since(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        root: &str,
        last: &str,
    ) -> Option<Listing> {
        let asks = [Ask::Since(vehicle.on_volume(root), last.to_owned())];
        match self.ask_recipe(vehicle, pod, &asks).await {
            Ok(told) => match &told[..] {
                [Told::Since(count, newer)] => Some(Listing {
                    count: *count,
                    newer: newer.iter().filter(|name| is_folder_name(name)).cloned().collect(),
                }),
                _ => None,
            },
            Err(why) => {
                tracing::warn!(why, "the folders of runs could not be listed");
                None
            }
        }
    }
}

fn results(
    noted: &Noted<'_>,
    found: FolderFound,
    log: &LogSays,
    pulls: &[Pull],
    earlier: Option<&Results>,
    (logs, ended): (&Path, bool),
) -> Results {
    let FolderFound { run_dir, is_new, told } = found;
    let mut told = vec![told];
    let (run_dir, folder) = at_home(noted.root.as_deref(), run_dir, logs);
    let mut files = folder
        .as_deref()
        .map_or_else(Vec::new, |folder| listed(folder, &noted.artifacts, pulls, logs));
    // A hash that an earlier pull has compared holds while nothing has changed.
    for file in files.iter_mut().filter(|file| file.sha256.is_none()) {
        let same = |before: &&RunFile| before.name == file.name && before.bytes == file.bytes;
        let before = earlier.and_then(|earlier| earlier.files.iter().find(same));
        file.sha256 = before.and_then(|before| before.sha256.clone());
    }
    let is_here = |root: &String| logs.join(root).is_dir();
    let root_is_home = noted.root.as_ref().is_some_and(is_here);
    let is_missing = |name: &&&str| !files.iter().any(|file| file.name == **name);
    let missing: Vec<String> = match root_is_home && ended {
        true => noted.artifacts.iter().filter(is_missing).map(|name| (*name).to_owned()).collect(),
        false => Vec::new(),
    };
    match (&noted.root, &folder) {
        (Some(root), None) if !root_is_home => {
            let place = match &run_dir {
                Some(name) => format!("{root}/{name}"),
                None => root.clone(),
            };
            told.push(format!(
                "what the run has left is not here; sync_logs with subdir={place:?} brings it"
            ));
        }
        (Some(_), None) => {
            told.extend(run_dir.iter().map(|name| format!("{name} is not here")));
        }
        _ => {}
    }
    if !missing.is_empty() {
        told.push(format!("missing at the end: {}", missing.join(", ")));
    }
    told.push(lines_told(log.reward_lines, noted.iterations));
    let expected = noted.reward.filter(|_| ended);
    let reward = expected.map(|(low, high)| Reward::judge(log.last_reward, low, high));
    if !ended {
        told.push("the job had not ended when this was looked at".to_owned());
    }
    told.extend(reward.as_ref().map(Reward::told));
    Results {
        run_dir,
        is_new,
        files,
        missing,
        reward_lines: log.reward_lines,
        iterations: noted.iterations,
        folder,
        reward,
        told,
    }
}

/// The run's folder below the log folder, when it is here: of that name, or of that name with a run's
/// own behind it, where the pod's listing has not told the whole name.
fn at_home(
    root: Option<&str>,
    run_dir: Option<String>,
    logs: &Path,
) -> (Option<String>, Option<String>) {
    let Some((root, name)) = root.zip(run_dir.clone()) else { return (run_dir, None) };
    let here = |name: &str| logs.join(root).join(name).is_dir();
    if here(&name) {
        return (run_dir, Some(format!("{root}/{name}")));
    }
    let longer = format!("{name}_");
    let entries = std::fs::read_dir(logs.join(root)).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let found: Vec<String> =
        names.filter(|entry| entry.starts_with(&longer) && is_folder_name(entry)).collect();
    match &found[..] {
        [one] => (Some(one.clone()), Some(format!("{root}/{one}"))),
        // Of two nobody knows which.
        _ => (run_dir, None),
    }
}

/// Artifacts first, then what else is at the top of the run's folder.
fn listed(folder: &str, artifacts: &[&str], pulls: &[Pull], logs: &Path) -> Vec<RunFile> {
    let hashes: BTreeMap<String, &PulledFile> = pulls
        .iter()
        .flat_map(|pull| {
            pull.files.iter().map(|file| (format!("{}/{}", pull.subdir, file.path), file))
        })
        .collect();
    let top = std::fs::read_dir(logs.join(folder)).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        top.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names.retain(|name| !artifacts.contains(&name.as_str()));
    let all = artifacts.iter().map(|name| (*name).to_owned()).chain(names);
    let one = |name: String| {
        let path = format!("{folder}/{name}");
        // Not through a link: the pull leaves none that leads out, but this folder is anybody's.
        let meta =
            std::fs::symlink_metadata(logs.join(&path)).ok().filter(|meta| meta.is_file())?;
        let pulled = hashes.get(&path).filter(|pulled| pulled.bytes == meta.len());
        let sha256 = pulled.map(|pulled| pulled.sha256.clone());
        Some(RunFile { name, bytes: meta.len(), sha256 })
    };
    all.filter_map(one).take(FILES_MAX).collect()
}
