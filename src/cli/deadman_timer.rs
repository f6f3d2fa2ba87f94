//! `podtether deadman install`, `uninstall` and `tick`: the fuse under the system's own scheduler.

use super::open::{self, ConfigArgs, config_of};
use super::{logging, print};
use crate::deadman::{self, Seen, TimerFile, Wish};
use crate::domain::join_quoted;
use crate::error::{Failure, FailureKind, StillBilling};
use crate::ops;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct TimerArgs {
    #[command(flatten)]
    config: ConfigArgs,
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
            print::data(&path.display().to_string());
        }
        Ok(files)
    });
    match written {
        Ok(files) => {
            print::note(&switch_on(&files));
            print::note(
                "the timer reads the key when it looks, so the key must be in the keychain and readable then; look at `podtether deadman status` for when it last looked",
            );
            0
        }
        Err(failure) => open::failed(&failure, false),
    }
}

/// Takes the files away.
pub fn uninstall(args: &TimerArgs) -> u8 {
    let removed = files(args).and_then(|files| {
        // And what switching it on has left: a link to a file that is gone.
        let wanted = deadman::timer_link(&files);
        for path in wanted.iter().chain(files.iter().map(|file| &file.path)) {
            match std::fs::remove_file(path) {
                Ok(()) => print::data(&path.display().to_string()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(in_the_way(path, &error)),
            }
        }
        print::note(&switch_off(&files));
        Ok(())
    });
    match removed {
        Ok(()) => 0,
        Err(failure) => open::failed(&failure, false),
    }
}

fn in_the_way(path: &std::path::Path, error: &std::io::Error) -> Failure {
    let message = format!("{}: {error}", path.display());
    Failure::new(FailureKind::Internal, message, "mend the folder's permissions")
}

/// What a person runs once to have the scheduler look.
fn switch_on(files: &[TimerFile]) -> String {
    let Some(TimerFile { path, .. }) = files.last() else { return String::new() };
    if cfg!(target_os = "macos") {
        let path = join_quoted([path.to_string_lossy().as_ref()]);
        format!("run once: launchctl bootstrap gui/$(id -u) {path}")
    } else {
        let unit = path.file_name().unwrap_or_default().to_string_lossy();
        format!("run once: systemctl --user daemon-reload; systemctl --user enable --now {unit}")
    }
}

/// What a person runs once to have it look no more, by names alone: the files are gone, and neither
/// `launchctl bootout` with a path nor `systemctl disable` knows what has no file.
fn switch_off(files: &[TimerFile]) -> String {
    let Some(TimerFile { path, .. }) = files.last() else { return String::new() };
    if cfg!(target_os = "macos") {
        let label = path.file_stem().unwrap_or_default().to_string_lossy();
        format!("run once: launchctl bootout gui/$(id -u)/{label}")
    } else {
        let unit = path.file_name().unwrap_or_default().to_string_lossy();
        format!("run once: systemctl --user stop {unit}; systemctl --user daemon-reload")
    }
}

/// One look: whatever was armed and has no process any more is armed again for its old time, and fires
/// at once when that has passed.
pub fn tick(args: &TimerArgs) -> u8 {
    match open::block_on(look(args)) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) | Err(failure) => open::failed(&failure, false),
    }
}

async fn look(args: &TimerArgs) -> Result<u8, Failure> {
    let start = args.config.start()?;
    let _log = logging::start(&start.env);
    let config = config_of(&start)?;
    let clock = open::clock();
    let (mut lost, mut code) = (Vec::new(), 0);
    for vehicle in &config.vehicles {
        if let Some(record) = deadman::overdue(&vehicle.local_log_dir) {
            lost.push((vehicle, record));
        } else if let Seen::LostUnread(why) = deadman::look(&vehicle.local_log_dir) {
            let name = &vehicle.name;
            print::note(&format!(
                "{name}: THE POD MAY BILL: a fuse was armed and its process is gone, and its file cannot be read ({why}): podtether stop --vehicle {name}"
            ));
            code = 1;
        } else if let Err(error) = deadman::note_tick(&vehicle.local_log_dir, clock.now()) {
            print::note(&format!("{}: {error}", vehicle.name));
        }
    }
    if lost.is_empty() {
        return Ok(code);
    }
    // Only now, so that a look with nothing to do asks no keychain.
    let (tether, _) = ops::open(&start, clock).await.map_err(|failure| {
        // Fuses are lost, and nothing can be done about it now: their pods may bill.
        let names: Vec<&str> = lost.iter().map(|(vehicle, _)| vehicle.name.0.as_str()).collect();
        let message = format!(
            "THE PODS OF {} MAY BILL: their fuses' processes are gone, and no new ones can be armed: {}",
            names.join(", "),
            failure.message
        );
        Failure { message, ..failure }.billing(StillBilling::Unknown)
    })?;
    for (vehicle, record) in lost {
        let Some(arming) = tether.arming() else { continue };
        let wish = Wish {
            retries: record.retries,
            spacing: std::time::Duration::from_secs(record.spacing_sec),
            pod: record.pod_id.clone(),
            usd_per_hour: record.micros_per_hour.map(crate::domain::Usd::from_micros),
            ..Wish::new(vehicle, record.fire_at)
        };
        match deadman::ensure_armed(arming, &wish, tether.clock()).await {
            Ok(armed) => {
                print::data(&format!(
                    "{}: its process was gone; process {} took over",
                    vehicle.name, armed.record.pid
                ));
                let noted = deadman::note_tick(&vehicle.local_log_dir, tether.clock().now());
                if let Err(error) = noted {
                    print::note(&format!("{}: {error}", vehicle.name));
                }
            }
            Err(error) => {
                print::note(&format!("{}: THE POD MAY BILL: {error}", vehicle.name));
                code = 1;
            }
        }
    }
    Ok(code)
}
