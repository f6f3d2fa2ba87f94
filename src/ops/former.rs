//! Pods of vehicles that the config does not declare any more. Whoever renames or removes a vehicle
//! while its pod runs must still be able to stop it; the journal knows whose it was.

use super::stop_all::ours::{Group, is_marked, of_former_pod};
use super::{StopAnswer, Tether};
use crate::apply;
use crate::config::Config;
use crate::domain::{Pod, PodId, Vehicle};
use crate::error::{Failure, StillBilling};
use crate::ledger::Ledger;
use crate::plan;

/// Those of `pods` that this project created and whose name no vehicle declares, each with the vehicle
/// that it was made for. Only what carries podtether's marker and stands in this project's journal is
/// its own: another project's pod is a stranger here (B08).
pub(super) fn former_pods<'a>(
    ledger: Option<&Ledger>,
    config: &Config,
    pods: &'a [Pod],
) -> Vec<(&'a Pod, String)> {
    let undeclared = |pod: &&Pod| config.vehicles.iter().all(|own| own.pod_name != pod.name);
    let mut candidates = pods.iter().filter(|pod| is_marked(pod)).filter(undeclared).peekable();
    if candidates.peek().is_none() {
        return Vec::new();
    }
    let Some(Ok(book)) = ledger.map(Ledger::book) else { return Vec::new() };
    let vehicle_of = |pod: &Pod| {
        let mut runs = book.runs().iter().rev();
        runs.find(|run| run.pod == pod.id).map(|run| run.vehicle.clone())
    };
    candidates.filter_map(|pod| Some((pod, vehicle_of(pod)?))).collect()
}

/// The pods that the journal saw on the bill and not yet off it, of every vehicle: what is left to go by
/// when the account's pods cannot be listed.
pub(super) fn last_pods(ledger: Option<&Ledger>) -> Vec<PodId> {
    let Some(Ok(book)) = ledger.map(Ledger::book) else { return Vec::new() };
    let on = book.runs().iter().filter(|run| run.off.is_none());
    on.map(|run| run.pod.clone()).collect()
}

impl Tether {
    /// The vehicle's pod that the journal saw on the bill and not yet off it.
    pub(super) fn last_pod(&self, vehicle: &Vehicle) -> Option<PodId> {
        let book = self.ledger.as_ref()?.book().ok()?;
        let mut runs = book.runs().iter().rev();
        let run = runs.find(|run| run.off.is_none() && run.vehicle == vehicle.name.0)?;
        Some(run.pod.clone())
    }

    /// Stops the pods of a vehicle that the config does not declare any more; `None` when the journal
    /// knows of none, and then the name is a slip.
    pub(super) async fn stop_former(&self, name: &str) -> Result<Option<StopAnswer>, Failure> {
        // A name that the journal never heard of needs no question to anybody.
        let book = self.ledger.as_ref().and_then(|ledger| ledger.book().ok()).unwrap_or_default();
        if book.runs().iter().all(|run| run.vehicle != name) {
            return Ok(None);
        }
        let unknown = |failure: Failure| failure.billing(StillBilling::Unknown);
        let pods = self.cloud.pods().await.map_err(|error| unknown(error.into()))?;
        let listed_at = self.clock.now();
        let former = former_pods(self.ledger.as_ref(), &self.config, &pods);
        let Some((pod, vehicle)) = former.into_iter().find(|(_, vehicle)| vehicle == name) else {
            return Ok(None);
        };
        let Group { vehicle, facts, .. } = of_former_pod(pod, &vehicle);
        let approved = self.review(plan::stop(&vehicle, true, &facts), &facts)?;
        let outcomes = apply::apply(&approved, &self.ports(&vehicle, None, None))
            .await
            .map_err(|error| unknown(super::ensure::start_failure(error.error)))?;
        let mut answer = self.stop_answer(&vehicle, (&facts, listed_at), &outcomes, None);
        answer.message = format!(
            "Vehicle {name} is not declared any more; the journal knows its pod {}. {}",
            pod.id, answer.message
        );
        Ok(Some(answer))
    }
}
