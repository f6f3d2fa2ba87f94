//! What the local cloud has to offer: GPU types, data centres and stock, all fixed.

use crate::domain::Usd;

/// A GPU type. Ids and memory as RunPod lists them; prices as of November 2026, in dollars.
pub struct GpuType {
    pub id: &'static str,
    pub name: &'static str,
    pub pool: &'static str,
    pub memory_gb: u32,
    /// What nvidia-smi reports.
    pub memory_mib: u32,
    pub secure: &'static str,
    pub community: &'static str,
    pub max_secure: u32,
    pub max_community: u32,
}

impl GpuType {
    /// Price of one GPU for one hour.
    pub fn price(&self, cloud: &str) -> Usd {
        let text = if cloud == "COMMUNITY" { self.community } else { self.secure };
        Usd::from_decimal(text).unwrap_or(Usd::ZERO)
    }
}

pub const GPU_TYPES: &[GpuType] = &[
    GpuType {
        id: "NVIDIA GeForce RTX 4090",
        name: "RTX 4090",
        pool: "ADA_24",
        memory_gb: 24,
        memory_mib: 24_564,
        secure: "0.69",
        community: "0.34",
        max_secure: 8,
        max_community: 4,
    },
    GpuType {
        id: "NVIDIA RTX A5000",
        name: "RTX A5000",
        pool: "AMPERE_24",
        memory_gb: 24,
        memory_mib: 24_564,
        secure: "0.27",
        community: "0.16",
        max_secure: 8,
        max_community: 4,
    },
    GpuType {
        id: "NVIDIA L4",
        name: "L4",
        pool: "ADA_24",
        memory_gb: 24,
        memory_mib: 23_034,
        secure: "0.43",
        community: "0.39",
        max_secure: 8,
        max_community: 4,
    },
    GpuType {
        id: "NVIDIA A40",
        name: "A40",
        pool: "AMPERE_48",
        memory_gb: 48,
        memory_mib: 46_068,
        secure: "0.40",
        community: "0.35",
        max_secure: 10,
        max_community: 4,
    },
    GpuType {
        id: "NVIDIA H100 80GB HBM3",
        name: "H100 SXM",
        pool: "ADA_80_PRO",
        memory_gb: 80,
        memory_mib: 81_559,
        secure: "2.69",
        community: "2.49",
        max_secure: 8,
        max_community: 8,
    },
    GpuType {
        id: "NVIDIA GeForce RTX 5090",
        name: "RTX 5090",
        pool: "BLACKWELL_32",
        memory_gb: 32,
        memory_mib: 32_607,
        secure: "0.94",
        community: "0.69",
        max_secure: 8,
        max_community: 4,
    },
];

/// Stock, from nothing to plenty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stock {
    None,
    Low,
    Medium,
    High,
}

impl Stock {
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Low => "LOW",
            Self::Medium => "MEDIUM",
            Self::High => "HIGH",
        }
    }
}

/// A data centre.
pub struct DataCenter {
    pub id: &'static str,
    pub name: &'static str,
    pub region: &'static str,
    pub has_volumes: bool,
    /// Stock in the order of [`GPU_TYPES`], one letter each: `-lmh`.
    stock: &'static str,
}

impl DataCenter {
    pub fn stock(&self, gpu_id: &str) -> Stock {
        let position = GPU_TYPES.iter().position(|gpu| gpu.id == gpu_id);
        match position.and_then(|position| self.stock.as_bytes().get(position)) {
            Some(b'l') => Stock::Low,
            Some(b'm') => Stock::Medium,
            Some(b'h') => Stock::High,
            _ => Stock::None,
        }
    }
}

const fn center(
    id: &'static str,
    name: &'static str,
    region: &'static str,
    has_volumes: bool,
    stock: &'static str,
) -> DataCenter {
    DataCenter { id, name, region, has_volumes, stock }
}

pub const DATA_CENTERS: &[DataCenter] = &[
    center("EU-RO-1", "Romania 1", "EUROPE", true, "hmlmlh"),
    center("US-TX-3", "Texas 3", "NORTH_AMERICA", true, "mhm-lm"),
    center("EUR-IS-1", "Iceland 1", "EUROPE", true, "lmh-hl"),
    center("US-KS-2", "Kansas 2", "NORTH_AMERICA", true, "-lmhh-"),
    center("US-GA-2", "Georgia 2", "NORTH_AMERICA", true, "l--m--"),
    center("CA-MTL-1", "Montreal 1", "NORTH_AMERICA", true, "mhlm-l"),
    center("EU-CZ-1", "Czechia 1", "EUROPE", true, "h-m--h"),
    center("US-IL-1", "Illinois 1", "NORTH_AMERICA", false, "hhmm-m"),
];

/// CUDA versions of the hosts, oldest first, each with the driver that brings it.
pub const HOSTS: &[(&str, &str)] = &[
    ("12.4", "550.127.05"),
    ("12.5", "555.42.06"),
    ("12.6", "560.35.05"),
    ("12.7", "565.57.01"),
    ("12.8", "570.86.15"),
];

pub fn gpu(id: &str) -> Option<&'static GpuType> {
    GPU_TYPES.iter().find(|gpu| gpu.id == id)
}

pub fn data_center(id: &str) -> Option<&'static DataCenter> {
    DATA_CENTERS.iter().find(|center| center.id == id)
}

/// The driver of a host with this CUDA version.
pub fn driver(cuda: &str) -> &'static str {
    HOSTS.iter().find(|(version, _)| *version == cuda).map_or("550.127.05", |(_, driver)| driver)
}

/// Micro-dollars for one GB for one month, up to the first terabyte and beyond it (RunPod's
/// storage documentation, network volumes).
pub const MONTHLY_RATES: (i64, i64) = (70_000, 50_000);
/// Hours that count as a month: a twelfth of a year.
pub const HOURS_A_MONTH: i64 = 730;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_price_is_a_decimal_and_every_stock_is_told() {
        for gpu in GPU_TYPES {
            assert!(Usd::from_decimal(gpu.secure).unwrap() > Usd::ZERO);
            assert!(Usd::from_decimal(gpu.community).unwrap() > Usd::ZERO);
            assert!(DATA_CENTERS.iter().any(|center| center.stock(gpu.id) > Stock::None));
        }
        for center in DATA_CENTERS {
            assert_eq!(center.stock.len(), GPU_TYPES.len(), "{}", center.id);
            assert!(center.stock.bytes().all(|letter| b"-lmh".contains(&letter)));
        }
    }
}
