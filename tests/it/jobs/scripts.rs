//! The scripts as texts.

use std::fs;
use std::path::Path;
use std::process::Command;

fn shell_scripts() -> Vec<String> {
    let entries = |folder| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path())
    };
    let scripts: Vec<String> = entries("remote")
        .chain(entries("remote/shared"))
        .filter(|path| path.extension().is_some_and(|ext| ext == "sh"))
        .map(|path| path.display().to_string())
        .collect();
    assert!(scripts.len() >= 7, "{scripts:?}");
    scripts
}

#[test]
fn every_script_is_sound_shell() {
    for script in shell_scripts() {
        let output = Command::new("bash").args(["-n", &script]).output().unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
    }
    let Ok(output) = Command::new("shellcheck").args(shell_scripts()).output() else {
        eprintln!("skipped: shellcheck is not installed");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// A part alone uses what another sets; whole, a script sets all that it uses. It may hold more than
/// it uses, which is what is excluded.
#[test]
fn every_script_with_its_parts_is_sound_shell() {
    use podtether::domain::scripts::{
        ARM_WATCHDOG, CALL_OFF_LAUNCH, IDLE_WATCHDOG, JOB_WRAPPER, LAUNCH_JOB, POD_LOOK,
        RENEW_LEASE, STOP_POD,
    };
    let folder = tempfile::tempdir().unwrap();
    for script in [
        ARM_WATCHDOG,
        CALL_OFF_LAUNCH,
        IDLE_WATCHDOG,
        JOB_WRAPPER,
        LAUNCH_JOB,
        POD_LOOK,
        RENEW_LEASE,
        STOP_POD,
    ] {
        let parts = script.parts.iter().map(|part| Path::new("remote").join(part));
        let whole: String = parts.map(|path| fs::read_to_string(path).unwrap()).collect();
        assert_eq!(whole, script.text, "{}", script.name);
        let text = whole.replace("# shellcheck disable=SC2154", "#");
        let path = folder.path().join(script.name);
        fs::write(&path, text).unwrap();
        let Ok(output) =
            Command::new("shellcheck").args(["-e", "SC2317,SC2329"]).arg(&path).output()
        else {
            eprintln!("skipped: shellcheck is not installed");
            return;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}
