//! The scripts of `remote/`, whole. They are copied or sent as they are and take arguments.

use super::Script;

macro_rules! script {
    ($name:literal) => {
        Script { name: $name, text: include_str!(concat!("../../remote/", $name)) }
    };
}

/// `<dir> <pod_id> <ceiling_sec> <0|1> [workdir]`: runs one job. Lives in a file on the volume.
pub const JOB_WRAPPER: Script = script!("job_wrapper.sh");
/// `<pod_id>`: stops the pod from inside. Lives in a file beside [`JOB_WRAPPER`].
pub const STOP_POD: Script = script!("stop_pod.sh");
/// `<path> <octal mode> <bytes>`: stdin into a file, all of it or nothing.
pub const PLACE_FILE: Script = script!("place_file.sh");
/// `<job dir> <script dir> <pod_id> <ceiling_sec> <0|1> <workdir>`: starts a job at most once.
pub const LAUNCH_JOB: Script = script!("launch_job.sh");
/// `watch <pod id> <mount> <idle s> <tick s> <deadline s>`, or `probe <pod id>`: stops the pod when
/// nobody uses it. Lives in a file off the volume.
pub const IDLE_WATCHDOG: Script = script!("idle_watchdog.sh");
/// `<pod id> <mount> <idle s> <tick s> <deadline s> <version>`, [`IDLE_WATCHDOG`] and [`STOP_POD`] on
/// stdin: starts the watchdog and tells what its stop path has.
pub const ARM_WATCHDOG: Script = script!("arm_watchdog.sh");
/// `<seconds>`: says to the watchdog that somebody supervises the pod.
pub const RENEW_LEASE: Script = script!("renew_lease.sh");
/// `<mount> <pod_id> <token> <seconds> <read|write> <job id|-> <max_bytes> <log_offset|->`: which pod
/// this is, what it has, which jobs live, and how one job is.
pub const POD_LOOK: Script = script!("pod_look.sh");
/// `<folder> <mark> <command line>`: runs somebody's command line in a folder.
pub const RUN_IN: Script = script!("run_in.sh");
/// `<mark> <seconds>`: ends what [`RUN_IN`] has begun.
pub const END_EXEC: Script = script!("end_exec.sh");
/// `<job dir> <seconds>`: waits for the end of a job.
pub const AWAIT_EXIT: Script = script!("await_exit.sh");
/// `check|apply --checkout <dir> --commit <sha> --marker <file> [file …]`: patches a checkout for the
/// BlueROV2, all of it or nothing. Python, standard library only.
pub const APPLY_BLUEROV2_PATCH: Script = script!("apply_bluerov2_patch.py");

#[cfg(test)]
mod tests {
    use super::*;

    fn block(script: Script, name: &str) -> Option<&'static str> {
        let start = script.text.find(&format!("# --- {name}:"))?;
        let end = script.text.find(&format!("# --- end of {name} ---"))?;
        script.text.get(start..end)
    }

    /// The worst case of a launch is reckoned with this grace.
    #[test]
    fn the_wrapper_waits_as_long_as_the_budget_says() {
        let grace = crate::domain::Ceiling::KILL_GRACE_SEC;
        assert!(JOB_WRAPPER.text.contains(&format!("${{PODTETHER_KILL_GRACE_SEC:-{grace}}}")));
    }

    /// The scripts travel alone and cannot share a file, so they share a text.
    #[test]
    fn every_script_judges_a_process_by_the_same_text() {
        let reporting = vec![ARM_WATCHDOG, RENEW_LEASE, POD_LOOK];
        let watching = vec![IDLE_WATCHDOG, ARM_WATCHDOG, RENEW_LEASE, POD_LOOK];
        let with_the_wrapper = [&watching[..], &[JOB_WRAPPER]].concat();
        for (name, scripts) in [
            ("identity", with_the_wrapper.clone()),
            ("liveness", watching.clone()),
            ("verdict", vec![POD_LOOK, IDLE_WATCHDOG]),
            ("clock", with_the_wrapper),
            ("environment", vec![STOP_POD, IDLE_WATCHDOG, POD_LOOK]),
            ("key for curl", vec![STOP_POD, IDLE_WATCHDOG]),
            ("watchdog folder", watching),
            ("watchdog report", reporting),
        ] {
            let texts: Vec<&str> =
                scripts.iter().map(|script| block(*script, name).unwrap()).collect();
            assert!(texts[0].len() > 200, "{name}");
            assert!(texts.iter().all(|text| *text == texts[0]), "{name} differs");
        }
    }
}
