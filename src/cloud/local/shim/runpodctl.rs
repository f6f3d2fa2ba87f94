//! The stand-in runpodctl, in the grammar of its first major version and in that of its second.

use super::Output;
use crate::cloud::local::loopback::request;
use crate::cloud::local::paths::Paths;
use crate::cloud::local::serve::Ready;
use serde_json::{Value, json};
use std::path::Path;

/// Runs one command. As with the real one, the key comes from the environment only, and the old
/// grammar exits 0 when it failed (A03).
pub async fn run(pod: &Path, words: &[&str], key: Option<&str>) -> Output {
    if let ["version" | "--version" | "-v"] = words {
        return Output::say("runpodctl 2.7.2-local (podtether's stand-in)\n");
    }
    let old = matches!(words, ["stop" | "remove" | "start", "pod", _]);
    let (action, id) = match words {
        [action @ ("stop" | "start"), "pod", id] => (*action, *id),
        ["remove", "pod", id] => ("delete", *id),
        ["pod", action @ ("stop" | "start" | "restart" | "delete" | "get"), id] => (*action, *id),
        _ => {
            let usage = "Error: unknown command\nUsage: runpodctl pod stop|start|restart|delete|get \
                         ID, stop pod ID, remove pod ID, version\n";
            return Output::fail(1, usage);
        }
    };
    let Some(key) = key.map(str::trim).filter(|key| !key.is_empty()) else {
        return Output::fail(1, "Error: API key not found; set RUNPOD_API_KEY\n");
    };
    match send(pod, action, id, key).await {
        Ok(body) if action == "get" => Output::say(format!("{body:#}\n")),
        Ok(_) => Output::say(format!("pod \"{id}\" {}\n", done(action))),
        Err(detail) if old => {
            Output { out: format!("pod \"{id}\" {action} failed; {detail}\n"), ..Output::default() }
        }
        Err(detail) => Output::fail(1, format!("Error: failed to {action} pod: {detail}\n")),
    }
}

fn done(action: &str) -> &'static str {
    match action {
        "stop" => "stopped",
        "delete" => "removed",
        "restart" => "restarted",
        _ => "started",
    }
}

async fn send(pod: &Path, action: &str, id: &str, key: &str) -> Result<Value, String> {
    let state = pod.parent().and_then(Path::parent).ok_or("the pod's folder has no cloud")?;
    let ready = Ready::read(&Paths::of(state)).ok_or("the local cloud is not running")?;
    let path = format!("/v2/pods/{id}");
    let (status, body) = match action {
        "get" => request("GET", &ready.url, &path, key, None).await?,
        "delete" => request("DELETE", &ready.url, &path, key, None).await?,
        action => {
            let body = json!({"action": action});
            request("POST", &ready.url, &format!("{path}/action"), key, Some(body)).await?
        }
    };
    if status < 300 {
        return Ok(body);
    }
    let detail = body.get("detail").and_then(Value::as_str).unwrap_or("no detail");
    Err(format!("status {status}: {detail}"))
}
