//! Off the bill: stop and terminate.

use super::{Change, Draft, Facts, Intent, Step};
use crate::domain::Vehicle;

/// Drafts the stop of every pod of the vehicle's name that is, or must be taken to be, on the bill.
/// Two pods of one name are both stopped: for a stop, doubt means yes.
#[must_use]
pub fn stop(vehicle: &Vehicle, vehicle_was_named: bool, facts: &Facts) -> Draft {
    let steps = facts
        .pods_named(&vehicle.pod_name)
        .filter(|pod| pod.status.bills_compute())
        .map(|pod| Step::Cloud(Change::StopPod(pod.id.clone())))
        .collect();
    Draft {
        intent: Intent::StopPod,
        vehicle: vehicle.clone(),
        vehicle_was_named,
        steps,
        adds: None,
    }
}

/// Drafts the deletion of the vehicle's pod. Its network volume is not touched.
#[must_use]
pub fn terminate(
    vehicle: &Vehicle,
    vehicle_was_named: bool,
    confirm: &str,
    facts: &Facts,
) -> Draft {
    let steps = facts
        .pods_named(&vehicle.pod_name)
        .map(|pod| Step::Cloud(Change::TerminatePod(pod.id.clone())))
        .collect();
    let intent = Intent::TerminatePod { confirm: confirm.to_owned() };
    Draft { intent, vehicle: vehicle.clone(), vehicle_was_named, steps, adds: None }
}
