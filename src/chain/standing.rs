//! What is known of a link when the campaign comes to it: whether what was recorded still holds.

use super::prepared::Prepared;
use super::record::{Artifact, LinkRecord, Outcome, Record};
use super::state::Standing;
use crate::digest::{hex, sha256_of_file};
use crate::domain::{Pod, Work};
use crate::supervise::later_boot;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

fn of_all(
    links: &[Prepared],
    record: &Record,
    pod: Option<&Pod>,
    unchanged: &Unchanged,
) -> Vec<(Standing, String)> {
    let mut all: Vec<(Standing, String)> = Vec::with_capacity(links.len());
    for (at, link) in links.iter().enumerate() {
        let known = of(link, record.of(&link.link.name), unchanged);
        let holds = matches!(known.0, Standing::Holds { .. });
        let before = links.iter().zip(&all).take(at);
        let newer =
            before.filter(|(other, _)| builds_on(link, other)).find_map(|(other, known)| {
                let name = &other.link.name;
                if !matches!(known.0, Standing::Holds { .. }) {
                    return Some(format!("link {name} is run before it, which it builds on"));
                }
                let is_later = record.place(name) > record.place(&link.link.name);
                is_later.then(|| format!("link {name}, which it builds on, was run after it"))
            });
        all.push(match newer {
            Some(why) if holds => (Standing::ToRun, why),
            _ => known,
        });
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

/// Whether `link` works with what `other` leaves, which stands before it. A pull brings what everything
/// before it has left. What a setup, patches and a sweep come to is the same each time.
fn builds_on(link: &Prepared, other: &Prepared) -> bool {
    match other.link.work {
        Work::Training { .. } | Work::Command { .. } => {
            matches!(link.link.work, Work::Sync { .. })
                || link.link.needs.contains(&other.link.name)
        }
        Work::Sync { .. } => link.link.needs.contains(&other.link.name),
        Work::SetUp | Work::Patches | Work::Sweep | Work::Nothing => false,
    }
}

fn is_of_this_boot(record: &LinkRecord, pod: &Pod) -> bool {
    let same_pod = record.pod_id.as_ref() == Some(&pod.id);
    same_pod && record.pod_started_at.is_none_or(|then| later_boot(pod, then).is_none())
}

fn of(link: &Prepared, record: Option<&LinkRecord>, unchanged: &Unchanged) -> (Standing, String) {
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
        Outcome::Succeeded => match record.artifacts.iter().find_map(|one| unchanged.fault(one)) {
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

/// Files that this process has read and found as they were recorded. Whoever changes one changes what the
/// file system says of it; so each is read once, and not at every link.
#[derive(Clone, Debug, Default)]
pub(super) struct Unchanged(Arc<Mutex<HashMap<PathBuf, (Mark, String)>>>);

/// What changes whenever a file does: its length, its inode, and that one's time of change, which nobody
/// can set.
type Mark = (u64, u64, i64, i64);

impl Unchanged {
    /// What is known of every link, each with why, in words. Reads the files that links have left, which
    /// may be large, beside whatever else goes on; `pod` is the vehicle's running pod.
    pub(super) async fn standings(
        &self,
        links: &[Prepared],
        record: &Record,
        pod: Option<&Pod>,
    ) -> Vec<(Standing, String)> {
        let (links, record, pod) = (links.to_vec(), record.clone(), pod.cloned());
        let unchanged = self.clone();
        let read =
            tokio::task::spawn_blocking(move || of_all(&links, &record, pod.as_ref(), &unchanged));
        read.await.unwrap_or_default()
    }

    /// Why a file that was left is not there any more as it was.
    fn fault(&self, artifact: &Artifact) -> Option<String> {
        let path = &artifact.path;
        let gone = |error| {
            Some(format!("what it left is not there any more: {}: {error}", path.display()))
        };
        let other = || Some(format!("what it left is not what it was: {}", path.display()));
        // Looked at before it is read: what changes it meanwhile changes this.
        let mark = match std::fs::metadata(path) {
            Ok(meta) if meta.len() != artifact.bytes => return other(),
            Ok(meta) => (meta.len(), meta.ino(), meta.ctime(), meta.ctime_nsec()),
            Err(error) => return gone(error),
        };
        let known = (mark, artifact.sha256.clone());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(path) == Some(&known) {
            return None;
        }
        match sha256_of_file(path) {
            Err(error) => gone(error),
            Ok((_, hash)) if hex(&hash) != artifact.sha256 => other(),
            Ok(_) => {
                all.insert(path.clone(), known);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{LinkEnd, LinkExpected, PodId, Usd};
    use crate::ops::CloudName;
    use chrono::{DateTime, Utc};

    fn link(name: &str, work: Work, needs: &[&str]) -> Prepared {
        let link = crate::domain::Link {
            name: name.to_owned(),
            line: 1,
            work,
            max_runtime_sec: None,
            pull: None,
            needs: needs.iter().map(|&name| name.to_owned()).collect(),
            pins: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            max_usd: Usd::ZERO,
            expect: LinkExpected::default(),
            end: LinkEnd::Next,
        };
        Prepared { link, job: None, inputs_sha256: name.to_owned() }
    }

    fn command() -> Work {
        Work::Command { command: "true".to_owned(), workdir: None }
    }

    fn sync() -> Work {
        Work::Sync { folder: "out".to_owned() }
    }

    fn done(name: &str) -> LinkRecord {
        let at = DateTime::<Utc>::UNIX_EPOCH;
        LinkRecord {
            outcome: Outcome::Succeeded,
            pod_id: Some(PodId("one".to_owned())),
            ended_at: Some(at),
            ..LinkRecord::begun(name, name, at)
        }
    }

    /// Which links hold, when these were run in this order.
    fn holds(links: &[Prepared], run: &[&str]) -> Vec<bool> {
        let mut record = Record {
            version: 1,
            campaign: "trial".to_owned(),
            file: PathBuf::new(),
            cloud: CloudName::Local,
            vehicle: "rover".to_owned(),
            links: Vec::new(),
            state: "running".to_owned(),
            reason: None,
            stop: None,
            pod_may_still_be_running: true,
            errors: Vec::new(),
            started_at: DateTime::UNIX_EPOCH,
            ended_at: None,
            pid: 1,
            process_exit_code: None,
            record_path: PathBuf::new(),
            unwritten: Default::default(),
        };
        run.iter().for_each(|name| record.begin(done(name)));
        let all = of_all(links, &record, None, &Unchanged::default());
        all.iter().map(|(standing, _)| matches!(standing, Standing::Holds { .. })).collect()
    }

    /// Also when the process that ran the first one again died before it came to the others.
    #[test]
    fn what_builds_on_a_link_that_was_run_after_it_is_run_again() {
        let links = [
            link("a", command(), &[]),
            link("b", command(), &["a"]),
            link("c", command(), &["b"]),
            link("other", command(), &[]),
            link("home", sync(), &[]),
        ];
        assert_eq!(holds(&links, &["a", "b", "c", "other", "home"]), [true; 5]);
        assert_eq!(
            holds(&links, &["b", "c", "other", "home", "a"]),
            [true, false, false, true, false]
        );
        assert_eq!(holds(&links, &["b", "c", "other", "home"]), [false, false, false, true, false]);
        assert_eq!(
            holds(&links, &["a", "b", "other", "home", "c"]),
            [true, true, true, true, false]
        );
        assert_eq!(
            holds(&links, &["a", "b", "c", "home", "other"]),
            [true, true, true, true, false]
        );
        assert_eq!(
            holds(&links, &["other", "home", "a", "b", "c"]),
            [true, true, true, true, false]
        );
    }

    /// A set-up that is repeated after every boot is no reason to train anew.
    #[test]
    fn what_comes_to_the_same_each_time_runs_nothing_again() {
        for work in [Work::SetUp, Work::Patches, Work::Sweep] {
            let links = [link("first", work, &[]), link("train", command(), &["first"])];
            assert_eq!(holds(&links, &["train", "first"]), [true, true]);
        }
    }

    #[test]
    fn a_file_is_read_once_and_again_when_anything_of_it_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        std::fs::write(&path, "weights").unwrap();
        let (bytes, hash) = sha256_of_file(&path).unwrap();
        let artifact = Artifact { path: path.clone(), bytes, sha256: hex(&hash) };
        let unchanged = Unchanged::default();
        assert_eq!(unchanged.fault(&artifact), None);
        assert_eq!(unchanged.fault(&artifact), None);
        // Of the same length and with its old times put back: its inode tells.
        let times = std::fs::metadata(&path).unwrap().modified().unwrap();
        std::fs::write(folder.path().join("next"), "WEIGHTS").unwrap();
        std::fs::rename(folder.path().join("next"), &path).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(times).unwrap();
        assert!(unchanged.fault(&artifact).unwrap().contains("is not what it was"));
        std::fs::write(&path, "longer weights").unwrap();
        assert!(unchanged.fault(&artifact).unwrap().contains("is not what it was"));
        std::fs::remove_file(&path).unwrap();
        assert!(unchanged.fault(&artifact).unwrap().contains("is not there any more"));
    }
}
