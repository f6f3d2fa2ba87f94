//! Pods and volumes as REST v2 shows them.

use super::super::document::{Pod, Status, Volume};
use crate::domain::Usd;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

pub fn timestamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// A pod. `ssh.direct` is null until its server listens, and so is `runtime` until it runs.
pub fn pod(pod: &Pod, now: DateTime<Utc>) -> Value {
    let running = pod.status == Status::Running;
    let port = pod.ssh_port.filter(|_| running);
    let mut mounts = json!({});
    if let (Some(mount), Some(fields)) = (&pod.mount, mounts.as_object_mut()) {
        fields.insert(
            "network".to_owned(),
            json!([{"volumeId": mount.volume_id, "path": mount.path}]),
        );
    }
    let cost = if pod.status == Status::Exited { Usd::ZERO } else { Usd::from_micros(pod.rate) };
    json!({
        "id": pod.id,
        "name": pod.name,
        "image": pod.image,
        "args": pod.args,
        "disk": pod.disk_gb,
        "ports": pod.ports,
        "env": pod.env,
        "registry": null,
        "status": pod.status.word(),
        "actions": pod.status.actions(),
        "mounts": mounts,
        "gpu": {"id": pod.gpu_id, "count": pod.gpu_count},
        "cloud": pod.cloud,
        "dataCenterId": pod.data_center,
        "cudaVersion": pod.cuda,
        "ssh": {"proxy": null, "direct": port.map(|port| json!({
            "host": "127.0.0.1",
            "port": port,
            "username": "root",
            "command": format!("ssh root@127.0.0.1 -p {port}"),
        }))},
        "template": null,
        "cost": cost,
        "locked": false,
        "globalNetworking": {"enabled": false},
        "runtime": pod.started_at.filter(|_| running).map(|started_at| json!({
            "uptime": (now - started_at).num_seconds().max(0),
            "gpus": vec![json!({"util": 0, "memoryUtil": 0}); pod.gpu_count as usize],
            "cpu": {"util": 0},
            "memory": {"util": 0},
            "ports": port.map_or_else(Vec::new, |port| vec![json!({
                "private": 22, "public": port, "type": "tcp", "ip": "127.0.0.1",
            })]),
        })),
        "createdAt": timestamp(pod.created_at),
        "startedAt": pod.started_at.map(timestamp),
    })
}

pub fn volume(volume: &Volume) -> Value {
    json!({
        "id": volume.id,
        "name": volume.name,
        "size": volume.size_gb,
        "dataCenter": volume.data_center,
        "type": volume.kind,
    })
}
