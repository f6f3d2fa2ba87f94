//! How long things take in the local cloud; tests make it fast.

use std::time::Duration;

/// How long things take.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// From create or start to STARTING.
    pub provisioning: Duration,
    /// From there to RUNNING.
    pub starting: Duration,
    /// From there to a direct SSH address.
    pub ssh_after: Duration,
    /// How far billing is behind.
    pub billing_lag: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            provisioning: Duration::from_millis(300),
            starting: Duration::from_millis(500),
            ssh_after: Duration::from_millis(200),
            billing_lag: Duration::from_secs(3600),
        }
    }
}
