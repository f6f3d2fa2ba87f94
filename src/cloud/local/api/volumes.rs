//! `/v2/network-volumes`.

use super::super::catalog::{self, DATA_CENTERS};
use super::super::document::{Span, Volume};
use super::super::problem::Problem;
use super::super::twin::Twin;
use super::super::twin::fresh_id;
use super::call::{Answer, Call};
use super::page::page;
use super::shape::Shape;
use super::view;
use serde_json::Value;

pub fn list(twin: &Twin, call: &Call) -> Result<Answer, Problem> {
    let document = twin.document();
    let items = document.volumes.iter().map(|volume| (volume.id.clone(), view::volume(volume)));
    Ok(Answer::Json(200, page(twin, call, "networkVolumes", items.collect())?))
}

pub fn get(twin: &Twin, id: &str) -> Result<Answer, Problem> {
    let document = twin.document();
    let volume = document.volume(id).ok_or_else(|| Problem::not_found("network volume"))?;
    Ok(Answer::Json(200, view::volume(volume)))
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    name: String,
    size: u32,
    data_center: String,
    #[serde(rename = "type")]
    kind: Option<String>,
}

pub fn create(twin: &Twin, call: &Call) -> Result<Answer, Problem> {
    let body = read(&call.json()?)?;
    let center = catalog::data_center(&body.data_center).filter(|center| center.has_volumes);
    if center.is_none() {
        let valid: Vec<&str> =
            DATA_CENTERS.iter().filter(|center| center.has_volumes).map(|c| c.id).collect();
        return Err(Problem::bad_request(format!(
            "data center {} has no network volumes; valid data centers: {}",
            body.data_center,
            valid.join(", ")
        )));
    }
    let volume = Volume {
        id: fresh_id(),
        name: body.name,
        size_gb: body.size,
        data_center: body.data_center,
        kind: body.kind.unwrap_or_else(|| "STANDARD".to_owned()),
        created_at: twin.clock.now(),
    };
    std::fs::create_dir_all(twin.paths.volume(&volume.id))
        .map_err(|error| Problem::internal(&format!("volume folder not made: {error}")))?;
    let shown = view::volume(&volume);
    twin.change(|document| {
        document.volume_spans.push(Span {
            of: volume.id.clone(),
            rate: hourly_rate(volume.size_gb),
            disk_rate: 0,
            start: volume.created_at,
            end: None,
        });
        document.volumes.push(volume);
        Ok(())
    })?;
    Ok(Answer::Json(201, shown))
}

fn read(body: &Value) -> Result<Body, Problem> {
    let mut shape = Shape::default();
    let known = ["name", "size", "dataCenter", "type"];
    if let Some(fields) = shape.object("$", body, &known, &["name", "size", "dataCenter"]) {
        shape.text("$.name", fields.get("name"), 1);
        shape.text("$.dataCenter", fields.get("dataCenter"), 1);
        shape.integer("$.size", fields.get("size"), 10, 4096);
        shape.choice("$.type", fields.get("type"), &["STANDARD", "HIGH_PERFORMANCE"]);
    }
    let errors = shape.into_errors();
    if !errors.is_empty() {
        return Err(Problem::unprocessable(errors));
    }
    serde_json::from_value(body.clone())
        .map_err(|error| Problem::unprocessable(vec![format!("$: {error}")]))
}

/// Micro-dollars for one hour, rounded up.
fn hourly_rate(size_gb: u32) -> i64 {
    let first = i64::from(size_gb.min(1_000)) * catalog::MONTHLY_RATES.0;
    let rest = i64::from(size_gb.saturating_sub(1_000)) * catalog::MONTHLY_RATES.1;
    (first + rest + catalog::HOURS_A_MONTH - 1) / catalog::HOURS_A_MONTH
}

pub fn delete(twin: &Twin, id: &str) -> Result<Answer, Problem> {
    twin.change(|document| {
        let position = document
            .volumes
            .iter()
            .position(|volume| volume.id == id)
            .ok_or_else(|| Problem::not_found("network volume"))?;
        let user = document
            .pods
            .iter()
            .find(|pod| pod.mount.as_ref().is_some_and(|mount| mount.volume_id == id));
        if let Some(pod) = user {
            return Err(Problem::new(
                409,
                format!("network volume is in use by pod {}; terminate the pod first", pod.id),
            ));
        }
        document.volumes.remove(position);
        for span in document.volume_spans.iter_mut().filter(|span| span.of == id) {
            span.end = span.end.or_else(|| Some(twin.clock.now()));
        }
        Ok(())
    })?;
    match std::fs::remove_dir_all(twin.paths.volume(id)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Problem::internal(&format!("volume folder not removed: {error}")))
        }
        _ => Ok(Answer::Empty),
    }
}
