//! `podtether deadman install` and `uninstall`: the fuse under the system's own scheduler.

use super::open::{self, ConfigArgs, config_of};
use super::print;
use crate::deadman::{self, TimerFile};
use crate::domain::join_quoted;
use crate::error::{Failure, FailureKind};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct TimerArgs {
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    /// Print one JSON object on stdout instead of lines for people.
    #[arg(long)]
    pub(super) json: bool,
}

fn files(args: &TimerArgs) -> Result<Vec<TimerFile>, Failure> {
    let start = args.config.start()?;
    let config = config_of(&start)?;
    let home = start.env.home().filter(|home| home.is_absolute()).ok_or_else(|| {
        Failure::new(FailureKind::BadInput, "HOME is not an absolute path", "set HOME")
    })?;
    Ok(deadman::timer_files(home, &start.program, &config.path, cfg!(target_os = "macos")))
}

/// Writes the files and says how they are switched on: whether a session has a scheduler is not for
/// podtether to know.
pub fn install(args: &TimerArgs) -> u8 {
    let written = files(args).and_then(|files| {
        for TimerFile { path, text } in &files {
            let folder = path.parent().unwrap_or(path);
            std::fs::create_dir_all(folder)
                .and_then(|()| std::fs::write(path, text))
                .map_err(|error| in_the_way(path, &error))?;
        }
        Ok((files.iter().map(|file| file.path.clone()).collect(), switch_on(&files)))
    });
    let code = told(written, "files", args.json);
    if code == 0 {
        print::note(
            "the timer reads the key when it looks, so the key must be in the keychain and readable then; look at `podtether deadman status` for when it last looked",
        );
    }
    code
}

/// Takes the files away.
pub fn uninstall(args: &TimerArgs) -> u8 {
    let removed = files(args).and_then(|files| {
        let mut gone = Vec::new();
        // And what switching it on has left: a link to a file that is gone.
        let link = deadman::timer_link(&files);
        for path in link.iter().chain(files.iter().map(|file| &file.path)) {
            match std::fs::remove_file(path) {
                Ok(()) => gone.push(path.clone()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(in_the_way(path, &error)),
            }
        }
        Ok((gone, switch_off(&files)))
    });
    told(removed, "removed", args.json)
}

/// Says which files it was and what a person runs once.
fn told(done: Result<(Vec<PathBuf>, String), Failure>, what: &str, json: bool) -> u8 {
    match done {
        Ok((paths, run)) => {
            if json {
                print::data(&json!({what: paths, "run_once": run}).to_string());
            } else {
                paths.iter().for_each(|path| print::data(&path.display().to_string()));
                print::note(&format!("run once: {run}"));
            }
            0
        }
        Err(failure) => open::failed(&failure, json),
    }
}

fn in_the_way(path: &Path, error: &std::io::Error) -> Failure {
    let message = format!("{}: {error}", path.display());
    Failure::new(FailureKind::Internal, message, "mend the folder's permissions")
}

/// What a person runs once to have the scheduler look.
fn switch_on(files: &[TimerFile]) -> String {
    let Some(TimerFile { path, .. }) = files.last() else { return String::new() };
    if cfg!(target_os = "macos") {
        let path = join_quoted([path.to_string_lossy().as_ref()]);
        format!("launchctl bootstrap gui/$(id -u) {path}")
    } else {
        let unit = path.file_name().unwrap_or_default().to_string_lossy();
        format!("systemctl --user daemon-reload; systemctl --user enable --now {unit}")
    }
}

/// What a person runs once to have it look no more, by names alone: the files are gone, and neither
/// `launchctl bootout` with a path nor `systemctl disable` knows what has no file.
fn switch_off(files: &[TimerFile]) -> String {
    let Some(TimerFile { path, .. }) = files.last() else { return String::new() };
    if cfg!(target_os = "macos") {
        let label = path.file_stem().unwrap_or_default().to_string_lossy();
        format!("launchctl bootout gui/$(id -u)/{label}")
    } else {
        let unit = path.file_name().unwrap_or_default().to_string_lossy();
        format!("systemctl --user stop {unit}; systemctl --user daemon-reload")
    }
}
