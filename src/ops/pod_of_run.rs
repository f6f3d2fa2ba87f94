//! Finds the pod of a run that is taken up: by its id, never by its name alone.

use super::Tether;
use crate::domain::{Pod, PodId, Vehicle};
use crate::error::{Failure, FailureKind, StillBilling};
use std::time::Duration;

/// What became of a run's pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PodOfRun {
    /// It is, or must be taken to be, on the bill.
    On(Pod),
    /// The provider shows it off the bill.
    Off(Pod),
    /// No list and no answer shows it any more.
    Gone {
        /// Another pod that has its name.
        instead: Option<PodId>,
    },
}

/// How many looks it takes to say that a pod is gone (A05), or that the provider does not answer.
const LOOKS: u32 = 5;

impl Tether {
    /// Asks for the pod of a run by its id.
    ///
    /// # Errors
    /// When the provider does not answer, or the pod has another vehicle's name now.
    pub(crate) async fn pod_of_run(
        &self,
        vehicle: &Vehicle,
        id: &PodId,
    ) -> Result<PodOfRun, Failure> {
        let mut found = Err(Failure::new(FailureKind::Network, "the provider was not asked", ""));
        for look in 0..LOOKS {
            if look > 0 {
                let pause = self.settings.off.read_every * 2_u32.pow(look - 1);
                tokio::time::sleep(pause.min(Duration::from_secs(8))).await;
            }
            found = self.look_for(vehicle, id).await;
            match &found {
                Ok(PodOfRun::On(pod) | PodOfRun::Off(pod)) => {
                    self.note_off(std::slice::from_ref(pod));
                    return found;
                }
                Err(failure) if failure.kind == FailureKind::Conflict => return found,
                Ok(PodOfRun::Gone { .. }) | Err(_) => {}
            }
        }
        found.map_err(|failure| failure.billing(StillBilling::Unknown))
    }

    /// Whether the account's list shows that nothing of the vehicle's name bills. No answer is a no.
    pub(crate) async fn shows_nothing_on(&self, vehicle: &Vehicle) -> bool {
        let bills = |pod: &Pod| pod.name == vehicle.pod_name && pod.status.bills_compute();
        matches!(self.cloud.pods().await, Ok(pods) if !pods.iter().any(bills))
    }

    async fn look_for(&self, vehicle: &Vehicle, id: &PodId) -> Result<PodOfRun, Failure> {
        let Some(pod) = self.cloud.pod(id).await? else {
            let listed = self.cloud.pods().await?;
            let named = |pod: &&Pod| pod.name == vehicle.pod_name && !pod.is_deleted();
            return match listed.iter().find(|pod| pod.id == *id) {
                Some(pod) => Ok(PodOfRun::On(pod.clone())),
                None => Ok(PodOfRun::Gone {
                    instead: listed.iter().find(named).map(|pod| pod.id.clone()),
                }),
            };
        };
        if pod.name != vehicle.pod_name {
            return Err(Failure::new(
                FailureKind::Conflict,
                format!(
                    "pod {id} is named {:?} now, vehicle {}'s is {:?}",
                    pod.name, vehicle.name, vehicle.pod_name
                ),
                "nothing was changed; look in the RunPod console whose it is",
            )
            .billing(StillBilling::Unknown));
        }
        Ok(if pod.status.bills_compute() { PodOfRun::On(pod) } else { PodOfRun::Off(pod) })
    }
}
