//! The lease that supervise holds with the pod's watchdog: when it falls silent the watchdog waits for
//! the job and then only some minutes more, not a whole idle time (C07).

use crate::domain::{Pod, Vehicle};
use crate::ops::Tether;
use std::time::Duration;

/// The shortest lease: a laptop may lose its network for some minutes.
const LEAST: Duration = Duration::from_secs(900);
/// How often a lease is renewed while nothing is looked at.
const EVERY: Duration = Duration::from_secs(60);

/// A pod that is supervised.
pub(crate) struct Watched<'a> {
    tether: &'a Tether,
    vehicle: &'a Vehicle,
    pod: Pod,
    /// `None` when the pod is to go on after supervise: then no silence of it ends anything.
    lease: Option<Duration>,
}

impl<'a> Watched<'a> {
    /// A pod that is looked at once in every `interval`; `None` takes out no lease.
    pub(crate) fn of(
        tether: &'a Tether,
        vehicle: &'a Vehicle,
        pod: &Pod,
        interval: Option<Duration>,
    ) -> Self {
        let lease = interval.map(|interval| LEAST.max(interval.saturating_mul(4)));
        Self { tether, vehicle, pod: pod.clone(), lease }
    }

    /// Renews it once. A pod that does not answer is found out by the look that follows.
    pub(crate) async fn renew(&self) {
        if let Some(lease) = self.lease
            && let Err(error) = self.tether.renew_lease(self.vehicle, &self.pod, lease).await
        {
            tracing::debug!(error = error.message, "lease not renewed");
        }
    }

    /// Renews it until it is dropped.
    pub(crate) async fn keep(&self) {
        loop {
            self.renew().await;
            tokio::time::sleep(EVERY).await;
        }
    }
}
