//! run_pod_setup: the vehicle's setup script as a job.

use super::job_parts::JobParts;
use super::{JobKind, RunJobAnswer, RunJobRequest, Tether};
use crate::config::Workload;
use crate::domain::Vehicle;
use crate::error::{Failure, FailureKind, StillBilling};

/// What is asked of run_pod_setup.
#[derive(Clone, Debug, Default)]
pub struct SetUpRequest {
    /// Stop the pod when the setup ends, however it ends.
    pub auto_stop: bool,
    /// Only show the plan.
    pub dry_run: bool,
    /// The vehicle; the default one when `None`.
    pub vehicle: Option<String>,
}

/// The environment of a setup: nothing may ask a question where nobody answers. The last three are
/// the EULA and privacy answers of Isaac Sim's installers (its container's documented variables);
/// whoever runs the setup says yes to them.
pub const ENVIRONMENT: [(&str, &str); 4] = [
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("ACCEPT_EULA", "Y"),
    ("PRIVACY_CONSENT", "Y"),
    ("OMNI_KIT_ACCEPT_EULA", "YES"),
];

impl Tether {
    /// Starts the vehicle's setup, or shows what would start.
    ///
    /// # Errors
    /// A vehicle without a setup script, a file that cannot be read, and everything that
    /// [`Tether::run_job`] refuses.
    pub async fn run_pod_setup(&self, request: &SetUpRequest) -> Result<RunJobAnswer, Failure> {
        self.run_job(&self.set_up_job(request)?).await
    }

    /// The setup as a job.
    ///
    /// # Errors
    /// A vehicle without a setup script, and a file that cannot be read.
    pub(super) fn set_up_job(&self, request: &SetUpRequest) -> Result<RunJobRequest, Failure> {
        let vehicle = self.vehicle(request.vehicle.as_deref())?;
        let workload = self.config.workloads.get(&vehicle.name);
        let run = workload.and_then(|workload| workload.setup.as_ref()).ok_or_else(|| {
            undeclared(
                &vehicle,
                "setup",
                "setup: {script: pod_setup.sh} at the top, or in the vehicle",
            )
        })?;
        let mut parts = JobParts::of_script(run, [("mount", vehicle.volume_mount_path.clone())])?;
        parts.env = ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        parts.ceiling = Some(vehicle.timeouts.setup);
        let job = job_request("setup", parts, request.auto_stop, request.dry_run);
        Ok(RunJobRequest { vehicle: request.vehicle.clone(), ..job })
    }
}

/// A job of these parts.
pub(super) fn job_request(
    name: &str,
    parts: JobParts,
    auto_stop: bool,
    dry_run: bool,
) -> RunJobRequest {
    let (name, kind) = (name.to_owned(), JobKind::Script(Box::new(parts)));
    RunJobRequest { name, kind, auto_stop, dry_run, ..RunJobRequest::default() }
}

impl Tether {
    /// The one vehicle that declares this, with what it declares: the verb takes no vehicle.
    ///
    /// # Errors
    /// When none does.
    pub(super) fn declaring<T>(
        &self,
        what: impl Fn(&Workload) -> Option<T>,
        key: &str,
        example: &str,
    ) -> Result<(Vehicle, T), Failure> {
        let found = self.config.vehicles.iter().find_map(|vehicle| {
            Some((vehicle.clone(), what(self.config.workloads.get(&vehicle.name)?)?))
        });
        found.map_or_else(
            || {
                let key = format!("{key}, nor does another");
                Err(undeclared(&self.vehicle(None)?, &key, &format!("{example} in one vehicle")))
            },
            Ok,
        )
    }
}

/// A key that the vehicle needs for this verb and does not have.
fn undeclared(vehicle: &Vehicle, key: &str, example: &str) -> Failure {
    Failure::new(
        FailureKind::Config,
        format!("vehicle {} declares no {key}", vehicle.name),
        format!("write in the config for example {example}; nothing was changed"),
    )
    // Nobody has looked.
    .billing(StillBilling::Unknown)
}
