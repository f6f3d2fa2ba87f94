//! An SSH server that wants more than it should. OpenSSH can be told to do none of this, so it is
//! made here from russh's server side.

use crate::sshd::{CEILING, keygen};
use podtether::domain::{PodId, RemoteCommand, SshEndpoint};
use podtether::pod::ssh::{Connection, SshTarget, Tuning};
use podtether::pod::{ExecLimits, ExecStatus, Shell as _, ShellError, ShellErrorKind};
use russh::keys::{Algorithm, PrivateKey};
use russh::server::{self, Auth, ChannelOpenHandle, Msg, Session, VerifiedPublicKey};
use russh::{Channel, ChannelId, Preferred, cipher, kex};
use std::borrow::Cow;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Lets everybody in and runs nothing: each command ends with code 0 at once.
struct Hostile;

impl server::Handler for Hostile {
    type Error = russh::Error;

    async fn auth_publickey(
        &mut self,
        _: &str,
        _: VerifiedPublicKey<'_>,
    ) -> Result<Auth, Self::Error> {
        Ok(Auth::Accept)
    }

    async fn channel_open_session(
        &mut self,
        _: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        reply.accept().await;
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        _: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_success(channel)?;
        session.exit_status_request(channel, 0)?;
        session.close(channel)
    }
}

struct Scene {
    folder: tempfile::TempDir,
    port: u16,
    /// The server's side of each connection.
    connected: UnboundedReceiver<server::Handle>,
}

async fn serve(preferred: Preferred) -> Scene {
    let folder = tempfile::tempdir().unwrap();
    keygen(&folder.path().join("id"), "ed25519", "");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, connected) = unbounded_channel();
    tokio::spawn(accept(listener, preferred, sender));
    Scene { folder, port, connected }
}

async fn accept(
    listener: TcpListener,
    preferred: Preferred,
    connected: UnboundedSender<server::Handle>,
) {
    let key = PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519).unwrap();
    let config = Arc::new(server::Config { keys: vec![key], preferred, ..Default::default() });
    while let Ok((stream, _)) = listener.accept().await {
        let (config, connected) = (Arc::clone(&config), connected.clone());
        tokio::spawn(async move {
            if let Ok(session) = server::run_stream(config, stream, Hostile).await {
                let _ = connected.send(session.handle());
                let _ = session.await;
            }
        });
    }
}

async fn connect(scene: &Scene) -> Result<Connection, ShellError> {
    let target = SshTarget {
        endpoint: SshEndpoint {
            host: "127.0.0.1".to_owned(),
            port: scene.port,
            user: "root".to_owned(),
        },
        pod_id: PodId("pod1".to_owned()),
        boot: "first".to_owned(),
        known_hosts: scene.folder.path().join("known_hosts"),
        identity: scene.folder.path().join("id"),
    };
    Connection::connect(&target, &Tuning { connect_timeout: CEILING, ..Tuning::default() }).await
}

const LIMITS: ExecLimits = ExecLimits { timeout: CEILING, stdout_bytes: 100, stderr_bytes: 100 };

#[tokio::test]
async fn a_server_without_strict_key_exchange_or_with_weak_ciphers_is_turned_down() {
    let no_strict = Preferred { kex: Cow::Borrowed(&[kex::CURVE25519]), ..Preferred::DEFAULT };
    let weak = Preferred { cipher: Cow::Borrowed(&[cipher::AES_256_CTR]), ..Preferred::DEFAULT };
    for (preferred, word) in [(no_strict, "strict key exchange"), (weak, "Cipher")] {
        let scene = serve(preferred).await;
        let error = connect(&scene).await.err().expect("it was let through");
        assert_eq!(error.kind, ShellErrorKind::Handshake, "{error}");
        assert!(error.detail.contains(word), "{error}");
    }
}

/// russh accepts what a server opens unless it is told otherwise: a pod could reach the agent, or
/// hosts near the laptop.
#[tokio::test]
async fn every_channel_that_a_server_opens_is_turned_down() {
    let mut scene = serve(Preferred::DEFAULT).await;
    let connection = connect(&scene).await.unwrap();
    let server = scene.connected.recv().await.unwrap();
    assert!(server.channel_open_agent().await.is_err());
    assert!(server.channel_open_session().await.is_err());
    assert!(server.channel_open_x11("127.0.0.1", 1).await.is_err());
    assert!(server.channel_open_direct_tcpip("127.0.0.1", 1, "127.0.0.1", 1).await.is_err());
    assert!(server.channel_open_direct_streamlocal("/tmp/x").await.is_err());
    assert!(server.channel_open_forwarded_tcpip("127.0.0.1", 1, "127.0.0.1", 1).await.is_err());
    assert!(server.channel_open_forwarded_streamlocal("/tmp/x").await.is_err());
    let output = connection.run(&RemoteCommand::new(["true"]), LIMITS).await.unwrap();
    assert_eq!(output.status, ExecStatus::Code(0));
}
