//! Keeps the record of every job: begun at its launch, completed when results come home and when its
//! supervise is over. What cannot be written is logged and stands in nobody's way.

use super::run_files;
use super::run_home::{self, LogSays};
use super::run_job::PlannedJob;
use super::run_left::{self, Pull};
use super::unknown_launches::may_have_started;
use super::{LatestMetrics, Tether};
use crate::apply::{ApplyError, StepOutcome};
use crate::domain::{JobId, JobMeta, Pod, PodId, Usd, Vehicle};
use crate::ledger::Event;
use crate::runs::{Home, Numbers, Results, RunRecord, Seen, Supervised};
use crate::whole_file;
use chrono::{DateTime, Utc};
use std::path::Path;

/// How many jobs one pull completes at most: the newest.
const AT_ONCE: usize = 8;

/// What a supervise knows of its job at its end.
#[derive(Clone, Debug)]
pub(crate) struct RunOver {
    /// The job's last known state.
    pub(crate) state: Option<String>,
    /// Its exit code.
    pub(crate) exit_code: Option<i32>,
    /// The last numbers in its log.
    pub(crate) metrics: Option<LatestMetrics>,
    /// The supervise itself.
    pub(crate) supervised: Supervised,
}

impl Tether {
    /// Begins the record of a job that is about to be launched.
    pub(super) async fn note_launch(
        &self,
        job: &PlannedJob,
        provenance: &super::provenance::Provenance,
    ) {
        let record = RunRecord {
            pod_id: job.pod.id.0.clone(),
            name: job.name.clone(),
            command: job.command.clone(),
            workdir: job.workdir.clone(),
            ceiling_sec: Some(job.ceiling.as_secs()),
            micros_per_hour: job.pod.price.known().map(|rate| rate.per_hour().micros()),
            provenance: provenance.clone(),
            ..self.record_of(&job.vehicle, &job.id, self.clock.now())
        };
        self.change_record(&job.vehicle, &job.id, || Some(record), |_| ()).await;
    }

    /// Notes whether a launch started anything; of one that may have, nothing new is known.
    pub(super) async fn note_outcome(
        &self,
        job: &PlannedJob,
        launched: &Result<Vec<StepOutcome>, ApplyError>,
    ) {
        let state = match launched {
            Ok(_) => "running",
            Err(error) if may_have_started(error, job.steps().len()) => return,
            Err(_) => "not_started",
        };
        let seen = Seen { state: state.to_owned(), exit_code: None, at: self.clock.now() };
        self.change_record(&job.vehicle, &job.id, || None, |record| record.saw(seen)).await;
    }

    /// Reads, changes and writes a record under the folder's lock; `make` begins one that is missing.
    /// Returns the SHA-256 of its file; nothing when there is none, or it is not ours to change.
    async fn change_record(
        &self,
        vehicle: &Vehicle,
        id: &JobId,
        make: impl FnOnce() -> Option<RunRecord>,
        change: impl FnOnce(&mut RunRecord),
    ) -> Option<String> {
        let log_dir = &vehicle.local_log_dir;
        let _turn = run_files::turn(log_dir).await;
        let read = run_files::read(log_dir, id);
        let mut record = match read {
            Ok(record) => record.or_else(make)?,
            Err(why) => {
                tracing::warn!(%why, job = %id, "the record of a run is left as it is");
                return None;
            }
        };
        change(&mut record);
        match run_files::write(log_dir, id, &record) {
            Ok(sha256) => Some(sha256),
            Err(error) => {
                tracing::warn!(%error, job = %id, "the record of a run could not be written");
                None
            }
        }
    }

    /// Completes the record of a job whose folder came home, by everything that is here now. Returns
    /// what a training's run has left, also when it cannot be written down. `pod` is asked for the run's folder.
    pub(crate) async fn complete_run(
        &self,
        vehicle: &Vehicle,
        pod: Option<&Pod>,
        id: &JobId,
        pulls: &[Pull],
        seen: Option<(String, Option<i32>)>,
    ) -> Option<Results> {
        let log_dir = &vehicle.local_log_dir;
        let job_dir = log_dir.join(format!("jobs/{id}"));
        let now = self.clock.now();
        let known = run_files::read(log_dir, id).ok().flatten();
        let base = known.or_else(|| self.as_its_folder_tells(vehicle, pod, id, &job_dir))?;
        let line = run_left::run_line(&base);
        // A thread of its own, since a log may be long; not for a folder that is not here, so that a
        // simulated run can be told again.
        let (log, exit) = if job_dir.is_dir() {
            let job_dir = job_dir.clone();
            let look = move || (run_home::log(&job_dir, line.as_deref()), run_home::exit(&job_dir));
            tokio::task::spawn_blocking(look).await.ok()?
        } else {
            (None, None)
        };
        let results = match &log {
            Some(log) => {
                let was_over = base.ended_at.is_some();
                let ended = was_over || exit.is_some() || seen.is_some();
                self.run_left(vehicle, pod, &base, log, pulls, ended).await
            }
            None => None,
        };
        if let Some(results) = &results
            && let Err(error) = whole_file::replace(&job_dir.join("results.json"), results)
        {
            tracing::warn!(%error, "results.json could not be written");
        }
        let (noted, found) = (self.end_in_journal(id), results.clone());
        let homes: Vec<Home> = pulls.iter().map(|pull| home(vehicle, pull, now)).collect();
        let change = |record: &mut RunRecord| {
            if let Some((state, exit_code)) = seen {
                record.saw(Seen { state, exit_code, at: now });
            }
            if let Some(exit) = exit {
                let (state, exit_code) = (exit.state().to_owned(), Some(exit.code));
                record.saw(Seen { state, exit_code, at: now });
            }
            take_log(record, log.as_ref());
            record.results = found.or_else(|| record.results.take());
            homes.into_iter().for_each(|home| record.came_home(home));
            set_end(record, exit.and_then(|exit| exit.at), noted, now);
        };
        if let Some(sha256) = self.change_record(vehicle, id, || Some(base), change).await {
            self.note_recorded(vehicle, id, sha256);
        }
        results
    }

    /// Adds what a supervise knows at its end.
    pub(crate) async fn run_over(&self, vehicle: &Vehicle, id: &JobId, over: RunOver) {
        let (now, noted) = (self.clock.now(), self.end_in_journal(id));
        let change = |record: &mut RunRecord| {
            if let Some(state) = over.state {
                record.saw(Seen { state, exit_code: over.exit_code, at: now });
            }
            if record.metrics.is_none() {
                record.metrics = over.metrics.as_ref().map(Numbers::from);
            }
            set_end(record, None, noted, now);
            record.supervised = Some(over.supervised);
        };
        if let Some(sha256) = self.change_record(vehicle, id, || None, change).await {
            self.note_recorded(vehicle, id, sha256);
        }
    }

    /// Completes the records of the jobs that a pull was about: of a job's own folder that job, of a
    /// folder of runs the jobs whose runs lie in it.
    pub(super) async fn complete_after(&self, vehicle: &Vehicle, pod: &Pod, pull: Pull) {
        let subdir = pull.subdir.clone();
        let pulls = [pull];
        let own = subdir.strip_prefix("jobs/").and_then(JobId::parse);
        if let Some(id) = own {
            self.complete_run(vehicle, Some(pod), &id, &pulls, None).await;
            return;
        }
        let is_around = |one: &str, other: &str| {
            one == other || one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
        };
        let (mut records, _) = run_files::all(&vehicle.local_log_dir);
        records.retain(|(record, _)| {
            let root = run_left::log_root(record);
            let of_root =
                root.is_some_and(|root| is_around(&root, &subdir) || is_around(&subdir, &root));
            of_root || subdir == "jobs"
        });
        // Their names begin with the time of the launch.
        records.sort_by(|(one, _), (other, _)| other.job_id.cmp(&one.job_id));
        for (record, _) in records.into_iter().take(AT_ONCE) {
            let Some(id) = JobId::parse(&record.job_id) else { continue };
            let is_home = vehicle.local_log_dir.join(format!("jobs/{id}/out.log")).is_file();
            let has_files = record.results.as_ref().is_some_and(|results| {
                !results.files.is_empty() && results.files.iter().all(|file| file.sha256.is_some())
            });
            let is_whole = has_files || record.training().is_none();
            if is_home && !(is_whole && record.ended_at.is_some()) {
                self.complete_run(vehicle, Some(pod), &id, &pulls, None).await;
            }
        }
    }

    /// A record of a job that another computer launched, or an older podtether: from what its own
    /// folder remembers.
    fn as_its_folder_tells(
        &self,
        vehicle: &Vehicle,
        pod: Option<&Pod>,
        id: &JobId,
        job_dir: &Path,
    ) -> Option<RunRecord> {
        let JobMeta {
            name, command, workdir, pod_id, max_runtime_sec, started_at, provenance, ..
        } = run_home::meta(job_dir)?;
        let rate = provenance.get("usd_per_hour").and_then(|rate| rate.as_str());
        Some(RunRecord {
            pod_id: pod_id
                .or_else(|| pod.map(|pod| pod.id.clone()))
                .map_or_else(String::new, |PodId(id)| id),
            name,
            command,
            workdir,
            ceiling_sec: max_runtime_sec,
            micros_per_hour: rate.and_then(|rate| Usd::from_decimal(rate).ok()).map(Usd::micros),
            provenance,
            ..self.record_of(vehicle, id, started_at?)
        })
    }

    fn record_of(&self, vehicle: &Vehicle, id: &JobId, launched_at: DateTime<Utc>) -> RunRecord {
        RunRecord::launched(self.cloud_name().as_str(), &vehicle.name.0, id.as_str(), launched_at)
    }

    /// When somebody first saw that the job had ended.
    fn end_in_journal(&self, id: &JobId) -> Option<DateTime<Utc>> {
        let (launches, _) = self.ledger.as_ref()?.launches();
        let launch = launches.all().iter().rev().find(|launch| launch.job == id.as_str())?;
        launch.ended.as_ref().map(|(at, _)| *at)
    }

    fn note_recorded(&self, vehicle: &Vehicle, id: &JobId, sha256: String) {
        let Some(ledger) = &self.ledger else { return };
        let (vehicle, job) = (vehicle.name.0.clone(), id.to_string());
        if let Err(error) = ledger.append(Event::RunRecorded { vehicle, job, sha256 }) {
            tracing::warn!(%error, job = %id, "the record of a run could not be noted");
        }
    }
}

fn take_log(record: &mut RunRecord, log: Option<&LogSays>) {
    let Some(log) = log else { return };
    if log.numbers.is_some() {
        (record.metrics, record.iterations_done) = (log.numbers.clone(), log.iterations_done);
    }
}

fn home(vehicle: &Vehicle, pull: &Pull, at: DateTime<Utc>) -> Home {
    Home {
        from: vehicle.on_volume(&pull.subdir),
        to: vehicle.local_log_dir.join(&pull.subdir).display().to_string(),
        complete: pull.complete,
        at,
    }
}

/// Sets the end of a job that has ended: when the pod wrote its exit code, where that makes sense, else
/// when its end was `noted` in the journal.
fn set_end(
    record: &mut RunRecord,
    written: Option<DateTime<Utc>>,
    noted: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) {
    if !record.ran_to_an_end() {
        return;
    }
    // The pod's clock may be another one than ours.
    let written = written.filter(|at| *at >= record.launched_at && *at <= now);
    record.ended_at = written.or(record.ended_at).or(noted);
    record.reckon();
}

impl From<&LatestMetrics> for Numbers {
    fn from(latest: &LatestMetrics) -> Self {
        Self {
            iteration: latest.iteration,
            total_iterations: latest.total_iterations,
            mean_reward: latest.mean_reward.filter(|reward| reward.is_finite()),
        }
    }
}
