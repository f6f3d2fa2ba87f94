//! The pod of a watch: which one it begins with, and what the provider says of it when it does not answer.

use super::Tether;
use crate::domain::{Pod, PodId, Vehicle};
use crate::error::{Failure, FailureKind};

/// The pod that a watch begins with.
pub(super) enum WatchedPod {
    /// It bills.
    On(Box<Pod>),
    /// It went off since the last watch: that is an answer, not a mistake.
    Off,
}

impl Tether {
    /// The vehicle's running pod. Of a job that was watched before also one that bills under another status: the
    /// provider's word for it is no word about the job, and perhaps it answers.
    pub(super) async fn watched_pod(
        &self,
        vehicle: &Vehicle,
        is_known: bool,
    ) -> Result<WatchedPod, Failure> {
        match self.running_pod(vehicle).await {
            Ok(pod) => Ok(WatchedPod::On(Box::new(pod))),
            Err(failure) if is_known && failure.kind == FailureKind::NoPod => {
                let bills = |pod: &Pod| pod.name == vehicle.pod_name && pod.status.bills_compute();
                let listed = self.cloud.pods().await?;
                let pod = listed.into_iter().find(bills);
                Ok(pod.map_or(WatchedPod::Off, |pod| WatchedPod::On(Box::new(pod))))
            }
            Err(failure) => Err(failure),
        }
    }

    /// Whether a pod that its own page does not show is on no list either. A 404 alone is no proof that it is
    /// gone (A05).
    pub(super) async fn is_on_no_list(&self, id: &PodId) -> bool {
        self.cloud.pods().await.is_ok_and(|listed| listed.iter().all(|pod| pod.id != *id))
    }
}
