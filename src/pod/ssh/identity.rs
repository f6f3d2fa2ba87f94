//! Our own key: a private key file that can be read, or exactly the named key held by an agent.
//! Never any other key of the agent: a server would learn who else we are.

use super::Tuning;
use crate::pod::{ShellError, ShellErrorKind};
use russh::client::Handle;
use russh::keys::agent::client::AgentClient;
use russh::keys::{HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What authenticates us.
pub(super) enum Identity {
    File(Arc<PrivateKey>),
    Agent { key: PublicKey, socket: PathBuf },
}

/// What a private key file turned out to hold.
enum Found {
    Usable(Box<PrivateKey>),
    /// The reason why only an agent can use it, and the public half where the file shows it.
    AgentOnly(&'static str, Option<PublicKey>),
}

impl Identity {
    /// Finds a way to use the key at `path`.
    ///
    /// # Errors
    /// Kind [`ShellErrorKind::Local`], naming the file and what to do about it.
    pub(super) fn load(path: &Path, tuning: &Tuning) -> Result<Self, ShellError> {
        let (why, public) = match read_private(path)? {
            Found::Usable(key) => return Ok(Self::File(Arc::new(*key))),
            Found::AgentOnly(why, public) => (why, public),
        };
        let Some(socket) = tuning.agent_socket.clone() else {
            return Err(local(
                path,
                format!(
                    "it {why}, and no ssh-agent is reachable (SSH_AUTH_SOCK is not set); start one and run ssh-add {}, or name an unencrypted Ed25519 key as ssh_identity",
                    path.display()
                ),
            ));
        };
        let key = match public {
            Some(key) => key,
            None => read_public(path)?.ok_or_else(|| {
                local(path, format!("it {why}, and {} is missing", public_path(path).display()))
            })?,
        };
        Ok(Self::Agent { key, socket })
    }

    pub(super) const fn is_in_agent(&self) -> bool {
        matches!(self, Self::Agent { .. })
    }

    /// Authenticates `user`; `Ok(false)` when the server does not accept the key.
    pub(super) async fn authenticate<H: russh::client::Handler>(
        &self,
        handle: &mut Handle<H>,
        user: &str,
        path: &Path,
    ) -> Result<bool, ShellError> {
        match self {
            Self::File(key) => {
                let key = PrivateKeyWithHashAlg::new(Arc::clone(key), None);
                let answer = handle.authenticate_publickey(user, key).await;
                answer.map(|answer| answer.success()).map_err(|error| ShellError {
                    kind: ShellErrorKind::Handshake,
                    tried: format!("authenticating as {user}"),
                    detail: format!("the server gave up: {error}"),
                })
            }
            Self::Agent { key, socket } => {
                let fault = |detail: String| ShellError {
                    kind: ShellErrorKind::Local,
                    tried: format!("using {} through the ssh-agent", path.display()),
                    detail,
                };
                let mut agent = AgentClient::connect_uds(socket).await.map_err(|error| {
                    fault(format!("no agent answers at {}: {error}", socket.display()))
                })?;
                // For keys that are bound to certain hosts; agents that do not know it refuse.
                if let Some(binding) = handle.agent_session_binding() {
                    let _ = agent.bind_session(binding, false).await;
                }
                let held = agent
                    .request_identities()
                    .await
                    .map_err(|error| fault(format!("the agent does not list its keys: {error}")))?;
                let is_held =
                    held.iter().any(|held| held.public_key().key_data() == key.key_data());
                if !is_held {
                    return Err(fault(format!(
                        "the agent holds {} keys, but not this one; run ssh-add {}",
                        held.len(),
                        path.display()
                    )));
                }
                let hash = key.algorithm().is_rsa().then_some(HashAlg::Sha512);
                let answer =
                    handle.authenticate_publickey_with(user, key.clone(), hash, &mut agent).await;
                answer
                    .map(|answer| answer.success())
                    .map_err(|error| fault(format!("the agent did not sign: {error}")))
            }
        }
    }
}

/// The public key of the private key file `identity`, as one line `<algorithm> <base64> [comment]`,
/// for the pod's `PUBLIC_KEY`. From `IDENTITY.pub`, else derived from the private key.
///
/// # Errors
/// Kind [`ShellErrorKind::Local`] when neither can be read, or when they are not a pair: a pod
/// would then be billed for and never let us in.
pub fn public_key_text(identity: &Path) -> Result<String, ShellError> {
    let written = read_public(identity)?;
    let derived = match read_private(identity) {
        Ok(Found::Usable(key)) => Some(key.public_key().clone()),
        Ok(Found::AgentOnly(_, public)) => public,
        Err(error) if written.is_none() => return Err(error),
        // The private half may be in an agent only, or unreadable just now; connecting tells.
        Err(_) => None,
    };
    let key = match (written, derived) {
        (Some(written), Some(derived)) if written.key_data() != derived.key_data() => {
            let public = public_path(identity);
            return Err(local(
                identity,
                format!(
                    "{} does not belong to it; run ssh-keygen -y -f {} > {}",
                    public.display(),
                    identity.display(),
                    public.display()
                ),
            ));
        }
        (Some(key), _) | (None, Some(key)) => key,
        (None, None) => {
            return Err(local(identity, format!("{} is missing", public_path(identity).display())));
        }
    };
    key.to_openssh().map_err(|error| local(identity, error.to_string()))
}

fn read_private(path: &Path) -> Result<Found, ShellError> {
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        // Agents such as 1Password's keep the private half to themselves.
        Err(error) if error.kind() == io::ErrorKind::NotFound && public_path(path).exists() => {
            return Ok(Found::AgentOnly("has only its public half on disk", None));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(local(
                path,
                format!(
                    "there is no such file; make a key with ssh-keygen -t ed25519 -f {}, or name yours as ssh_identity",
                    path.display()
                ),
            ));
        }
        Err(error) => return Err(local(path, error.to_string())),
    };
    if !meta.is_file() {
        return Err(local(path, "it is not a file".to_owned()));
    }
    // As OpenSSH does it: only the owner's own carelessness counts.
    if meta.uid() == rustix::process::getuid().as_raw() && meta.mode() & 0o077 != 0 {
        let mode = meta.mode() & 0o777;
        return Err(local(
            path,
            format!("others can read it (mode {mode:03o}); run chmod 600 {}", path.display()),
        ));
    }
    let text = fs::read_to_string(path).map_err(|error| local(path, error.to_string()))?;
    let shown = PrivateKey::from_openssh(&text).ok().map(|key| key.public_key().clone());
    if shown.as_ref().is_some_and(|key| key.algorithm().is_rsa()) {
        return Ok(Found::AgentOnly("is an RSA key, which is only used through an agent", shown));
    }
    match russh::keys::decode_secret_key(&text, None) {
        Ok(key) if key.is_encrypted() => Ok(Found::AgentOnly("is encrypted", shown)),
        Ok(key) => Ok(Found::Usable(Box::new(key))),
        Err(russh::keys::Error::KeyIsEncrypted) => Ok(Found::AgentOnly("is encrypted", shown)),
        Err(_) if text.contains("BEGIN RSA PRIVATE KEY") => {
            Ok(Found::AgentOnly("is an RSA key, which is only used through an agent", None))
        }
        Err(error) => Err(local(
            path,
            format!("it is not a private key that can be read ({error}); an Ed25519 key is best"),
        )),
    }
}

/// The key in `IDENTITY.pub`; `None` when there is no such file.
fn read_public(identity: &Path) -> Result<Option<PublicKey>, ShellError> {
    let path = public_path(identity);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(local(&path, error.to_string())),
    };
    let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let key = line.and_then(|line| PublicKey::from_openssh(line).ok());
    key.map(Some).ok_or_else(|| local(&path, "it holds no public key".to_owned()))
}

fn public_path(identity: &Path) -> PathBuf {
    let mut name = identity.as_os_str().to_owned();
    name.push(".pub");
    name.into()
}

fn local(path: &Path, detail: String) -> ShellError {
    ShellError {
        kind: ShellErrorKind::Local,
        tried: format!("reading the SSH key {}", path.display()),
        detail,
    }
}
