//! gpu_availability.

use crate::error::Failure;
use crate::mcp::tool::{Effect, TetherTool};
use crate::ops::{GpuAvailability, Tether};

pub struct GpuAvailabilityTool;

/// Arguments of gpu_availability.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Only this data centre, such as "EU-RO-1"; all preferred ones when left out.
    data_center_id: Option<String>,
    /// The vehicle; the config's default when left out.
    vehicle: Option<String>,
}

impl TetherTool for GpuAvailabilityTool {
    type Arguments = Arguments;
    type Answer = GpuAvailability;
    const NAME: &'static str = "gpu_availability";
    const TITLE: &'static str = "GPU prices and stock";
    const DESCRIPTION: &'static str = "What the GPU types that the vehicle allows cost per hour, whether that is within the limit, and their stock per data centre. Stock is a hint; only ensure_pod finds out. Changes nothing.";
    const EFFECT: Effect = Effect::Reads;

    async fn call(tether: &Tether, arguments: Arguments) -> Result<GpuAvailability, Failure> {
        tether
            .gpu_availability(arguments.data_center_id.as_deref(), arguments.vehicle.as_deref())
            .await
    }
}
