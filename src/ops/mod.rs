//! What podtether can do, one file per verb: gather facts, let `plan` draft and `guard` review,
//! carry out through `apply`, and say what is known. Both faces call these and add no behaviour.

mod audit;
mod boot;
pub(crate) mod campaign;
mod command_line;
mod committed;
mod drill_door;
mod end_exec;
mod ensure;
mod estimate;
mod exec;
mod file_look;
mod former;
mod fuses;
mod gather;
mod gpus;
mod grade;
mod grade_of_stopped;
mod host_id;
mod job_id;
mod job_parts;
mod job_status;
mod laptop_fuse;
mod launch_training;
mod log_form;
mod open;
mod patch;
mod pod_of_run;
mod probe;
mod provenance;
mod receipts;
mod recipe_facts;
mod reckoning;
mod reconcile;
mod run_files;
mod run_home;
mod run_job;
mod run_left;
mod run_note;
mod runs;
mod seen;
mod set_up;
mod shells;
mod spend;
mod spent;
mod status;
mod stop;
mod stop_all;
mod stopping;
mod subdir;
mod sweep;
mod sync;
mod terminate;
mod training_record;
mod unaccounted;
mod unexplained;
mod unknown_launches;
mod unseen;
mod usable;
mod view;
pub(crate) mod vigil;
mod volume_health;
mod wanted;
mod watch;
mod watch_moment;
mod watch_pod;
mod watch_sight;
mod watch_status;
mod watchdog;
mod watchdog_fuse;
mod why;
mod why_training;

#[cfg(test)]
mod tests;

pub use crate::deadman::Claim as FuseClaim;
pub use audit::{Audit, AuditedPod, AuditedVolume, Owner};
pub use ensure::{EnsureAnswer, EnsureRequest, EnsureStatus};
pub use estimate::Estimate;
pub use exec::{ExecAnswer, ExecRequest};
pub use gpus::{GpuAvailability, GpuChoice, StockIn};
pub use grade::{Evidence, Grade};
pub use job_parts::JobParts;
pub use job_status::{JobStatusAnswer, LatestMetrics};
pub use laptop_fuse::not_armed;
pub use launch_training::{EditView, LaunchTrainingAnswer, LaunchTrainingRequest};
pub use log_form::LogForm;
pub use open::{Start, open, open_for_stop};
pub use patch::{PatchAnswer, PatchRequest};
pub(crate) use pod_of_run::PodOfRun;
pub(crate) use run_home::rewards_in_log;
pub(crate) use run_job::PlannedJob;
pub use run_job::{RunJobAnswer, RunJobRequest};
pub(crate) use run_note::RunOver;
pub use runs::{KnownRuns, RunShown, known_runs};
pub use set_up::SetUpRequest;
pub use spend::{CommittedLine, FailedBootLine, Shortfall, SpendReport};
pub use status::{PodState, PodStatusAnswer};
pub use stop::{StopAnswer, StopStatus};
pub use stop_all::{Confirmation, LeftAlone, StopAll, StopAllAnswer};
pub(crate) use subdir::checked_subdir;
pub use sweep::{SweepAnswer, SweepRequest};
pub use sync::{SyncAnswer, SyncProgress};
pub use terminate::{TerminateAnswer, TerminateStatus};
pub use unexplained::Unexplained;
pub use view::{CloudName, PodView, StdinView, StepView};
pub use wanted::{JobKind, TrainingChoice};
pub use watch::{WatchNote, WatchRequest};
pub use watch_sight::{PodSight, WatchSight};
pub use watch_status::{Artifacts, Resume, WatchSpec, WatchStatus};
pub use why::{Counted, Most, RuleTold, Verdict, WhyAnswer, WhyRequest};
pub use why_training::{GateTold, TrainingTold};

use crate::apply::{Notes, Ports, Settings};
use crate::clock::SharedClock;
use crate::cloud::Cloud;
use crate::config::Config;
use crate::deadman::Arming;
use crate::domain::{Label, Labels, Pod, PodStatus, Price, UsdPerHour, Vehicle};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::guard::{Approved, Refusal, review};
use crate::ledger::Ledger;
use crate::plan::{Draft, Facts};
use crate::pod::transfer::{OverSsh, Pulls};
use crate::pod::{Shell, Shells};
use shells::SshShells;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// The machine's part of what podtether needs, apart from its config.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// podtether's own program, which rsync is given as its remote shell.
    pub program: PathBuf,
    /// The value of PATH, to find rsync.
    pub path: Option<OsString>,
    /// The ssh-agent's socket.
    pub ssh_auth_sock: Option<PathBuf>,
}

/// podtether at work: one config, one cloud, and the connections to its pods.
pub struct Tether {
    config: Config,
    cloud: Arc<dyn Cloud>,
    clock: SharedClock,
    surroundings: Surroundings,
    settings: Settings,
    shells: Arc<dyn Shells>,
    pulls: Arc<dyn Pulls>,
    ledger: Option<Ledger>,
    arming: Option<Arming>,
    arms_fuses: bool,
    claims: laptop_fuse::Claims,
    is_a_drill: bool,
    /// What the client of this session calls itself.
    caller: OnceLock<Label>,
}

impl Tether {
    /// Puts the parts together.
    #[must_use]
    pub fn new(
        config: Config,
        cloud: Arc<dyn Cloud>,
        clock: SharedClock,
        surroundings: Surroundings,
    ) -> Self {
        let shells = Arc::new(SshShells::new(surroundings.ssh_auth_sock.clone()));
        let settings = Settings::default();
        let (ledger, arming, arms_fuses, is_a_drill) = (None, None, false, false);
        Self {
            config,
            cloud,
            clock,
            surroundings,
            settings,
            shells,
            pulls: Arc::new(OverSsh),
            ledger,
            arming,
            arms_fuses,
            claims: laptop_fuse::Claims::default(),
            is_a_drill,
            caller: OnceLock::new(),
        }
    }

    /// The same with other waits for effects, such as a longer one for a command line.
    #[must_use]
    pub const fn with_settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Notes what the client of this session calls itself; the first name stays.
    pub fn called_by(&self, client: &str) {
        if let Some(label) = Label::near(client) {
            let _ = self.caller.set(label);
        }
    }

    /// The labels of a run that names none. The environment goes before the client's own name, and
    /// that before the file's.
    pub(crate) fn labels(&self) -> Labels {
        let of_env = self.config.agent_of_env.clone();
        let agent = of_env.or_else(|| self.caller.get().cloned());
        Labels { group: None, agent }.or(&self.config.labels)
    }

    /// How long effects are waited for.
    pub(crate) const fn settings(&self) -> Settings {
        self.settings
    }

    /// The same with somebody else to bring files home.
    #[must_use]
    pub fn with_pulls(self, pulls: Arc<dyn Pulls>) -> Self {
        Self { pulls, ..self }
    }

    /// The same with a journal of what it changes.
    #[must_use]
    pub fn with_ledger(self, ledger: Ledger) -> Self {
        Self { ledger: Some(ledger), ..self }
    }

    /// The same with shells that somebody else makes, in place of those over SSH. Files are pulled
    /// over SSH all the same.
    #[must_use]
    pub fn with_shells(self, shells: Arc<dyn Shells>) -> Self {
        Self { shells, ..self }
    }

    /// The config.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Which cloud this is.
    #[must_use]
    pub fn cloud_name(&self) -> CloudName {
        CloudName::of(&*self.cloud)
    }

    /// Time.
    #[must_use]
    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// The vehicle of that name, or the default one.
    ///
    /// # Errors
    /// Bad input, with the nearest name, when there is none of that name.
    pub fn vehicle(&self, name: Option<&str>) -> Result<Vehicle, Failure> {
        self.config.vehicle(name).cloned().map_err(Failure::bad_input)
    }

    /// What the config leaves open, and what it sets that this version does not act on yet.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let not_yet = self.config.not_yet.iter().map(|text| (*text).to_owned());
        self.config.warnings.iter().cloned().chain(not_yet).chain(self.set_aside()).collect()
    }

    /// That the journal before this one could not be read, and what is lost with it.
    pub(crate) fn set_aside(&self) -> Option<String> {
        let book = self.ledger.as_ref()?.book().ok()?;
        let aside = book.set_aside()?;
        Some(format!(
            "the journal could not be read and was set aside as {aside}: reservations and pods from before it are not known here; compare `podtether audit`"
        ))
    }

    /// `adds` is what the plan puts on the bill, for the journal.
    fn ports<'a>(
        &'a self,
        vehicle: &'a Vehicle,
        shell: Option<&'a dyn Shell>,
        adds: Option<Price>,
    ) -> Ports<'a> {
        let notes = self.ledger.as_ref().map(|ledger| Notes {
            ledger,
            vehicle: &vehicle.name.0,
            rate: adds.and_then(Price::known).map(UsdPerHour::per_hour),
        });
        Ports { cloud: &*self.cloud, shell, clock: &*self.clock, notes, settings: self.settings }
    }

    /// The vehicle's running pod.
    async fn running_pod(&self, vehicle: &Vehicle) -> Result<Pod, Failure> {
        let mut facts = self.facts(self.cloud.pods().await?);
        self.pick(vehicle, &mut facts).await
    }

    fn pick_running(vehicle: &Vehicle, pods: &[Pod]) -> Result<Pod, Failure> {
        let mut ours = pods.iter().filter(|pod| pod.name == vehicle.pod_name && !pod.is_deleted());
        let no_pod = |message: String| {
            Failure::new(
                FailureKind::NoPod,
                message,
                format!("call ensure_pod with vehicle={}", vehicle.name),
            )
        };
        let Some(pod) = ours.next() else {
            return Err(no_pod(format!(
                "vehicle {} has no pod named {:?}",
                vehicle.name, vehicle.pod_name
            )));
        };
        if let Some(second) = ours.next() {
            let refusal = Refusal::DuplicatePods {
                name: vehicle.pod_name.clone(),
                ids: vec![pod.id.clone(), second.id.clone()],
            };
            return Err(Failure::from(vec![refusal]).billing(bills(&vehicle.pod_name, pods)));
        }
        match pod.status {
            PodStatus::Running => Ok(pod.clone()),
            _ => Err(no_pod(format!(
                "pod {} of vehicle {} is {}, not RUNNING",
                pod.id, vehicle.name, pod.status
            ))
            .billing(bills(&vehicle.pod_name, pods))),
        }
    }

    /// Has the guard review a draft. A refusal changed nothing, but what ran before runs on, and
    /// that is said with it.
    ///
    /// A draft that spends goes through [`Self::review_spend`]: without it the rules take what was
    /// spent for unknown.
    fn review(&self, draft: Draft, facts: &Facts) -> Result<Approved, Failure> {
        let limits = self.config.limits_for(&draft.vehicle.name);
        let vehicle = draft.vehicle.clone();
        review(draft, facts, &limits).map_err(|refusals| {
            let failure = Failure::from(refusals).billing(bills(&vehicle.pod_name, &facts.pods));
            // What no list shows may bill all the same (A05), a volume too.
            let failure = self.with_unseen(&vehicle, &facts.pods, failure);
            let is_open = facts.unknown_creates.iter().any(|one| one.vehicle == vehicle.name.0);
            let hides = is_open && failure.still_billing == StillBilling::No;
            if hides { failure.billing(StillBilling::Unknown) } else { failure }
        })
    }
}

/// Whether a pod of that name is on the bill.
fn bills(name: &str, pods: &[Pod]) -> StillBilling {
    let mut ours = pods.iter().filter(|pod| pod.name == name);
    if ours.any(|pod| pod.status.bills_compute()) { StillBilling::Yes } else { StillBilling::No }
}
