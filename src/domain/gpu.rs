//! GPU types and what the provider offers of them.

use super::{DataCenterId, Price, Stock};
use std::fmt;

/// A GPU type's id, such as `NVIDIA GeForce RTX 4090`. A free string, never a closed list.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct GpuTypeId(pub String);

impl fmt::Display for GpuTypeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One GPU type as the catalog offers it in the SECURE cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuOffer {
    /// The type.
    pub id: GpuTypeId,
    /// Memory of one GPU, in GB; `None` when the catalog does not say.
    pub memory_gb: Option<u32>,
    /// Price of one GPU for one hour in the SECURE cloud. Unknown when it is not sold there: the
    /// provider quotes a price even then.
    pub price: Price,
    /// Stock over all data centres.
    pub stock: Stock,
    /// Stock in each data centre that the catalog lists.
    pub data_centers: Vec<(DataCenterId, Stock)>,
}

impl GpuOffer {
    /// Stock in one data centre. The catalog lists only data centres that offer the type, so one
    /// that it leaves out has none, unless it says nothing about stock at all.
    #[must_use]
    pub fn stock_in(&self, data_center: &DataCenterId) -> Stock {
        let listed = self.data_centers.iter().find(|(id, _)| id == data_center);
        match (listed, self.stock) {
            (Some((_, stock)), _) => *stock,
            (None, Stock::Unknown) => Stock::Unknown,
            (None, _) => Stock::None,
        }
    }
}
