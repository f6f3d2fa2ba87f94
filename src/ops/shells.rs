//! One connection per pod and boot, made when it is first needed and used again.

use crate::domain::{Pod, Vehicle};
use crate::pod::ssh::{PodShell, Proof, SshTarget, Tuning};
use crate::pod::{Shell, ShellError, ShellErrorKind, Shells};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The connections.
pub(super) struct SshShells {
    tuning: Tuning,
    open: Mutex<HashMap<String, (SshTarget, Arc<PodShell>)>>,
}

impl SshShells {
    pub(super) fn new(ssh_auth_sock: Option<PathBuf>) -> Self {
        Self { tuning: tuning(ssh_auth_sock), open: Mutex::new(HashMap::new()) }
    }
}

/// How connections behave, with this agent's socket.
pub(super) fn tuning(ssh_auth_sock: Option<PathBuf>) -> Tuning {
    Tuning { agent_socket: ssh_auth_sock, ..Tuning::default() }
}

impl Shells for SshShells {
    /// The shell of a pod at the address that was just read; another boot or another address makes
    /// another connection (F01: an address is never kept over a start).
    fn of(&self, vehicle: &Vehicle, pod: &Pod) -> Result<Arc<dyn Shell>, ShellError> {
        let target = target(vehicle, pod)?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, shell)) = open.get(&pod.id.0).filter(|(known, _)| *known == target) {
            return Ok(Arc::clone(shell) as Arc<dyn Shell>);
        }
        let shell = PodShell::new(target.clone(), self.tuning.clone())
            .proving(Proof { mount: vehicle.volume_mount_path.clone(), token: volume_token(pod) });
        let shell = Arc::new(shell);
        open.insert(pod.id.0.clone(), (target, Arc::clone(&shell)));
        Ok(shell)
    }
}

/// What the identity file of the pod's volume holds: the volume's own id, which a pod with another
/// volume cannot show. `None` for a pod without one.
pub(super) fn volume_token(pod: &Pod) -> Option<String> {
    pod.mounts.first().map(|mount| mount.volume_id.0.clone())
}

/// Where and how a pod is reached.
pub(super) fn target(vehicle: &Vehicle, pod: &Pod) -> Result<SshTarget, ShellError> {
    let endpoint = pod.ssh.clone().ok_or_else(|| ShellError {
        kind: ShellErrorKind::NoEndpoint,
        tried: format!("reaching pod {}", pod.id),
        detail: "the provider names no direct SSH endpoint".to_owned(),
    })?;
    Ok(SshTarget {
        endpoint,
        pod_id: pod.id.clone(),
        boot: pod.boot(),
        known_hosts: vehicle.known_hosts_file.clone(),
        identity: vehicle.ssh_identity.clone(),
    })
}
