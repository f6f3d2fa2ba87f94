//! `/v2/pods`.

use super::super::catalog;
use super::super::document::{Pod, Span, Status};
use super::super::faults::{
    CREATE_ERROR, CREATE_REPLY_LOST, NO_CAPACITY, STOP_REFUSED, STOP_WITHOUT_EFFECT,
    ZERO_GPUS_ON_START,
};
use super::super::lifecycle::Boot;
use super::super::problem::Problem;
use super::super::twin::Twin;
use super::super::twin::{fresh_id, new_key};
use super::call::{Answer, Call};
use super::page::page;
use super::shape::Shape;
use super::{create, shown};
use serde_json::Value;
use std::sync::Arc;

/// Micro-dollars for one GB of container disk for one month of a running pod (RunPod's pricing
/// documentation).
const MONTHLY_DISK_RATE: i64 = 100_000;
/// Container disk of a create that names none, in GB.
const DEFAULT_DISK_GB: u32 = 50;

pub fn list(twin: &Twin, call: &Call) -> Result<Answer, Problem> {
    let pods = twin.document().pods.clone();
    let with_clusters = call.query("includeClusterPods") == Some("true");
    let items = shown::list(twin, &pods, with_clusters);
    Ok(Answer::Json(200, page(twin, call, "pods", items)?))
}

pub fn get(twin: &Twin, id: &str) -> Result<Answer, Problem> {
    let document = twin.document();
    let now = twin.clock.now();
    let pod = document.pod(id).filter(|pod| shown::is_visible(twin, pod, now));
    let pod = pod.ok_or_else(|| Problem::not_found("pod"))?;
    Ok(Answer::Json(200, shown::pod(twin, pod, now)))
}

pub fn create(twin: &Arc<Twin>, call: &Call) -> Result<Answer, Problem> {
    let body = create::read(&call.json()?)?;
    if twin.faults().happens(NO_CAPACITY) {
        return Err(Problem::no_capacity());
    }
    let now = twin.clock.now();
    let pod = twin.change(|document| {
        let place = create::place(twin, document, &body)?;
        if let Some(mount) = &place.mount {
            create::check_mount_is_free(twin, document, "", mount)?;
        }
        let rate = place.gpu.price(&place.cloud).micros().saturating_mul(i64::from(place.count));
        let pod = Pod {
            id: fresh_id(),
            name: body.name.clone(),
            image: body.image.clone().unwrap_or_default(),
            args: body.args.clone().unwrap_or_default(),
            disk_gb: body.disk.unwrap_or(DEFAULT_DISK_GB),
            ports: body.ports.clone(),
            env: body.env.clone(),
            gpu_id: place.gpu.id.to_owned(),
            gpu_count: place.count,
            cloud: place.cloud,
            data_center: place.data_center.id.to_owned(),
            cuda: place.cuda.to_owned(),
            mount: place.mount,
            status: Status::Provisioning,
            boot: 1,
            created_at: now,
            started_at: None,
            ssh_port: None,
            last_port: None,
            key: new_key("pod-"),
            rate,
        };
        document.pod_spans.push(span(&pod, now));
        document.pods.push(pod.clone());
        Ok(pod)
    })?;
    twin.begin(&pod.id, pod.boot, Boot::Fresh);
    if twin.faults().happens(CREATE_REPLY_LOST) {
        return Ok(Answer::Cut);
    }
    if twin.faults().happens(CREATE_ERROR) {
        return Err(Problem::internal("create pod: Something went wrong. Please try again later."));
    }
    Ok(Answer::Json(201, shown::pod(twin, &pod, now)))
}

/// A span that bills a pod from now on.
fn span(pod: &Pod, start: chrono::DateTime<chrono::Utc>) -> Span {
    let monthly = i64::from(pod.disk_gb).saturating_mul(MONTHLY_DISK_RATE);
    let disk_rate = monthly / catalog::HOURS_A_MONTH;
    Span { of: pod.id.clone(), rate: pod.rate, disk_rate, start, end: None }
}

pub async fn delete(twin: &Arc<Twin>, id: &str) -> Result<Answer, Problem> {
    twin.terminate(id).await?;
    Ok(Answer::Empty)
}

pub async fn action(twin: &Arc<Twin>, call: &Call, id: &str) -> Result<Answer, Problem> {
    act(twin, &read_action(&call.json()?)?, id).await
}

/// Stops a pod, as another interface than this one asks for it.
pub async fn stop(twin: &Arc<Twin>, id: &str) -> Result<Answer, Problem> {
    act(twin, "stop", id).await
}

async fn act(twin: &Arc<Twin>, action: &str, id: &str) -> Result<Answer, Problem> {
    let found = twin.document().pod(id).cloned();
    let pod = found.ok_or_else(|| Problem::not_found("pod"))?;
    shown::refuse_action(twin, &pod, action)?;
    allow(pod.status, action)?;
    let has_volume = pod.mount.is_some();
    match action {
        "stop" if twin.faults().happens(STOP_WITHOUT_EFFECT) => get(twin, id),
        "stop" if has_volume && twin.faults().happens(STOP_REFUSED) => Err(Problem::bad_request(
            "Pods with network volumes attached cannot be stopped, only terminated.",
        )),
        "stop" => {
            twin.stop(id).await?;
            get(twin, id)
        }
        "start" => start(twin, id),
        "restart" => {
            let boot = twin.change(|document| {
                let pod = document.pod_mut(id).ok_or_else(|| Problem::not_found("pod"))?;
                allow(pod.status, "restart")?;
                pod.boot += 1;
                pod.status = Status::Starting;
                pod.last_port = pod.ssh_port.take().or(pod.last_port);
                Ok(pod.boot)
            })?;
            twin.begin(id, boot, Boot::InPlace);
            get(twin, id)
        }
        _ => {
            twin.terminate(id).await?;
            Ok(Answer::Empty)
        }
    }
}

fn start(twin: &Arc<Twin>, id: &str) -> Result<Answer, Problem> {
    if twin.faults().happens(NO_CAPACITY) {
        return Err(Problem::bad_request(
            "There are not enough free GPUs on the host machine to start this pod.",
        ));
    }
    let now = twin.clock.now();
    let loses_gpus = twin.faults().happens(ZERO_GPUS_ON_START);
    let boot = twin.change(|document| {
        let pod = document.pod(id).ok_or_else(|| Problem::not_found("pod"))?.clone();
        allow(pod.status, "start")?;
        if let Some(mount) = &pod.mount {
            create::check_mount_is_free(twin, document, id, mount)?;
        }
        if catalog::data_center(&pod.data_center).is_none() {
            return Err(Problem::no_capacity());
        }
        document.pod_spans.push(span(&pod, now));
        let pod = document.pod_mut(id).ok_or_else(|| Problem::not_found("pod"))?;
        pod.boot += 1;
        pod.status = Status::Provisioning;
        if loses_gpus {
            pod.gpu_count = 0;
        }
        Ok(pod.boot)
    })?;
    twin.begin(id, boot, Boot::Fresh);
    get(twin, id)
}

fn allow(status: Status, action: &str) -> Result<(), Problem> {
    if status.actions().contains(&action) {
        return Ok(());
    }
    Err(Problem::new(
        409,
        format!(
            "action {action} is not valid for status {}; valid: {}",
            status.word(),
            status.actions().join(", ")
        ),
    ))
}

fn read_action(body: &Value) -> Result<String, Problem> {
    let mut shape = Shape::default();
    let known = ["start", "stop", "restart", "terminate"];
    let fields = shape.object("$", body, &["action"], &["action"]);
    let action = fields.and_then(|fields| fields.get("action"));
    shape.choice("$.action", action, &known);
    let errors = shape.into_errors();
    match action.and_then(Value::as_str) {
        Some(action) if errors.is_empty() => Ok(action.to_owned()),
        _ => Err(Problem::unprocessable(errors)),
    }
}
