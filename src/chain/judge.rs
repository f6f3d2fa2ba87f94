//! What a link has left and cost, beside what it must leave and may cost. Looks at what came home.

use super::prepared::Prepared;
use super::record::{Artifact, LinkRecord};
use crate::digest::{hex, sha256_of_file};
use crate::domain::{ExpectedReward, Recipe, RewardLines, Usd, Vehicle, Work};
use crate::ops::rewards_in_log;
use crate::supervise::Summary;
use std::path::{Path, PathBuf};

/// How many files one link may have recorded.
const FILES_MAX: usize = 256;

/// Looks at what came home of the link, notes it in its record, and returns everything that is not as
/// it must be.
pub(super) fn faults(
    prepared: &Prepared,
    recipe: Option<&Recipe>,
    vehicle: &Vehicle,
    summary: Option<&Summary>,
    record: &mut LinkRecord,
) -> Vec<String> {
    let link = &prepared.link;
    let mut faults = Vec::new();
    if let Some(spent) = record.spent_usd
        && spent > link.max_usd
    {
        faults.push(beyond(spent, link.max_usd));
    }
    let results = summary.and_then(|summary| summary.results.as_ref());
    record.run_dir = results.and_then(|results| results.run_dir.clone());
    if recipe.is_some() {
        match results {
            None => faults.push("what its run has left is not known: its log did not come".into()),
            Some(results) => {
                if results.is_new == Some(false) {
                    let name = record.run_dir.as_deref().unwrap_or_default();
                    faults.push(format!("its run's folder {name} was there before it began"));
                }
                faults.extend(
                    results.missing.iter().map(|name| format!("{name} of its recipe is missing")),
                );
            }
        }
    }
    match folder(prepared, recipe, vehicle, record) {
        Some(folder) => faults.extend(artifacts(prepared, &folder, record)),
        None if link.expect.artifacts.is_empty() => {}
        None => {
            faults.push("its run's folder is not known, so nothing in it can be looked at".into())
        }
    }
    faults.extend(rewards(prepared, recipe, vehicle, summary, record));
    faults
}

/// More was spent than the envelope.
fn beyond(spent: Usd, max_usd: Usd) -> String {
    format!("it has cost {spent} by its time, more than its max_usd {max_usd}")
}

/// The run's folder: of a training its own, else the folder that was pulled, else the job's.
fn folder(
    prepared: &Prepared,
    recipe: Option<&Recipe>,
    vehicle: &Vehicle,
    record: &LinkRecord,
) -> Option<PathBuf> {
    let logs = &vehicle.local_log_dir;
    match (&prepared.link.work, recipe) {
        (Work::Training { .. }, Some(recipe)) => {
            let root = recipe.logs.root.as_ref()?;
            Some(logs.join(root).join(record.run_dir.as_ref()?))
        }
        (Work::Sync { folder }, _) => Some(logs.join(folder)),
        _ => match (&prepared.link.pull, &record.job_id) {
            (Some(folder), _) => Some(logs.join(folder)),
            (None, Some(job)) => Some(logs.join("jobs").join(job)),
            (None, None) => None,
        },
    }
}

/// At least one file of each pattern, and none of them empty.
fn artifacts(prepared: &Prepared, folder: &Path, record: &mut LinkRecord) -> Vec<String> {
    let mut faults = Vec::new();
    record.artifacts.clear();
    for pattern in &prepared.link.expect.artifacts {
        // What stands in the folder's own name is no pattern.
        let inside = glob::Pattern::escape(&folder.to_string_lossy());
        let found: Vec<PathBuf> = glob::glob(&format!("{inside}/{pattern}"))
            .map(|paths| paths.flatten().filter(|path| path.is_file()).collect())
            .unwrap_or_default();
        if found.is_empty() {
            faults.push(format!("nothing is {pattern} in {}", folder.display()));
        }
        for path in found {
            match read(&path) {
                Ok(artifact) if artifact.bytes == 0 => {
                    faults.push(format!("{} is empty", path.display()));
                }
                Ok(artifact) if record.artifacts.len() < FILES_MAX => {
                    record.artifacts.push(artifact);
                }
                Ok(_) => {}
                Err(error) => faults.push(format!("{}: {error}", path.display())),
            }
        }
    }
    faults
}

fn read(path: &Path) -> std::io::Result<Artifact> {
    let (bytes, hash) = sha256_of_file(path)?;
    Ok(Artifact { path: path.to_owned(), bytes, sha256: hex(&hash) })
}

fn rewards(
    prepared: &Prepared,
    recipe: Option<&Recipe>,
    vehicle: &Vehicle,
    summary: Option<&Summary>,
    record: &mut LinkRecord,
) -> Vec<String> {
    let Some(job) = &record.job_id else { return Vec::new() };
    let folder = vehicle.local_log_dir.join("jobs").join(job);
    let results = summary.and_then(|summary| summary.results.as_ref());
    let expect = &prepared.link.expect;
    let is_asked = expect.reward.is_some() || expect.reward_lines.is_some();
    let told = (is_asked || results.is_some()).then(|| rewards_in_log(&folder)).flatten();
    let (lines, last) = told.unzip();
    let last = last.flatten();
    record.reward_lines = results.map(|results| results.reward_lines).or(lines);
    record.reward = last;
    let mut faults = Vec::new();
    let lines = expect.reward_lines.and_then(|lines| match lines {
        RewardLines::Count(count) => Some(count),
        RewardLines::Iterations => prepared.job.as_ref().and_then(|job| job.iterations),
    });
    let found = record.reward_lines.and_then(|found| u32::try_from(found).ok());
    if let Some(expected) = lines
        && found != Some(expected)
    {
        let found = found.map_or_else(|| "an unknown number of".to_owned(), |n| n.to_string());
        faults.push(format!("its log tells {found} mean rewards, not {expected}"));
    }
    let range = match &expect.reward {
        Some(ExpectedReward::Between(low, high)) => Some((low, high)),
        Some(ExpectedReward::OfRecipe) => recipe
            .and_then(|recipe| recipe.expect.reward.as_ref())
            .map(|reward| (&reward.low, &reward.high)),
        None => None,
    };
    if let Some((low, high)) = range {
        let bounds = low.parse::<f64>().ok().zip(high.parse::<f64>().ok());
        let within =
            bounds.zip(last).is_some_and(|((low, high), last)| low <= last && last <= high);
        if !within {
            let last = last.map_or_else(|| "not known".to_owned(), |last| format!("{last:.2}"));
            faults.push(format!("its last mean reward is {last}, not from {low} to {high}"));
        }
    }
    faults
}
