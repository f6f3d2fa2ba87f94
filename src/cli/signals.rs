//! SIGINT and SIGTERM, as values.

use crate::supervise::Event;
use tokio::signal::unix::{SignalKind, signal};
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
