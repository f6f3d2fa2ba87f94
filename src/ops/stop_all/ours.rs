//! Which pods one draft of a stop is about: those of a declared vehicle, or one with podtether's
//! marker when no config can be read.

use crate::domain::{Pod, Vehicle, VehicleName};
use crate::plan::{Facts, NewPod};

/// The pods that one draft is about. Its facts hold these pods and no other.
pub(super) struct Group {
    pub vehicle: Vehicle,
    pub is_declared: bool,
    pub facts: Facts,
}

pub(super) fn of_vehicle(vehicle: &Vehicle, pods: &[Pod]) -> Group {
    let own = |pod: &&Pod| pod.name == vehicle.pod_name && !pod.is_deleted();
    let facts = facts(vehicle, pods.iter().filter(own).cloned().collect());
    Group { vehicle: vehicle.clone(), is_declared: true, facts }
}

/// Alone in its facts, so that a pod of the same name that is not marked is not stopped with it.
pub(super) fn of_marked_pod(pod: &Pod) -> Group {
    let vehicle = vehicle_of_a_marked_pod(pod);
    let facts = facts(&vehicle, vec![pod.clone()]);
    Group { vehicle, is_declared: false, facts }
}

fn facts(vehicle: &Vehicle, pods: Vec<Pod>) -> Facts {
    Facts::of_pods(pods, vec![(vehicle.name.clone(), vehicle.pod_name.clone())])
}

/// Whether podtether created it.
pub(super) fn is_marked(pod: &Pod) -> bool {
    !pod.is_deleted() && pod.env.contains_key(NewPod::NONCE_ENV)
}

/// Drafts and rules are made for vehicles; without a config there is none, and a stop must go
/// through the guard all the same. It never leaves a [`Group`].
fn vehicle_of_a_marked_pod(pod: &Pod) -> Vehicle {
    Vehicle::of_pod_name(VehicleName(format!("the pod {}", pod.id)), pod.name.clone())
}
