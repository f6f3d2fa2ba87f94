//! The stand-in apt-get: what is meant for a pod must not be installed on this machine. It can bring
//! rsync, which pods are known to lack, and nothing else.

use super::Output;
use crate::cloud::local::pod::{Folder, find_program};
use std::path::Path;

/// Runs `apt-get [options] update|install [options] NAME…`.
pub fn run(pod: &Path, arguments: &[&str]) -> Output {
    let folder = Folder::new(pod.to_owned());
    // `-o` has its value behind it.
    let mut words = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match *word {
            "-o" => _ = rest.next(),
            option if option.starts_with('-') => {}
            word => words.push(word),
        }
    }
    let missing = |name: &str| Output::fail(100, format!("E: Unable to locate package {name}\n"));
    match words.split_first() {
        Some((&"update", _)) if folder.no_packages().exists() => {
            Output::fail(100, "E: Failed to fetch http://archive.ubuntu.com/ubuntu\n")
        }
        Some((&"update", _)) => Output::say("Reading package lists...\n"),
        Some((&"install", names)) => {
            if folder.no_packages().exists() {
                return missing(names.first().copied().unwrap_or("rsync"));
            }
            if let Some(other) = names.iter().find(|name| **name != "rsync") {
                return missing(other);
            }
            let Some(rsync) = find_program("rsync") else { return missing("rsync") };
            let link = folder.installed_rsync();
            let _ = std::fs::remove_file(&link);
            match std::os::unix::fs::symlink(rsync, link) {
                Ok(()) => Output::say("Setting up rsync ...\n"),
                Err(error) => Output::fail(100, format!("E: {error}\n")),
            }
        }
        _ => Output::fail(100, "E: the local cloud knows update and install rsync\n"),
    }
}
