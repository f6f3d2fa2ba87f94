//! axis_sanity_sweep: one thruster after the other, as a job that leaves a marker when it passes.

use super::job_parts::JobParts;
use super::set_up::job_request;
use super::{RunJobAnswer, RunJobRequest, Tether};
use crate::config::Sweep;
use crate::domain::{RemoteCommand, Vehicle};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::pod::{ExecLimits, ExecStatus};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// What is asked of axis_sanity_sweep.
#[derive(Clone, Copy, Debug, Default)]
pub struct SweepRequest {
    /// Stop the pod when the sweep ends, however it ends.
    pub auto_stop: bool,
    /// Only show the plan.
    pub dry_run: bool,
}

/// The answer of axis_sanity_sweep.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SweepAnswer {
    /// The job.
    #[serde(flatten)]
    pub job: RunJobAnswer,
    /// The marker that is there once the sweep has passed, and only then.
    pub gate: String,
}

/// One question to the pod's file system.
const ASK: ExecLimits =
    ExecLimits { timeout: Duration::from_secs(10), stdout_bytes: 1024, stderr_bytes: 1024 };

impl Tether {
    /// Starts the sweep of the vehicle that declares one, or shows what would start.
    ///
    /// # Errors
    /// No vehicle with a sweep, patches that are declared and not applied, a file that cannot be
    /// read, and everything that [`Tether::run_job`] refuses.
    pub async fn axis_sanity_sweep(&self, request: SweepRequest) -> Result<SweepAnswer, Failure> {
        let (vehicle, job, marker) = self.sweep_job(request)?;
        self.check_patched(&vehicle).await?;
        let mut job = self.run_job(&job).await?;
        job.hint = format!("{} It passed when {marker} is there.", job.hint);
        Ok(SweepAnswer { job, gate: marker })
    }

    /// The sweep as a job, the vehicle that it is of, and the marker that it leaves.
    ///
    /// # Errors
    /// No vehicle with a sweep, and a file that cannot be read.
    pub(super) fn sweep_job(
        &self,
        request: SweepRequest,
    ) -> Result<(Vehicle, RunJobRequest, String), Failure> {
        let (vehicle, sweep) = self.swept()?;
        let marker = vehicle.on_volume(&sweep.marker);
        let places = [("mount", vehicle.volume_mount_path.clone()), ("marker", marker.clone())];
        let mut parts = JobParts::of_script(&sweep.run, places)?;
        parts.ceiling = Some(vehicle.timeouts.sweep);
        let job = job_request("axis-sweep", parts, request.auto_stop, request.dry_run);
        let job = RunJobRequest { vehicle: Some(vehicle.name.0.clone()), ..job };
        Ok((vehicle, job, marker))
    }

    fn swept(&self) -> Result<(Vehicle, Sweep), Failure> {
        self.declaring(
            |workload| workload.sweep.clone(),
            "sweep",
            "sweep: {script: axis_sweep.py, marker: markers/axis_sanity_PASS}",
        )
    }

    /// A sweep over a vehicle that is not patched would say something about another one.
    pub(crate) async fn check_patched(&self, vehicle: &Vehicle) -> Result<(), Failure> {
        let workload = self.config.workloads.get(&vehicle.name);
        let Some(patches) = workload.and_then(|workload| workload.patches.as_ref()) else {
            return Ok(());
        };
        let marker = vehicle.on_volume(&patches.marker);
        let pod = self.running_pod(vehicle).await?;
        let shell = self.shell(vehicle, &pod)?;
        let output = shell.run(&RemoteCommand::new(["test", "-f", &marker]), ASK).await?;
        match output.status {
            ExecStatus::Code(0) => Ok(()),
            ExecStatus::Code(1) => Err(Failure::new(
                FailureKind::Refused,
                format!(
                    "{marker} is not there: the patches of vehicle {} are not in",
                    vehicle.name
                ),
                "call apply_bluerov_patches first; nothing was changed",
            )
            .billing(StillBilling::Yes)),
            _ => Err(super::probe::pod_failure(&format!("whether {marker} is there was not told"))),
        }
    }
}
