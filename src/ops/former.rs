//! Pods of vehicles that the config does not declare any more. Whoever renames or removes a vehicle
//! while its pod runs must still be able to stop it; the journal knows whose it was.

use super::Tether;
use super::stop_all::ours::{is_marked, of_former_pod};
use crate::config::Config;
use crate::domain::{Pod, PodId, Vehicle};
use crate::ledger::Ledger;

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

    /// A vehicle that the config does not declare any more, with the ids of its pods; `None` when the
    /// journal knows of none that is still there, and then the name is a slip. A name that the journal
    /// never heard of asks nobody anything.
    pub(super) async fn former(&self, name: &str) -> Option<(Vehicle, Vec<PodId>)> {
        let book = self.ledger.as_ref()?.book().ok()?;
        let runs = book.runs().iter().rev().filter(|run| run.vehicle == name);
        let mut ids: Vec<PodId> = runs.map(|run| run.pod.clone()).collect();
        ids.dedup();
        for id in &ids {
            if let Ok(Some(pod)) = self.cloud.pod(id).await
                && is_marked(&pod)
                && self.config.vehicles.iter().all(|own| own.pod_name != pod.name)
            {
                return Some((of_former_pod(&pod, name).vehicle, ids));
            }
        }
        None
    }
}
