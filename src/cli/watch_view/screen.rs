//! The terminal while a view has it: taken on an alternate screen and always given back, also by a panic that
//! unwinds. Drawn on stderr; stdout carries data.

use super::frame;
use super::model::Model;
use crate::cli::log_writer::LastWords;
use chrono::{DateTime, Utc};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io::{self, Stderr, Write, stderr};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// How soon a reader of keys sees that nobody wants them any more.
const KEYS: Duration = Duration::from_millis(100);

/// The alternate screen, until it is dropped.
struct Alternate<W: Write>(W);

impl<W: Write> Alternate<W> {
    fn take(out: W) -> io::Result<Self> {
        // Made before anything is written: whatever fails from here on is taken back.
        let mut taken = Self(out);
        execute!(taken.0, EnterAlternateScreen, Hide)?;
        Ok(taken)
    }
}

impl<W: Write> Drop for Alternate<W> {
    fn drop(&mut self) {
        // A terminal that is gone cannot be given back.
        let _ = execute!(self.0, LeaveAlternateScreen, Show);
    }
}

/// Keys one by one, without echo, until it is dropped.
struct Raw;

impl Raw {
    fn take() -> io::Result<Self> {
        enable_raw_mode()?;
        Ok(Self)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = disable_raw_mode();
    }
}

/// Log records wait until it is dropped.
struct Quiet<'a>(&'a LastWords);

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// A terminal that is a view's.
pub(super) struct Screen<'a> {
    // Never dropped: that shows the cursor, which is done below, and panics when stderr is gone.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stderr>>>,
    // Given back in this order: the screen, the keys, the log.
    _alternate: Alternate<Stderr>,
    _raw: Raw,
    _quiet: Quiet<'a>,
}

impl<'a> Screen<'a> {
    /// Takes the terminal.
    pub(super) fn take(log: &'a LastWords) -> io::Result<Self> {
        log.hold();
        let quiet = Quiet(log);
        let raw = Raw::take()?;
        let alternate = Alternate::take(stderr())?;
        // Not cleared: that asks the terminal where its cursor is and waits for an answer, and the
        // alternate screen is empty.
        let terminal = ManuallyDrop::new(Terminal::new(CrosstermBackend::new(stderr()))?);
        Ok(Self { terminal, _alternate: alternate, _raw: raw, _quiet: quiet })
    }

    /// Draws what is known, in the size that the terminal has now.
    pub(super) fn draw(&mut self, model: &Model, now: DateTime<Utc>) -> io::Result<()> {
        self.terminal.draw(|frame| frame::draw(frame, model, now)).map(|_| ())
    }
}

/// What a key means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// Leave the watch.
    Leave,
    /// The terminal has another size.
    Resized,
}

/// Reads keys on a thread of its own until it is dropped. A thread of the system's, not the runtime's,
/// which would wait for it: crossterm's reader never returns from a terminal that is gone.
pub(super) struct Keys {
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

/// How long the reader may take to see that it is over; from a dead terminal it does not come back.
const LAST_KEYS: u32 = 10;

impl Keys {
    /// Begins.
    pub(super) fn read() -> (Self, tokio::sync::mpsc::UnboundedReceiver<Key>) {
        let (send, keys) = unbounded_channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let reader = std::thread::Builder::new()
            .name("keys".to_owned())
            .spawn(move || read_all(&seen, &send))
            .ok();
        (Self { is_over, reader }, keys)
    }

    /// Ends, before the terminal is given back: the shell's keys are the shell's.
    pub(super) async fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        for _ in 0..LAST_KEYS {
            if self.reader.as_ref().is_none_or(JoinHandle::is_finished) {
                return;
            }
            tokio::time::sleep(KEYS).await;
        }
    }
}

fn read_all(is_over: &AtomicBool, send: &UnboundedSender<Key>) {
    while !is_over.load(Ordering::Relaxed) && !is_gone() {
        let key = match poll(KEYS) {
            Ok(false) => continue,
            Ok(true) => read().map(|event| meaning(&event)),
            Err(error) => Err(error),
        };
        match key {
            Ok(Some(key)) => {
                let _ = send.send(key);
            }
            Ok(None) => {}
            Err(_) => {
                // Nobody reads Ctrl-C as a key any more: it is to be a signal again.
                let _ = disable_raw_mode();
                return;
            }
        }
    }
}

/// Whether nobody is at the other end of the terminal any more. SIGHUP says so too and ends the watch;
/// this keeps the reader from a terminal that it would read for ever.
fn is_gone() -> bool {
    let stdin = io::stdin();
    let mut there = [PollFd::new(&stdin, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    rustix::event::poll(&mut there, Some(&at_once)).is_ok() && there[0].revents().intersects(gone)
}

fn meaning(event: &Event) -> Option<Key> {
    match event {
        Event::Resize(..) => Some(Key::Resized),
        Event::Key(KeyEvent { code, modifiers, kind, .. }) if *kind != KeyEventKind::Release => {
            let is_control = modifiers.contains(KeyModifiers::CONTROL);
            match code {
                KeyCode::Char('c' | 'd') if is_control => Some(Key::Leave),
                KeyCode::Char('q' | 'Q') | KeyCode::Esc => Some(Key::Leave),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_screen_is_given_back_also_by_a_panic() {
        let paper = Paper::default();
        let given = paper.clone();
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let _screen = Alternate::take(given).unwrap();
            panic!("a mistake");
        }));
        assert!(ended.is_err());
        let written = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
        let (taken, back) = (written.find("\x1b[?1049h"), written.find("\x1b[?1049l"));
        assert!(taken < back && back.is_some(), "{written:?}");
        assert!(written.ends_with("\x1b[?25h"), "the cursor is shown: {written:?}");
    }

    #[test]
    fn q_and_ctrl_c_leave_and_no_other_key_does() {
        let key = |code, modifiers| meaning(&Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(key(KeyCode::Char('q'), KeyModifiers::NONE), Some(Key::Leave));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Leave));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::NONE), None);
        assert_eq!(key(KeyCode::Enter, KeyModifiers::NONE), None);
        assert_eq!(meaning(&Event::Resize(40, 10)), Some(Key::Resized));
    }
}
