//! One authenticated connection to a pod.

use super::exec::Running;
use super::failure::{LinkError, connecting};
use super::handler::{Ended, HostCheck, Trust, Unproven, config};
use super::identity::Identity;
use super::known_hosts::{BootName, pinned_algorithms};
use super::stalled_write::StalledWrite;
use super::{SshTarget, Tuning};
use crate::domain::RemoteCommand;
use crate::pod::{ExecLimits, ExecOutput, Shell, ShellError, ShellErrorKind};
use async_trait::async_trait;
use russh::client::{self, Handle};
use russh::keys::PublicKey;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// sshd frees a slot a moment after it has closed the channel, so a refusal is asked again.
const REFUSED_AGAIN_AFTER: Duration = Duration::from_millis(10);
/// For this long. Then the slots are held by commands that timed out and live on.
const REFUSED_FOR: Duration = Duration::from_secs(5);

/// How often a server that hangs up at once is asked again.
const HUNG_UP_AGAIN: u32 = 8;
/// Longest pause before the first of these; each further one may be twice as long.
const HUNG_UP_PAUSE: Duration = Duration::from_millis(100);

/// A connection to one boot of one pod. Cheap to use from many tasks; at most
/// [`Tuning::channels`] commands run at once, the others wait.
pub struct Connection {
    handle: Handle<HostCheck>,
    slots: Arc<Semaphore>,
    ended: Ended,
    unproven: Unproven,
    tried: String,
    open_timeout: Duration,
}

/// A connect that failed, and whether the server hung up before it had shown a key.
struct NotConnected {
    error: ShellError,
    hung_up: bool,
}

impl From<ShellError> for NotConnected {
    fn from(error: ShellError) -> Self {
        Self { error, hung_up: false }
    }
}

/// Why a command was not even sent. Trying it on a new connection is safe.
pub(crate) struct NotStarted(pub(crate) ShellError);

impl Connection {
    /// Connects, checks the host key and authenticates, within [`Tuning::connect_timeout`]. While
    /// no key is pinned for this boot, the one that is shown is.
    ///
    /// # Errors
    /// Each way to fail has its own [`ShellErrorKind`]; nothing was run.
    pub async fn connect(target: &SshTarget, tuning: &Tuning) -> Result<Self, ShellError> {
        Self::connect_with(target, tuning, Trust::OnFirstUse).await
    }

    /// The same, only to a host key that is pinned already. For files, which follow commands.
    pub(crate) async fn connect_pinned(
        target: &SshTarget,
        tuning: &Tuning,
    ) -> Result<Self, ShellError> {
        Self::connect_with(target, tuning, Trust::Pinned).await
    }

    pub(super) async fn connect_with(
        target: &SshTarget,
        tuning: &Tuning,
        trust: Trust,
    ) -> Result<Self, ShellError> {
        // Where the time went, for the message when it runs out.
        let phase = AtomicU8::new(0);
        let connect = Self::connect_again(target, tuning, trust, &phase);
        tokio::time::timeout(tuning.connect_timeout, connect).await.unwrap_or_else(|_| {
            let what = match phase.load(Ordering::Relaxed) {
                0 => "nothing answers at the address",
                1 => "the port accepts connections, but no SSH handshake came about; sshd may hang or still be starting",
                2 => "the server did not finish authentication",
                _ => "authentication through the ssh-agent did not finish; it may be waiting for your approval",
            };
            Err(ShellError {
                kind: ShellErrorKind::Unreachable,
                tried: connecting(target),
                detail: format!("{what} ({} s)", tuning.connect_timeout.as_secs_f32()),
            })
        })
    }

    /// Asks a server again that hangs up at once. Each at a moment of its own: those who were turned
    /// away together would else come back together.
    async fn connect_again(
        target: &SshTarget,
        tuning: &Tuning,
        trust: Trust,
        phase: &AtomicU8,
    ) -> Result<Self, ShellError> {
        let mut hung_up: Option<ShellError> = None;
        let mut longest = HUNG_UP_PAUSE;
        for tried in 1.. {
            match Self::connect_once(target, tuning, trust, phase).await {
                Ok(connection) => return Ok(connection),
                Err(failed) if failed.hung_up && tried <= HUNG_UP_AGAIN => {
                    hung_up = Some(failed.error);
                    tokio::time::sleep(longest.mul_f64(rand::random::<f64>())).await;
                    longest *= 2;
                    phase.store(0, Ordering::Relaxed);
                }
                // Gone altogether meanwhile: how it ended before says more.
                Err(failed) if failed.error.kind == ShellErrorKind::Refused => {
                    return Err(hung_up.unwrap_or(failed.error));
                }
                Err(failed) => return Err(failed.error),
            }
        }
        Err(hung_up.unwrap_or_else(|| ShellError {
            kind: ShellErrorKind::Unreachable,
            tried: connecting(target),
            detail: "the server hangs up".to_owned(),
        }))
    }

    async fn connect_once(
        target: &SshTarget,
        tuning: &Tuning,
        trust: Trust,
        phase: &AtomicU8,
    ) -> Result<Self, NotConnected> {
        let fault = |kind, detail| ShellError { kind, tried: connecting(target), detail };
        // What is wrong on this side comes first: it needs no pod.
        let identity = Identity::load(&target.identity, tuning)?;
        let pinned = BootName::new(&target.pod_id.0, &target.boot)
            .and_then(|name| pinned_algorithms(&target.known_hosts, name))
            .map_err(|error| fault(ShellErrorKind::Local, error.to_string()))?;

        let address = (target.endpoint.host.as_str(), target.endpoint.port);
        let stream = TcpStream::connect(address).await.map_err(|error| {
            let kind = match error.kind() {
                io::ErrorKind::ConnectionRefused => ShellErrorKind::Refused,
                _ => ShellErrorKind::Unreachable,
            };
            fault(kind, error.to_string())
        })?;
        phase.store(1, Ordering::Relaxed);
        // Without this a command on a warm connection takes 50 ms instead of 2.
        stream
            .set_nodelay(true)
            .map_err(|error| fault(ShellErrorKind::Unreachable, error.to_string()))?;

        let check = HostCheck::new(target, trust);
        let (ended, unproven) = (check.ended(), check.unproven());
        let stream = StalledWrite::new(stream, tuning.write_stall);
        let mut handle = client::connect_stream(Arc::new(config(tuning, pinned)), stream, check)
            .await
            .map_err(|error: LinkError| NotConnected {
                hung_up: error.hung_up(),
                error: error.while_connecting(target),
            })?;
        phase.store(if identity.is_in_agent() { 3 } else { 2 }, Ordering::Relaxed);

        let user = &target.endpoint.user;
        if !identity.authenticate(&mut handle, user, &target.identity).await? {
            let detail = match ended.get() {
                Some(ended) => format!("{ended} during authentication"),
                None => format!(
                    "the server does not accept {} for user {user}; the pod knows the key that was in PUBLIC_KEY when it was created",
                    target.identity.display()
                ),
            };
            return Err(fault(ShellErrorKind::Auth, detail).into());
        }
        Ok(Self {
            handle,
            slots: Arc::new(Semaphore::new(tuning.channels)),
            ended,
            unproven,
            tried: format!("on {} (pod {})", target.endpoint, target.pod_id),
            open_timeout: tuning.connect_timeout,
        })
    }

    /// The host key, while it is not pinned.
    pub(super) fn unproven(&self) -> Option<&PublicKey> {
        self.unproven.get()
    }

    /// Whether the link has ended. `false` is no proof that it works.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Ends the connection politely; commands that still run on it are lost.
    pub async fn disconnect(&self) {
        let goodbye = self.handle.disconnect(russh::Disconnect::ByApplication, "", "en");
        let _ = tokio::time::timeout(Duration::from_secs(1), goodbye).await;
    }

    /// Why the link ended.
    pub(crate) fn lost(&self) -> String {
        self.ended.get().cloned().unwrap_or_else(|| "the connection was lost".to_owned())
    }

    /// Sends a command, waiting for a free channel.
    pub(crate) async fn start(&self, wire: Vec<u8>, what: &str) -> Result<Running, NotStarted> {
        let tried = self.tried(what);
        let fault = |detail: String| {
            NotStarted(ShellError {
                kind: ShellErrorKind::Lost,
                tried: tried.clone(),
                detail: format!("{detail}; the command was not sent"),
            })
        };
        let slot = Arc::clone(&self.slots).acquire_owned().await.ok();
        let mut waited = Duration::ZERO;
        let channel = loop {
            let open = self.handle.channel_open_session();
            match tokio::time::timeout(self.open_timeout, open).await {
                Ok(Ok(channel)) => break channel,
                Ok(Err(russh::Error::ChannelOpenFailure(_))) if waited < REFUSED_FOR => {
                    tokio::time::sleep(REFUSED_AGAIN_AFTER).await;
                    waited += REFUSED_AGAIN_AFTER;
                }
                Ok(Err(russh::Error::ChannelOpenFailure(reason))) => {
                    return Err(fault(format!(
                        "the server opens no further channel ({reason:?}): commands that timed out still hold them"
                    )));
                }
                Ok(Err(_)) => return Err(fault(self.lost())),
                Err(_) => {
                    let limit = self.open_timeout.as_secs_f32();
                    return Err(fault(format!("no channel was opened within {limit} s")));
                }
            }
        };
        Running::start(channel, wire, slot).await.map_err(|_| fault(self.lost()))
    }

    pub(crate) fn tried(&self, what: &str) -> String {
        format!("running {what} {}", self.tried)
    }

    /// Runs one command; [`NotStarted`] when it was not even sent.
    pub(super) async fn run_once(
        &self,
        command: &RemoteCommand,
        limits: ExecLimits,
    ) -> Result<Result<ExecOutput, ShellError>, NotStarted> {
        let what = short(command);
        let wire = command.to_wire().into_bytes();
        let Ok(started) = tokio::time::timeout(limits.timeout, self.start(wire, &what)).await
        else {
            return Ok(Err(ShellError {
                kind: ShellErrorKind::Timeout,
                tried: self.tried(&what),
                detail: format!(
                    "no channel became free within {} s; the command was not sent",
                    limits.timeout.as_secs_f32()
                ),
            }));
        };
        let tried = self.tried(&what);
        Ok(started?.capture(command.stdin.clone(), limits, &tried, || self.lost()).await)
    }
}

/// The command in a few words, for a message.
fn short(command: &RemoteCommand) -> String {
    let shown = super::failure::plain(&command.to_string());
    match shown.char_indices().nth(100) {
        Some((end, _)) => format!("{} …", &shown[..end]),
        None => shown,
    }
}

#[async_trait]
impl Shell for Connection {
    async fn run(
        &self,
        command: &RemoteCommand,
        limits: ExecLimits,
    ) -> Result<ExecOutput, ShellError> {
        self.run_once(command, limits).await.unwrap_or_else(|NotStarted(error)| Err(error))
    }
}
