//! A vehicle, a pod and a volume that fit together, for unit tests.

use super::*;
use std::time::Duration;

/// The example's default vehicle.
pub fn vehicle() -> Vehicle {
    let hour = Ceiling::from_secs(3600).unwrap();
    Vehicle {
        name: VehicleName("hippocampus".into()),
        pod_name: "lts-replication".into(),
        network_volume_name: "lts-volume".into(),
        datacenter_preference: vec![DataCenterId("EU-RO-1".into()), DataCenterId("US-TX-3".into())],
        known_hosts_file: "/tmp/known_hosts".into(),
        local_log_dir: "/tmp/logs".into(),
        cloud_type: CloudTier::Secure,
        gpu_type_ids: vec![gpu()],
        gpu_count: 1,
        image_name: "runpod/pytorch".into(),
        allowed_cuda_versions: vec!["12.4".into()],
        container_disk_gb: 30,
        volume_mount_path: "/workspace".into(),
        network_volume_gb: 60,
        ports: vec!["22/tcp".into()],
        ssh_identity: "/tmp/id_ed25519".into(),
        idle: Duration::from_secs(3600),
        timeouts: Timeouts {
            setup: hour,
            training: hour,
            sweep: hour,
            job: hour,
            exec_max_sec: 600,
        },
        poll_budget: Duration::from_secs(300),
        poll_interval: Duration::from_secs(10),
        boot_max: Duration::from_secs(900),
        min_driver_version: "535.129.03".into(),
    }
}

/// The allowed GPU type.
pub fn gpu() -> GpuTypeId {
    GpuTypeId("NVIDIA GeForce RTX 4090".into())
}

/// Its volume.
pub fn volume() -> Volume {
    Volume {
        id: VolumeId("vol1".into()),
        name: "lts-volume".into(),
        size_gb: 60,
        data_center: DataCenterId("EU-RO-1".into()),
    }
}

/// Its pod, running.
pub fn pod() -> Pod {
    Pod {
        id: PodId("pod1".into()),
        name: "lts-replication".into(),
        status: PodStatus::Running,
        gpu: Some((gpu(), 1)),
        cloud: CloudTier::Secure,
        data_center: Some(DataCenterId("EU-RO-1".into())),
        mounts: vec![NetworkMount {
            volume_id: VolumeId("vol1".into()),
            path: "/workspace".into(),
        }],
        price: Price::from_decimal("0.69"),
        ssh: None,
        env: std::collections::BTreeMap::new(),
        locked: false,
        cluster: false,
        interruptible: false,
        created_at: None,
        started_at: None,
        cuda_version: None,
    }
}

/// A catalog with the allowed GPU type, in stock in the second preferred data centre only.
pub fn offers() -> Vec<GpuOffer> {
    vec![GpuOffer {
        id: gpu(),
        memory_gb: Some(24),
        price: Price::from_decimal("0.69"),
        stock: Stock::High,
        data_centers: vec![
            (DataCenterId("EU-RO-1".into()), Stock::None),
            (DataCenterId("US-TX-3".into()), Stock::High),
        ],
    }]
}
