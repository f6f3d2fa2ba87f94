//! Which boot of this machine it is, so that what was armed before a restart is told from what lives.

use std::io;

/// What the system says of this boot; `None` where it does not tell.
#[must_use]
pub fn id() -> Option<String> {
    said().ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(not(target_os = "macos"))]
fn said() -> io::Result<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
}

/// `kern.bootsessionuuid` is another one after each start (XNU, bsd/kern/kern_sysctl.c). `kern.boottime`, which
/// every version has, is a time and moves when the clock is set; it is the second choice. Not tried on a Mac.
#[cfg(target_os = "macos")]
fn said() -> io::Result<String> {
    let ask = |name: &str| -> io::Result<String> {
        #[expect(clippy::disallowed_methods, reason = "the system tells its boot by this program")]
        let mut command = std::process::Command::new("/usr/sbin/sysctl");
        let output =
            command.args(["-n", name]).env_clear().stdin(std::process::Stdio::null()).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let session = ask("kern.bootsessionuuid")?;
    if session.trim().is_empty() { ask("kern.boottime") } else { Ok(session) }
}

/// How far two tellings of one boot's time may lie apart, in seconds: a clock that was set.
const CLOCK_WAS_SET: u64 = 600;

/// Whether these are two boots; not when one of them is not known.
#[must_use]
pub fn is_another(before: Option<&str>, now: Option<&str>) -> bool {
    let (Some(before), Some(now)) = (before, now) else { return false };
    match (seconds(before), seconds(now)) {
        (Some(before), Some(now)) => before.abs_diff(now) > CLOCK_WAS_SET,
        _ => before != now,
    }
}

/// The seconds of `{ sec = 1751500000, usec = 123 } Thu Jul …`, as `kern.boottime` is printed.
fn seconds(boottime: &str) -> Option<u64> {
    let (_, rest) = boottime.split_once("sec = ")?;
    rest.split(',').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_boot_is_known_and_is_no_other() {
        let now = id();
        assert!(now.is_some() || !cfg!(any(target_os = "linux", target_os = "macos")));
        assert!(!is_another(now.as_deref(), id().as_deref()));
    }

    #[test]
    fn a_boot_is_another_one_only_when_both_are_known_and_a_clock_that_was_set_is_none() {
        let at = |sec: u64| format!("{{ sec = {sec}, usec = 7 }} Thu Jul  3 12:00:00 2026");
        assert!(is_another(Some("one"), Some("other")));
        assert!(!is_another(Some("one"), Some("one")));
        assert!(!is_another(None, Some("one")) && !is_another(Some("one"), None));
        assert!(!is_another(Some(&at(1_751_500_000)), Some(&at(1_751_500_060))));
        assert!(is_another(Some(&at(1_751_500_000)), Some(&at(1_751_600_000))));
    }
}
