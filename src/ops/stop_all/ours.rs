//! Which pods one draft of a stop is about: those of a declared vehicle, or one with podtether's
//! marker when no config can be read.

use crate::domain::{Pod, Vehicle, VehicleName};
use crate::plan::{Facts, NewPod};

/// The pods that one draft is about. Its facts hold these pods and no other.
pub(in crate::ops) struct Group {
    pub vehicle: Vehicle,
    /// Whether the vehicle has a name, from the config or from the journal.
    pub is_known: bool,
    pub facts: Facts,
}

pub(super) fn of_vehicle(vehicle: &Vehicle, pods: &[Pod]) -> Group {
    let own = |pod: &&Pod| pod.name == vehicle.pod_name && !pod.is_deleted();
    let facts = facts(vehicle, pods.iter().filter(own).cloned().collect());
    Group { vehicle: vehicle.clone(), is_known: true, facts }
}

/// Alone in its facts, so that a pod of the same name that is not marked is not stopped with it.
pub(super) fn of_marked_pod(pod: &Pod) -> Group {
    let vehicle = vehicle_of_a_marked_pod(pod);
    let facts = facts(&vehicle, vec![pod.clone()]);
    Group { vehicle, is_known: false, facts }
}

/// Of a vehicle that the config does not declare any more.
pub(in crate::ops) fn of_former_pod(pod: &Pod, vehicle: &str) -> Group {
    let name = VehicleName(vehicle.to_owned());
    let vehicle = Vehicle { name, ..vehicle_of_a_marked_pod(pod) };
    let facts = facts(&vehicle, vec![pod.clone()]);
    Group { vehicle, is_known: true, facts }
}

fn facts(vehicle: &Vehicle, pods: Vec<Pod>) -> Facts {
    Facts::of_pods(pods, vec![(vehicle.name.clone(), vehicle.pod_name.clone())])
}

/// Whether podtether created it.
pub(in crate::ops) fn is_marked(pod: &Pod) -> bool {
    !pod.is_deleted() && pod.env.contains_key(NewPod::NONCE_ENV)
}

/// Drafts and rules are made for vehicles; without a config there is none, and a stop must go
/// through the guard all the same. It never leaves a [`Group`].
fn vehicle_of_a_marked_pod(pod: &Pod) -> Vehicle {
    Vehicle::of_pod_name(VehicleName(format!("the pod {}", pod.id)), pod.name.clone())
}
