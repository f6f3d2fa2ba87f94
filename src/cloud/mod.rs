//! The provider, in the domain's words. `runpod` speaks to RunPod and to the local cloud, which is
//! RunPod's twin on loopback; `local` is that twin.

mod error;
pub mod local;
pub mod runpod;
#[cfg(test)]
pub mod scripted;

pub use error::{CloudError, CloudErrorKind};

use crate::domain::{DataCenterId, GpuOffer, Pod, PodId, Usd, Volume, VolumeId};
use crate::guard::ApprovedChange;
use crate::plan::Change;
use async_trait::async_trait;
use chrono::{DateTime, Utc};

/// A data centre as the catalog lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataCenter {
    /// Its id.
    pub id: DataCenterId,
    /// Whether network volumes can be created there.
    pub has_network_volumes: bool,
}

/// What one pod or volume was billed for in one span of time. Billing lags by about an hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BilledSpan {
    /// The pod or volume.
    pub id: String,
    /// Start of the span.
    pub start: DateTime<Utc>,
    /// End of the span, exclusive.
    pub end: DateTime<Utc>,
    /// Everything billed in it; `None` when the amount was missing or not finite.
    pub total: Option<Usd>,
    /// The part for disks.
    pub disk: Option<Usd>,
}

/// The account's credit, told by an interface that may be gone tomorrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Balance {
    /// It was told.
    Known {
        /// Credit left; below zero when the account is overdrawn.
        usd: Usd,
        /// What everything in the account spends in one hour now.
        per_hour: Option<Usd>,
        /// What the account may spend in one hour at most.
        limit: Option<Usd>,
    },
    /// It was not, and why.
    Unknown(String),
}

/// A request as it goes out, for a dry run. Placeholders stand only where an earlier step of the
/// same plan decides the value.
#[derive(
    Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct RequestView {
    /// HTTP method.
    pub method: String,
    /// Path, such as `/v2/pods`.
    pub path: String,
    /// JSON body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<serde_json::Value>,
}

/// What a change gave back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// A volume was created.
    Volume(Volume),
    /// The pod as the answer describes it. Not proof of its state: only a read is (A04).
    Pod(Box<Pod>),
    /// Accepted, with an answer that describes nothing.
    Accepted,
}

/// Whether the key may stop pods, as far as that shows without stopping one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopRight {
    /// A stop of a pod that does not exist was answered with 404: the key was let through.
    Proven,
    /// It was answered with 401 or 403: the key may not, in the provider's words (A07).
    Denied(String),
    /// Anything else, which proves nothing either way.
    Unproven(String),
}

/// The provider.
///
/// Reads are retried inside on rate limits and server errors. A change is sent once; only a stop
/// and a terminate, which are harmless to repeat, are asked again by `apply`.
#[async_trait]
pub trait Cloud: Send + Sync {
    /// Whether this is the local cloud and not a provider that bills.
    fn is_local(&self) -> bool;

    /// The very request that [`Self::change`] sends for `change`.
    fn preview(&self, change: &Change) -> RequestView;

    /// Every pod of the account: all pages, cluster pods too. A page that fails or repeats fails
    /// the whole list (B06, B07).
    async fn pods(&self) -> Result<Vec<Pod>, CloudError>;

    /// One pod; `None` when the provider says 404, which is no proof that it is gone (A05).
    async fn pod(&self, id: &PodId) -> Result<Option<Pod>, CloudError>;

    /// Every network volume of the account.
    async fn volumes(&self) -> Result<Vec<Volume>, CloudError>;

    /// GPU types with price, and stock per data centre for pods with `gpu_count` GPUs.
    async fn gpu_offers(&self, gpu_count: u32) -> Result<Vec<GpuOffer>, CloudError>;

    /// Data centres.
    async fn data_centers(&self) -> Result<Vec<DataCenter>, CloudError>;

    /// What pods were billed since `since`.
    async fn pod_billing(&self, since: DateTime<Utc>) -> Result<Vec<BilledSpan>, CloudError>;

    /// What network volumes were billed since `since`.
    async fn volume_billing(&self, since: DateTime<Utc>) -> Result<Vec<BilledSpan>, CloudError>;

    /// The account's credit. Never an error and never waited for longer than some seconds: nothing
    /// may depend on it.
    async fn balance(&self) -> Balance;

    /// Asks for the stop of a pod that does not exist, which changes nothing and shows whether the key
    /// may stop pods at all (A07). A cloud that cannot be asked proves nothing.
    async fn stop_right(&self) -> StopRight {
        StopRight::Unproven("this cloud cannot be asked".to_owned())
    }

    /// Sends one approved change, once. `created` is the volume that an earlier step of the same
    /// plan created, for a [`crate::plan::VolumeRef::Planned`].
    async fn change(
        &self,
        change: ApprovedChange<'_>,
        created: Option<&VolumeId>,
    ) -> Result<Changed, CloudError>;
}
