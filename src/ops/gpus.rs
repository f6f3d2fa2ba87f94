//! gpu_availability: what the allowed GPU types cost and where they are in stock.

use super::{CloudName, Tether};
use crate::domain::{DataCenterId, GpuOffer, Stock, Usd, Vehicle};
use crate::error::Failure;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// Price and stock of the GPU types that a vehicle allows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GpuAvailability {
    /// Which cloud answered.
    pub cloud: CloudName,
    /// For which vehicle.
    pub vehicle: String,
    /// Data centre of the vehicle's network volume, when it exists; its pod can run nowhere else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_data_center: Option<String>,
    /// The allowed types, first choice first.
    pub gpus: Vec<GpuChoice>,
    /// What to make of it.
    pub note: String,
}

/// One allowed GPU type.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GpuChoice {
    /// The type.
    pub gpu_type: String,
    /// Whether the catalog lists it.
    pub listed: bool,
    /// Memory of one GPU, in GB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_gb: Option<u32>,
    /// Price of the vehicle's whole pod for one hour; missing when unknown, and then no pod is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_per_hour: Option<Usd>,
    /// Whether that is within limits.max_usd_per_hour.
    pub within_limit: bool,
    /// Stock per data centre.
    pub stock: Vec<StockIn>,
}

/// Stock in one data centre.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StockIn {
    /// The data centre.
    pub data_center: String,
    /// NONE, LOW, MEDIUM, HIGH, or UNKNOWN when the provider does not say. A hint, no promise.
    pub stock: Stock,
    /// Whether the vehicle's network volume is there.
    pub has_volume: bool,
}

impl Tether {
    /// Price and stock of the vehicle's allowed GPU types, in one data centre or in all that count.
    ///
    /// # Errors
    /// When the vehicle is unknown or the provider does not answer.
    pub async fn gpu_availability(
        &self,
        data_center: Option<&str>,
        vehicle: Option<&str>,
    ) -> Result<GpuAvailability, Failure> {
        let vehicle = self.vehicle(vehicle)?;
        let (offers, volumes) =
            tokio::join!(self.cloud.gpu_offers(vehicle.gpu_count), self.cloud.volumes());
        let offers = offers?;
        let volume_in = volumes?
            .into_iter()
            .find(|volume| volume.name == vehicle.network_volume_name)
            .map(|volume| volume.data_center);
        let places = places(&vehicle, volume_in.as_ref(), data_center, &offers)?;
        let limit = self.config.limits_for(&vehicle.name).max_usd_per_hour;
        let gpus = vehicle
            .gpu_type_ids
            .iter()
            .map(|gpu_type| {
                let offer = offers.iter().find(|offer| &offer.id == gpu_type);
                let price = offer.and_then(|offer| offer.price.known());
                let total =
                    price.map(|rate| rate.per_hour().saturating_mul(i64::from(vehicle.gpu_count)));
                GpuChoice {
                    gpu_type: gpu_type.0.clone(),
                    listed: offer.is_some(),
                    memory_gb: offer.and_then(|offer| offer.memory_gb),
                    usd_per_hour: total,
                    within_limit: total
                        .is_some_and(|usd| limit.is_none_or(|limit| usd <= limit.per_hour())),
                    stock: places
                        .iter()
                        .map(|id| StockIn {
                            data_center: id.0.clone(),
                            stock: offer.map_or(Stock::Unknown, |offer| offer.stock_in(id)),
                            has_volume: volume_in.as_ref() == Some(id),
                        })
                        .collect(),
                }
            })
            .collect();
        let note = match &volume_in {
            Some(id) => format!("The vehicle's volume is in {id}, so its pod can only run there."),
            None => "The vehicle has no volume yet; ensure_pod creates it in the first preferred data centre with stock.".to_owned(),
        };
        Ok(GpuAvailability {
            cloud: self.cloud_name(),
            vehicle: vehicle.name.0,
            volume_data_center: volume_in.map(|id| id.0),
            gpus,
            note,
        })
    }
}

/// The data centres that an answer lists: the one that was asked for, or the preferred ones with
/// the volume's first.
fn places(
    vehicle: &Vehicle,
    volume_in: Option<&DataCenterId>,
    asked: Option<&str>,
    offers: &[GpuOffer],
) -> Result<Vec<DataCenterId>, Failure> {
    let known: BTreeSet<&str> = offers
        .iter()
        .flat_map(|offer| offer.data_centers.iter().map(|(id, _)| id.0.as_str()))
        .collect();
    match asked {
        Some(id) if !known.is_empty() && !known.contains(id) => Err(Failure::bad_input(format!(
            "data_center_id={id:?} has none of the catalog's GPUs; known are {}",
            known.into_iter().collect::<Vec<_>>().join(", ")
        ))),
        Some(id) => Ok(vec![DataCenterId(id.to_owned())]),
        None => {
            let preferred = vehicle.datacenter_preference.iter();
            let elsewhere = volume_in.filter(|id| !vehicle.datacenter_preference.contains(id));
            Ok(elsewhere.into_iter().chain(preferred).cloned().collect())
        }
    }
}
