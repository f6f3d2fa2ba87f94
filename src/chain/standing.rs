//! What is known of a link when the campaign comes to it: whether what was recorded still holds.

use super::prepared::Prepared;
use super::record::{Artifact, LinkRecord, Outcome, Record};
use super::state::Standing;
use crate::domain::{Pod, Work};
use crate::ops::sha256_hex;
use chrono::TimeDelta;

/// How far the provider's times of one start may differ.
const SAME_START: TimeDelta = TimeDelta::seconds(60);

/// What is known of every link, each with why, in words. Reads the files that links have left; `pod` is
/// the vehicle's running pod.
pub(super) fn of_all(
    links: &[Prepared],
    record: &Record,
    pod: Option<&Pod>,
) -> Vec<(Standing, String)> {
    let mut all: Vec<(Standing, String)> =
        links.iter().map(|link| of(link, record.of(&link.link.name))).collect();
    // A pull brings what the links before it have left.
    let mut runs_before = false;
    for (link, (standing, why)) in links.iter().zip(&mut all) {
        let holds = matches!(standing, Standing::Holds { .. });
        if holds && runs_before && matches!(link.link.work, Work::Sync { .. }) {
            (*standing, *why) = (Standing::ToRun, "a link before it is run".to_owned());
        }
        runs_before |= *standing != Standing::Holds { pause_passed: true }
            && *standing != Standing::Holds { pause_passed: false };
    }
    // What a setup made outside of the volume is gone with the boot that it was made in.
    let mut runs_after = false;
    for (link, (standing, why)) in links.iter().zip(&mut all).rev() {
        let holds = matches!(standing, Standing::Holds { .. });
        if holds
            && runs_after
            && link.link.work == Work::SetUp
            && let Some(pod) = pod
            && !record.of(&link.link.name).is_some_and(|record| is_of_this_boot(record, pod))
        {
            let other = "the pod was started again since, which wipes its container disk";
            (*standing, *why) = (Standing::ToRun, other.to_owned());
        }
        runs_after |=
            !matches!(standing, Standing::Holds { .. }) && link.link.work != Work::Nothing;
    }
    all
}

fn is_of_this_boot(record: &LinkRecord, pod: &Pod) -> bool {
    let same_pod = record.pod_id.as_ref() == Some(&pod.id);
    let later = record.pod_started_at.zip(pod.started_at);
    same_pod && later.is_none_or(|(then, now)| (now - then).abs() <= SAME_START)
}

fn of(link: &Prepared, record: Option<&LinkRecord>) -> (Standing, String) {
    let to_run = |why: String| (Standing::ToRun, why);
    // The last stop is asked again at every end: it is confirmed by reading, not by a record.
    if link.link.work == Work::Nothing {
        return (Standing::Holds { pause_passed: record.is_some_and(passed) }, String::new());
    }
    let Some(record) = record else { return to_run("not run yet".to_owned()) };
    match record.outcome {
        Outcome::InFlight if record.summary_path.is_some() => {
            let job = record.job_id.as_deref().unwrap_or("unknown");
            (Standing::InFlight, format!("job {job} was begun and its end is not recorded"))
        }
        // Patches and pulls can be made again; nothing else is begun without a summary.
        Outcome::InFlight => to_run("it was begun and not ended".to_owned()),
        Outcome::Failed => {
            let why = record.reason.as_deref().unwrap_or("for a reason that is not recorded");
            to_run(format!("it failed before: {why}"))
        }
        Outcome::Succeeded if record.inputs_sha256 != link.inputs_sha256 => {
            to_run("it is not what was run: its keys, its files, or a link it needs changed".into())
        }
        Outcome::Succeeded => match record.artifacts.iter().find_map(missing) {
            Some(why) => to_run(why),
            None => {
                let ended = record.ended_at.unwrap_or(record.started_at);
                let job = record.job_id.as_ref().map(|job| format!(", job {job}"));
                let why = format!(
                    "done {}{}",
                    ended.format("%Y-%m-%d %H:%M UTC"),
                    job.unwrap_or_default()
                );
                (Standing::Holds { pause_passed: passed(record) }, why)
            }
        },
    }
}

const fn passed(record: &LinkRecord) -> bool {
    record.paused_at.is_some()
}

/// Why a file that was left is not there any more as it was.
fn missing(artifact: &Artifact) -> Option<String> {
    let path = artifact.path.display();
    match std::fs::read(&artifact.path) {
        Err(error) => Some(format!("what it left is not there any more: {path}: {error}")),
        Ok(bytes) if sha256_hex(&bytes) != artifact.sha256 => {
            Some(format!("what it left is not what it was: {path}"))
        }
        Ok(_) => None,
    }
}
