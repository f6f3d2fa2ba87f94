//! What a command line and its folder must be before anything is asked or sent.

use crate::domain::Vehicle;
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

/// The folder to run in; the volume's mount path when none was given. A relative one would mean
/// the login folder, which lies on the container disk and is gone at the first stop.
pub(super) fn workdir(vehicle: &Vehicle, given: Option<&str>) -> Result<String, Failure> {
    let workdir = given.unwrap_or(&vehicle.volume_mount_path);
    if !workdir.starts_with('/') || workdir.chars().any(char::is_control) {
        return Err(Failure::bad_input(format!(
            "workdir={workdir:?} is not an absolute path on the pod, such as {:?}",
            vehicle.volume_mount_path
        )));
    }
    Ok(workdir.to_owned())
}
