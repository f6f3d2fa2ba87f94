//! What tells this machine from every other. It is only ever shown as a fingerprint.

use std::sync::OnceLock;

/// The system's own id of this machine; empty when it tells none.
pub(super) fn host_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| found().unwrap_or_default())
}

/// systemd's `machine-id(5)`, or D-Bus's of before it.
#[cfg(not(target_os = "macos"))]
fn found() -> Option<String> {
    ["/etc/machine-id", "/var/lib/dbus/machine-id"].iter().find_map(|path| {
        let text = std::fs::read_to_string(path).ok()?;
        let id = text.trim();
        (!id.is_empty()).then(|| id.to_owned())
    })
}

/// The platform UUID, which only the I/O registry tells without unsafe code (untried: no Mac was at
/// hand).
#[cfg(target_os = "macos")]
fn found() -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "ioreg is the way to the platform UUID")]
    let mut command = std::process::Command::new("/usr/sbin/ioreg");
    let output = command.args(["-rd1", "-c", "IOPlatformExpertDevice"]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("IOPlatformUUID"))?;
    Some(line.split('"').nth(3)?.to_owned())
}
