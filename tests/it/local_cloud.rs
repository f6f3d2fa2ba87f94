//! The local cloud as its users meet it: over HTTP, with OpenSSH and with rsync.

mod daemon;
mod fault_list;
mod faults;
mod rig;
mod ssh;

pub use rig::{GPU, Rig, is_alive, program};

use rig::{finish, wait_for};
use serde_json::{Value, json};
use std::process::Command;

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_boots_in_steps_runs_a_command_and_stops() {
    let rig = Rig::start(&["slow-boot=2"]).await;
    let volume = rig.volume().await;
    let (status, pod) = rig.api("POST", "/v2/pods", Some(rig.create_body(Some(&volume)))).await;
    assert_eq!((status, &pod["status"]), (201, &json!("PROVISIONING")));
    assert_eq!((&pod["cost"], &pod["ssh"]["direct"]), (&json!(0.69), &Value::Null));
    let id = pod["id"].as_str().unwrap();
    assert!(id.starts_with("local"), "{id}");
    rig.until(id, |pod| pod["status"] == "STARTING").await;
    let port = rig.reachable(id).await;
    let output = finish(rig.ssh(port, "echo out; echo err >&2; exit 7")).await;
    assert_eq!(output.status.code(), Some(7));
    assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
    let (status, pod) = rig.act(id, "stop").await;
    assert_eq!((status, &pod["status"]), (200, &json!("EXITED")));
    assert_eq!((&pod["cost"], &pod["ssh"]["direct"]), (&json!(0.0), &Value::Null));
    assert!(!finish(rig.ssh(port, "true")).await.status.success());
}

/// F05: a start gives new host keys, F01: and a new port.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_wipes_the_container_disk_and_keeps_the_volume() {
    let rig = Rig::start(&[]).await;
    let volume = rig.volume().await;
    let (id, port) = rig.pod(Some(&volume)).await;
    let mount = rig.mount().display().to_string();
    rig.run(port, &format!("echo disk > $HOME/disk; echo kept > {mount}/kept")).await;
    let keys = |port: u16| {
        let mut scan = Command::new("ssh-keyscan");
        scan.args(["-t", "ed25519", "-p", &port.to_string(), "127.0.0.1"]);
        finish(scan)
    };
    let first = String::from_utf8(keys(port).await.stdout).unwrap();
    let first = first.split_whitespace().last().unwrap().to_owned();
    rig.act(&id, "stop").await;
    assert!(std::fs::symlink_metadata(rig.mount()).is_err(), "no mount while stopped");
    let (status, _) = rig.act(&id, "start").await;
    assert_eq!(status, 200);
    let next = rig.reachable(&id).await;
    assert_ne!(next, port);
    let second = String::from_utf8(keys(next).await.stdout).unwrap();
    assert_ne!(second.split_whitespace().last().unwrap(), first);
    let found = rig.run(next, &format!("cat {mount}/kept; test -e $HOME/disk || echo wiped")).await;
    assert_eq!(found, "kept\nwiped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_the_container_and_ends_its_processes() {
    let rig = Rig::start(&[]).await;
    let (id, port) = rig.pod(None).await;
    let command = "echo disk > $HOME/disk; setsid sleep 600 >/dev/null 2>&1 & echo $!";
    let pid = rig.run(port, command).await;
    let (status, pod) = rig.act(&id, "restart").await;
    assert_eq!((status, &pod["status"]), (200, &json!("STARTING")));
    wait_for("the child to die", || !is_alive(&pid)).await;
    rig.until(&id, |pod| pod["status"] == "RUNNING").await;
    let port = rig.reachable(&id).await;
    assert_eq!(rig.run(port, "cat $HOME/disk").await, "disk");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_key_is_told_where_it_is_and_a_pods_key_reaches_that_pod_only() {
    let rig = Rig::start(&[]).await;
    let (status, problem) = rig.request("rpa_0123456789", "GET", "/v2/pods", None).await.unwrap();
    assert_eq!(status, 401);
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("local cloud") && !detail.contains("rpa_"), "{detail}");
    let mut body = rig.create_body(None);
    body["env"]["RUNPOD_API_KEY"] = json!("rpa_0123456789abcdef");
    let (status, problem) = rig.api("POST", "/v2/pods", Some(body)).await;
    assert_eq!(status, 400, "{problem}");
    let recorded = std::fs::read_to_string(rig.state().join("requests.jsonl")).unwrap();
    assert!(!recorded.contains("rpa_0123456789abcdef"), "{recorded}");

    let (id, port) = rig.pod(None).await;
    let (other, _) = rig.pod(None).await;
    let source = ". $PODTETHER_RP_ENVIRONMENT;";
    let key = rig.run(port, &format!("{source} echo $RUNPOD_API_KEY")).await;
    assert_eq!(rig.run(port, "echo .$RUNPOD_API_KEY").await, ".", "sessions do not inherit it");
    assert_eq!(rig.run(port, &format!("{source} echo $PODTETHER_API_URL")).await, rig.cloud.url);
    let action = |action: &str| Some(json!({"action": action}));
    for (method, path, body, status) in [
        ("GET", format!("/v2/pods/{id}"), None, 200),
        ("GET", "/v2/pods".to_owned(), None, 403),
        ("GET", format!("/v2/pods/{other}"), None, 403),
        ("POST", format!("/v2/pods/{id}/action"), action("restart"), 403),
        ("POST", format!("/v2/pods/{other}/action"), action("stop"), 403),
        ("PUT", "/_local/faults".to_owned(), Some(json!({"faults": []})), 403),
        ("POST", format!("/v2/pods/{id}/action"), action("stop"), 200),
        ("DELETE", format!("/v2/pods/{id}"), None, 204),
    ] {
        let answer = rig.request(&key, method, &path, body).await.unwrap();
        assert_eq!(answer.0, status, "{method} {path}: {answer:?}");
    }
}

/// B06: pages, and an end to them.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_comes_in_pages_when_asked() {
    let rig = Rig::start(&[]).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(rig.volume().await);
    }
    let (_, all) = rig.api("GET", "/v2/network-volumes", None).await;
    assert!(all.get("pagination").is_none(), "{all}");
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/v2/network-volumes?limit=2&cursor={cursor}");
        let (status, page) = rig.api("GET", &path, None).await;
        assert_eq!(status, 200, "{page}");
        for volume in page["networkVolumes"].as_array().unwrap() {
            seen.push(volume["id"].as_str().unwrap().to_owned());
        }
        match page["pagination"]["nextCursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, ids);
    assert_eq!(rig.api("GET", "/v2/network-volumes?cursor=nonsense", None).await.0, 400);
}

/// D12: the balance that REST v2 lacks falls while something bills; stock needs no key.
#[tokio::test(flavor = "multi_thread")]
async fn the_balance_is_told_over_graphql() {
    let rig = Rig::start(&[]).await;
    let myself = || Some(json!({"query": "query { myself { clientBalance currentSpendPerHr } }"}));
    let balance = |answer: &Value| answer["data"]["myself"]["clientBalance"].as_f64().unwrap();
    let (_, before) = rig.api("POST", "/graphql", myself()).await;
    rig.pod(None).await;
    let (status, after) = rig.api("POST", "/graphql", myself()).await;
    assert_eq!((status, &after["data"]["myself"]["currentSpendPerHr"]), (200, &json!(0.69)));
    assert!(balance(&after) < balance(&before), "{before} {after}");
    let stock = Some(json!({"query": "query { gpuTypes { id } }"}));
    let (status, answer) = rig.request("", "POST", "/graphql", stock).await.unwrap();
    assert_eq!((status, &answer["data"]["gpuTypes"][0]["id"]), (200, &json!(GPU)));
    assert_eq!(rig.request("", "POST", "/graphql", myself()).await.unwrap().0, 401);
}
