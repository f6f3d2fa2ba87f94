//! What the run of a training has left, found in what came home: its folder by the line of the log that
//! names it, the files in it, and how often a reward was told. It is written beside the job's log, too.

use super::summary::Summary;
use crate::domain::{JobId, Recipe, Vehicle};
use crate::ops::{Tether, sha256_hex};
use crate::pod::jobs::log_text;
use crate::training;
use crate::watch::metrics::MetricsParser;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The longest log that is read for it, in bytes.
const LOG_MAX: u64 = 256 << 20;
/// The longest file that is hashed, and how many files are listed. The pod bills meanwhile.
const HASH_MAX: u64 = 256 << 20;
const FILES_MAX: usize = 64;

/// A file of the run's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFile {
    /// Its name, relative to the folder.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// SHA-256; null when it is larger than 256 MiB.
    pub sha256: Option<String>,
}

/// What a run has left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Results {
    /// The name of its folder below the recipe's logs.root, by the log's own line.
    pub run_dir: Option<String>,
    /// Whether that folder was not there before the launch; null when nobody knows.
    pub is_new: Option<bool>,
    /// The recipe's artifacts and the other files at the folder's top, at most 64.
    pub files: Vec<RunFile>,
    /// Artifacts of the recipe that are not there.
    pub missing: Vec<String>,
    /// How often the log tells a mean reward.
    pub reward_lines: usize,
    /// How many iterations were expected.
    pub iterations: Option<u32>,
}

/// Looks at what came home. `None` for a job that is no training, or whose log did not come.
pub(super) async fn results(
    tether: &Tether,
    vehicle: &Vehicle,
    id: &JobId,
    summary: &Summary,
) -> Option<Results> {
    let spec = summary.spec.training.as_ref()?;
    let recipe = tether.config().training(&spec.training).ok()?.clone();
    let seed = spec.seed.parse().unwrap_or_default();
    let (logs, job) = (vehicle.local_log_dir.clone(), format!("jobs/{id}"));
    let looked = tokio::task::spawn_blocking(move || look(&recipe, seed, &logs, &logs.join(job)));
    looked.await.ok().flatten()
}

fn look(recipe: &Recipe, seed: u32, logs: &Path, job: &Path) -> Option<Results> {
    let path = job.join("out.log");
    let size = std::fs::metadata(&path).ok()?.len();
    if size > LOG_MAX {
        return None;
    }
    let log = std::fs::read(&path).ok()?;
    let meta: serde_json::Value = std::fs::read(job.join("meta.json"))
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())?;
    let noted = &meta["provenance"]["training"];
    let iterations = noted["iterations"].as_u64().and_then(|n| u32::try_from(n).ok());
    let text = log_text::clean(&log, log.len());
    let named = recipe.logs.run_line.as_deref().and_then(|line| training::run_folder(&text, line));
    let root = recipe.logs.root.as_ref().map(|root| logs.join(root));
    let found = root.zip(named).and_then(|(root, name)| folder(&root, &name));
    let run_dir = found.as_ref().map(|(_, name)| name.clone());
    let is_new = run_dir.as_deref().and_then(|name| is_new(name, &noted["runs_before"]));
    let artifacts = training::artifacts(recipe, seed, iterations);
    let mut files = Vec::new();
    if let Some((folder, _)) = &found {
        let top = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            top.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names.retain(|name| !artifacts.contains(name));
        let all = artifacts.iter().chain(&names).take(FILES_MAX);
        files = all.filter_map(|name| file(folder, name)).collect();
    }
    let is_missing = |name: &&String| !files.iter().any(|file| file.name == **name);
    let missing = artifacts.iter().filter(is_missing).cloned().collect();
    let mut parser = MetricsParser::new();
    parser.push(&log);
    parser.finish();
    let reward_lines = parser.blocks().iter().filter(|block| block.mean_reward.is_some()).count();
    let results = Results { run_dir, is_new, files, missing, reward_lines, iterations };
    let written = serde_json::to_vec_pretty(&results)
        .map_err(std::io::Error::from)
        .and_then(|text| std::fs::write(job.join("results.json"), text));
    if let Err(error) = written {
        tracing::warn!(%error, "results.json could not be written");
    }
    Some(results)
}

/// Whether a folder was not there before. Beyond the last of the names that were, it is new.
fn is_new(name: &str, before: &serde_json::Value) -> Option<bool> {
    if before["count"] == 0 {
        return Some(true);
    }
    match name.cmp(before["last"].as_str()?) {
        std::cmp::Ordering::Greater => Some(true),
        std::cmp::Ordering::Equal => Some(false),
        // Nobody knows the other names.
        std::cmp::Ordering::Less => None,
    }
}

/// The folder of that name, or of that name with a run's own behind it (Isaac Lab: `<time>_<run name>`).
fn folder(root: &Path, name: &str) -> Option<(PathBuf, String)> {
    let exact = root.join(name);
    if exact.is_dir() {
        return Some((exact, name.to_owned()));
    }
    let longer = format!("{name}_");
    let mut found: Vec<String> = std::fs::read_dir(root)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|entry| entry.starts_with(&longer))
        .collect();
    found.sort();
    // Of two nobody knows which.
    match &found[..] {
        [one] => Some((root.join(one), one.clone())),
        _ => None,
    }
}

fn file(folder: &Path, name: &str) -> Option<RunFile> {
    let path = folder.join(name);
    let meta = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
    let bytes = meta.len();
    let sha256 = match bytes {
        0..=HASH_MAX => std::fs::read(&path).ok().map(|content| sha256_hex(&content)),
        _ => None,
    };
    Some(RunFile { name: name.to_owned(), bytes, sha256 })
}
