//! The thin loop around the machine of a watch: looks at the job, its log, its GPU and its pod, and keeps the
//! status file true. It changes nothing at the provider and nothing on the pod.

use super::log_form::LogForm;
use super::probe::{LONG, live_jobs};
use super::watch_moment::WatchMoment;
use super::watch_pod::WatchedPod;
use super::watch_sight::WatchSight;
use super::watch_status::{Artifacts, Kept, Resume, WatchSpec, WatchStatus};
use super::{Tether, job_id};
use crate::domain::{JobId, Pod, Vehicle};
use crate::error::Failure;
use crate::plan::LiveJobs;
use crate::pod::JobLook;
use crate::pod::jobs::LogSlice;
use crate::secret::scrub;
use crate::watch::state::{self, Effect, Event, Look, State, Terms};
use crate::watch::{LogReading, LogTail, PlateauRule, Verdict};
use chrono::TimeDelta;
use std::path::PathBuf;
use std::time::Duration;

/// How much of the log one look takes.
const LOOK_BYTES: u32 = 256 * 1024;

/// What is asked of a watch.
#[derive(Clone, Debug)]
pub struct WatchRequest {
    /// The vehicle; the config's default when `None`.
    pub vehicle: Option<String>,
    /// The job; the newest live one when `None`.
    pub job_id: Option<String>,
    /// Between two looks.
    pub interval: Duration,
    /// How long a job may take to appear and its log to begin.
    pub startup_grace: Duration,
    /// How long a log may be silent.
    pub stall: Duration,
    /// When a flat reward is a plateau.
    pub plateau: PlateauRule,
    /// How the log is read.
    pub form: LogForm,
    /// Where the status goes; `watch-<job_id>.json` in the vehicle's log folder when `None`.
    pub status_path: Option<PathBuf>,
}

/// What a watch tells while it goes on.
#[derive(Clone, Debug)]
pub enum WatchNote {
    /// Something happened, in a sentence.
    Said(String),
    /// What a look saw, for a screen.
    Saw(Box<WatchSight>),
    /// A round is over.
    Round(Box<WatchStatus>),
    /// People are to be told.
    Page(Verdict),
    /// The job was seen to end well, for the first time.
    Ended,
}

impl Tether {
    /// Watches a job until there is a verdict. Returns the last status, whose `process_exit_code` is the
    /// outcome.
    ///
    /// # Errors
    /// Bad input, or no running pod and no earlier watch of this job.
    pub async fn watch(
        &self,
        request: &WatchRequest,
        tell: &mut (dyn FnMut(WatchNote) + Send),
    ) -> Result<WatchStatus, Failure> {
        let vehicle = self.vehicle(request.vehicle.as_deref())?;
        let job = request.job_id.as_deref().map(job_id::job_id).transpose()?;
        let delta = |time| TimeDelta::from_std(time).unwrap_or(TimeDelta::MAX);
        let terms = Terms {
            interval: delta(request.interval),
            startup_grace: delta(request.startup_grace),
            stall: delta(request.stall),
            plateau: request.plateau,
        };
        let now = self.clock.now();
        let status = WatchStatus {
            cloud: self.cloud_name(),
            job_id: None,
            spec: WatchSpec {
                vehicle: vehicle.name.0.clone(),
                interval: request.interval.as_secs(),
                startup_grace: request.startup_grace.as_secs(),
                stall_sec: request.stall.as_secs(),
                plateau: request.plateau,
            },
            iteration: None,
            total_iterations: None,
            mean_reward: None,
            trend: None,
            plateau_fired: false,
            failure_detected: None,
            exit_code_artifact: None,
            gone_from_active: false,
            stalled: false,
            quiet: false,
            offset_bytes: 0,
            artifacts: None,
            verdict: None,
            started_at: now,
            updated_at: now,
            ended_at: None,
            process_exit_code: None,
            status_path: request.status_path.clone(),
            unwritten: Default::default(),
            resume: Resume {
                state: State::new(now, job.is_some()),
                reading: request.form.reading().state(),
                read_to: 0,
                at: None,
            },
        };
        let mut watching = Watching {
            tether: self,
            request,
            vehicle,
            pod: None,
            job: None,
            moment: WatchMoment::new(&*self.clock, None),
            state: State::new(now, job.is_some()),
            reading: request.form.reading(),
            offset: 0,
            read_to: 0,
            tail: LogTail::default(),
            gpu_percent: None,
            status,
        };
        let is_known = job.is_some_and(|job| watching.adopt(job, tell));
        let first = match self.watched_pod(&watching.vehicle, is_known).await? {
            WatchedPod::On(pod) => {
                watching.pod = Some(*pod);
                None
            }
            WatchedPod::Off => Some(Event::Pod(Some((false, "not running".to_owned())))),
        };
        let begin = if watching.job.is_some() { Effect::LookOn } else { Effect::Discover };
        watching.run(begin, first, &terms, tell).await;
        Ok(watching.status)
    }
}

struct Watching<'a> {
    tether: &'a Tether,
    request: &'a WatchRequest,
    vehicle: Vehicle,
    pod: Option<Pod>,
    job: Option<JobId>,
    moment: WatchMoment,
    state: State,
    reading: LogReading,
    /// How far the log was read by this process.
    offset: u64,
    /// How far it was read by any process that watched this job.
    read_to: u64,
    /// The end of its log, for people.
    tail: LogTail,
    /// The busiest GPU in percent, as the last look at the job saw it.
    gpu_percent: Option<u32>,
    status: WatchStatus,
}

impl Watching<'_> {
    /// Takes a job, and what an earlier watch of it has left; whether there was one.
    fn adopt(&mut self, job: JobId, tell: &mut (dyn FnMut(WatchNote) + Send)) -> bool {
        let default = || self.vehicle.local_log_dir.join(format!("watch-{job}.json"));
        let path = self.request.status_path.clone().unwrap_or_else(default);
        let job_dir = self.tether.job_dir(&self.vehicle, &job);
        let log = format!("{job_dir}/out.log");
        self.status.artifacts = Some(Artifacts { job_dir, log });
        self.status.job_id = Some(job.to_string());
        let kept = Kept::read(&path, job.as_str());
        self.status.status_path = Some(path);
        self.job = Some(job);
        let Some(kept) = kept else { return false };
        self.offset = kept.resume.reading.offset;
        self.read_to = kept.resume.read_to;
        self.reading = self.request.form.reading().resume(&kept.resume.reading);
        self.state = kept.resume.state.resumed();
        self.moment = WatchMoment::new(&*self.tether.clock, kept.resume.at);
        self.status.started_at = kept.started_at;
        self.status.mean_reward = kept.mean_reward;
        tell(WatchNote::Said(format!("going on with the watch of {}", kept.started_at)));
        true
    }

    async fn run(
        &mut self,
        begin: Effect,
        first: Option<Event>,
        terms: &Terms,
        tell: &mut (dyn FnMut(WatchNote) + Send),
    ) {
        let (mut effect, mut first, mut waits) = (begin, first, false);
        loop {
            let event = match first.take() {
                Some(event) => event,
                None => self.carry_out(&effect, waits, tell).await,
            };
            waits = true;
            let now = self.moment.now(&*self.tether.clock);
            let (state, effects) = state::next(&self.state, &event, now, terms);
            if self.state.verdict().is_none() && state.verdict() == Some(&Verdict::Done) {
                tell(WatchNote::Ended);
            }
            self.state = state;
            let is_over = self.record(&effects);
            // While no job is known, a file of the user's own place keeps what an earlier watch has left in it:
            // the job that is found may be the same.
            let is_nothing_yet = self.job.is_none() && !is_over;
            if let Some(why) = self.status.kept(is_nothing_yet) {
                tell(WatchNote::Said(why));
            }
            let mut go_on = Effect::Look;
            for effect in effects {
                match effect {
                    Effect::Page(verdict) => tell(WatchNote::Page(verdict)),
                    Effect::Finish(_) => {}
                    effect => go_on = effect,
                }
            }
            if is_over {
                return;
            }
            if matches!(go_on, Effect::Look) {
                tell(WatchNote::Round(Box::new(self.status.clone())));
            }
            effect = go_on;
        }
    }

    async fn carry_out(
        &mut self,
        effect: &Effect,
        waits: bool,
        tell: &mut (dyn FnMut(WatchNote) + Send),
    ) -> Event {
        if waits && matches!(effect, Effect::Look | Effect::Discover) {
            tokio::time::sleep(self.request.interval).await;
        }
        let Some(pod) = self.pod.clone() else { return Event::NoContact };
        match effect {
            Effect::Discover => match self.live_jobs(&pod).await {
                // Ids begin with the time of launch.
                LiveJobs::Known(jobs) => match jobs.into_iter().max() {
                    Some(job) => {
                        tell(WatchNote::Said(format!("watching job {job}")));
                        self.adopt(job, tell);
                        // What was kept may be past discovery already.
                        Event::Discovered(true)
                    }
                    None => Event::Discovered(false),
                },
                LiveJobs::Unknown(why) => {
                    tell(WatchNote::Said(format!("the live jobs are not known: {why}")));
                    Event::NoContact
                }
            },
            Effect::AskProvider => match self.tether.pod_by_id(&pod.id).await {
                Ok(Some(now)) => {
                    tell(WatchNote::Said(format!("the provider says {}", now.status)));
                    let answer = (now.status.bills_compute(), now.status.to_string());
                    // Every boot has another address (F01).
                    self.pod = Some(now);
                    Event::Pod(Some(answer))
                }
                Ok(None) if self.tether.is_on_no_list(&pod.id).await => {
                    Event::Pod(Some((false, "not on the account any more".to_owned())))
                }
                Ok(None) => Event::Pod(None),
                Err(failure) => {
                    tell(WatchNote::Said(format!("the provider: {}", failure.message)));
                    Event::Pod(None)
                }
            },
            // It is asked for right after a look, which has seen it.
            Effect::AskGpu => Event::Gpu(self.gpu_percent),
            _ => self.look(&pod, tell).await,
        }
    }

    async fn live_jobs(&self, pod: &Pod) -> LiveJobs {
        match self.tether.look(&self.vehicle, pod, LONG, false, None).await {
            Ok(look) => live_jobs(&look),
            Err(failure) => LiveJobs::Unknown(failure.message),
        }
    }

    async fn look(&mut self, pod: &Pod, tell: &mut (dyn FnMut(WatchNote) + Send)) -> Event {
        let Some(job) = self.job.clone() else { return Event::Discovered(false) };
        let job = JobLook { id: &job, max_bytes: LOOK_BYTES, offset: Some(self.offset) };
        let looked = self.tether.look_at_job(&self.vehicle, pod, job, LONG).await;
        let (status, seen) = match looked {
            Ok((status, look)) => {
                let seen = self.tether.sight_of_pod(&self.vehicle, pod, &look);
                self.gpu_percent = seen.gpu_percent;
                (status, seen)
            }
            Err(failure) => {
                tell(WatchNote::Said(format!("the pod did not answer: {}", failure.message)));
                return Event::NoContact;
            }
        };
        // A volume that did not answer has not made the log shorter.
        let log = match &status.log {
            Some(log) => log.clone(),
            None => LogSlice { offset: self.offset, size: self.offset, bytes: Vec::new() },
        };
        if log.size < self.offset {
            // Another log under the same name: it is read from its start.
            (self.reading, self.offset, self.read_to) = (self.request.form.reading(), 0, 0);
            self.tail = LogTail::default();
            return self.seen(&status, (Vec::new(), false), true, false);
        }
        let before = self.reading.position().map(|at| at.iteration);
        let mut blocks = self.reading.push(&log.bytes);
        self.tail.push(&log.bytes);
        self.offset = log.next_offset();
        let grew = self.offset > self.read_to;
        self.read_to = self.read_to.max(self.offset);
        // A log that gives nothing is not asked again at once.
        let at_end = self.offset >= log.size || log.bytes.is_empty();
        if at_end && status.state.has_ended() {
            blocks.extend(self.reading.finish());
        }
        let progressed =
            !blocks.is_empty() || self.reading.position().map(|at| at.iteration) != before;
        let points = blocks.iter().filter_map(|block| Some((block.iteration, block.mean_reward?)));
        let points: Vec<(u64, f64)> = points.collect();
        tell(WatchNote::Saw(Box::new(WatchSight {
            at: self.tether.clock.now(),
            job: status.state,
            points: points.clone(),
            log: self.tail.lines(|line| scrub(line, &[])),
            log_age: status.log_age,
            eta: self.reading.position().and_then(|at| at.eta),
            pod: seen,
        })));
        self.seen(&status, (points, grew), progressed, at_end)
    }

    fn seen(
        &mut self,
        status: &crate::pod::jobs::JobStatus,
        (points, grew): (Vec<(u64, f64)>, bool),
        progressed: bool,
        at_end: bool,
    ) -> Event {
        self.status.exit_code_artifact = status.exit_code;
        self.status.gone_from_active = status.state.has_ended();
        if let Some((_, reward)) = points.last() {
            self.status.mean_reward = Some(*reward);
        }
        Event::Looked(Box::new(Look {
            job: Some(status.state),
            exit_code: status.exit_code,
            grew,
            at_end,
            log_age: status.log_age.and_then(|age| TimeDelta::from_std(age).ok()),
            progressed,
            points,
            finding: self.reading.failure(),
            finished: self.reading.is_finished(),
        }))
    }

    /// Keeps the status in step with the state; whether it is over.
    fn record(&mut self, effects: &[Effect]) -> bool {
        let (now, at) = (self.tether.clock.now(), self.moment.now(&*self.tether.clock));
        let position = self.reading.position();
        let status = &mut self.status;
        status.iteration = position.map(|at| at.iteration);
        status.total_iterations = position.and_then(|at| at.total);
        status.trend = self.state.curve.trend();
        status.failure_detected = self.reading.failure();
        status.quiet = self.state.quiet;
        status.plateau_fired |= matches!(self.state.paged, Some(Verdict::Plateau(_)));
        status.stalled = matches!(self.state.paged, Some(Verdict::Stalled { .. }));
        let (reading, at) = (self.reading.state(), Some(at));
        status.offset_bytes = reading.offset;
        status.resume = Resume { state: self.state.clone(), reading, read_to: self.read_to, at };
        status.updated_at = now;
        status.verdict = self.state.verdict().map(ToString::to_string);
        if let Some(Verdict::Failed(finding)) = self.state.verdict() {
            status.failure_detected = Some(finding.clone());
        }
        let code = effects.iter().find_map(|effect| match effect {
            Effect::Finish(code) => Some(*code),
            _ => None,
        });
        status.process_exit_code = code;
        status.ended_at = code.map(|_| now);
        code.is_some()
    }
}
