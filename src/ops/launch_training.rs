//! launch_training: a job by the recipe of a training.

use super::estimate::Estimate;
use super::recipe_facts::FileEdit;
use super::run_job::PlannedJob;
use super::{CloudName, JobKind, RunJobRequest, StepView, Tether, TrainingChoice};
use crate::domain::{JobEnd, Usd};
use crate::error::Failure;
use crate::plan::Gates;
use crate::training::edit;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// What is asked of launch_training.
#[derive(Clone, Debug, Default)]
pub struct LaunchTrainingRequest {
    /// Which training, level, seed and extra arguments.
    pub choice: TrainingChoice,
    /// Stop the pod when the job ends, however it ends.
    pub auto_stop: bool,
    /// Run beside a live job.
    pub force: bool,
    /// Only show the plan.
    pub dry_run: bool,
}

/// A file that gets the level's values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
pub struct EditView {
    /// The file on the pod.
    pub file: String,
    /// The level that was found in it.
    pub from_level: String,
    /// How many of its lines change; 0 when the level is there already.
    pub lines: usize,
    /// SHA-256 of the file as it was read. It is written only while it is that.
    pub sha256_before: String,
    /// SHA-256 of the file as it is read back.
    pub sha256_after: String,
}

/// The answer of launch_training.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LaunchTrainingAnswer {
    /// Which cloud answered.
    pub cloud: CloudName,
    /// On which vehicle's pod.
    pub vehicle: String,
    /// Its name.
    pub training: String,
    /// The job's id; of a dry run, one that it will not have.
    pub job_id: String,
    /// The level's one name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// The level's values to the letter.
    pub values: BTreeMap<String, String>,
    /// Its seed.
    pub seed: u32,
    /// More arguments for its command.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub extra_args: String,
    /// Whether the code respects its seed; missing when nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed_respected: Option<bool>,
    /// Files with the level's values.
    pub edits: Vec<EditView>,
    /// The longest it may run, in seconds.
    pub ceiling_sec: u32,
    /// Whether the pod stops itself when the job ends.
    pub auto_stop: bool,
    /// The most it can cost.
    pub worst_case_usd: Usd,
    /// What it is expected to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// What to do next.
    pub hint: String,
    /// Dry run: its words, quoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Dry run: the folder it starts in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Dry run: what holds, as it must.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
    /// Dry run: the lines that change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Dry run: line by line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub worst_case: Vec<String>,
    /// Dry run: what the real call sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Vec<StepView>>,
}

impl Tether {
    /// Launches a training by its recipe, or shows what would be done.
    ///
    /// # Errors
    /// Bad input with the nearest value, refusals, no running pod, or a launch that failed. A file that
    /// changed since it was read is a `conflict`: nothing was launched, call again. A lost answer is as
    /// with [`Self::run_job`]; an edit that was made already is no obstacle to the next call.
    pub async fn launch_training(
        &self,
        request: &LaunchTrainingRequest,
    ) -> Result<LaunchTrainingAnswer, Failure> {
        let asked = RunJobRequest {
            kind: JobKind::Training(request.choice.clone()),
            auto_stop: request.auto_stop,
            force: request.force,
            dry_run: request.dry_run,
            ..RunJobRequest::default()
        };
        let end = if request.auto_stop { JobEnd::AutoStop } else { JobEnd::Left };
        let job = self.plan_job(&asked, end).await?;
        let mut answer = self.training_answer(&job, request.auto_stop)?;
        if !request.dry_run {
            let launched = self.launch(&job, &asked).await?;
            answer.hint = launched.hint;
            return Ok(answer);
        }
        answer.plan = Some(StepView::all(job.steps(), &*self.cloud));
        answer.worst_case = job.worst_case().told();
        answer.command = Some(job.command.clone());
        answer.workdir = Some(job.workdir.clone());
        if let Some((_, facts)) = &job.training {
            if let Gates::Seen(gates) = &facts.gates {
                answer.gates = gates.iter().map(|gate| gate.what.clone()).collect();
            }
            let diffs =
                facts.edits.iter().map(|one| edit::diff(&one.replacement.path, &one.changes));
            answer.diff = Some(diffs.collect());
        }
        Ok(answer)
    }

    fn training_answer(
        &self,
        job: &PlannedJob,
        auto_stop: bool,
    ) -> Result<LaunchTrainingAnswer, Failure> {
        let Some((prepared, facts)) = &job.training else {
            let message = "a plan of a training is none";
            let hint = "this is a mistake in podtether";
            return Err(Failure::new(crate::error::FailureKind::Internal, message, hint));
        };
        let recipe = &prepared.recipe;
        let estimate = self.estimate(prepared, &job.pod);
        let mut hint = "This is what the call would send; nothing was changed.".to_owned();
        let ceiling = u64::from(job.ceiling.as_secs());
        if let Some(estimate) = &estimate {
            hint.push_str(&estimate.beside(ceiling));
        }
        if facts.seed_respected == Some(false) {
            hint.push_str(" The code does not respect its seed yet: runs with different seeds differ less than they seem to.");
        }
        Ok(LaunchTrainingAnswer {
            cloud: self.cloud_name(),
            vehicle: job.vehicle.name.0.clone(),
            training: recipe.name.clone(),
            job_id: job.id.to_string(),
            level: prepared.level.as_ref().map(|level| level.name.clone()),
            values: prepared.level.as_ref().map(|level| level.values.clone()).unwrap_or_default(),
            seed: prepared.seed,
            extra_args: prepared.extra_args.clone(),
            seed_respected: facts.seed_respected,
            edits: facts.edits.iter().map(EditView::from).collect(),
            ceiling_sec: job.ceiling.as_secs(),
            auto_stop,
            worst_case_usd: job.worst_case().total(),
            estimate,
            hint,
            command: None,
            workdir: None,
            gates: Vec::new(),
            diff: None,
            worst_case: Vec::new(),
            plan: None,
        })
    }
}

impl PlannedJob {
    /// Of a training: the level's one name, the seed, and the files that get the level.
    pub(crate) fn of_training(&self) -> Option<(Option<String>, u32, Vec<EditView>)> {
        let (prepared, facts) = self.training.as_ref()?;
        let level = prepared.level.as_ref().map(|level| level.name.clone());
        Some((level, prepared.seed, facts.edits.iter().map(EditView::from).collect()))
    }
}

impl From<&FileEdit> for EditView {
    fn from(edit: &FileEdit) -> Self {
        Self {
            file: edit.replacement.path.clone(),
            from_level: edit.found.clone(),
            lines: edit.changes.len(),
            sha256_before: edit.replacement.sha256_before.clone(),
            sha256_after: edit.replacement.sha256_after.clone(),
        }
    }
}
