//! Pods as reads show them, which with a fault is not as they are.

use super::super::document::{Pod, Status};
use super::super::faults::{
    CLOCK_AHEAD, CLOCK_BEHIND, CLUSTER_POD, DUPLICATE, LIST_LAG, LOCKED, PRICE_NAN, PRICE_ZERO,
    STALE_PORT, STALE_STATUS, STATUS_ERROR, STATUS_UNKNOWN, STRANGER,
};
use super::super::problem::Problem;
use super::super::twin::Twin;
use super::view;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

/// Whether a pod can be seen yet (A05).
pub fn is_visible(twin: &Twin, pod: &Pod, now: DateTime<Utc>) -> bool {
    let lag = twin.faults().seconds(LIST_LAG).unwrap_or(0);
    now - pod.created_at >= TimeDelta::seconds(lag.into())
}

/// One pod.
pub fn pod(twin: &Twin, pod: &Pod, now: DateTime<Utc>) -> Value {
    let mut faults = twin.faults();
    let mut pod = pod.clone();
    // F01: the port of before.
    let moved = pod.status == Status::Running && pod.ssh_port.is_some();
    if moved && pod.last_port.is_some() && faults.happens(STALE_PORT) {
        pod.ssh_port = pod.last_port;
    }
    let ahead = i64::from(faults.seconds(CLOCK_AHEAD).unwrap_or(0));
    let behind = i64::from(faults.seconds(CLOCK_BEHIND).unwrap_or(0));
    let skew = TimeDelta::seconds(ahead - behind);
    let mut shown = view::pod(&pod, now);
    pod.created_at += skew;
    pod.started_at = pod.started_at.map(|at| at + skew);
    let mut set = |name: &str, value: Value| {
        if let Some(fields) = shown.as_object_mut() {
            fields.insert(name.to_owned(), value);
        }
    };
    set("createdAt", json!(view::timestamp(pod.created_at)));
    set("startedAt", json!(pod.started_at.map(view::timestamp)));
    if pod.status != Status::Exited {
        if faults.happens(STATUS_ERROR) {
            set("status", json!("ERROR"));
            set("actions", json!(["start", "terminate"]));
        }
        if faults.happens(STATUS_UNKNOWN) {
            set("status", json!("MIGRATING"));
        }
    }
    if faults.happens(LOCKED) {
        set("locked", json!(true));
    }
    drop(faults);
    if let Some(price) = price(twin) {
        set("cost", price);
    }
    shown
}

/// A price that is none, when there is one instead of the true one. NaN has no notation in JSON, so
/// it comes as the text that serializers make of it.
pub fn price(twin: &Twin) -> Option<Value> {
    let mut faults = twin.faults();
    if faults.happens(PRICE_ZERO) {
        return Some(json!(0.0));
    }
    faults.happens(PRICE_NAN).then(|| json!("NaN"))
}

/// The whole list, with what does not belong there.
pub fn list(twin: &Twin, pods: &[Pod], with_clusters: bool) -> Vec<(String, Value)> {
    let now = twin.clock.now();
    let visible: Vec<&Pod> = pods.iter().filter(|pod| is_visible(twin, pod, now)).collect();
    let mut items: Vec<(String, Value)> = Vec::new();
    for real in visible {
        let mut item = pod(twin, real, now);
        if real.status == Status::Exited && twin.faults().happens(STALE_STATUS) {
            item["status"] = json!("RUNNING");
        }
        items.push((real.id.clone(), item));
    }
    if twin.faults().happens(DUPLICATE) {
        let again: Vec<(String, Value)> =
            items.iter().map(|(id, item)| (double(id), item.clone())).collect();
        for (id, mut item) in again {
            item["id"] = json!(id);
            items.push((id, item));
        }
    }
    if twin.faults().happens(STRANGER) {
        items.push(foreign("localstranger", "somebody-elses", now));
    }
    if with_clusters && twin.faults().happens(CLUSTER_POD) {
        let (id, mut item) = foreign("localmember", "cluster-node-0", now);
        item["cluster"] = json!({"id": "localcluster"});
        items.push((id, item));
    }
    items
}

fn double(id: &str) -> String {
    format!("{id}b")
}

/// A running pod that podtether did not make. It is shown and cannot be acted on.
fn foreign(id: &str, name: &str, now: DateTime<Utc>) -> (String, Value) {
    let item = json!({
        "id": id,
        "name": name,
        "image": "runpod/pytorch:2.4.0",
        "status": "RUNNING",
        "actions": Status::Running.actions(),
        "mounts": {},
        "gpu": {"id": "NVIDIA GeForce RTX 4090", "count": 1},
        "cloud": "SECURE",
        "dataCenterId": "EU-RO-1",
        "env": {},
        "ports": [],
        "ssh": {"proxy": null, "direct": null},
        "cost": 0.69,
        "locked": false,
        "createdAt": view::timestamp(now - TimeDelta::hours(1)),
        "startedAt": view::timestamp(now - TimeDelta::hours(1)),
    });
    (id.to_owned(), item)
}

/// What a pod's faults say to an action, before its true status is looked at.
pub fn refuse_action(twin: &Twin, pod: &Pod, action: &str) -> Result<(), Problem> {
    let faults = twin.faults();
    let conflict = |detail: String| Err(Problem::new(409, detail));
    if matches!(action, "stop" | "restart") && faults.is_on(LOCKED) {
        return conflict("pod is locked".to_owned());
    }
    let failed = pod.status != Status::Exited && faults.is_on(STATUS_ERROR);
    if matches!(action, "stop" | "restart") && failed {
        return conflict(format!(
            "action {action} is not valid for status ERROR; valid: start, terminate"
        ));
    }
    Ok(())
}
