//! The scripts of `remote/`, whole. They are copied or sent as they are and take arguments. A script
//! travels alone, so what several of them need, a file in `remote/shared/`, is put before each.

use super::Script;

macro_rules! script {
    ($name:literal $(, $part:literal)*) => {
        Script {
            name: $name,
            parts: &[$(concat!("shared/", $part),)* $name],
            text: concat!(
                $(include_str!(concat!("../../remote/shared/", $part)),)*
                include_str!(concat!("../../remote/", $name))
            ),
        }
    };
}

/// `<dir> <pod_id> <ceiling_sec> <0|1> [workdir]`: runs one job. Lives in a file on the volume.
pub const JOB_WRAPPER: Script = script!("job_wrapper.sh", "identity.sh", "clock.sh");
/// `<pod_id>`: stops the pod from inside. Lives in a file beside [`JOB_WRAPPER`].
pub const STOP_POD: Script = script!("stop_pod.sh", "environment.sh", "curl_key.sh");
/// `<path> <octal mode> <bytes>`: stdin into a file, all of it or nothing.
pub const PLACE_FILE: Script = script!("place_file.sh");
/// `<seconds> <max bytes> [marker <path> | file <path> | sha256 <path> | same <path> <path> | runs
/// <folder> | since <folder> <name>]…`: what a launch of a training, and its record, must know of the
/// pod's files.
pub const RECIPE_LOOK: Script = script!("recipe_look.sh", "encoded.sh");
/// `<path> <sha256 before> <sha256 after> <bytes>`: stdin in place of a file that is still what it was.
pub const REPLACE_FILE: Script = script!("replace_file.sh");
/// `<job dir> <script dir> <pod_id> <ceiling_sec> <0|1> <workdir>`: starts a job at most once.
pub const LAUNCH_JOB: Script = script!("launch_job.sh", "identity.sh");
/// `<job dir> <0|1>`: sees to it that a launch of unknown outcome starts nothing any more.
pub const CALL_OFF_LAUNCH: Script =
    script!("call_off_launch.sh", "identity.sh", "liveness.sh", "verdict.sh");
/// `watch <pod id> <mount> <idle s> <tick s> <deadline s> [<idle s after a lease>]`, or `probe
/// <pod id>`: stops the pod when nobody uses it. Lives in a file off the volume.
pub const IDLE_WATCHDOG: Script = script!(
    "idle_watchdog.sh",
    "identity.sh",
    "liveness.sh",
    "verdict.sh",
    "clock.sh",
    "environment.sh",
    "curl_key.sh",
    "watchdog_folder.sh"
);
/// `<pod id> <mount> <idle s> <tick s> <deadline s> <version> [<idle s after a lease>]`,
/// [`IDLE_WATCHDOG`] and [`STOP_POD`] on stdin: starts the watchdog and tells what its stop path has.
pub const ARM_WATCHDOG: Script = script!(
    "arm_watchdog.sh",
    "identity.sh",
    "liveness.sh",
    "clock.sh",
    "watchdog_folder.sh",
    "watchdog_report.sh"
);
/// `<seconds>`: says to the watchdog that somebody supervises the pod.
pub const RENEW_LEASE: Script = script!(
    "renew_lease.sh",
    "identity.sh",
    "liveness.sh",
    "clock.sh",
    "watchdog_folder.sh",
    "watchdog_report.sh"
);
/// `<mount> <pod_id> <token> <seconds> <read|write> <job id|-> <max_bytes> <log_offset|->`: which pod
/// this is, what it has, which jobs live, and how one job is.
pub const POD_LOOK: Script = script!(
    "pod_look.sh",
    "encoded.sh",
    "identity.sh",
    "liveness.sh",
    "verdict.sh",
    "environment.sh",
    "clock.sh",
    "watchdog_folder.sh",
    "watchdog_report.sh"
);
/// `<folder> <mark> <command line>`: runs somebody's command line in a folder.
pub const RUN_IN: Script = script!("run_in.sh");
/// `<mark> <seconds>`: ends what [`RUN_IN`] has begun.
pub const END_EXEC: Script = script!("end_exec.sh");
/// `<mount> <job dir|->`: what an earlier boot left about who stopped it, for a drill.
pub const DRILL_EVIDENCE: Script = script!("drill_evidence.sh");
/// `<job dir> <seconds>`: waits for the end of a job.
pub const AWAIT_EXIT: Script = script!("await_exit.sh");
/// `check|apply --checkout <dir> --commit <sha> --marker <file> [file …]`: patches a checkout for the
/// BlueROV2, all of it or nothing. Python, standard library only.
pub const APPLY_BLUEROV2_PATCH: Script = script!("apply_bluerov2_patch.py");

#[cfg(test)]
mod tests {
    use super::*;

    /// The worst case of a launch is reckoned with this grace.
    #[test]
    fn the_wrapper_waits_as_long_as_the_budget_says() {
        let grace = crate::domain::Ceiling::KILL_GRACE_SEC;
        assert!(JOB_WRAPPER.text.contains(&format!("${{PODTETHER_KILL_GRACE_SEC:-{grace}}}")));
    }
}
