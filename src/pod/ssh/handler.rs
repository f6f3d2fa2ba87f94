//! What the server may and may not do to us: its key has to be the pinned one, the handshake a
//! strict one, and every channel that it tries to open is turned down.

use super::failure::{LinkError, plain};
use super::known_hosts::{self, BootName};
use super::{SshTarget, Tuning};
use russh::client::{self, ChannelOpenHandle, DisconnectReason, Msg, Session};
use russh::keys::{Algorithm, EcdsaCurve, PublicKey, PublicKeyOrCertificate};
use russh::{Channel, Names, Preferred, cipher, compression, kex, mac};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Why the connection ended, once it has.
pub(super) type Ended = Arc<OnceLock<String>>;

/// What is done with a host key while none is pinned for this boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// It is pinned at once.
    OnFirstUse,
    /// It is let through and not pinned: whoever connects has the pod prove itself first.
    OnProof,
    /// It is refused: somebody else must have proven the pod before.
    Pinned,
}

/// A host key that was let through and is not pinned yet.
pub(super) type Unproven = Arc<OnceLock<PublicKey>>;

/// The client's side of one connection.
pub(super) struct HostCheck {
    target: SshTarget,
    trust: Trust,
    unproven: Unproven,
    shown: Option<Algorithm>,
    ended: Ended,
}

impl HostCheck {
    pub(super) fn new(target: &SshTarget, trust: Trust) -> Self {
        let (unproven, ended) = (Unproven::default(), Ended::default());
        Self { target: target.clone(), trust, unproven, shown: None, ended }
    }

    pub(super) fn unproven(&self) -> Unproven {
        Arc::clone(&self.unproven)
    }

    pub(super) fn ended(&self) -> Ended {
        Arc::clone(&self.ended)
    }
}

/// russh's settings for a connection. `pinned` are the algorithms of the pinned host keys.
pub(super) fn config(tuning: &Tuning, pinned: Vec<Algorithm>) -> client::Config {
    let host_keys = if pinned.is_empty() {
        // No RSA: its SHA-1 form is on by default in russh, and sshd always has an Ed25519 key.
        let ecdsa = |curve| Algorithm::Ecdsa { curve };
        vec![
            Algorithm::Ed25519,
            ecdsa(EcdsaCurve::NistP256),
            ecdsa(EcdsaCurve::NistP384),
            ecdsa(EcdsaCurve::NistP521),
        ]
    } else {
        pinned
    };
    client::Config {
        client_id: russh::SshId::Standard(
            concat!("SSH-2.0-podtether_", env!("CARGO_PKG_VERSION")).into(),
        ),
        window_size: tuning.window,
        maximum_packet_size: 65_535,
        // Messages of one channel that may wait before the whole connection does.
        channel_buffer_size: 1024,
        keepalive_interval: Some(tuning.keepalive),
        keepalive_max: tuning.keepalive_max,
        // russh's other timer would also end a connection whose commands are merely quiet.
        inactivity_timeout: None,
        nodelay: true,
        limits: russh::Limits::new(1 << 30, 1 << 30, Duration::from_secs(3600)),
        preferred: Preferred {
            kex: Cow::Borrowed(&[
                kex::MLKEM768X25519_SHA256,
                kex::CURVE25519,
                kex::CURVE25519_PRE_RFC_8731,
                kex::EXTENSION_SUPPORT_AS_CLIENT,
                kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT,
            ]),
            key: Cow::Owned(host_keys),
            // GCM first: half the processor time of ChaCha20 here, in both directions.
            cipher: Cow::Borrowed(&[
                cipher::AES_256_GCM,
                cipher::AES_128_GCM,
                cipher::CHACHA20_POLY1305,
            ]),
            mac: Cow::Borrowed(&[mac::HMAC_SHA512_ETM, mac::HMAC_SHA256_ETM]),
            compression: Cow::Borrowed(&[compression::NONE]),
            host_key_certificates: Cow::Borrowed(&[]),
        },
        ..client::Config::default()
    }
}

impl client::Handler for HostCheck {
    type Error = LinkError;

    async fn check_server_key(
        &mut self,
        shown: &PublicKeyOrCertificate,
    ) -> Result<bool, LinkError> {
        if shown.certificate().is_some() {
            return Err(LinkError::HostKey("the server shows a host certificate".to_owned()));
        }
        let key = shown.public_key();
        self.shown = Some(key.algorithm());
        // At a new key exchange before the proof.
        if self.unproven.get().is_some_and(|known| known.key_data() != key.key_data()) {
            return Err(LinkError::HostKey("the server changed its host key".to_owned()));
        }
        let (target, trust, shown) = (self.target.clone(), self.trust, key.clone());
        // The file is locked and flushed to disk, which may take a while.
        let checked = tokio::task::spawn_blocking(move || {
            let name = BootName::new(&target.pod_id.0, &target.boot)?;
            match trust {
                Trust::OnFirstUse => {
                    known_hosts::check(&target.known_hosts, name, &shown).map(|()| true)
                }
                Trust::OnProof | Trust::Pinned => {
                    known_hosts::compare(&target.known_hosts, name, &shown)
                }
            }
        });
        match checked.await {
            Ok(Ok(true)) => Ok(true),
            Ok(Ok(false)) if self.trust == Trust::Pinned => Err(LinkError::HostKey(
                "no host key is pinned for this boot yet, and files go only to a pod that has proven which one it is"
                    .to_owned(),
            )),
            Ok(Ok(false)) => {
                let _ = self.unproven.set(key);
                Ok(true)
            }
            Ok(Err(error)) if error.is_verdict() => Err(LinkError::HostKey(error.to_string())),
            Ok(Err(error)) => Err(LinkError::Local(error.to_string())),
            Err(error) => Err(LinkError::Local(format!("the host key check broke off: {error}"))),
        }
    }

    /// Runs after the key check and before authentication.
    async fn kex_done(
        &mut self,
        _: Option<&[u8]>,
        names: &Names,
        _: &mut Session,
    ) -> Result<(), LinkError> {
        if !names.strict_kex() {
            return Err(LinkError::Weak(
                "the server does not know strict key exchange (CVE-2023-48795); its sshd is too old"
                    .to_owned(),
            ));
        }
        // GHSA-66vf-xq4p-pg7q: russh 0.65.1 does not compare the two itself.
        if self.shown.as_ref() != Some(&names.key) {
            return Err(LinkError::HostKey(format!(
                "the server agreed on a host key of kind {} and showed another kind",
                names.key.as_str()
            )));
        }
        Ok(())
    }

    async fn disconnected(&mut self, reason: DisconnectReason<LinkError>) -> Result<(), LinkError> {
        let said = match &reason {
            DisconnectReason::ReceivedDisconnect(info) => {
                format!("the server ended the connection: {}", plain(&info.message))
            }
            DisconnectReason::Error(LinkError::Ssh(russh::Error::KeepaliveTimeout)) => {
                "the server no longer answers keep-alives".to_owned()
            }
            DisconnectReason::Error(error) => format!("the connection broke: {error}"),
        };
        let _ = self.ended.set(said);
        match reason {
            DisconnectReason::ReceivedDisconnect(_) => Ok(()),
            DisconnectReason::Error(error) => Err(error),
        }
    }

    // russh accepts these by default. Dropping the reply turns the channel down.

    async fn server_channel_open_session(
        &mut self,
        _: Channel<Msg>,
        _: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), LinkError> {
        Ok(())
    }

    async fn server_channel_open_agent_forward(
        &mut self,
        _: Channel<Msg>,
        _: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), LinkError> {
        Ok(())
    }

    async fn server_channel_open_x11(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        _: u32,
        _: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), LinkError> {
        Ok(())
    }

    async fn server_channel_open_forwarded_tcpip(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        _: u32,
        _: &str,
        _: u32,
        _: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), LinkError> {
        Ok(())
    }

    async fn server_channel_open_forwarded_streamlocal(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        _: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), LinkError> {
        Ok(())
    }

    async fn server_channel_open_direct_tcpip(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        _: u32,
        _: &str,
        _: u32,
        _: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), LinkError> {
        Ok(())
    }

    async fn server_channel_open_direct_streamlocal(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        _: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), LinkError> {
        Ok(())
    }
}
