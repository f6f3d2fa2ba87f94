//! Approved changes for tests: there is no way to one but through the guard, so each comes with
//! facts under which every rule lets it through.

use chrono::DateTime;
use podtether::cloud::{Changed, Cloud, CloudError};
use podtether::domain::{
    Ceiling, CloudTier, DataCenterId, GpuTypeId, Limits, NetworkMount, Pod, PodId, PodStatus,
    Price, Timeouts, Vehicle, VehicleName, Volume, VolumeId,
};
use podtether::guard::{ApprovedStep, review};
use podtether::plan::{Change, Draft, Facts, Intent, LiveJobs, NewPod, NewVolume, Step, VolumeRef};
use std::collections::BTreeMap;
use std::time::Duration;

pub const POD: &str = "q3v8n1x5t7";
pub const POD_NAME: &str = "lts-replication";

pub fn vehicle() -> Vehicle {
    let ceiling = Ceiling::from_secs(3600).unwrap();
    Vehicle {
        name: VehicleName("hippocampus".into()),
        pod_name: POD_NAME.into(),
        network_volume_name: POD_NAME.into(),
        datacenter_preference: vec![DataCenterId("EU-RO-1".into())],
        known_hosts_file: "/nowhere/known_hosts".into(),
        local_log_dir: "/nowhere/logs".into(),
        cloud_type: CloudTier::Secure,
        gpu_type_ids: vec![GpuTypeId("NVIDIA GeForce RTX 4090".into())],
        gpu_count: 1,
        image_name: "runpod/pytorch:2.4.0-py3.11-cuda12.4.1-devel-ubuntu22.04".into(),
        allowed_cuda_versions: ["12.4", "12.5", "12.6", "12.7", "12.8"].map(String::from).to_vec(),
        container_disk_gb: 30,
        volume_mount_path: "/workspace".into(),
        network_volume_gb: 60,
        ports: vec!["22/tcp".into()],
        ssh_identity: "/nowhere/id_ed25519".into(),
        idle: Duration::from_secs(3600),
        timeouts: Timeouts {
            setup: ceiling,
            training: ceiling,
            sweep: ceiling,
            job: ceiling,
            exec_max_sec: 600,
        },
        poll_budget: Duration::from_secs(300),
        poll_interval: Duration::from_secs(10),
        boot_max: Duration::from_secs(900),
        min_driver_version: "535.129.03".into(),
    }
}

pub fn new_volume() -> NewVolume {
    NewVolume { name: POD_NAME.into(), size_gb: 60, data_center: DataCenterId("EU-RO-1".into()) }
}

pub fn new_pod(volume: VolumeRef) -> NewPod {
    let vehicle = vehicle();
    NewPod {
        name: vehicle.pod_name,
        image: vehicle.image_name,
        gpu_type: vehicle.gpu_type_ids[0].clone(),
        gpu_count: vehicle.gpu_count,
        allowed_cuda_versions: vehicle.allowed_cuda_versions,
        cloud: vehicle.cloud_type,
        data_center: DataCenterId("EU-RO-1".into()),
        container_disk_gb: vehicle.container_disk_gb,
        volume,
        mount_path: vehicle.volume_mount_path,
        ports: vehicle.ports,
        env: [("PUBLIC_KEY", "ssh-ed25519 AAAAC3Nz example"), (NewPod::NONCE_ENV, "9f2c41d07b")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
    }
}

pub fn create_pod() -> Change {
    Change::CreatePod(new_pod(VolumeRef::Existing(VolumeId("nv4k2r9s".into()))))
}

/// One of each kind of change; the pod's volume is planned where `planned` says so.
pub fn every_change(planned: bool) -> Vec<Change> {
    let id = || PodId(POD.into());
    let volume = match planned {
        true => VolumeRef::Planned(POD_NAME.into()),
        false => VolumeRef::Existing(VolumeId("nv4k2r9s".into())),
    };
    vec![
        Change::CreateVolume(new_volume()),
        Change::CreatePod(new_pod(volume)),
        Change::StartPod(id()),
        Change::StopPod(id()),
        Change::TerminatePod(id()),
    ]
}

/// Has the guard approve `change` and sends it.
pub async fn send(
    cloud: &dyn Cloud,
    change: &Change,
    created: Option<&VolumeId>,
) -> Result<Changed, CloudError> {
    let vehicle = vehicle();
    let volume = Volume {
        id: VolumeId("nv4k2r9s".into()),
        name: POD_NAME.into(),
        size_gb: 60,
        data_center: DataCenterId("EU-RO-1".into()),
    };
    let (intent, status) = match change {
        Change::CreateVolume(_) | Change::CreatePod(_) => (Intent::EnsurePod, None),
        Change::StartPod(_) => (Intent::EnsurePod, Some(PodStatus::Exited)),
        Change::StopPod(_) => (Intent::StopPod, Some(PodStatus::Running)),
        Change::TerminatePod(_) => {
            let confirm = format!("terminate {POD_NAME}");
            (Intent::TerminatePod { confirm }, Some(PodStatus::Running))
        }
    };
    let mut steps = vec![Step::Cloud(change.clone())];
    let mut volumes = vec![volume];
    match change {
        Change::CreateVolume(_) => volumes.clear(),
        Change::CreatePod(pod) if matches!(pod.volume, VolumeRef::Planned(_)) => {
            volumes.clear();
            steps.insert(0, Step::Cloud(Change::CreateVolume(new_volume())));
        }
        _ => {}
    }
    let price = Price::from_decimal("0.69");
    let facts = Facts {
        pods: status.map(|status| our_pod(status, price)).into_iter().collect(),
        volumes,
        offers: Vec::new(),
        declared: vec![(vehicle.name.clone(), vehicle.pod_name.clone())],
        tolerated: Vec::new(),
        unknown_creates: Vec::new(),
        live_jobs: LiveJobs::Known(Vec::new()),
        volume_health: podtether::plan::VolumeHealth::NotAsked,
        gates: podtether::plan::Gates::NotAsked,
        spend: podtether::plan::Spend::not_asked(),
        proven_fuses: podtether::domain::ProvenFuses::default(),
    };
    let adds = matches!(intent, Intent::EnsurePod).then_some(price);
    let draft = Draft { intent, vehicle, vehicle_was_named: true, steps, adds };
    let approved = review(draft, &facts, &Limits::default()).unwrap();
    let wanted = approved.approved_steps().find_map(|step| match step {
        ApprovedStep::Cloud(approved) if approved.get() == change => Some(approved),
        _ => None,
    });
    cloud.change(wanted.unwrap(), created).await
}

fn our_pod(status: PodStatus, price: Price) -> Pod {
    Pod {
        id: PodId(POD.into()),
        name: POD_NAME.into(),
        status,
        gpu: Some((GpuTypeId("NVIDIA GeForce RTX 4090".into()), 1)),
        cloud: CloudTier::Secure,
        data_center: Some(DataCenterId("EU-RO-1".into())),
        mounts: vec![NetworkMount {
            volume_id: VolumeId("nv4k2r9s".into()),
            path: "/workspace".into(),
        }],
        price,
        ssh: None,
        env: BTreeMap::new(),
        locked: false,
        cluster: false,
        interruptible: false,
        created_at: DateTime::from_timestamp(1_783_000_000, 0),
        started_at: DateTime::from_timestamp(1_783_000_000, 0),
        cuda_version: Some("12.8".into()),
    }
}
