//! Notices on this computer's screen, by the system's own program. The words are arguments of it and
//! never part of a script.

use super::notice::{Message, NoticeKind, without_markup};
use crate::config::Environment;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// The program that shows a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    /// `osascript`, on a Mac.
    Osascript,
    /// `notify-send` of libnotify, elsewhere.
    NotifySend,
}

impl Screen {
    /// The one of this system.
    #[must_use]
    pub const fn of_this_system() -> Self {
        if cfg!(target_os = "macos") { Self::Osascript } else { Self::NotifySend }
    }

    /// The program's name; it is found through PATH.
    #[must_use]
    pub const fn program(self) -> &'static str {
        match self {
            Self::Osascript => "osascript",
            Self::NotifySend => "notify-send",
        }
    }

    /// Its arguments. `osascript` hands what follows the script's lines to `on run` as a list of
    /// texts; the title comes first and never begins with a dash.
    #[must_use]
    pub fn arguments(self, message: &Message) -> Vec<String> {
        let is_urgent = message.kind == NoticeKind::StopFailed;
        let given = match self {
            Self::Osascript => {
                let show = if is_urgent { SHOW_ALOUD } else { SHOW };
                let script = ["-e", "on run argv", "-e", show, "-e", "end run"];
                let words = [message.title.clone(), message.text.clone()];
                return script.map(str::to_owned).into_iter().chain(words).collect();
            }
            Self::NotifySend => ["--app-name=podtether", urgency(is_urgent), "--"],
        };
        // A title is plain text, a body may be markup (Desktop Notifications Specification 1.2,
        // "Markup"): `<module>` of a traceback would vanish.
        let words = [message.title.clone(), without_markup(&message.text)];
        given.map(str::to_owned).into_iter().chain(words).collect()
    }
}

const SHOW: &str = "display notification (item 2 of argv) with title (item 1 of argv)";
const SHOW_ALOUD: &str =
    "display notification (item 2 of argv) with title (item 1 of argv) sound name \"Basso\"";

const fn urgency(is_urgent: bool) -> &'static str {
    if is_urgent { "--urgency=critical" } else { "--urgency=normal" }
}

/// Why a notice is not on the screen.
#[derive(Debug, thiserror::Error)]
pub enum DesktopError {
    /// There is no such program.
    #[error(
        "{program} is not installed{}; install it, or set notify.desktop to false",
        of(program)
    )]
    NoProgram {
        /// Its name.
        program: &'static str,
    },
    /// It did not end in time and was ended.
    #[error("{program} did not end within {} s and was ended; is somebody logged in at the screen?", waited.as_secs())]
    TimedOut {
        /// Its name.
        program: &'static str,
        /// How long was waited.
        waited: Duration,
    },
    /// It said no.
    #[error("{program} failed: {detail}")]
    Failed {
        /// Its name.
        program: &'static str,
        /// Its words, at most 300 characters.
        detail: String,
    },
}

fn of(program: &str) -> &'static str {
    if program == "notify-send" { " (it is in libnotify-bin)" } else { "" }
}

/// The screen of this computer.
#[derive(Clone, Debug)]
pub struct Desktop {
    screen: Screen,
    env: Vec<(&'static str, OsString)>,
}

impl Desktop {
    /// A screen, and the environment that its program is found and started with.
    #[must_use]
    pub fn new(screen: Screen, env: &Environment) -> Self {
        let env = env.for_children().map(|(name, value)| (name, value.to_owned())).collect();
        Self { screen, env }
    }

    /// Shows a notice within `wait`.
    ///
    /// # Errors
    /// [`DesktopError`]; the program is gone then.
    pub async fn show(&self, message: &Message, wait: Duration) -> Result<(), DesktopError> {
        let program = self.screen.program();
        let failed = |detail: String| DesktopError::Failed { program, detail };
        #[expect(
            clippy::disallowed_methods,
            reason = "the screen's own program is asked here and nowhere else"
        )]
        let mut command = Command::new(program);
        let spawned = command
            .args(self.screen.arguments(message))
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // A Ctrl-C at the terminal is not for it.
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let mut child = spawned.map_err(|error| match error.kind() {
            ErrorKind::NotFound => DesktopError::NoProgram { program },
            _ => failed(error.to_string()),
        })?;
        let status = tokio::time::timeout(wait, child.wait())
            .await
            .map_err(|_| DesktopError::TimedOut { program, waited: wait })?
            .map_err(|error| failed(error.to_string()))?;
        if status.success() {
            return Ok(());
        }
        let mut words = Vec::new();
        if let Some(stderr) = child.stderr.take() {
            // What it started may hold the pipe open.
            let mut stderr = stderr.take(4_096);
            let read = stderr.read_to_end(&mut words);
            let _ = tokio::time::timeout(Duration::from_millis(300), read).await;
        }
        let said = crate::secret::scrub(&String::from_utf8_lossy(&words), &[]);
        let said: String = said.chars().filter(|c| !c.is_control()).take(300).collect();
        Err(failed(format!("{status}: {}", said.trim())))
    }
}
