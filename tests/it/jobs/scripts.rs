//! The scripts as texts.

use std::process::Command;

fn shell_scripts() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/remote");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let scripts: Vec<String> = paths
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
