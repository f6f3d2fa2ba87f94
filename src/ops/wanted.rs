//! What a job is asked to be: a command that somebody wrote, or a training by its recipe. Checked before
//! anything is asked of the provider.

use super::job_parts::JobParts;
use super::{RunJobRequest, Tether, command_line};
use crate::domain::{Ceiling, JobName, Level, Recipe, Vehicle};
use crate::error::Failure;
use crate::training::{self, Run};

/// What a job is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum JobKind {
    /// The command of the request.
    #[default]
    Command,
    /// A training; name, command and workdir of the request are not looked at.
    Training(TrainingChoice),
    /// A script of the config; command and workdir of the request are not looked at.
    Script(Box<JobParts>),
}

/// Which training, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrainingChoice {
    /// Its name.
    pub training: String,
    /// The level, by name or alias; the recipe's default when `None`.
    pub dr_level: Option<String>,
    /// The seed as it was given; 1 when `None`.
    pub seed: Option<String>,
    /// More arguments for the command, split into words.
    pub extra_args: String,
}

/// A training that was found to be runnable.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) recipe: Recipe,
    pub(crate) level: Option<Level>,
    pub(crate) seed: u32,
    /// As they were given.
    pub(crate) extra_args: String,
    pub(crate) run: Run,
}

/// A job that makes sense.
pub(super) struct Wanted {
    pub(super) vehicle: Vehicle,
    pub(super) name: JobName,
    pub(super) command: String,
    pub(super) workdir: String,
    pub(super) ceiling: Ceiling,
    pub(super) training: Option<Prepared>,
    /// Of a script: what travels with it.
    pub(super) script: Option<JobParts>,
}

impl Tether {
    /// Checks a request.
    pub(super) fn wanted(&self, request: &RunJobRequest) -> Result<Wanted, Failure> {
        let wanted = match &request.kind {
            JobKind::Command => self.wanted_command(request)?,
            JobKind::Training(choice) => self.wanted_training(request, choice)?,
            JobKind::Script(parts) => self.wanted_script(request, parts)?,
        };
        command_line::check_job_command(&wanted.command)?;
        Ok(wanted)
    }

    fn wanted_command(&self, request: &RunJobRequest) -> Result<Wanted, Failure> {
        let vehicle = self.vehicle(request.vehicle.as_deref())?;
        let name = JobName::parse(&request.name).map_err(Failure::bad_input)?;
        let ceiling = ceiling(request, vehicle.timeouts.job)?;
        command_line::check_command(&request.command, "the command that the job runs")?;
        let workdir = command_line::workdir(&vehicle, request.workdir.as_deref())?;
        let command = request.command.clone();
        Ok(Wanted { vehicle, name, command, workdir, ceiling, training: None, script: None })
    }

    /// Where its files lie is only known with the job's id: the command is made then.
    fn wanted_script(&self, request: &RunJobRequest, parts: &JobParts) -> Result<Wanted, Failure> {
        let vehicle = self.vehicle(request.vehicle.as_deref())?;
        let name = JobName::parse(&request.name).map_err(Failure::bad_input)?;
        let ceiling = ceiling(request, parts.ceiling.unwrap_or(vehicle.timeouts.job))?;
        let workdir = vehicle.volume_mount_path.clone();
        let (command, script) = (parts.command("")?, Some(parts.clone()));
        Ok(Wanted { vehicle, name, command, workdir, ceiling, training: None, script })
    }

    fn wanted_training(
        &self,
        request: &RunJobRequest,
        choice: &TrainingChoice,
    ) -> Result<Wanted, Failure> {
        let recipe = self.config.training(&choice.training).map_err(Failure::bad_input)?;
        let all = &self.config.trainings;
        let level =
            training::level(recipe, choice.dr_level.as_deref(), all).map_err(Failure::bad_input)?;
        let seed = choice.seed.as_deref().unwrap_or("1");
        let seed = training::seed(seed, recipe.seed_max).map_err(Failure::bad_input)?;
        let vehicle = self.vehicle(Some(&recipe.vehicle.0))?;
        if let Some(named) = request.vehicle.as_ref().filter(|named| **named != vehicle.name.0) {
            return Err(Failure::bad_input(format!(
                "training {} runs on vehicle {}, not on {named:?}; leave vehicle out",
                recipe.name, vehicle.name
            )));
        }
        let mount = &vehicle.volume_mount_path;
        let run = training::run(recipe, level, seed, &choice.extra_args, mount)
            .map_err(Failure::bad_input)?;
        // Runs that are called s1 and s2 and are the same run would be compared as two.
        if seed != 1 && !recipe.takes_seed() {
            return Err(Failure::bad_input(format!(
                "seed={seed}: training {} takes none, since its command has no {{seed}}; leave seed out, or write {{seed}} into trainings.{}.command",
                recipe.name, recipe.name
            )));
        }
        let workdir = vehicle.on_volume(&recipe.workdir);
        let ceiling = ceiling(request, vehicle.timeouts.training)?;
        let (name, command) = (run.name.clone(), run.command());
        let extra_args = choice.extra_args.clone();
        let (recipe, level) = (recipe.clone(), level.cloned());
        let prepared = Prepared { recipe, level, seed, extra_args, run };
        Ok(Wanted {
            vehicle,
            name,
            command,
            workdir,
            ceiling,
            training: Some(prepared),
            script: None,
        })
    }
}

fn ceiling(request: &RunJobRequest, default: Ceiling) -> Result<Ceiling, Failure> {
    Ceiling::new("max_runtime_sec", request.max_runtime_sec, default).map_err(Failure::bad_input)
}
