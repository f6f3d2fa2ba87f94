//! REST v2's shapes as they are really answered. Only what podtether uses is read, and a field of
//! an odd type reads as absent: one odd field of one pod must never hide the list in which the pod
//! to be stopped stands. What absence means is decided in `map`.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads a `T`, or `None` when the value is of another shape.
fn or_none<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}

/// A number, kept as its exact decimal text; the API has answered prices as strings too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar(pub String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Number(number) => Ok(Self(number.to_string())),
            Value::String(text) => Ok(Self(text)),
            _ => Err(serde::de::Error::custom("neither a number nor a string")),
        }
    }
}

/// `Pod`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodWire {
    #[serde(deserialize_with = "or_none")]
    pub id: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub name: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub status: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub gpu: Option<GpuWire>,
    #[serde(deserialize_with = "or_none")]
    pub cloud: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub data_center_id: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub mounts: Option<MountsWire>,
    #[serde(deserialize_with = "or_none")]
    pub cost: Option<Scalar>,
    #[serde(deserialize_with = "or_none")]
    pub ssh: Option<SshWire>,
    pub env: Value,
    #[serde(deserialize_with = "or_none")]
    pub locked: Option<bool>,
    /// Present, in whatever shape, on the members of a cluster.
    pub cluster: Value,
    /// Not in v2's specification; v1's word for a spot pod.
    #[serde(deserialize_with = "or_none")]
    pub interruptible: Option<bool>,
    #[serde(deserialize_with = "or_none")]
    pub created_at: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub started_at: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub cuda_version: Option<String>,
}

/// `GpuConfig`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct GpuWire {
    #[serde(deserialize_with = "or_none")]
    pub id: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub count: Option<Scalar>,
}

/// `Mounts`; host-local storage is not used and not read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct MountsWire {
    #[serde(deserialize_with = "or_none")]
    pub network: Option<Vec<MountWire>>,
}

/// `NetworkMount`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MountWire {
    #[serde(deserialize_with = "or_none")]
    pub volume_id: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub path: Option<String>,
}

/// `PodSsh`; the proxy carries no commands and no files, so it is not read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SshWire {
    #[serde(deserialize_with = "or_none")]
    pub direct: Option<SshEndpointWire>,
}

/// `PodSshEndpoint`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SshEndpointWire {
    #[serde(deserialize_with = "or_none")]
    pub host: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub port: Option<Scalar>,
    #[serde(deserialize_with = "or_none")]
    pub username: Option<String>,
}

/// `NetworkVolume`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VolumeWire {
    #[serde(deserialize_with = "or_none")]
    pub id: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub name: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub size: Option<Scalar>,
    #[serde(deserialize_with = "or_none")]
    pub data_center: Option<String>,
}

/// `GpuType`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GpuTypeWire {
    #[serde(deserialize_with = "or_none")]
    pub id: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub memory: Option<Scalar>,
    #[serde(deserialize_with = "or_none")]
    pub secure: Option<bool>,
    #[serde(deserialize_with = "or_none")]
    pub price: Option<GpuPriceWire>,
    #[serde(deserialize_with = "or_none")]
    pub availability: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub data_centers: Option<Vec<AvailabilityWire>>,
}

/// `GpuType.price`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct GpuPriceWire {
    #[serde(deserialize_with = "or_none")]
    pub secure: Option<Scalar>,
}

/// `DataCenterAvailability`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct AvailabilityWire {
    #[serde(deserialize_with = "or_none")]
    pub id: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub availability: Option<String>,
}

/// `DataCenter`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DataCenterWire {
    #[serde(deserialize_with = "or_none")]
    pub id: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub network_volume_types: Option<Vec<Value>>,
}

/// `PodBillingRecord` and `NetworkVolumeBillingRecord`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BillingWire {
    #[serde(deserialize_with = "or_none")]
    pub pod_id: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub network_volume_id: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub start_time: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub end_time: Option<String>,
    #[serde(deserialize_with = "or_none")]
    pub total_amount: Option<Scalar>,
    #[serde(deserialize_with = "or_none")]
    pub disk_amount: Option<Scalar>,
}

/// Where a list goes on. Not in the specification of August 2026; the live API has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Pagination {
    #[serde(deserialize_with = "or_none")]
    pub has_next_page: Option<bool>,
    #[serde(deserialize_with = "or_none")]
    pub next_cursor: Option<String>,
}
