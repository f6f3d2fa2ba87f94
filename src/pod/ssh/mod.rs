//! The pod's SSH: one hardened connection, host keys pinned per pod and boot, commands with
//! separate streams. The settings here are measured ones; each says what it is for.

mod connection;
mod exec;
mod failure;
mod handler;
pub mod identity;
pub mod known_hosts;
mod pod_shell;
mod proof;
mod stalled_write;

pub use connection::Connection;
pub use pod_shell::PodShell;
pub use proof::Proof;

pub(crate) use exec::{Tail, signal_text};

use crate::domain::{PodId, SshEndpoint};
use std::path::PathBuf;
use std::time::Duration;

/// Where a pod's SSH is, which pod that has to be, and what it is checked and unlocked with.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SshTarget {
    /// The direct address. Rented addresses are given to others later, so nothing is remembered
    /// under it.
    pub endpoint: SshEndpoint,
    /// The pod. Host keys are recorded under this name.
    pub pod_id: PodId,
    /// The provider's `startedAt` as text. A pod makes new host keys on every boot, so a pin holds
    /// for one value of this (F05).
    pub boot: String,
    /// The vehicle's own known_hosts file.
    pub known_hosts: PathBuf,
    /// The private key file.
    pub identity: PathBuf,
}

/// How a connection behaves. The defaults suit commands; [`Tuning::for_transfer`] suits files.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Tuning {
    /// Bound of the whole connect: TCP, key exchange and authentication together.
    pub connect_timeout: Duration,
    /// Silence after which the server is asked whether it is still there.
    pub keepalive: Duration,
    /// How many such questions may stay unanswered.
    pub keepalive_max: usize,
    /// How long a write to the network may be stuck. The keep-alive can not fire meanwhile.
    pub write_stall: Duration,
    /// Receive window of a channel in bytes. Only about half of it is usable before a refill, so a
    /// long round trip needs a large one.
    pub window: u32,
    /// How many commands share the connection. sshd allows 10 (MaxSessions) and frees a slot a
    /// moment after it says so.
    pub channels: usize,
    /// The agent's socket (`$SSH_AUTH_SOCK`), for keys that only an agent can use.
    pub agent_socket: Option<PathBuf>,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(15),
            keepalive: Duration::from_secs(15),
            keepalive_max: 3,
            write_stall: Duration::from_secs(60),
            window: 2 << 20,
            channels: 8,
            agent_socket: None,
        }
    }
}

impl Tuning {
    /// The same with a window that keeps a download busy at 50 ms round trip: 157 MB/s measured at
    /// 16 MiB against 20 MB/s at 2 MiB.
    #[must_use]
    pub fn for_transfer(mut self) -> Self {
        self.window = 16 << 20;
        self
    }
}
