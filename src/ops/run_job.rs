//! run_job: a detached command under a finite ceiling.

use super::gather::Needs;
use super::provenance::Provenance;
use super::recipe_facts::RecipeFacts;
use super::reconcile::ledger_failure;
use super::unknown_launches::may_have_started;
use super::wanted::{Prepared, Wanted};
use super::{CloudName, JobKind, StepView, Tether, boot, training_record};
use crate::apply::{self, ApplyError, StepError, StepOutcome};
use crate::domain::{Ceiling, JobEnd, JobId, Labels, Pod, Usd, Vehicle};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::guard::WorstCase;
use crate::held::Held;
use crate::ledger::{Action, Event};
use crate::plan::{self, Draft, Facts, Intent, LaunchSpec, VolumeHealth};
use chrono::TimeDelta;
use rand::RngExt as _;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What is asked of run_job.
#[derive(Clone, Debug, Default)]
pub struct RunJobRequest {
    /// Name; part of the job's id.
    pub name: String,
    /// The command, run by bash as it is.
    pub command: String,
    /// The folder to run in; the volume's mount path when `None`.
    pub workdir: Option<String>,
    /// Stop the pod when the job ends, however it ends.
    pub auto_stop: bool,
    /// Run beside a live job.
    pub force: bool,
    /// Only show the plan.
    pub dry_run: bool,
    /// Ceiling in seconds; timeouts.job_sec when `None`.
    pub max_runtime_sec: Option<i64>,
    /// The vehicle; the default one when `None`.
    pub vehicle: Option<String>,
    /// What the job is: the command above, a training, or a script of the config.
    pub kind: JobKind,
    /// Labels of the run; what is missing comes from the config and from who calls.
    pub labels: Labels,
}

/// The answer of run_job.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunJobAnswer {
    /// Which cloud answered.
    pub cloud: CloudName,
    /// On which vehicle's pod.
    pub vehicle: String,
    /// The job's id. In a dry run, what it would be if it were launched this second.
    pub job_id: String,
    /// The job's folder on the pod.
    pub job_dir: String,
    /// The longest it may run, in seconds; then TERM, and KILL 60 s later.
    pub ceiling_sec: u32,
    /// Whether the pod stops itself when the job ends.
    pub auto_stop: bool,
    /// The most it can cost, with what may come after.
    pub worst_case_usd: Usd,
    /// Dry run: line by line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub worst_case: Vec<String>,
    /// Whether a launch with this id had been made before.
    pub already_started: bool,
    /// What to do next.
    pub hint: String,
    /// Dry run: the very commands that the real call sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Vec<StepView>>,
}

/// What is known of a job before it starts.
pub(crate) struct Details {
    pub(crate) vehicle: Vehicle,
    pub(crate) pod: Pod,
    pub(crate) id: JobId,
    pub(crate) ceiling: Ceiling,
    /// Its name.
    pub(crate) name: String,
    /// What it runs.
    pub(crate) command: String,
    /// The folder it starts in.
    pub(crate) workdir: String,
    /// Of a training: what it runs by, and what was found.
    pub(crate) training: Option<(Prepared, RecipeFacts)>,
    /// What is noted of where it comes from.
    provenance: Provenance,
    /// Launches of unknown outcome that its first steps call off, by their number in the journal.
    unknown_launches: Vec<u64>,
}

/// A job that was checked and planned but not started.
pub(crate) struct PlannedJob {
    details: Details,
    approved: crate::guard::Approved,
    /// The volume as it looked, which was good enough.
    health: VolumeHealth,
    /// Held from the look at the live jobs to the launch (B05).
    turn: Mutex<Option<Held>>,
}

impl std::ops::Deref for PlannedJob {
    type Target = Details;

    fn deref(&self) -> &Details {
        &self.details
    }
}

/// A launch that no rule has seen yet, with the facts that it was drafted from.
pub(super) struct DraftedJob {
    pub(super) draft: Draft,
    pub(super) facts: Facts,
    pub(super) details: Details,
    turn: Option<Held>,
}

/// How long another session may be about to change something.
const TURN: Duration = Duration::from_secs(20);

impl PlannedJob {
    /// What the launch costs at most.
    pub(crate) const fn worst_case(&self) -> &WorstCase {
        self.approved.worst_case()
    }

    /// What the launch sends.
    pub(super) fn steps(&self) -> &[plan::Step] {
        self.approved.steps()
    }
}

impl Tether {
    /// Starts a job, or shows what would start.
    ///
    /// # Errors
    /// Bad input, refusals, no running pod, or a launch that failed. A lost launch answer is a
    /// failure of kind `ssh_unreachable`; the job may run, ask job_status with the id in the message.
    pub async fn run_job(&self, request: &RunJobRequest) -> Result<RunJobAnswer, Failure> {
        let end = if request.auto_stop { JobEnd::AutoStop } else { JobEnd::Left };
        let job = self.plan_job(request, end).await?;
        if request.dry_run {
            let mut hint = format!(
                "This is what the call would send; nothing was changed. {}",
                super::volume_health::told(&job.vehicle, &job.health)
            );
            if let Some(told) = self.receipts_told(&job.vehicle) {
                hint.push_str(&format!(" {told}"));
            }
            let plan = Some(StepView::all(job.approved.steps(), &*self.cloud));
            let worst_case = job.worst_case().told();
            return Ok(RunJobAnswer {
                plan,
                worst_case,
                ..self.job_answer(&job, request, false, hint)
            });
        }
        self.launch(&job, request).await
    }

    /// Checks the request and the facts and drafts the launch; changes nothing. `end` is what comes
    /// after the job, for its worst case.
    pub(crate) async fn plan_job(
        &self,
        request: &RunJobRequest,
        end: JobEnd,
    ) -> Result<PlannedJob, Failure> {
        let DraftedJob { draft, facts, details, turn } = self.draft_job(request, end).await?;
        let health = facts.volume_health.clone();
        let approved = self.review_spend(draft, facts).await?;
        Ok(PlannedJob { details, approved, health, turn: Mutex::new(turn) })
    }

    /// The same before the rules have seen it.
    pub(super) async fn draft_job(
        &self,
        request: &RunJobRequest,
        end: JobEnd,
    ) -> Result<DraftedJob, Failure> {
        let Wanted { vehicle, name, mut command, workdir, ceiling, training, script } =
            self.wanted(request)?;
        let turn = if request.dry_run { None } else { self.turn(TURN).await? };
        if !request.dry_run {
            self.not_during_a_drill(&vehicle)
                .map_err(|failure| failure.billing(StillBilling::Yes))?;
        }
        let mut facts = self.gather(Needs { volumes: true, offers_for: None }).await?;
        let mut pod = self.pick(&vehicle, &mut facts).await?;
        self.reconcile(&mut facts).await.map_err(|failure| failure.billing(StillBilling::Yes))?;
        if pod.price.known().is_none() {
            pod.price = self.catalog_price(&pod).await;
        }
        let (seen, training) = match training {
            None => (self.before_a_job(&vehicle, &pod).await, None),
            Some(prepared) => {
                let look = self.recipe_facts(&vehicle, &pod, &prepared);
                let (seen, found) = tokio::join!(self.before_a_job(&vehicle, &pod), look);
                facts.gates = found.gates.clone();
                (seen, Some((prepared, found)))
            }
        };
        let driver = seen.driver.as_deref();
        let mut provenance = self.provenance(&vehicle, &pod, driver, &request.labels).await;
        if let Some((prepared, found)) = &training {
            provenance.insert("training".to_owned(), training_record::recorded(prepared, found));
        }
        (facts.live_jobs, facts.volume_health) = (seen.live_jobs, seen.health);
        let is_supervised = matches!(end, JobEnd::Supervised { .. });
        let (watchdog, unproven) = (seen.watchdog.as_deref(), facts.spend.fuse);
        let fuse =
            self.fuse_of_a_plan(&vehicle, &pod, &seen.jobs, watchdog, is_supervised, unproven);
        facts.spend.fuse = self.once_extended(fuse, ceiling, end);
        let started_at = self.clock.now();
        let id = JobId::new(started_at, &name, rand::rng().random::<u16>());
        let script = script.unwrap_or_default();
        if !script.files.is_empty() {
            command = script.command(&self.job_dir(&vehicle, &id))?;
            provenance.insert("files".to_owned(), script.recorded());
        }
        let (unknown_launches, called_off) = self.unknown_launches(&pod);
        let edits = training.iter().flat_map(|(_, found)| &found.edits);
        let spec = LaunchSpec {
            pod: pod.id.clone(),
            mount: vehicle.volume_mount_path.clone(),
            job_id: id.clone(),
            name,
            command: command.clone(),
            workdir: workdir.clone(),
            ceiling,
            auto_stop: request.auto_stop,
            env: script.env,
            started_at,
            unknown_launches: called_off,
            force: request.force,
            replacements: edits.map(|edit| edit.replacement.clone()).collect(),
            provenance: provenance.clone(),
            files: script.files,
        };
        let steps = plan::launch_steps(&spec);
        let intent = Intent::Launch { force: request.force, ceiling, end };
        let draft =
            plan::on_pod(&vehicle, request.vehicle.is_some(), intent, steps, Some(pod.price));
        let details = Details {
            vehicle,
            pod,
            id,
            ceiling,
            name: spec.name.as_str().to_owned(),
            command,
            workdir,
            training,
            provenance,
            unknown_launches,
        };
        Ok(DraftedJob { draft, facts, details, turn })
    }

    /// Starts a planned job.
    pub(crate) async fn launch(
        &self,
        job: &PlannedJob,
        request: &RunJobRequest,
    ) -> Result<RunJobAnswer, Failure> {
        // Given back on every way out: whoever planned it may go on with the pod for hours.
        let _turn = job.turn.lock().unwrap_or_else(PoisonError::into_inner).take();
        let shell = self.shell(&job.vehicle, &job.pod)?;
        self.cover_job(&job.vehicle, &job.pod, job.ceiling).await?;
        let promise = self.promise(job)?;
        // Its shell has answered, so the boot is over: one that is noted still would be given up, and this
        // job stopped with it, at the first call that the shell does not answer.
        boot::over(&job.vehicle);
        self.note_launch(job, &job.provenance).await;
        let launched =
            apply::apply(&job.approved, &self.ports(&job.vehicle, Some(&*shell), None)).await;
        self.launched(promise, job, &launched);
        self.note_outcome(job, &launched).await;
        self.note_called_off(&job.pod, &job.unknown_launches, &launched);
        let outcomes = launched.map_err(|error| {
            let mut failure = launch_failure(error.error).billing(StillBilling::Yes);
            failure.message = format!("launching job {}: {}", job.id, failure.message);
            failure
        })?;
        let already = match outcomes.last() {
            Some(StepOutcome::Ran(output)) => output.stdout.text().trim() == "already_started",
            _ => false,
        };
        let hint = format!(
            "Ask job_status with job_id={} and vehicle={}; results are in {}.",
            job.id,
            job.vehicle.name,
            self.job_dir(&job.vehicle, &job.id)
        );
        Ok(self.job_answer(job, request, already, hint))
    }

    /// Reserves what the launch may cost before any of it is done.
    fn promise(&self, job: &PlannedJob) -> Result<Option<u64>, Failure> {
        let Some(ledger) = &self.ledger else { return Ok(None) };
        let worst_case = job.worst_case();
        let now = self.clock.now();
        let until = TimeDelta::from_std(worst_case.pod_time())
            .ok()
            .and_then(|time| now.checked_add_signed(time))
            .unwrap_or(chrono::DateTime::<chrono::Utc>::MAX_UTC);
        let action = Action::LaunchJob {
            pod: job.pod.id.clone(),
            job: job.id.to_string(),
            ceiling_sec: job.ceiling.as_secs(),
            tail_sec: worst_case.tail().as_secs(),
            until,
            provenance: job.provenance.clone(),
        };
        let make = |id| Event::Intend {
            id,
            vehicle: job.vehicle.name.0.clone(),
            action,
            micros_per_hour: job.pod.price.known().map(|rate| rate.per_hour().micros()),
        };
        let noted = ledger.intend(make);
        noted.map(Some).map_err(|error| ledger_failure(&error).billing(StillBilling::Yes))
    }

    /// Notes how a launch ended. What may have started keeps its reservation, and so does one whose
    /// end cannot be noted.
    fn launched(
        &self,
        promise: Option<u64>,
        job: &PlannedJob,
        launched: &Result<Vec<StepOutcome>, ApplyError>,
    ) {
        let (Some(id), Some(ledger)) = (promise, &self.ledger) else { return };
        let event = match launched {
            Ok(_) => Event::Done {
                id,
                pod: Some(job.pod.id.clone()),
                observed: format!("job {} launched", job.id),
            },
            Err(error) => Event::Failed {
                id,
                error: error.to_string(),
                may_have_taken_effect: may_have_started(error, job.steps().len()),
            },
        };
        if let Err(error) = ledger.append(event) {
            tracing::error!(%error, job = %job.id, "the end of a launch could not be noted");
        }
    }

    pub(crate) fn job_dir(&self, vehicle: &Vehicle, id: &JobId) -> String {
        plan::job_dir(&vehicle.volume_mount_path, id)
    }

    fn job_answer(
        &self,
        job: &PlannedJob,
        request: &RunJobRequest,
        already_started: bool,
        hint: String,
    ) -> RunJobAnswer {
        RunJobAnswer {
            cloud: self.cloud_name(),
            vehicle: job.vehicle.name.0.clone(),
            job_id: job.id.to_string(),
            job_dir: self.job_dir(&job.vehicle, &job.id),
            ceiling_sec: job.ceiling.as_secs(),
            auto_stop: request.auto_stop,
            worst_case_usd: job.worst_case().total(),
            worst_case: Vec::new(),
            already_started,
            hint,
            plan: None,
        }
    }
}

/// A file that is not what was read is no fault of anybody's: the next call reads it anew.
fn launch_failure(error: StepError) -> Failure {
    let changed = |output: &crate::pod::ExecOutput| {
        output.status == crate::pod::ExecStatus::Code(plan::CHANGED_SINCE)
    };
    match &error {
        StepError::CommandFailed { output, .. } if changed(output) => {
            let hint = "nothing was launched; call again, which reads the file anew";
            Failure::new(FailureKind::Conflict, error, hint).retryable()
        }
        _ => super::ensure::start_failure(error),
    }
}
