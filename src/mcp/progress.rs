//! How far a call is, told to the client that asked for it, and whether that client still wants it.
//! Known to whatever runs in the call's task, so that tools that tell nothing need not pass it on.

use crate::ops::SyncProgress;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Between two notifications.
const EVERY: Duration = Duration::from_secs(1);

/// The call that a task works for.
#[derive(Clone)]
pub(super) struct Ongoing {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    /// Cancelled by the client.
    pub(super) cancelled: CancellationToken,
    answered: CancellationToken,
}

tokio::task_local! {
    static CALL: Option<Ongoing>;
}

impl Ongoing {
    /// The call of a request, and the guard that has to live until it is answered: progress after
    /// the answer is an error of the protocol.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> (Self, DropGuard) {
        let answered = CancellationToken::new();
        let guard = answered.clone().drop_guard();
        let ongoing = Self {
            peer: context.peer.clone(),
            token: context.meta.get_progress_token(),
            cancelled: context.ct.clone(),
            answered,
        };
        (ongoing, guard)
    }
}

/// The call that this task works for.
pub(super) fn current() -> Option<Ongoing> {
    CALL.try_with(Clone::clone).ok().flatten()
}

/// `work` as work for that call.
pub(super) fn scope<F: Future>(call: Option<Ongoing>, work: F) -> impl Future<Output = F::Output> {
    CALL.scope(call, work)
}

/// Tells a client how a pull goes, at most once a second, when it asked for that.
pub(super) struct Teller {
    sender: Option<mpsc::UnboundedSender<ProgressNotificationParam>>,
    pump: Option<JoinHandle<()>>,
    token: Option<ProgressToken>,
    told: u64,
    next: Instant,
}

impl Teller {
    /// For the call that this task works for.
    pub(super) fn of_call() -> Self {
        let call = current();
        let token = call.as_ref().and_then(|call| call.token.clone());
        let call = call.filter(|_| token.is_some());
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let pump = call.map(|call| {
            tokio::spawn(async move {
                while let Some(told) = receiver.recv().await {
                    if call.answered.is_cancelled()
                        || call.peer.notify_progress(told).await.is_err()
                    {
                        return;
                    }
                }
            })
        });
        let sender = pump.as_ref().map(|_| sender);
        Self { sender, pump, token, told: 0, next: Instant::now() }
    }

    /// Tells it. What does not go forward, such as a second attempt at the same file, is not told:
    /// the protocol wants figures that grow.
    #[expect(clippy::cast_precision_loss, reason = "the protocol's figures are floats")]
    pub(super) fn tell(&mut self, progress: &SyncProgress) {
        let now = Instant::now();
        let (Some(sender), Some(token)) = (&self.sender, &self.token) else { return };
        if progress.bytes <= self.told || now < self.next {
            return;
        }
        (self.told, self.next) = (progress.bytes, now + EVERY);
        let told = ProgressNotificationParam::new(token.clone(), progress.bytes as f64)
            .with_total(progress.total_bytes as f64)
            .with_message(progress.to_string());
        let _ = sender.send(told);
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        if let Some(pump) = &self.pump {
            pump.abort();
        }
    }
}
