//! The same fuse under launchd or systemd: a look once a minute that takes up whatever was armed and
//! whose process is gone, so that it survives a logout and a reboot.

use super::record::Record;
use super::seat::{self, Seen};
use crate::digest::hex;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::io;
use std::path::{Path, PathBuf};

/// A file that the system's scheduler reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerFile {
    /// Where it goes.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

const TICK: &str = "deadman.tick";

#[derive(Serialize, Deserialize)]
struct Tick {
    at: DateTime<Utc>,
    version: String,
}

/// Notes that the timer looked: C05, a timer that is loaded is not one that runs. Nothing is noted in
/// a folder that is not there, for no fuse was ever armed in it.
///
/// # Errors
/// When the file cannot be written.
pub fn note_tick(folder: &Path, now: DateTime<Utc>) -> io::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    let tick = Tick { at: now, version: env!("CARGO_PKG_VERSION").to_owned() };
    // Whole or not at all: `status` may look at any moment, and the disk may be full.
    seat::place(&folder.join(TICK), &tick)
}

/// When the timer last looked here.
pub(super) fn last_tick(folder: &Path) -> Option<DateTime<Utc>> {
    seat::read::<Tick>(&folder.join(TICK)).map(|tick| tick.at)
}

const TOLD: &str = "deadman.told";

/// Notes that people were told of a fuse that is gone and cannot be had again.
///
/// # Errors
/// When the file cannot be written.
pub fn note_told(folder: &Path, now: DateTime<Utc>) -> io::Result<()> {
    let told = Tick { at: now, version: env!("CARGO_PKG_VERSION").to_owned() };
    seat::place(&folder.join(TOLD), &told)
}

/// When they were told last, UTC.
#[must_use]
pub fn told_at(folder: &Path) -> Option<DateTime<Utc>> {
    seat::read::<Tick>(&folder.join(TOLD)).map(|told| told.at)
}

/// A fuse whose process is gone, and which has to be taken up: it is armed again for its old time, which
/// fires at once when that has passed.
#[must_use]
pub fn overdue(folder: &Path) -> Option<Record> {
    match seat::look(folder) {
        Seen::Lost(record) => Some(*record),
        _ => None,
    }
}

/// The files for this system: launchd on a Mac, systemd's user instance elsewhere. One set for each
/// config, named after it.
#[must_use]
pub fn files(home: &Path, program: &Path, config: &Path, is_mac: bool) -> Vec<TimerFile> {
    let name = format!("podtether-deadman-{}", digest(config));
    match is_mac {
        true => vec![TimerFile {
            path: home.join("Library/LaunchAgents").join(format!("{name}.plist")),
            text: plist(&name, program, config),
        }],
        false => {
            let folder = home.join(".config/systemd/user");
            vec![
                TimerFile {
                    path: folder.join(format!("{name}.service")),
                    text: service(program, config),
                },
                TimerFile { path: folder.join(format!("{name}.timer")), text: timer(config) },
            ]
        }
    }
}

/// The link by which `systemctl enable` has a timer started at login; `None` for launchd, which needs none.
#[must_use]
pub fn link(files: &[TimerFile]) -> Option<PathBuf> {
    let timer = files
        .iter()
        .map(|file| &file.path)
        .find(|path| path.extension() == Some("timer".as_ref()))?;
    Some(timer.parent()?.join("timers.target.wants").join(timer.file_name()?))
}

fn digest(config: &Path) -> String {
    hex(&Sha256::digest(config.as_os_str().as_encoded_bytes())[..4])
}

fn xml(text: &Path) -> String {
    text.to_string_lossy().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// `AbandonProcessGroup`: what the look starts must outlive it.
fn plist(label: &str, program: &Path, config: &Path) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{label}</string>
  <key>ProgramArguments</key>
  <array>
    <string>{}</string>
    <string>deadman</string>
    <string>tick</string>
    <string>--config</string>
    <string>{}</string>
  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>StartInterval</key>
  <integer>60</integer>
  <key>AbandonProcessGroup</key>
  <true/>
  <key>ProcessType</key>
  <string>Background</string>
</dict>
</plist>
"#,
        xml(program),
        xml(config)
    )
}

/// A word of a systemd unit: quoted, and with nothing of its own meaning.
fn unit_word(text: &Path) -> String {
    let text = text.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('%', "%%").replace('$', "$$"))
}

/// `KillMode=process`: what the look starts must outlive it.
fn service(program: &Path, config: &Path) -> String {
    format!(
        "[Unit]\nDescription=podtether: stops pods whose fuse is overdue and lost\n\n[Service]\nType=oneshot\nKillMode=process\nExecStart={} deadman tick --config {}\n",
        unit_word(program),
        unit_word(config)
    )
}

fn timer(config: &Path) -> String {
    let shown = config.to_string_lossy().replace('%', "%%").replace('\n', " ");
    format!(
        "[Unit]\nDescription=podtether: looks for lost fuses of {shown}\n\n[Timer]\nOnCalendar=*-*-* *:*:00\nAccuracySec=1s\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C05: looks at once when it is loaded, and each minute; no schedule that sleep can lose.
    #[test]
    fn launchd_looks_at_load_and_every_minute() {
        let files = files(
            Path::new("/Users/ann"),
            Path::new("/opt/R&D/podtether"),
            Path::new("/Users/ann/it's a <project>/podtether.yaml"),
            true,
        );
        let [file] = &files[..] else { panic!("{files:?}") };
        assert!(file.path.starts_with("/Users/ann/Library/LaunchAgents"), "{file:?}");
        for part in [
            "<key>RunAtLoad</key>\n  <true/>",
            "<key>StartInterval</key>\n  <integer>60</integer>",
            "<key>AbandonProcessGroup</key>\n  <true/>",
            "<string>/opt/R&amp;D/podtether</string>\n    <string>deadman</string>\n    <string>tick</string>",
            "<string>/Users/ann/it's a &lt;project&gt;/podtether.yaml</string>",
        ] {
            assert!(file.text.contains(part), "{part}\n{}", file.text);
        }
    }

    #[test]
    fn each_config_has_a_timer_of_its_own_and_systemd_catches_up() {
        let of = |config: &str| {
            files(Path::new("/home/ann"), Path::new("/bin/p t"), Path::new(config), false)
        };
        let [service, timer] = &of("/a \"b\" 100%/x.yaml")[..] else { panic!() };
        assert!(
            service.text.contains(
                "ExecStart=\"/bin/p t\" deadman tick --config \"/a \\\"b\\\" 100%%/x.yaml\"\n"
            ),
            "{}",
            service.text
        );
        assert!(service.text.contains("KillMode=process"));
        assert!(timer.text.contains("Persistent=true") && timer.text.contains("OnCalendar="));
        assert_ne!(of("/a.yaml")[0].path, of("/b.yaml")[0].path);
    }
}
