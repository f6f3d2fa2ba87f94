//! The shipped examples and the tools that run them: setup, patches, sweep, quickstart.

mod patch_script;
mod pod_setup;
pub mod quickstart;
mod sweep_script;
mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of the repository.
pub fn of_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs git in a folder with nobody's settings.
pub fn git(folder: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=test", "-c", "user.email=test@example.org"])
        .args(words)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A checkout of the excerpts in `fixtures/swim` at `mount/isaac-auv-env`, and its commit.
pub fn checkout(mount: &Path) -> (PathBuf, String) {
    let at = mount.join("isaac-auv-env");
    std::fs::create_dir_all(at.join("assets")).unwrap();
    for file in ["warpauv_env.py", "assets/warpauv.py"] {
        std::fs::copy(of_repository("fixtures/swim").join(file), at.join(file)).unwrap();
    }
    git(&at, &["init", "-q"]);
    git(&at, &["add", "."]);
    git(&at, &["commit", "-q", "-m", "excerpts"]);
    let commit = git(&at, &["rev-parse", "HEAD"]);
    (at, commit)
}

/// The drop-in that the example ships.
pub fn drop_in() -> PathBuf {
    of_repository("examples/learning-to-swim/patches/bluerov2_thruster_dynamics.py")
}

/// Written by a process of its own: a file that this process holds open for writing, if only in a fork
/// of another test's thread, cannot be run.
pub fn place(path: &Path, text: &str) {
    use std::io::Write as _;
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut child = Command::new("sh")
        .args(["-c", r#"cat >"$0" && chmod 755 "$0""#])
        .arg(path)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}
