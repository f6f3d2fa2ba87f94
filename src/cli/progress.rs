//! The live line of a supervised run: one line that is written over on a terminal, a plain line now
//! and then elsewhere.

use super::print;
use crate::clock::{Clock as _, SystemClock};
use crate::domain::JobState;
use crate::supervise::Note;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

/// Between two plain lines, when stderr is no terminal.
const PLAIN_EVERY: Duration = Duration::from_secs(30);

/// Shows the notes of a run.
pub struct Progress {
    live: bool,
    line_is_open: bool,
    last_plain: Option<Duration>,
    /// By our own clock: a pull has no time of its own.
    last_pulling: Option<Duration>,
    clock: SystemClock,
}

impl Progress {
    /// Looks once whether stderr is a terminal.
    #[must_use]
    pub fn new() -> Self {
        Self {
            live: std::io::stderr().is_terminal(),
            line_is_open: false,
            last_plain: None,
            last_pulling: None,
            clock: SystemClock::new(),
        }
    }

    /// Shows one note.
    pub fn tell(&mut self, note: &Note) {
        match note {
            Note::Said(text) => {
                self.end();
                print::note(&format!("  {text}"));
            }
            Note::Progress { elapsed, .. } => {
                let line = line(note);
                let due =
                    self.last_plain.is_none_or(|last| elapsed.saturating_sub(last) >= PLAIN_EVERY);
                if self.live {
                    self.over(&line);
                } else if due {
                    self.last_plain = Some(*elapsed);
                    print::note(&format!("  {line}"));
                }
            }
            Note::Pulling(progress) => {
                let line = format!("pulling results: {progress}");
                let now = self.clock.monotonic();
                let due =
                    self.last_pulling.is_none_or(|last| now.saturating_sub(last) >= PLAIN_EVERY);
                if self.live {
                    self.over(&line);
                } else if due {
                    self.last_pulling = Some(now);
                    print::note(&format!("  {line}"));
                }
            }
        }
    }

    /// Ends an open line.
    pub fn end(&mut self) {
        if self.line_is_open {
            print::note("");
            self.line_is_open = false;
        }
    }

    fn over(&mut self, line: &str) {
        let mut stderr = std::io::stderr().lock();
        let shown: String = line.chars().take(110).collect();
        let _ = write!(stderr, "\r\x1b[2K  {shown}").and_then(|()| stderr.flush());
        self.line_is_open = true;
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

fn line(note: &Note) -> String {
    let Note::Progress { state, metrics, elapsed, ceiling, cost } = note else {
        return String::new();
    };
    let mut parts = vec![format!("{state} {}", clock_time(*elapsed))];
    if let Some(metrics) = metrics {
        let total = metrics.total_iterations.map_or_else(String::new, |total| format!("/{total}"));
        parts.push(format!("iteration {}{total}", metrics.iteration));
        if let Some(reward) = metrics.mean_reward {
            parts.push(format!("reward {reward:.2}"));
        }
    }
    if let Some(cost) = cost {
        parts.push(cost.to_string());
    }
    if *state != JobState::Succeeded {
        parts.push(format!(
            "ceiling in {}",
            clock_time(ceiling.duration().saturating_sub(*elapsed))
        ));
    }
    parts.join(" · ")
}

fn clock_time(time: Duration) -> String {
    let sec = time.as_secs();
    if sec >= 3600 {
        format!("{}:{:02}:{:02}", sec / 3600, sec / 60 % 60, sec % 60)
    } else {
        format!("{}:{:02}", sec / 60, sec % 60)
    }
}
