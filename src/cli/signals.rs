//! SIGINT, SIGTERM and SIGHUP, as values.

use crate::error::{Failure, FailureKind, StillBilling};
use crate::supervise::Event;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Cancels `stop` at the first SIGINT or SIGTERM.
pub fn cancel_on_signal(stop: CancellationToken) {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stop.cancel();
    });
}

/// Signals as a supervised run takes them: the first SIGINT asks for an orderly end, a second one,
/// SIGTERM and a dead terminal leave at once. Whoever else finds the terminal dead says so through the
/// sender.
pub fn for_supervise() -> (mpsc::UnboundedSender<Event>, mpsc::UnboundedReceiver<Event>) {
    let (send, receive) = mpsc::unbounded_channel();
    let streams = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
        signal(SignalKind::hangup()),
    );
    // Without handlers the default actions hold; the channel stays open and silent.
    if let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) = streams {
        let send = send.clone();
        tokio::spawn(async move {
            let mut interrupts = 0;
            loop {
                let event = tokio::select! {
                    _ = interrupt.recv() => {
                        interrupts += 1;
                        if interrupts == 1 { Event::Interrupt } else { Event::Leave }
                    }
                    _ = terminate.recv() => Event::Leave,
                    _ = hangup.recv() => Event::Leave,
                };
                if send.send(event).is_err() {
                    return;
                }
            }
        });
    }
    (send, receive)
}

/// Does what comes before a run, unless somebody ends it meanwhile: a keychain that waits for its owner, or a
/// provider that does not answer, keeps nobody from leaving.
///
/// # Errors
/// Those of `work`, and that it was ended.
pub async fn unless_ended<T>(
    signals: &mut mpsc::UnboundedReceiver<Event>,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        biased;
        done = work => done,
        Some(_) = signals.recv() => Err(Failure::new(
            FailureKind::Refused,
            "it was ended before anything was begun",
            "nothing was started or stopped, and what runs bills: podtether audit",
        )
        .billing(StillBilling::Unknown)),
    }
}

/// What ends a command that has something to put in order first, such as the terminal.
pub struct Leaving {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Leaving {
    /// Listens from now on; the signals end the process by themselves no more.
    ///
    /// # Errors
    /// When the system takes no handlers.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for one of them; the exit code that a shell shows of a process that it ended.
    pub async fn signal(&mut self) -> u8 {
        let number = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hangup.recv() => SignalKind::hangup(),
        };
        u8::try_from(number.as_raw_value()).map_or(1, |number| 128 + number)
    }
}
