//! A pod's SSH server: loopback only, one user, the injected public keys, commands, on a terminal or without.

use super::folder::Folder;
use super::host::Pod;
use super::link::Link;
use super::session::Session as Running;
use crate::clock::SharedClock;
use crate::cloud::local::faults::{Faults, LINK_DROPS};
use crate::cloud::local::journal::Journal;
use bytes::Bytes;
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey, PublicKey};
use russh::server::{
    Auth, ChannelOpenHandle, Config, Handler, Msg, PublicKeyOffer, Session, VerifiedPublicKey,
    run_stream,
};
use russh::{Channel, ChannelId, MethodKind, MethodSet, Sig, SshId};
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The one user, as on the provider's pods.
const USER: &str = "root";
/// Window of a channel, in bytes.
const WINDOW: u32 = 2 << 20;

/// Window of a channel whose command does not read, in bytes.
const DRIP: u32 = 64;
/// Pause after each drip. At this rate a sender needs an hour for what may be queued.
const DRIP_PAUSE: Duration = Duration::from_millis(5);

/// What a server is made of.
pub struct Setup<'a> {
    pub pod_id: &'a str,
    pub folder: Folder,
    /// One key a line, as in `authorized_keys`.
    pub public_keys: &'a str,
    /// The port to have again, if it can be had.
    pub port: Option<u16>,
    /// A port that it must not get: every start has a new one.
    pub port_to_avoid: Option<u16>,
    pub clock: SharedClock,
    pub faults: Arc<Mutex<Faults>>,
}

/// A running server.
pub struct Sshd {
    port: u16,
    closed: CancellationToken,
    sockets: Arc<Mutex<Sockets>>,
}

/// A second handle of every connection, to cut it.
#[derive(Default)]
struct Sockets {
    next: u64,
    open: HashMap<u64, std::net::TcpStream>,
}

impl Sshd {
    /// Starts a server. The host key of the folder is used when there is one, else made.
    pub async fn start(setup: Setup<'_>) -> io::Result<Self> {
        let listener = listen(setup.port, setup.port_to_avoid).await?;
        let port = listener.local_addr()?.port();
        let mut methods = MethodSet::empty();
        methods.push(MethodKind::PublicKey);
        let config = Arc::new(Config {
            methods,
            keys: vec![host_key(&setup.folder)?],
            auth_rejection_time: Duration::from_secs(1),
            // Every OpenSSH client asks for the methods first.
            auth_rejection_time_initial: Some(Duration::ZERO),
            inactivity_timeout: None,
            server_id: SshId::Standard("SSH-2.0-podtether_local".into()),
            keepalive_interval: Some(Duration::from_secs(15)),
            nodelay: true,
            window_size: WINDOW,
            ..Config::default()
        });
        let closed = CancellationToken::new();
        let pod = Arc::new(Pod {
            closed: closed.clone(),
            id: setup.pod_id.to_owned(),
            journal: Journal::new(setup.folder.sessions()),
            folder: setup.folder,
            clock: setup.clock,
            faults: setup.faults,
            keys: setup
                .public_keys
                .lines()
                .filter_map(|line| PublicKey::from_openssh(line.trim()).ok())
                .collect(),
        });
        let sockets = Arc::new(Mutex::default());
        tokio::spawn(accept(listener, config, pod, Arc::clone(&sockets)));
        Ok(Self { port, closed, sockets })
    }

    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Stops listening and cuts every connection without a word, as a pod that goes does.
    pub fn close(self) {
        self.closed.cancel();
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, socket) in sockets.open.drain() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

async fn listen(wanted: Option<u16>, avoid: Option<u16>) -> io::Result<TcpListener> {
    if let Some(port) = wanted
        && let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
    {
        return Ok(listener);
    }
    let first = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    if Some(first.local_addr()?.port()) != avoid {
        return Ok(first);
    }
    // While the first one holds that port, the second cannot get it.
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await
}

fn host_key(folder: &Folder) -> io::Result<PrivateKey> {
    let path = folder.host_key();
    if let Ok(text) = std::fs::read_to_string(&path) {
        return PrivateKey::from_openssh(text).map_err(io::Error::other);
    }
    let key = PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519).map_err(io::Error::other)?;
    let text = key.to_openssh(LineEnding::LF).map_err(io::Error::other)?;
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, text.as_bytes())?;
    Ok(key)
}

async fn accept(
    listener: TcpListener,
    config: Arc<Config>,
    pod: Arc<Pod>,
    sockets: Arc<Mutex<Sockets>>,
) {
    loop {
        let stream = tokio::select! {
            () = pod.closed.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "connection not accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let _ = stream.set_nodelay(true);
        let Ok((stream, spare)) = doubled(stream) else { continue };
        let number = {
            let mut sockets = sockets.lock().unwrap_or_else(PoisonError::into_inner);
            if pod.closed.is_cancelled() {
                return;
            }
            sockets.next += 1;
            let number = sockets.next;
            sockets.open.insert(number, spare);
            number
        };
        let (config, pod, sockets) = (Arc::clone(&config), Arc::clone(&pod), Arc::clone(&sockets));
        tokio::spawn(async move {
            let connection = Connection {
                pod: Arc::clone(&pod),
                channels: HashMap::new(),
                sockets: Arc::clone(&sockets),
                number,
            };
            match run_stream(config, Link::new(stream, pod), connection).await {
                Ok(session) => drop(session.await),
                Err(error) => tracing::debug!(%error, "connection ended"),
            }
            sockets.lock().unwrap_or_else(PoisonError::into_inner).open.remove(&number);
        });
    }
}

fn doubled(
    stream: tokio::net::TcpStream,
) -> io::Result<(tokio::net::TcpStream, std::net::TcpStream)> {
    let stream = stream.into_std()?;
    let spare = stream.try_clone()?;
    Ok((tokio::net::TcpStream::from_std(stream)?, spare))
}

/// One channel: asked for, or running a command.
#[derive(Default)]
struct OneChannel {
    environment: Vec<(String, String)>,
    on_terminal: bool,
    running: Option<Running>,
}

/// One connection.
struct Connection {
    pod: Arc<Pod>,
    channels: HashMap<ChannelId, OneChannel>,
    sockets: Arc<Mutex<Sockets>>,
    number: u64,
}

impl Connection {
    /// Cuts it without a word.
    fn cut(&self) {
        let sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(socket) = sockets.open.get(&self.number) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    fn judge(&self, user: &str, key: &PublicKey) -> Auth {
        let known = self.pod.keys.iter().any(|own| own.key_data() == key.key_data());
        if known && user == USER { Auth::Accept } else { Auth::reject() }
    }
}

impl Handler for Connection {
    type Error = russh::Error;

    // The default accepts any key here and lets its owner sign in vain.
    async fn auth_publickey_offered(
        &mut self,
        user: &str,
        offer: PublicKeyOffer<'_>,
    ) -> Result<Auth, Self::Error> {
        Ok(self.judge(user, offer.public_key))
    }

    async fn auth_publickey(
        &mut self,
        user: &str,
        key: VerifiedPublicKey<'_>,
    ) -> Result<Auth, Self::Error> {
        Ok(self.judge(user, key.public_key))
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        self.channels.insert(channel.id(), OneChannel::default());
        // Nobody reads from the channel object, and its full queue would block the connection.
        drop(channel);
        reply.accept().await;
        Ok(())
    }

    async fn env_request(
        &mut self,
        id: ChannelId,
        name: &str,
        value: &str,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        let accepted = name == "LANG" || name.starts_with("LC_");
        match self.channels.get_mut(&id).filter(|_| accepted) {
            Some(channel) => {
                channel.environment.push((name.to_owned(), value.to_owned()));
                session.channel_success(id)
            }
            None => session.channel_failure(id),
        }
    }

    async fn pty_request(
        &mut self,
        id: ChannelId,
        _: &str,
        _: u32,
        _: u32,
        _: u32,
        _: u32,
        _: &[(russh::Pty, u32)],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        match self.channels.get_mut(&id) {
            Some(channel) => {
                channel.on_terminal = true;
                session.channel_success(id)
            }
            None => session.channel_failure(id),
        }
    }

    async fn shell_request(
        &mut self,
        id: ChannelId,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        match self.channels.get(&id).is_some_and(|channel| channel.on_terminal) {
            true => self.exec_request(id, b"exec bash -l", session).await,
            false => session.channel_failure(id),
        }
    }

    async fn subsystem_request(
        &mut self,
        id: ChannelId,
        _: &str,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_failure(id)
    }

    async fn exec_request(
        &mut self,
        id: ChannelId,
        command: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        let open = !self.pod.closed.is_cancelled();
        let idle = self.channels.get_mut(&id).filter(|one| open && one.running.is_none());
        let Some(channel) = idle else { return session.channel_failure(id) };
        let environment = std::mem::take(&mut channel.environment);
        match Running::start(&self.pod, command, environment, channel.on_terminal) {
            Ok((running, child)) => {
                channel.running = Some(running);
                session.channel_success(id)?;
                let (pod, handle) = (Arc::clone(&self.pod), session.handle());
                tokio::spawn(child.run(pod, handle, id));
                if self.pod.faults().happens(LINK_DROPS) {
                    self.cut();
                }
                Ok(())
            }
            Err(error) => {
                tracing::warn!(pod = self.pod.id, %error, "command not started");
                session.channel_failure(id)
            }
        }
    }

    /// Holds a sender back without blocking the connection: while a command's stdin is long, it is
    /// given a drip of window only. The library asks here each time that data came.
    fn adjust_window(&mut self, id: ChannelId, _: u32) -> u32 {
        let channel = self.channels.get(&id).and_then(|channel| channel.running.as_ref());
        if channel.is_some_and(Running::is_behind) { DRIP } else { WINDOW }
    }

    async fn data(
        &mut self,
        id: ChannelId,
        data: &[u8],
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        let running = self.channels.get_mut(&id).and_then(|channel| channel.running.as_mut());
        let Some(running) = running else { return Ok(()) };
        if !running.feed(Bytes::copy_from_slice(data)) {
            return Err(russh::Error::Disconnect);
        }
        if running.is_behind() {
            // Else sender and server would pass the drip to and fro as fast as they can.
            tokio::time::sleep(DRIP_PAUSE).await;
        }
        Ok(())
    }

    async fn channel_eof(&mut self, id: ChannelId, _: &mut Session) -> Result<(), Self::Error> {
        if let Some(running) = self.channels.get_mut(&id).and_then(|one| one.running.as_mut()) {
            running.end_of_input();
        }
        Ok(())
    }

    async fn channel_close(&mut self, id: ChannelId, _: &mut Session) -> Result<(), Self::Error> {
        self.channels.remove(&id);
        Ok(())
    }

    async fn signal(
        &mut self,
        id: ChannelId,
        signal: Sig,
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        if let Some(running) = self.channels.get(&id).and_then(|one| one.running.as_ref()) {
            running.signal(&signal);
        }
        Ok(())
    }
}
