//! Commands on the vehicle's running pod.

use super::{Draft, Intent, PodStep, Step};
use crate::domain::Vehicle;

/// Drafts commands on a pod, in order.
#[must_use]
pub fn on_pod(
    vehicle: &Vehicle,
    vehicle_was_named: bool,
    intent: Intent,
    steps: Vec<PodStep>,
) -> Draft {
    let steps = steps.into_iter().map(Step::Pod).collect();
    Draft { intent, vehicle: vehicle.clone(), vehicle_was_named, steps, adds: None }
}
