//! What the provider may not show yet: a new pod is in no list for a while (A05), and only the journal
//! knows that it was asked for.

use super::Tether;
use super::unaccounted::{unaccounted_creates, unknown_create};
use crate::domain::{Pod, PodId, Vehicle};
use crate::error::{Failure, StillBilling};
use crate::ledger::Create;
use crate::plan::Facts;

impl Tether {
    fn unseen(&self, vehicle: &Vehicle, pods: &[Pod]) -> Vec<Create> {
        let (ledger, absent_after) = (self.ledger.as_ref(), self.settings.absent_after);
        unaccounted_creates(ledger, &vehicle.name.0, pods, &*self.clock, absent_after)
    }

    /// Brings up to date what the facts say of the vehicle's pod. A list can be older than the pod's own
    /// page, so "off" is believed only from there; and it can leave out a new pod, which is added when
    /// it answers to its id, or else its create as one whose outcome is unknown. Returns the pods that
    /// the list shows off and that could not be read.
    pub(super) async fn see(&self, vehicle: &Vehicle, facts: &mut Facts) -> Vec<PodId> {
        let name = &vehicle.pod_name;
        let mut unread = Vec::new();
        let ours = facts.pods.iter_mut().filter(|pod| pod.name == *name && !pod.is_deleted());
        for pod in ours.filter(|pod| !pod.status.bills_compute()) {
            match self.cloud.pod(&pod.id).await {
                Ok(Some(now)) => *pod = now,
                Ok(None) | Err(_) => unread.push(pod.id.clone()),
            }
        }
        if facts.pods_named(name).next().is_none() {
            self.add_unseen(vehicle, facts).await;
        }
        unread
    }

    async fn add_unseen(&self, vehicle: &Vehicle, facts: &mut Facts) {
        for create in self.unseen(vehicle, &facts.pods) {
            if let Some(id) = &create.pod
                && let Ok(Some(pod)) = self.cloud.pod(id).await
                && pod.name == vehicle.pod_name
            {
                facts.pods.push(pod);
                continue;
            }
            let is_known = facts.unknown_creates.iter().any(|known| known.since == create.at);
            if !is_known {
                facts.unknown_creates.push(unknown_create(create));
            }
        }
    }

    /// The vehicle's running pod, by facts that were just read.
    pub(super) async fn pick(&self, vehicle: &Vehicle, facts: &mut Facts) -> Result<Pod, Failure> {
        let unread = self.see(vehicle, facts).await;
        Self::pick_running(vehicle, &facts.pods).map_err(|failure| {
            let failure = self.with_unseen(vehicle, &facts.pods, failure);
            let is_open = !unread.is_empty() && failure.still_billing == StillBilling::No;
            if is_open { failure.billing(StillBilling::Unknown) } else { failure }
        })
    }

    /// A failure that says that nothing bills, where a create says otherwise.
    pub(super) fn with_unseen(&self, vehicle: &Vehicle, pods: &[Pod], failure: Failure) -> Failure {
        let hides =
            failure.still_billing == StillBilling::No && !self.unseen(vehicle, pods).is_empty();
        if hides { failure.billing(StillBilling::Unknown) } else { failure }
    }
}
