//! Network volumes: the storage that outlives a pod.

use super::{DataCenterId, Usd, UsdPerHour};
use std::fmt;

/// A network volume's id at the provider.
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
pub struct VolumeId(pub String);

impl fmt::Display for VolumeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A network volume as the provider lists it. It bills whether a pod is attached or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The provider's id.
    pub id: VolumeId,
    /// The name; the provider does not keep names unique.
    pub name: String,
    /// Size in GB.
    pub size_gb: u32,
    /// Where it is; it never moves and pins its pods there.
    pub data_center: DataCenterId,
}

impl Volume {
    /// What a standard volume of `size_gb` bills for a month: $0.07 per GB up to 1,000 GB, $0.05
    /// beyond (RunPod's storage documentation, network volumes).
    #[must_use]
    pub fn usd_per_month(size_gb: u32) -> Usd {
        let first = i64::from(size_gb.min(1_000));
        let rest = i64::from(size_gb.saturating_sub(1_000));
        Usd::from_micros(first * 70_000 + rest * 50_000)
    }

    /// What a standard volume of `size_gb` bills for one hour, rounded up to the micro-dollar, with
    /// the month taken as 30 days.
    #[must_use]
    pub fn rate(size_gb: u32) -> UsdPerHour {
        let month = Self::usd_per_month(size_gb).micros();
        UsdPerHour::new(Usd::from_micros(month / 720 + i64::from(month % 720 > 0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_bills_less_per_gigabyte_beyond_the_first_terabyte() {
        assert_eq!(Volume::usd_per_month(60), Usd::from_micros(4_200_000));
        assert_eq!(Volume::usd_per_month(2_000), Usd::from_micros(120_000_000));
        assert_eq!(Volume::rate(60), UsdPerHour::new(Usd::from_micros(5_834)));
    }
}
