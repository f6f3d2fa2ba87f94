//! What a command line and its folder must be before anything is asked or sent.

use crate::domain::{RemoteCommand, Vehicle};
use crate::error::Failure;

/// Refuses a command that no shell can run.
pub(super) fn check_command(command: &str, what_for: &str) -> Result<(), Failure> {
    if command.trim().is_empty() {
        return Err(Failure::bad_input(format!("command is empty; give {what_for}")));
    }
    if command.contains('\0') {
        return Err(Failure::bad_input("command contains a NUL byte, which no shell can run"));
    }
    Ok(())
}

/// The longest text that a pod's shell is given, in bytes: Linux starts no program with an argument of
/// 128 KiB or more (`MAX_ARG_STRLEN`), and the SSH server hands the whole line to a shell as one.
const WIRE_MAX: usize = 120_000;

/// Refuses a command that is too long to be sent as words.
pub(super) fn check_wire(command: &RemoteCommand) -> Result<(), Failure> {
    let bytes = command.to_wire().len();
    if bytes <= WIRE_MAX {
        return Ok(());
    }
    Err(Failure::bad_input(format!(
        "command takes {bytes} bytes with its quoting, and a pod's shell takes at most {WIRE_MAX}; use run_job, which sends its command as a file, or write it to a file on the volume"
    )))
}

/// The longest command of a job, in bytes. It is written to a file, and shown again by job_status.
const JOB_MAX: usize = 1 << 20;

/// Refuses a job's command that nobody means to send as text.
pub(super) fn check_job_command(command: &str) -> Result<(), Failure> {
    if command.len() <= JOB_MAX {
        return Ok(());
    }
    Err(Failure::bad_input(format!(
        "command has {} bytes, and a job's has at most {JOB_MAX}; put it into a file on the volume and run that",
        command.len()
    )))
}

/// The longest path that Linux takes (`PATH_MAX`), in bytes.
const PATH_MAX: usize = 4_096;

/// The folder to run in; the volume's mount path when none was given. A relative one would mean
/// the login folder, which lies on the container disk and is gone at the first stop.
pub(super) fn workdir(vehicle: &Vehicle, given: Option<&str>) -> Result<String, Failure> {
    let workdir = given.unwrap_or(&vehicle.volume_mount_path);
    if !workdir.starts_with('/')
        || workdir.chars().any(char::is_control)
        || workdir.len() >= PATH_MAX
    {
        let shown: String = workdir.chars().take(200).collect();
        return Err(Failure::bad_input(format!(
            "workdir={shown:?} is not an absolute path on the pod, below {PATH_MAX} bytes, such as {:?}",
            vehicle.volume_mount_path
        )));
    }
    Ok(workdir.to_owned())
}
