//! What a drill needs of the verbs and nobody else does: its place, its ground, its watchdog's terms,
//! and what a boot left about who stopped it.

use super::probe::pod_failure;
use super::{StepView, Tether};
use crate::domain::{JobId, Pod, Price, Vehicle};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::held::Held;
use crate::plan::{Change, Step};
use crate::pod::ExecLimits;
use crate::pod::drill::{DrillEvidence, evidence_command, parse_evidence};
use crate::pod::watchdog::{self, WatchdogReport, WatchdogTerms};
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

/// How long arming and looking may take on the pod.
const ASK: ExecLimits = ExecLimits {
    timeout: Duration::from_secs(45),
    stdout_bytes: 64 * 1024,
    stderr_bytes: 8 * 1024,
};
/// A reader holds the lock for an instant; it is waited out.
const INSTANT: Duration = Duration::from_secs(1);

/// On what a drill would run.
#[derive(Clone, Debug)]
pub(crate) struct DrillGround {
    /// The vehicle's pod, which is off; `None` when it has to be created.
    pub pod: Option<Pod>,
    /// What it costs.
    pub price: Price,
    /// Of which GPU it is.
    pub gpu: String,
    /// The very requests of the first boot.
    pub steps: Vec<StepView>,
    /// How many more boots `limits.max_boots_per_hour` allows within this hour.
    pub boots_left: Option<usize>,
}

impl Tether {
    /// The same for a drill: it arms its own fuses, and starts what no receipt has proven yet.
    #[must_use]
    pub fn for_a_drill(self) -> Self {
        Self { is_a_drill: true, arms_fuses: false, ..self }
    }

    /// The same with the cheapest allowed GPU type as the first choice of the vehicle. What is not
    /// priced comes last; nothing is allowed that was not.
    ///
    /// # Errors
    /// When the catalog does not answer.
    pub async fn cheapest_first(mut self, name: &str) -> Result<Self, Failure> {
        let count = self.vehicle(Some(name))?.gpu_count;
        let offers = self.cloud.gpu_offers(count).await?;
        let price = |id: &crate::domain::GpuTypeId| {
            let offer = offers.iter().find(|offer| &offer.id == id);
            let rate = offer.and_then(|offer| offer.price.known());
            (rate.is_none(), rate)
        };
        for vehicle in self.config.vehicles.iter_mut().filter(|vehicle| vehicle.name.0 == name) {
            vehicle.gpu_type_ids.sort_by_key(price);
        }
        Ok(self)
    }

    fn drill_file(&self, vehicle: &Vehicle) -> Option<PathBuf> {
        let folder = self.ledger.as_ref()?.path().parent()?.to_owned();
        Some(folder.join(format!("drill-{}.lock", vehicle.name)))
    }

    /// Takes the vehicle's place for a drill, over every process: no other session starts its pod or a
    /// job on it meanwhile. Stops are never kept out.
    ///
    /// # Errors
    /// When another drill has it, or the file cannot be used; nothing was changed.
    pub(crate) async fn drill_place(&self, vehicle: &Vehicle) -> Result<Held, Failure> {
        let unusable = |error: &dyn std::fmt::Display| {
            let message = format!("the drill's lock in the state folder: {error}");
            Failure::new(FailureKind::Config, message, "mend the state folder; nothing was changed")
        };
        let path = self.drill_file(vehicle).ok_or_else(|| unusable(&"there is no folder"))?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| unusable(&error))?;
        }
        let options = File::options().create(true).append(true).open(path);
        let file = options.map_err(|error| unusable(&error))?;
        let held = Held::alone_within(&file, INSTANT).await.map_err(|error| unusable(&error))?;
        held.ok_or_else(|| under_way(vehicle))
    }

    /// Says no to whoever wants to start something on a vehicle that a drill has. Its fuses are about
    /// to stop the pod.
    ///
    /// # Errors
    /// Conflict; nothing was changed.
    pub(super) fn not_during_a_drill(&self, vehicle: &Vehicle) -> Result<(), Failure> {
        let path = self.drill_file(vehicle).filter(|_| !self.is_a_drill);
        let Some(file) = path.and_then(|path| File::open(path).ok()) else { return Ok(()) };
        match Held::beside_others(&file) {
            Ok(None) => Err(under_way(vehicle)),
            _ => Ok(()),
        }
    }

    /// What a drill of this vehicle would run on; changes nothing.
    ///
    /// # Errors
    /// Refusals of the guard, and a pod that is on the bill: somebody may be using it.
    pub(crate) async fn drill_ground(&self, vehicle: &Vehicle) -> Result<DrillGround, Failure> {
        let (draft, facts) = self.draft_ensure(vehicle, true).await?;
        let pod = facts.pods_named(&vehicle.pod_name).next().cloned();
        if let Some(pod) = pod.as_ref().filter(|pod| pod.status.bills_compute()) {
            return Err(in_use(vehicle, pod));
        }
        let boots = facts.spend.boots.started.len();
        let limit = self.config.limits_for(&vehicle.name).max_boots_per_hour;
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        let boots_left = limit.map(|limit| limit.saturating_sub(boots));
        let created = draft.steps.iter().find_map(|step| match step {
            Step::Cloud(Change::CreatePod(new)) => Some(new.gpu_type.0.clone()),
            _ => None,
        });
        let of_pod = pod.as_ref().and_then(|pod| pod.gpu.as_ref()).map(|(gpu, _)| gpu.0.clone());
        let price = draft.adds.unwrap_or(Price::Unknown);
        let approved = self.review_spend(draft, facts).await?;
        Ok(DrillGround {
            pod,
            price,
            gpu: created.or(of_pod).unwrap_or_else(|| "unknown".to_owned()),
            steps: StepView::all(approved.steps(), &*self.cloud),
            boots_left,
        })
    }

    /// The vehicle's running pod, as it is told now.
    ///
    /// # Errors
    /// When there is none, or two.
    pub(crate) async fn pod_of_the_drill(&self, vehicle: &Vehicle) -> Result<Pod, Failure> {
        self.running_pod(vehicle).await
    }

    /// Arms the pod's watchdog for a drill: its deadline as given, and so long without use once a
    /// lease ran out.
    ///
    /// # Errors
    /// When the pod does not answer or its answer is not whole. It may be armed all the same.
    pub(crate) async fn arm_for_a_drill(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        terms: WatchdogTerms,
        after_lease: Duration,
    ) -> Result<WatchdogReport, Failure> {
        let shell = self.shell(vehicle, pod)?;
        let mount = &vehicle.volume_mount_path;
        let command = watchdog::drill_command(&pod.id, mount, terms, after_lease);
        let output = shell.run(&command, ASK).await?;
        watchdog::parse_armed(&output).map_err(|error| pod_failure(&error))
    }

    /// What earlier boots left on the volume about who stopped them.
    ///
    /// # Errors
    /// When the pod does not answer or its answer is not whole: then nothing is known.
    pub(crate) async fn drill_evidence(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        job: Option<&JobId>,
    ) -> Result<DrillEvidence, Failure> {
        let shell = self.shell(vehicle, pod)?;
        let job_dir = job.map(|job| self.job_dir(vehicle, job));
        let command = evidence_command(&vehicle.volume_mount_path, job_dir.as_deref());
        let output = shell.run(&command, ASK).await?;
        parse_evidence(&output).map_err(|error| pod_failure(&error))
    }
}

fn under_way(vehicle: &Vehicle) -> Failure {
    Failure::new(
        FailureKind::Conflict,
        format!(
            "a drill of vehicle {} is under way: its pod is started and stopped again and again",
            vehicle.name
        ),
        "nothing was changed; wait until it is over, or end it with Ctrl-C where it runs",
    )
    .billing(StillBilling::Unknown)
    .retryable()
}

fn in_use(vehicle: &Vehicle, pod: &Pod) -> Failure {
    Failure::new(
        FailureKind::Refused,
        format!(
            "pod {} of vehicle {} is {} and not the drill's: a job or another session may be using it, and a drill stops it again and again",
            pod.id, vehicle.name, pod.status
        ),
        format!("podtether stop --vehicle {}, then drill; nothing was changed", vehicle.name),
    )
    .billing(StillBilling::Yes)
}
