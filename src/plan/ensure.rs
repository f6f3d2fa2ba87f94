//! From nothing, or from a stopped pod, to a running one.

use super::{Change, Draft, Facts, Intent, NewPod, NewVolume, Step, VolumeRef};
use crate::domain::{DataCenterId, GpuTypeId, PodStatus, Price, Stock, Vehicle};
use std::collections::BTreeMap;

/// What the outside world adds to the plan of a create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnsureInputs {
    /// The public SSH key, in OpenSSH's one-line form.
    pub public_key: String,
    /// A marker that no other create carries.
    pub nonce: String,
}

/// Drafts what has to be done so that the vehicle's pod runs. No steps when it runs already, is on
/// its way, or needs a person (status ERROR).
#[must_use]
pub fn ensure(
    vehicle: &Vehicle,
    vehicle_was_named: bool,
    facts: &Facts,
    inputs: EnsureInputs,
) -> Draft {
    let draft = |steps, adds| Draft {
        intent: Intent::EnsurePod,
        vehicle: vehicle.clone(),
        vehicle_was_named,
        steps,
        adds,
    };
    if let Some(pod) = facts.pods_named(&vehicle.pod_name).next() {
        return match pod.status {
            PodStatus::Exited => {
                // A pod that lost its GPUs shows none of them; it may come back with all it was made for.
                let price = pod.gpu.as_ref().map_or(Price::Unknown, |(gpu_type, count)| {
                    facts.price_of(gpu_type, if *count == 0 { vehicle.gpu_count } else { *count })
                });
                draft(vec![Step::Cloud(Change::StartPod(pod.id.clone()))], Some(price))
            }
            _ => draft(Vec::new(), None),
        };
    }
    let mut steps = Vec::new();
    let (volume, data_center) = match facts.volumes_named(&vehicle.network_volume_name).next() {
        Some(volume) => (VolumeRef::Existing(volume.id.clone()), Some(volume.data_center.clone())),
        None => {
            let data_center = preferred_data_center(vehicle, facts);
            if let Some(data_center) = &data_center {
                steps.push(Step::Cloud(Change::CreateVolume(NewVolume {
                    name: vehicle.network_volume_name.clone(),
                    size_gb: vehicle.network_volume_gb,
                    data_center: data_center.clone(),
                })));
            }
            (VolumeRef::Planned(vehicle.network_volume_name.clone()), data_center)
        }
    };
    let Some((gpu_type, data_center)) =
        data_center.and_then(|dc| Some((gpu_type_for(vehicle, facts, &dc)?, dc)))
    else {
        return draft(Vec::new(), None);
    };
    let price = facts.price_of(&gpu_type, vehicle.gpu_count);
    let env = BTreeMap::from([
        ("PUBLIC_KEY".to_owned(), inputs.public_key),
        (NewPod::NONCE_ENV.to_owned(), inputs.nonce),
    ]);
    steps.push(Step::Cloud(Change::CreatePod(NewPod {
        name: vehicle.pod_name.clone(),
        image: vehicle.image_name.clone(),
        gpu_type,
        gpu_count: vehicle.gpu_count,
        allowed_cuda_versions: vehicle.allowed_cuda_versions.clone(),
        cloud: vehicle.cloud_type.clone(),
        data_center,
        container_disk_gb: vehicle.container_disk_gb,
        volume,
        mount_path: vehicle.volume_mount_path.clone(),
        ports: vehicle.ports.clone(),
        env,
    })));
    draft(steps, Some(price))
}

/// The first preferred data centre where an allowed GPU type has stock, else the first one: stock
/// is a hint, and only the create itself knows.
fn preferred_data_center(vehicle: &Vehicle, facts: &Facts) -> Option<DataCenterId> {
    let has_stock = |data_center: &&DataCenterId| {
        vehicle
            .gpu_type_ids
            .iter()
            .any(|gpu_type| stock(facts, gpu_type, data_center) > Stock::None)
    };
    let preferred = &vehicle.datacenter_preference;
    preferred.iter().find(has_stock).or_else(|| preferred.first()).cloned()
}

/// The first allowed GPU type with stock there, else the first one allowed.
fn gpu_type_for(vehicle: &Vehicle, facts: &Facts, data_center: &DataCenterId) -> Option<GpuTypeId> {
    let allowed = &vehicle.gpu_type_ids;
    let in_stock =
        allowed.iter().find(|gpu_type| stock(facts, gpu_type, data_center) > Stock::None);
    in_stock.or_else(|| allowed.first()).cloned()
}

/// Stock as far as it is told; what is not told counts as none when a place is chosen.
fn stock(facts: &Facts, gpu_type: &GpuTypeId, data_center: &DataCenterId) -> Stock {
    let offer = facts.offers.iter().find(|offer| &offer.id == gpu_type);
    match offer.map_or(Stock::Unknown, |offer| offer.stock_in(data_center)) {
        Stock::Unknown => Stock::None,
        known => known,
    }
}
