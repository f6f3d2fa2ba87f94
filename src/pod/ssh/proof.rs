//! Who answers, before anything else is said. An address that was rented yesterday is somebody else's
//! today, and a host key that nobody has seen before proves nothing (F01): the first connection to a
//! boot asks the machine which pod it is, and only then is its key pinned.

use super::connection::Connection;
use super::handler::Trust;
use super::known_hosts::{self, BootName};
use super::{SshTarget, Tuning};
use crate::pod::{
    ExecLimits, PodProbe, Shell as _, ShellError, ShellErrorKind, parse_look, who_command,
};
use std::time::Duration;

/// What a machine has to show to be taken for the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Where the volume is mounted.
    pub mount: String,
    /// The volume's identity; `None` for a pod without a volume.
    pub token: Option<String>,
}

/// A machine that does not say who it is within this is not asked anything else.
const LIMITS: ExecLimits = ExecLimits {
    timeout: Duration::from_secs(15),
    stdout_bytes: 64 * 1024,
    stderr_bytes: 4 * 1024,
};

impl Proof {
    /// Connects. While no host key is pinned for this boot, the machine has to prove itself, and its
    /// key is pinned when it has.
    pub(super) async fn connect(
        &self,
        target: &SshTarget,
        tuning: &Tuning,
    ) -> Result<Connection, ShellError> {
        let connection = Connection::connect_with(target, tuning, Trust::OnProof).await?;
        let Some(key) = connection.unproven().cloned() else { return Ok(connection) };
        let fault = |kind, detail| ShellError {
            kind,
            tried: format!("asking {} whether it is pod {}", target.endpoint, target.pod_id),
            detail,
        };
        let token = self.token.as_deref().unwrap_or("none");
        let asked = who_command(&self.mount, &target.pod_id, token);
        let output = connection.run(&asked, LIMITS).await?;
        let verdict = match parse_look(&output) {
            Ok(look) => self.judge(target, &look.pod),
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = verdict {
            connection.disconnect().await;
            return Err(fault(ShellErrorKind::Identity, why));
        }
        let target = target.clone();
        let pinned = tokio::task::spawn_blocking(move || {
            let name = BootName::new(&target.pod_id.0, &target.boot)?;
            known_hosts::check(&target.known_hosts, name, &key)
        });
        match pinned.await {
            Ok(Ok(())) => Ok(connection),
            Ok(Err(error)) if error.is_verdict() => {
                Err(fault(ShellErrorKind::HostKey, error.to_string()))
            }
            Ok(Err(error)) => Err(fault(ShellErrorKind::Local, error.to_string())),
            Err(error) => Err(fault(ShellErrorKind::Local, error.to_string())),
        }
    }

    /// The pod's own id decides. While its start script has not told it yet, the volume's identity
    /// does: nobody else has that volume.
    fn judge(&self, target: &SshTarget, probe: &PodProbe) -> Result<(), String> {
        match (&probe.pod_id, &probe.identity) {
            (Some(id), _) if *id == target.pod_id => Ok(()),
            (Some(id), _) => Err(format!(
                "another machine answers at its address ({}); nothing else was sent there",
                super::failure::plain(&id.0)
            )),
            (None, Some(found)) if self.token.as_ref() == Some(found) => Ok(()),
            (None, _) => Err(
                "another machine answers at its address (it names no pod), or its start script has not got that far; nothing else was sent there"
                    .to_owned(),
            ),
        }
    }
}
