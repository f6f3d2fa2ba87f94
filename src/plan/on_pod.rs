//! Commands on the vehicle's running pod.

use super::{Draft, Intent, PodStep, Step};
use crate::domain::{Price, Vehicle};

/// Drafts commands on a pod, in order. `adds` is what they keep on the bill: a launch keeps the pod
/// running for the length of its job, a short command does not.
#[must_use]
pub fn on_pod(
    vehicle: &Vehicle,
    vehicle_was_named: bool,
    intent: Intent,
    steps: Vec<PodStep>,
    adds: Option<Price>,
) -> Draft {
    let steps = steps.into_iter().map(Step::Pod).collect();
    Draft { intent, vehicle: vehicle.clone(), vehicle_was_named, steps, adds }
}
