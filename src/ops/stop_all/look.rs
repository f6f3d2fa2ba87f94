//! What the account has, as a stop must know it: no single list is believed.

use super::ours::is_marked;
use super::{Ours, StopAll};
use crate::cloud::CloudError;
use crate::domain::{Pod, PodStatus};
use crate::error::{Failure, StillBilling};
use crate::ops::former::last_pods;
use crate::ops::stop::UNREAD;
use crate::ops::unaccounted::unaccounted_creates;

/// How many lists it takes to say that a pod is not there (A05).
const LOOKS: u32 = 3;

impl StopAll {
    /// Every pod that one of several lists shows, as it was last listed: a new pod can be missing
    /// from a list, and a list that fails takes nothing back (A05).
    ///
    /// When none can be read, the pods that the journal knows are asked for one by one: then what else
    /// there is, is not known, and why stands beside them.
    pub(super) async fn look(&self) -> Result<(Vec<Pod>, Option<Failure>), Failure> {
        let mut seen: Vec<Pod> = Vec::new();
        let mut failed: Option<CloudError> = None;
        let mut has_list = false;
        for look in 0..LOOKS {
            if look > 0 {
                tokio::time::sleep(self.settings.off.read_every).await;
            }
            match self.cloud.pods().await {
                Ok(list) => {
                    has_list = true;
                    seen.retain(|old| list.iter().all(|pod| pod.id != old.id));
                    seen.extend(list);
                }
                Err(error) => failed = Some(error),
            }
            if has_list && self.shows_all(&seen) {
                break;
            }
        }
        if let Some(error) = failed.filter(|_| !has_list) {
            let failure = Failure::from(error).billing(StillBilling::Unknown);
            let known = self.known_by_id().await;
            return if known.is_empty() { Err(failure) } else { Ok((known, Some(failure))) };
        }
        self.add_unlisted(&mut seen).await;
        self.ask_what_is_off(&mut seen).await;
        Ok((seen, None))
    }

    async fn known_by_id(&self) -> Vec<Pod> {
        let mut pods = Vec::new();
        for id in last_pods(self.ledger.as_ref()) {
            if let Ok(Some(pod)) = self.cloud.pod(&id).await {
                pods.push(pod);
            }
        }
        pods
    }

    /// A new pod can be in no list and answer to its id, which the journal knows (A05).
    async fn add_unlisted(&self, pods: &mut Vec<Pod>) {
        let Ours::Declared(config) = &self.ours else { return };
        let (ledger, absent_after) = (self.ledger.as_ref(), self.settings.absent_after);
        for vehicle in &config.vehicles {
            let creates =
                unaccounted_creates(ledger, &vehicle.name.0, pods, &*self.clock, absent_after);
            for id in creates.iter().filter_map(|create| create.pod.as_ref()) {
                if let Ok(Some(pod)) = self.cloud.pod(id).await
                    && pod.name == vehicle.pod_name
                {
                    pods.push(pod);
                }
            }
        }
    }

    /// A list can be older than the pod's own page: "off" is believed only from there, and doubt means
    /// that it is asked to stop.
    async fn ask_what_is_off(&self, pods: &mut [Pod]) {
        let is_ours = |pod: &Pod| match &self.ours {
            Ours::Declared(config) => {
                is_marked(pod) || config.vehicles.iter().any(|own| own.pod_name == pod.name)
            }
            Ours::Marked { .. } => is_marked(pod),
        };
        let off = pods.iter_mut().filter(|pod| !pod.is_deleted() && !pod.status.bills_compute());
        for pod in off.filter(|pod| is_ours(pod)) {
            match self.cloud.pod(&pod.id).await {
                Ok(Some(now)) => *pod = now,
                Ok(None) | Err(_) => pod.status = PodStatus::Other(UNREAD.to_owned()),
            }
        }
    }

    /// Whether no vehicle's pod is missing; without a config nobody knows how many there are.
    fn shows_all(&self, pods: &[Pod]) -> bool {
        match &self.ours {
            Ours::Declared(config) => config.vehicles.iter().all(|vehicle| {
                pods.iter().any(|pod| pod.name == vehicle.pod_name && !pod.is_deleted())
            }),
            Ours::Marked { .. } => false,
        }
    }
}
