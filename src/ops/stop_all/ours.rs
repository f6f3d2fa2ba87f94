//! Which pods one draft of a stop is about: those of a declared vehicle, or one with podtether's
//! marker when no config can be read.

use crate::domain::{Ceiling, CloudTier, Pod, Timeouts, Vehicle, VehicleName};
use crate::plan::{Facts, LiveJobs, NewPod, Spend, VolumeHealth};
use std::path::PathBuf;
use std::time::Duration;

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
    Facts {
        pods,
        volumes: Vec::new(),
        offers: Vec::new(),
        declared: vec![(vehicle.name.clone(), vehicle.pod_name.clone())],
        tolerated: Vec::new(),
        unknown_creates: Vec::new(),
        spend: Spend::not_asked(),
        live_jobs: LiveJobs::Unknown("the pod was not asked".to_owned()),
        volume_health: VolumeHealth::NotAsked,
    }
}

/// Whether podtether created it.
pub(in crate::ops) fn is_marked(pod: &Pod) -> bool {
    !pod.is_deleted() && pod.env.contains_key(NewPod::NONCE_ENV)
}

/// A vehicle that declares nothing but the name of this one pod. Drafts and rules are made for
/// vehicles; without a config there is none, and a stop must go through the guard all the same. No
/// other field plays a part in a stop, so each holds what allows least: no GPU type, no port, no
/// file. It never leaves a [`Group`].
fn vehicle_of_a_marked_pod(pod: &Pod) -> Vehicle {
    let least = Ceiling::SHORTEST;
    Vehicle {
        name: VehicleName(format!("the pod {}", pod.id)),
        pod_name: pod.name.clone(),
        network_volume_name: String::new(),
        datacenter_preference: Vec::new(),
        known_hosts_file: PathBuf::new(),
        local_log_dir: PathBuf::new(),
        cloud_type: CloudTier::Secure,
        gpu_type_ids: Vec::new(),
        gpu_count: 0,
        image_name: String::new(),
        allowed_cuda_versions: Vec::new(),
        container_disk_gb: 0,
        volume_mount_path: String::new(),
        network_volume_gb: 0,
        ports: Vec::new(),
        ssh_identity: PathBuf::new(),
        idle: Duration::ZERO,
        timeouts: Timeouts {
            setup: least,
            training: least,
            sweep: least,
            job: least,
            exec_max_sec: 0,
        },
        poll_budget: Duration::ZERO,
        poll_interval: Duration::ZERO,
        boot_max: Duration::ZERO,
        min_driver_version: String::new(),
    }
}
