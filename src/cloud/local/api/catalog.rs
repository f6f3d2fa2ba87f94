//! `/v2/catalog`.

use super::super::catalog::{DATA_CENTERS, GPU_TYPES, GpuType, HOSTS, Stock};
use super::super::problem::Problem;
use super::super::twin::Twin;
use super::call::{Answer, Call};
use super::shown;
use crate::domain::Usd;
use serde_json::{Value, json};

pub fn gpus(twin: &Twin, call: &Call) -> Result<Answer, Problem> {
    let include = call.query_list("include");
    check("include", &include, &["AVAILABILITY"])?;
    let products = call.query_list("product");
    check("product", &products, &["POD", "CLUSTER", "SERVERLESS"])?;
    let availability = !include.is_empty();
    if availability && products.is_empty() {
        return Err(Problem::bad_request("include=AVAILABILITY requires product"));
    }
    if !availability && !products.is_empty() {
        return Err(Problem::bad_request("product is valid only with include=AVAILABILITY"));
    }
    let count = match call.query("count") {
        None => 1,
        Some(text) => text
            .parse::<u32>()
            .ok()
            .filter(|count| *count > 0)
            .ok_or_else(|| Problem::bad_request("count must be a whole number from 1"))?,
    };
    let cloud = call.query("cloud").unwrap_or("SECURE");
    check("cloud", &[cloud], &["SECURE", "COMMUNITY"])?;
    let shown: Vec<Value> = GPU_TYPES
        .iter()
        .map(|gpu| {
            let mut shown = gpu_type(gpu);
            if let Some(none) = shown::price(twin) {
                shown["price"] = json!({"secure": none.clone(), "community": none});
            }
            if let (true, Some(fields)) = (availability, shown.as_object_mut()) {
                let most = if cloud == "SECURE" { gpu.max_secure } else { gpu.max_community };
                let stock = |found: Stock| if count <= most { found } else { Stock::None };
                let centers: Vec<Value> = DATA_CENTERS
                    .iter()
                    .map(|center| {
                        let word = stock(center.stock(gpu.id)).word();
                        json!({"id": center.id, "name": center.name, "availability": word})
                    })
                    .collect();
                let best = DATA_CENTERS.iter().map(|center| stock(center.stock(gpu.id))).max();
                let versions: Vec<Value> = HOSTS
                    .iter()
                    .map(|(version, _)| json!({"version": version, "available": true}))
                    .collect();
                fields.insert("availability".into(), best.unwrap_or(Stock::None).word().into());
                fields.insert("dataCenters".into(), centers.into());
                fields.insert("cudaVersions".into(), versions.into());
            }
            shown
        })
        .collect();
    Ok(Answer::Json(200, json!({"gpus": shown})))
}

fn gpu_type(gpu: &GpuType) -> Value {
    let price = |cloud| -> Usd { gpu.price(cloud) };
    json!({
        "id": gpu.id,
        "name": gpu.name,
        "pool": gpu.pool,
        "manufacturer": "NVIDIA",
        "memory": gpu.memory_gb,
        "secure": true,
        "community": true,
        "price": {"secure": price("SECURE"), "community": price("COMMUNITY")},
        "maxCount": {"secure": gpu.max_secure, "community": gpu.max_community},
    })
}

pub fn data_centers(call: &Call) -> Result<Answer, Problem> {
    let include = call.query_list("include");
    check("include", &include, &["GPU_AVAILABILITY", "CPU_AVAILABILITY"])?;
    let shown: Vec<Value> = DATA_CENTERS
        .iter()
        .map(|center| {
            let kinds: &[&str] = if center.has_volumes { &["STANDARD"] } else { &[] };
            let mut shown = json!({
                "id": center.id,
                "name": center.name,
                "region": center.region,
                "globalNetwork": false,
                "networkVolumeTypes": kinds,
                "compliance": [],
            });
            if let Some(fields) = shown.as_object_mut() {
                if include.contains(&"GPU_AVAILABILITY") {
                    let gpus: Vec<Value> = GPU_TYPES
                        .iter()
                        .map(|gpu| {
                            let word = center.stock(gpu.id).word();
                            json!({"id": gpu.id, "name": gpu.name, "availability": word})
                        })
                        .collect();
                    fields.insert("gpuAvailability".into(), gpus.into());
                }
                if include.contains(&"CPU_AVAILABILITY") {
                    fields.insert("cpuAvailability".into(), json!([]));
                }
            }
            shown
        })
        .collect();
    Ok(Answer::Json(200, json!({"dataCenters": shown})))
}

/// Refuses a value that is none of `valid`.
pub fn check(name: &str, values: &[&str], valid: &[&str]) -> Result<(), Problem> {
    match values.iter().find(|value| !valid.contains(value)) {
        None => Ok(()),
        Some(value) => Err(Problem::bad_request(format!(
            "{name} does not know `{value}`; valid values: {}",
            valid.join(", ")
        ))),
    }
}
