//! The one place that builds a request which changes something, so that what a dry run shows is
//! what goes out. Pure.

use crate::cloud::RequestView;
use crate::domain::{PodId, VolumeId};
use crate::plan::{Change, NewPod, NewVolume, VolumeRef};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

/// List (GET) and create (POST) pods.
pub const PODS: &str = "/v2/pods";
/// List and create network volumes. With the hyphen: without it the answer is 404.
pub const VOLUMES: &str = "/v2/network-volumes";
/// GPU types with prices and stock.
pub const GPUS: &str = "/v2/catalog/gpus";
/// Data centres.
pub const DATA_CENTERS: &str = "/v2/catalog/datacenters";
/// What pods were billed. `/v2/billing/endpoints` is another product's bill (I04).
pub const POD_BILLING: &str = "/v2/billing/pods";
/// What network volumes were billed.
pub const VOLUME_BILLING: &str = "/v2/billing/network-volumes";

/// Everything but RFC 3986's unreserved characters is escaped within one path segment.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Why a request can not be built. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The id could point the request at something else.
    #[error(
        "{id:?} is not an id that the provider gives out (it is empty, has '..' or a character of a path); nothing was sent"
    )]
    BadId {
        /// The id.
        id: String,
    },
    /// The volume that an earlier step was to create is not there.
    #[error(
        "the network volume {name:?} has not been created yet, so no pod can be attached to it; nothing was sent"
    )]
    VolumeNotCreated {
        /// The name of the planned volume.
        name: String,
    },
}

/// The request for `change`. `created` is the volume that an earlier step of the plan created;
/// without it a planned volume is shown as a placeholder. The key is never part of a request.
#[must_use]
pub fn for_change(change: &Change, created: Option<&VolumeId>) -> RequestView {
    match change {
        Change::CreateVolume(volume) => post(VOLUMES.to_owned(), volume_body(volume)),
        Change::CreatePod(pod) => post(PODS.to_owned(), pod_body(pod, created)),
        Change::StartPod(id) => post(action_path(id), json!({ "action": "start" })),
        Change::StopPod(id) => post(action_path(id), json!({ "action": "stop" })),
        Change::TerminatePod(id) => {
            RequestView { method: "DELETE".to_owned(), path: pod_path(id), body: None }
        }
    }
}

/// Whether the request for `change` may go out.
///
/// # Errors
/// [`RequestError`] when an id could change the path, or a planned volume has no id yet.
pub fn check(change: &Change, created: Option<&VolumeId>) -> Result<(), RequestError> {
    match change {
        Change::CreateVolume(_) => Ok(()),
        Change::CreatePod(pod) => match (&pod.volume, created) {
            (VolumeRef::Existing(id), _) | (VolumeRef::Planned(_), Some(id)) => check_id(&id.0),
            (VolumeRef::Planned(name), None) => {
                Err(RequestError::VolumeNotCreated { name: name.clone() })
            }
        },
        Change::StartPod(id) | Change::StopPod(id) | Change::TerminatePod(id) => check_id(&id.0),
    }
}

/// Whether `id` is harmless as a path segment. Escaping alone is not enough: URL parsers read
/// `%2e%2e` as a step up.
///
/// # Errors
/// [`RequestError::BadId`].
pub fn check_id(id: &str) -> Result<(), RequestError> {
    let bad = |c: char| c.is_control() || c.is_whitespace() || "/\\?#%".contains(c);
    if id.is_empty() || id == "." || id.contains("..") || id.contains(bad) {
        return Err(RequestError::BadId { id: id.chars().take(80).collect() });
    }
    Ok(())
}

/// The path of one pod.
#[must_use]
pub fn pod_path(id: &PodId) -> String {
    format!("{PODS}/{}", utf8_percent_encode(&id.0, SEGMENT))
}

fn action_path(id: &PodId) -> String {
    format!("{}/action", pod_path(id))
}

fn post(path: String, body: Value) -> RequestView {
    RequestView { method: "POST".to_owned(), path, body: Some(body) }
}

fn volume_body(volume: &NewVolume) -> Value {
    json!({
        "name": volume.name,
        "size": volume.size_gb,
        "dataCenter": volume.data_center.0,
    })
}

/// Everything is sent explicitly: v2 has no default for ports, storage or the mount path, and a
/// create without `gpu.count` fails with the text of a missing machine. Fields that v2 does not
/// know are refused with 422, so nothing else is added (G13).
fn pod_body(pod: &NewPod, created: Option<&VolumeId>) -> Value {
    let volume_id = match (&pod.volume, created) {
        (VolumeRef::Existing(id), _) | (VolumeRef::Planned(_), Some(id)) => id.0.clone(),
        (VolumeRef::Planned(name), None) => format!("<id of the new volume {name:?}>"),
    };
    let mut gpu = json!({ "id": pod.gpu_type.0, "count": pod.gpu_count });
    if !pod.allowed_cuda_versions.is_empty() {
        gpu["allowedCudaVersions"] = json!(pod.allowed_cuda_versions);
    }
    json!({
        "name": pod.name,
        "image": pod.image,
        "gpu": gpu,
        "cloud": pod.cloud.as_str(),
        "dataCenterIds": [pod.data_center.0],
        "disk": pod.container_disk_gb,
        "ports": pod.ports,
        "env": pod.env,
        "mounts": { "network": [{ "volumeId": volume_id, "path": pod.mount_path }] },
        // Lets the provider put the account's registered keys in where env has no PUBLIC_KEY.
        "startSsh": true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_could_lead_elsewhere_is_refused_before_anything_is_sent() {
        for id in ["", ".", "..", "a/..", "a/b", "a\\b", "a?x=1", "a#b", "%2e%2e", "a b", "a\n"] {
            let change = Change::StopPod(PodId(id.to_owned()));
            let refused = check(&change, None);
            assert_eq!(refused, Err(RequestError::BadId { id: id.to_owned() }), "{id:?}");
        }
        for id in ["7h9k2m4n6p", "pod_abc-1.x", "é"] {
            assert_eq!(check_id(id), Ok(()), "{id:?}");
        }
        assert_eq!(pod_path(&PodId("é".to_owned())), "/v2/pods/%C3%A9");
    }
}
