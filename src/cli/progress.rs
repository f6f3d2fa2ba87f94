//! The live line of a supervised run: one line that is written over on a terminal and never wraps, a
//! plain line now and then elsewhere.

use super::print;
use crate::clock::{Clock as _, SystemClock};
use crate::domain::JobState;
use crate::supervise::Note;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

/// Between two plain lines, when stderr is no terminal.
const PLAIN_EVERY: Duration = Duration::from_secs(30);
/// The width of a terminal that does not tell its own.
const WIDTH: usize = 80;

/// Shows the notes of a run.
pub struct Progress {
    live: bool,
    line_is_open: bool,
    /// The last that was told of the job, and when by our own clock.
    last: Option<(Note, Duration)>,
    last_plain: Option<Duration>,
    /// By our own clock: a pull has no time of its own.
    last_pulling: Option<Duration>,
    clock: SystemClock,
    /// Whether nobody can read it any more.
    gone: bool,
}

impl Progress {
    /// Looks once whether stderr is a terminal.
    #[must_use]
    pub fn new() -> Self {
        Self {
            live: io::stderr().is_terminal(),
            line_is_open: false,
            last: None,
            last_plain: None,
            last_pulling: None,
            clock: SystemClock::new(),
            gone: false,
        }
    }

    /// Whether there is a line that goes on between two notes.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        self.live
    }

    /// Whether nobody can read it any more: a closed terminal, a pipe without a reader.
    #[must_use]
    pub const fn is_gone(&self) -> bool {
        self.gone
    }

    /// Shows one note.
    pub fn tell(&mut self, note: &Note) {
        let now = self.clock.monotonic();
        let is_due = |last: Option<Duration>| {
            last.is_none_or(|last| now.saturating_sub(last) >= PLAIN_EVERY)
        };
        match note {
            Note::Said(text) => {
                self.clear();
                self.plain(text);
            }
            Note::Progress { .. } => {
                self.last = Some((note.clone(), now));
                if self.live {
                    self.over(&line(note, Duration::ZERO));
                } else if is_due(self.last_plain) {
                    self.last_plain = Some(now);
                    self.plain(&line(note, Duration::ZERO));
                }
            }
            Note::Pulling(progress) => {
                // Nothing follows the job any more: its line is not to come back.
                self.last = None;
                let line = format!("pulling results: {progress}");
                if self.live {
                    self.over(&line);
                } else if is_due(self.last_pulling) {
                    self.last_pulling = Some(now);
                    self.plain(&line);
                }
            }
        }
    }

    /// Lets the times of the live line go on.
    pub fn tick(&mut self) {
        if let Some((note, at)) = self.last.take() {
            let since = self.clock.monotonic().saturating_sub(at);
            self.over(&line(&note, since));
            self.last = Some((note, at));
        }
    }

    /// Ends an open line, which stays.
    pub fn end(&mut self) {
        self.last = None;
        if std::mem::take(&mut self.line_is_open) {
            self.written(print::note_to_somebody(""));
        }
    }

    fn plain(&mut self, text: &str) {
        self.written(print::note_to_somebody(&format!("  {text}")));
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.line_is_open) {
            let mut stderr = io::stderr().lock();
            let cleared = write!(stderr, "\r\x1b[2K").and_then(|()| stderr.flush());
            drop(stderr);
            self.written(cleared);
        }
    }

    fn over(&mut self, line: &str) {
        let shown = fitted(line, width());
        let mut stderr = io::stderr().lock();
        let written = write!(stderr, "\r\x1b[2K{shown}").and_then(|()| stderr.flush());
        drop(stderr);
        self.line_is_open = true;
        self.written(written);
    }

    fn written(&mut self, result: io::Result<()>) {
        let is_over = |error: io::Error| {
            !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        };
        self.gone |= result.is_err_and(is_over);
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

/// The columns of the terminal now; it may have been resized.
fn width() -> usize {
    let told = rustix::termios::tcgetwinsize(io::stderr()).map(|size| usize::from(size.ws_col));
    told.ok().filter(|columns| *columns > 0).unwrap_or(WIDTH)
}

/// The line, indented, in at most one column less than there are: a full line wraps on some terminals.
fn fitted(line: &str, columns: usize) -> String {
    let room = columns.saturating_sub(1);
    let whole = format!("  {line}");
    if whole.chars().count() <= room {
        return whole;
    }
    let cut: String = whole.chars().take(room.saturating_sub(1)).collect();
    if room == 0 { String::new() } else { format!("{cut}…") }
}

/// What matters most comes first: what does not fit is cut off at the end.
fn line(note: &Note, since: Duration) -> String {
    let Note::Progress { state, metrics, elapsed, ceiling, cost, armed } = note else {
        return String::new();
    };
    let elapsed = elapsed.saturating_add(since);
    let mut parts = vec![format!("{state} {}", clock_time(elapsed))];
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
    if matches!(state, JobState::Starting | JobState::Running | JobState::Unknown) {
        let left = ceiling.duration().saturating_sub(elapsed);
        parts.push(format!("ceiling in {}", clock_time(left)));
    }
    let armed = if armed.is_empty() { "nothing".to_owned() } else { armed.join(", ") };
    parts.push(format!("armed: {armed}"));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Ceiling, Usd};
    use crate::ops::LatestMetrics;

    fn note() -> Note {
        let metrics = LatestMetrics {
            iteration: 120,
            total_iterations: Some(3_000),
            mean_reward: Some(12.3),
        };
        Note::Progress {
            state: JobState::Running,
            metrics: Some(metrics),
            elapsed: Duration::from_secs(754),
            ceiling: Ceiling::from_secs(3_600).unwrap(),
            cost: Some(Usd::from_micros(140_000)),
            armed: vec!["supervise", "deadman"],
        }
    }

    #[test]
    fn the_line_tells_iteration_reward_cost_time_left_and_what_is_armed() {
        assert_eq!(
            line(&note(), Duration::from_secs(6)),
            "running 12:40 · iteration 120/3000 · reward 12.30 · $0.14 · ceiling in 47:20 · armed: supervise, deadman"
        );
    }

    #[test]
    fn no_width_makes_the_line_wrap() {
        let line = line(&note(), Duration::ZERO);
        for columns in 0..200 {
            let shown = fitted(&line, columns);
            assert!(shown.chars().count() < columns.max(1), "{columns}: {shown}");
            let is_whole = columns > line.chars().count() + 2;
            assert!(is_whole || columns == 0 || shown.ends_with('…') || columns == 1, "{shown}");
        }
        assert_eq!(fitted(&line, 21), "  running 12:34 · i…");
        assert_eq!(fitted(&line, 200), format!("  {line}"));
    }
}
