//! The tools, one file each: arguments, description, request to answer.

mod apply_bluerov_patches;
mod axis_sanity_sweep;
mod ensure_pod;
mod exec_on_pod;
mod gpu_availability;
mod job_status;
mod launch_training;
mod pod_status;
mod run_job;
mod run_pod_setup;
mod spend_report;
mod stop_pod;
mod sync_logs;
mod terminate_pod;

use super::tool::Entry;

/// Every tool, in the order in which work goes.
#[must_use]
pub fn all() -> Vec<Entry> {
    vec![
        Entry::of::<gpu_availability::GpuAvailabilityTool>(),
        Entry::of::<ensure_pod::EnsurePod>(),
        Entry::of::<pod_status::PodStatus>(),
        Entry::of::<run_pod_setup::RunPodSetup>(),
        Entry::of::<exec_on_pod::ExecOnPod>(),
        Entry::of::<run_job::RunJob>(),
        Entry::of::<launch_training::LaunchTraining>(),
        Entry::of::<job_status::JobStatus>(),
        Entry::of::<sync_logs::SyncLogs>(),
        Entry::of::<apply_bluerov_patches::ApplyBluerovPatches>(),
        Entry::of::<axis_sanity_sweep::AxisSanitySweep>(),
        Entry::of::<stop_pod::StopPod>(),
        Entry::of::<terminate_pod::TerminatePod>(),
        Entry::of::<spend_report::SpendReportTool>(),
    ]
}
