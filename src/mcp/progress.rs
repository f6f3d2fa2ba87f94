//! How far a call is, told to the client that asked for it, and whether that client still wants it.
//! Known to whatever runs in the call's task, so that tools that tell nothing need not pass it on.

use crate::ops::SyncProgress;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
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
    latest: Option<watch::Sender<SyncProgress>>,
    pump: Option<JoinHandle<()>>,
}

impl Teller {
    /// For the call that this task works for.
    pub(super) fn of_call() -> Self {
        let call = current();
        let token = call.as_ref().and_then(|call| call.token.clone());
        let Some((call, token)) = call.zip(token) else { return Self { latest: None, pump: None } };
        let (latest, progress) = watch::channel(SyncProgress::default());
        let pump = tokio::spawn(pump(call, token, progress));
        Self { latest: Some(latest), pump: Some(pump) }
    }

    /// Tells it.
    pub(super) fn tell(&self, progress: SyncProgress) {
        if let Some(latest) = &self.latest {
            latest.send_replace(progress);
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        if let Some(pump) = &self.pump {
            pump.abort();
        }
    }
}

/// Passes on what goes forward; a second attempt at the same file is not told, since the protocol
/// wants figures that grow.
#[expect(clippy::cast_precision_loss, reason = "the protocol's figures are floats")]
async fn pump(call: Ongoing, token: ProgressToken, mut latest: watch::Receiver<SyncProgress>) {
    let mut told = 0;
    while latest.changed().await.is_ok() {
        let progress = *latest.borrow_and_update();
        if progress.bytes <= told {
            continue;
        }
        told = progress.bytes;
        let figures = ProgressNotificationParam::new(token.clone(), told as f64)
            .with_total(progress.total_bytes as f64)
            .with_message(progress.to_string());
        let is_over = call.answered.is_cancelled();
        if is_over || call.peer.notify_progress(figures).await.is_err() {
            return;
        }
        tokio::time::sleep(EVERY).await;
    }
}
