//! The live view of `podtether watch`: for people at a terminal. `model` is what is known, `words` and
//! `frame` show it, `screen` has the terminal. It shows what a watch tells and decides nothing.

mod frame;
mod model;
mod screen;
mod words;

pub use model::{Fixed, Model};

use super::log_writer::LastWords;
use super::signals::Leaving;
use crate::error::Failure;
use crate::ops::{Tether, WatchNote, WatchRequest, WatchStatus};
use screen::{Key, Keys, Screen};
use std::pin::pin;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Between two pictures, when something is new.
const NEW: Duration = Duration::from_millis(100);
/// Between two pictures when only time has passed.
const OLD: Duration = Duration::from_secs(1);
/// Without a note, the view begins after this: what is refused at once is told on the terminal as it was.
const BEGIN: Duration = Duration::from_secs(1);

/// How a view ended.
pub enum End {
    /// The watch did.
    Watched(Box<Result<WatchStatus, Failure>>),
    /// Somebody left it; the exit code that goes with that.
    Left(u8),
}

/// Watches and shows it. `told` gets every note as well, with `false` when nothing shows it because the
/// terminal has no view. When this returns the terminal is as it was.
pub async fn show(
    tether: &Tether,
    request: &WatchRequest,
    mut model: Model,
    log: &LastWords,
    leaving: &mut Leaving,
    told: &mut (dyn FnMut(&WatchNote, bool) + Send),
) -> End {
    let clock = tether.clock();
    let (send, mut notes) = unbounded_channel();
    let mut tell = move |note: WatchNote| {
        // Whoever has left listens to nothing.
        let _ = send.send(note);
    };
    let mut watch = pin!(tether.watch(request, &mut tell));
    let mut take = |model: &mut Model, note: WatchNote, is_shown: bool| {
        told(&note, is_shown);
        model.take(note, clock.now());
    };
    let mut shown = Shown { screen: None, keys: None, is_refused: false };
    let begun = clock.monotonic();
    let (mut is_new, mut drawn) = (false, begun);
    let mut tick = tokio::time::interval(NEW);
    let end = loop {
        tokio::select! {
            biased;
            code = leaving.signal() => break End::Left(code),
            key = shown.key() => match key {
                // As a shell tells of a program that SIGINT has ended.
                Some(Key::Leave) => break End::Left(130),
                Some(Key::Resized) => is_new = true,
                None => shown.keys_are_over(),
            },
            Some(note) = notes.recv() => {
                take(&mut model, note, !shown.is_refused);
                is_new = true;
            }
            ended = &mut watch => break End::Watched(Box::new(ended)),
            _ = tick.tick() => {
                let now = clock.monotonic();
                if is_new || now.saturating_sub(begun) >= BEGIN {
                    shown.begin(log);
                }
                if is_new || now.saturating_sub(drawn) >= OLD {
                    (is_new, drawn) = (false, now);
                    shown.draw(&model, clock.now());
                }
            }
        }
    };
    while let Ok(note) = notes.try_recv() {
        take(&mut model, note, !shown.is_refused);
    }
    shown.end().await;
    end
}

/// The view, once it has begun.
struct Shown<'a> {
    screen: Option<Screen<'a>>,
    keys: Option<(Keys, UnboundedReceiver<Key>)>,
    is_refused: bool,
}

impl<'a> Shown<'a> {
    fn begin(&mut self, log: &'a LastWords) {
        if self.screen.is_some() || self.is_refused {
            return;
        }
        match Screen::take(log) {
            Ok(screen) => (self.screen, self.keys) = (Some(screen), Some(Keys::read())),
            Err(error) => {
                self.is_refused = true;
                tracing::warn!(%error, "the terminal has no live view; --plain prints lines");
            }
        }
    }

    fn draw(&mut self, model: &Model, now: chrono::DateTime<chrono::Utc>) {
        if let Some(screen) = &mut self.screen
            && let Err(error) = screen.draw(model, now)
        {
            // A terminal that went away also sends SIGHUP, which ends the watch.
            tracing::debug!(%error, "not drawn");
        }
    }

    async fn key(&mut self) -> Option<Key> {
        match &mut self.keys {
            Some((_, keys)) => keys.recv().await,
            None => std::future::pending().await,
        }
    }

    fn keys_are_over(&mut self) {
        self.keys = None;
    }

    async fn end(mut self) {
        if let Some((keys, _)) = self.keys.take() {
            keys.end().await;
        }
    }
}
