//! `/graphql`: what REST v2 lacks (the balance, and stock for callers without a key), and podStop, a
//! pod's second way to stop itself.

use super::super::catalog::{DATA_CENTERS, GPU_TYPES, Stock};
use super::super::document::Status;
use super::super::problem::Problem;
use super::super::twin::Twin;
use super::call::{Answer, Call, Caller};
use super::pods;
use crate::domain::{Usd, UsdPerHour};
use serde_json::{Value, json};
use std::sync::Arc;

/// What the account had before anything was billed.
const CREDIT: Usd = Usd::from_micros(200_000_000);
/// The provider's default limit of what an account may spend in one hour, in dollars.
const SPEND_LIMIT: u32 = 80;

/// What a query asks for. There is no parser here: the queries that are known are told apart by
/// their field.
enum Asked {
    PodStop(String),
    Myself,
    GpuTypes,
    Other,
}

fn asked(call: &Call) -> Asked {
    let body: Value = serde_json::from_slice(&call.body).unwrap_or_default();
    let query = body.get("query").and_then(Value::as_str).unwrap_or_default();
    if let Some((_, rest)) = query.split_once("podStop") {
        // The id stands in the query: `podStop(input: {podId: "ID"})`.
        Asked::PodStop(rest.split('"').nth(1).unwrap_or_default().to_owned())
    } else if query.contains("myself") {
        Asked::Myself
    } else if query.contains("gpuTypes") {
        Asked::GpuTypes
    } else {
        Asked::Other
    }
}

/// Whether the query is answered without a key, as the provider does for its catalog.
pub fn is_public(call: &Call) -> bool {
    call.path == "/graphql" && matches!(asked(call), Asked::GpuTypes)
}

pub async fn query(twin: &Arc<Twin>, call: &Call, caller: &Caller) -> Result<Answer, Problem> {
    match (asked(call), caller) {
        (Asked::PodStop(id), Caller::Pod(own)) if id != *own => Ok(error("pod not found to stop")),
        (Asked::PodStop(id), _) => Ok(match pods::stop(twin, &id).await {
            Ok(_) => {
                let stopped = json!({"id": id, "desiredStatus": "EXITED"});
                Answer::Json(200, json!({"data": {"podStop": stopped}}))
            }
            Err(problem) => error(&problem.detail),
        }),
        (Asked::GpuTypes, _) => Ok(Answer::Json(200, json!({"data": {"gpuTypes": gpu_types()}}))),
        (Asked::Myself, Caller::Account) => {
            Ok(Answer::Json(200, json!({"data": {"myself": myself(twin)}})))
        }
        (Asked::Myself, _) => Err(Problem::new(403, "access denied")),
        (Asked::Other, _) => Ok(Answer::Json(
            400,
            json!({"errors": [{"message": "the local cloud answers myself and gpuTypes only"}]}),
        )),
    }
}

/// GraphQL answers 200 with errors in it.
fn error(message: &str) -> Answer {
    let error = json!({"message": message, "path": ["podStop"], "extensions": {"code": "RUNPOD"}});
    Answer::Json(200, json!({"errors": [error], "data": {"podStop": null}}))
}

/// The balance falls with every second that something bills.
fn myself(twin: &Twin) -> Value {
    let now = twin.clock.now();
    let document = twin.document();
    let spans = document.pod_spans.iter().chain(&document.volume_spans);
    let spent: Usd = spans
        .map(|span| {
            let time = (span.end.unwrap_or(now) - span.start).to_std().unwrap_or_default();
            let rate = Usd::from_micros(span.rate.saturating_add(span.disk_rate));
            UsdPerHour::new(rate).cost_of(time)
        })
        .sum();
    let rates = document.pods.iter().filter(|pod| pod.status != Status::Exited);
    let per_hour: Usd = rates.map(|pod| Usd::from_micros(pod.rate)).sum();
    json!({
        "id": "local_user",
        "email": "you@localhost",
        "clientBalance": CREDIT.saturating_sub(spent),
        "currentSpendPerHr": per_hour,
        "spendLimit": SPEND_LIMIT,
    })
}

fn gpu_types() -> Vec<Value> {
    GPU_TYPES
        .iter()
        .map(|gpu| {
            let stock = DATA_CENTERS.iter().map(|center| center.stock(gpu.id)).max();
            let word = match stock {
                Some(Stock::High) => Some("High"),
                Some(Stock::Medium) => Some("Medium"),
                Some(Stock::Low) => Some("Low"),
                Some(Stock::None) | None => None,
            };
            json!({
                "id": gpu.id,
                "displayName": gpu.name,
                "memoryInGb": gpu.memory_gb,
                "secureCloud": true,
                "communityCloud": true,
                "securePrice": gpu.price("SECURE"),
                "communityPrice": gpu.price("COMMUNITY"),
                "maxGpuCount": gpu.max_secure,
                "lowestPrice": {"stockStatus": word, "uninterruptablePrice": gpu.price("SECURE")},
            })
        })
        .collect()
}
