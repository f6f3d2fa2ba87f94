//! The check of a vehicle's SSH key files, made before anything that will need them is started.

use super::ConfigError;
use crate::domain::Vehicle;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::PermissionsExt as _;

/// Checks that the vehicle's private key can be used: a readable file that is closed to others
/// (ssh refuses one that is not), not the public half, with its `.pub` neighbour beside it.
///
/// # Errors
/// [`ConfigError::Identity`] with the command that mends it.
pub fn check_identity(vehicle: &Vehicle) -> Result<(), ConfigError> {
    let path = &vehicle.ssh_identity;
    let shown = path.display();
    let fault = |reason: String, fix: String| ConfigError::Identity {
        vehicle: vehicle.name.to_string(),
        path: path.clone(),
        reason,
        fix,
    };
    let make = format!("make one with `ssh-keygen -t ed25519 -f '{shown}'`, or set ssh_identity");
    let unreadable = |error: &std::io::Error| match error.kind() {
        ErrorKind::NotFound => fault("there is no such file".to_owned(), make.clone()),
        _ => fault(
            format!("cannot be read: {error}"),
            format!("give it to yourself with `chmod 600 '{shown}'`, or set ssh_identity"),
        ),
    };
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(&error))?;
    if !metadata.is_file() {
        return Err(fault("is not a file".to_owned(), make));
    }
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(fault(
            format!("is open to other users (mode {mode:03o})"),
            format!("close it with `chmod 600 '{shown}'`"),
        ));
    }
    // Only the first bytes: enough to tell a public key or an empty file, never the key itself.
    let mut head = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(11).read_to_end(&mut head))
        .map_err(|error| unreadable(&error))?;
    if !head.starts_with(b"-----BEGIN ") {
        return Err(fault(
            "is not a private key in OpenSSH or PEM form".to_owned(),
            "name the private half, the file without .pub".to_owned(),
        ));
    }
    let mut public = path.clone().into_os_string();
    public.push(".pub");
    match std::fs::metadata(&public) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        _ => Err(fault(
            "its public half is not beside it".to_owned(),
            format!("write it with `ssh-keygen -y -f '{shown}' > '{shown}.pub'`"),
        )),
    }
}
