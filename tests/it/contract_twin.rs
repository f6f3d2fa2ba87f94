//! Every answer of the local cloud against the provider's own OpenAPI document, which lies beside
//! the project and is not part of it.

use crate::local_cloud::{GPU, Rig, program};
use podtether::clock::Clock;
use podtether::cloud::local::{LocalCloud, Options, Timing};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The provider's OpenAPI document, or a loud word that it is missing.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn document() -> Option<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = ["../shared", "../../shared"];
    let path = places
        .iter()
        .map(|place| root.join(place).join("data/runpod-openapi-v2.json"))
        .find(|path| path.exists());
    let Some(path) = path else {
        println!("SKIPPED: no ../shared/data/runpod-openapi-v2.json, nothing was checked");
        return None;
    };
    Some(serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
}

/// The contract: the document, and what of it was exercised.
struct Contract {
    document: Value,
    checked: Vec<String>,
}

impl Contract {
    /// Checks a value against the schema at a JSON pointer into the document.
    fn validate(&self, pointer: &str, value: &Value, what: &str) {
        let errors = self.errors(pointer, value);
        assert!(errors.is_empty(), "{what}: {errors:?}\n{value:#}");
    }

    fn errors(&self, pointer: &str, value: &Value) -> Vec<String> {
        let schema = self.document.pointer(pointer);
        let mut schema = schema.unwrap_or_else(|| panic!("no schema at {pointer}")).clone();
        // The references of the document point into the document.
        schema["components"] = self.document["components"].clone();
        let validator = jsonschema::options().should_validate_formats(true).build(&schema);
        let validator = validator.unwrap();
        validator
            .iter_errors(value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect()
    }

    /// Drives one operation and checks status and body of its answer against what is documented.
    async fn drive(
        &mut self,
        rig: &Rig,
        operation: (&str, &str),
        path: &str,
        body: Option<Value>,
        expected: u16,
    ) -> Value {
        let (method, template) = operation;
        let what = format!("{method} {path} -> {expected}");
        let place = format!("/paths/{}/{}", escape(template), method.to_lowercase());
        let operation = self.document.pointer(&place).unwrap_or_else(|| panic!("{place}")).clone();
        if let Some(body) = &body
            && !matches!(expected, 400 | 422)
        {
            let schema = format!("{place}/requestBody/content/application~1json/schema");
            self.validate(&schema, body, &format!("body of {what}"));
        }
        let (status, answer) = rig.api(method, path, body).await;
        assert_eq!(status, expected, "{what}: {answer}");
        let responses = &operation["responses"];
        let key = if responses.get(expected.to_string()).is_some() {
            expected.to_string()
        } else {
            "default".to_owned()
        };
        let mut place = format!("{place}/responses/{key}");
        if let Some(reference) = responses[&key]["$ref"].as_str() {
            place = reference.trim_start_matches('#').to_owned();
        }
        let content = self.document.pointer(&place).unwrap().get("content");
        match content.and_then(Value::as_object).and_then(|content| content.keys().next()) {
            Some(kind) => {
                let schema = format!("{place}/content/{}/schema", escape(kind));
                self.validate(&schema, &answer, &what);
                if expected >= 400 {
                    assert_eq!(kind, "application/problem+json", "{what}");
                    assert_eq!(answer["status"], json!(expected), "{what}");
                }
            }
            None => assert_eq!(answer, Value::Null, "{what}"),
        }
        self.checked.push(format!("{method} {template} {expected}"));
        answer
    }
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

const PODS: &str = "/v2/pods";
const POD: &str = "/v2/pods/{id}";
const ACTION: &str = "/v2/pods/{id}/action";
const VOLUMES: &str = "/v2/network-volumes";
const VOLUME: &str = "/v2/network-volumes/{id}";
const GPUS: &str = "/v2/catalog/gpus";
const CENTERS: &str = "/v2/catalog/datacenters";
const POD_BILLING: &str = "/v2/billing/pods";
const VOLUME_BILLING: &str = "/v2/billing/network-volumes";

/// G13: bodies and answers are checked against the provider's own document.
#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_one_that_the_provider_documents() {
    let Some(document) = document() else { return };
    let mut contract = Contract { document, checked: Vec::new() };
    let c = &mut contract;
    let rig = &Rig::start(&[]).await;

    // Volumes.
    let body = |center: &str| json!({"name": "data", "size": 10, "dataCenter": center});
    let post = ("POST", VOLUMES);
    let volume = c.drive(rig, post, VOLUMES, Some(body("EU-RO-1")), 201).await;
    let volume = volume["id"].as_str().unwrap().to_owned();
    let volume_path = format!("{VOLUMES}/{volume}");
    c.drive(rig, ("GET", VOLUMES), VOLUMES, None, 200).await;
    c.drive(rig, ("GET", VOLUME), &volume_path, None, 200).await;
    c.drive(rig, ("GET", VOLUME), "/v2/network-volumes/localno", None, 404).await;
    let bad = c.drive(rig, post, VOLUMES, Some(body("XX-YY-1")), 400).await;
    assert!(bad["detail"].as_str().unwrap().contains("EU-RO-1, US-TX-3"), "{bad}");
    for (bad, word) in [
        (json!({"name": "data", "size": 9, "dataCenter": "EU-RO-1"}), "minimum is 10"),
        (json!({"name": "data", "size": 10}), "missing property 'dataCenter'"),
        (json!({"name": "", "size": 10, "dataCenter": "EU-RO-1", "x": 1}), "'x' not allowed"),
    ] {
        let answer = c.drive(rig, post, VOLUMES, Some(bad), 422).await;
        assert!(answer["errors"].to_string().contains(word), "{answer}");
    }

    // Pods, in every status.
    let create = ("POST", PODS);
    rig.set_faults(&["never-boots=1"]).await;
    let pod = c.drive(rig, create, PODS, Some(rig.create_body(Some(&volume))), 201).await;
    let id = pod["id"].as_str().unwrap().to_owned();
    let (pod_path, action_path) = (format!("{PODS}/{id}"), format!("{PODS}/{id}/action"));
    let action = |name: &str| Some(json!({"action": name}));
    let act = ("POST", ACTION);
    c.drive(rig, ("GET", POD), &pod_path, None, 200).await;
    for status in ["STARTING", "RUNNING"] {
        rig.until(&id, |pod| pod["status"] == status).await;
        c.drive(rig, ("GET", POD), &pod_path, None, 200).await;
        c.drive(rig, ("GET", PODS), "/v2/pods?includeClusterPods=true", None, 200).await;
        c.drive(rig, act, &action_path, action("start"), 409).await;
        if status == "STARTING" {
            c.drive(rig, act, &action_path, action("stop"), 200).await;
            c.drive(rig, act, &action_path, action("start"), 200).await;
        }
    }
    rig.reachable(&id).await;
    c.drive(rig, ("GET", POD), &pod_path, None, 200).await;
    let paged = c.drive(rig, ("GET", PODS), "/v2/pods?limit=1", None, 200).await;
    assert_eq!(paged["pagination"], json!({"hasNextPage": false}));
    c.drive(rig, ("DELETE", VOLUME), &volume_path, None, 409).await;
    c.drive(rig, act, &action_path, action("restart"), 200).await;
    rig.reachable(&id).await;
    c.drive(rig, act, &action_path, action("stop"), 200).await;
    c.drive(rig, act, &action_path, action("stop"), 409).await;
    c.drive(rig, act, &action_path, action("start"), 200).await;
    c.drive(rig, act, &action_path, action("explode"), 422).await;
    c.drive(rig, act, &action_path, Some(json!({"action": "stop", "force": true})), 422).await;
    c.drive(rig, act, &action_path, action("terminate"), 204).await;
    let pod = c.drive(rig, create, PODS, Some(rig.create_body(None)), 201).await;
    let other = format!("{PODS}/{}", pod["id"].as_str().unwrap());
    c.drive(rig, ("DELETE", POD), &other, None, 204).await;
    c.drive(rig, act, &action_path, action("stop"), 404).await;
    c.drive(rig, ("GET", POD), &pod_path, None, 404).await;
    c.drive(rig, ("DELETE", POD), &pod_path, None, 404).await;

    refused_creates(c, rig, &volume).await;

    // Catalog.
    c.drive(rig, ("GET", GPUS), GPUS, None, 200).await;
    let path = "/v2/catalog/gpus?include=AVAILABILITY&product=POD&count=1&cloud=SECURE";
    let gpus = c.drive(rig, ("GET", GPUS), path, None, 200).await;
    assert!(gpus["gpus"].as_array().unwrap().iter().any(|gpu| gpu["id"] == GPU), "{gpus}");
    let path = "/v2/catalog/gpus?include=AVAILABILITY";
    c.drive(rig, ("GET", GPUS), path, None, 400).await;
    c.drive(rig, ("GET", CENTERS), CENTERS, None, 200).await;
    let path = "/v2/catalog/datacenters?include=GPU_AVAILABILITY,CPU_AVAILABILITY";
    c.drive(rig, ("GET", CENTERS), path, None, 200).await;

    // Billing.
    for path in [POD_BILLING, VOLUME_BILLING] {
        c.drive(rig, ("GET", path), path, None, 200).await;
        let window = "?startTime=2026-11-01T00:00:00Z&endTime=2026-11-02T12:00:00Z&bucketSize=hour";
        c.drive(rig, ("GET", path), &format!("{path}{window}"), None, 200).await;
        c.drive(rig, ("GET", path), &format!("{path}?lastN=3&bucketSize=week"), None, 200).await;
        c.drive(rig, ("GET", path), &format!("{path}?lastN=3&endTime=x"), None, 400).await;
    }

    // The last of the volume, and what every route can answer.
    c.drive(rig, ("DELETE", VOLUME), &volume_path, None, 204).await;
    c.drive(rig, ("DELETE", VOLUME), &volume_path, None, 404).await;
    rig.set_faults(&["rate-limited=1"]).await;
    c.drive(rig, ("GET", PODS), PODS, None, 429).await;
    rig.set_faults(&["no-capacity=2"]).await;
    c.drive(rig, create, PODS, Some(rig.create_body(None)), 400).await;
    let (status, answer) = rig.request("local-no", "GET", PODS, None).await.unwrap();
    assert_eq!(status, 401);
    c.validate("/components/schemas/ErrorResponse", &answer, "401");
    for (method, path, expected) in [("PATCH", PODS, 405), ("GET", "/v2/networkvolumes", 404)] {
        let (status, answer) = rig.api(method, path, None).await;
        assert_eq!(status, expected, "{method} {path}");
        c.validate("/components/schemas/ErrorResponse", &answer, path);
    }
    println!("{} answers checked", contract.checked.len());
}

/// What the provider's schema refuses is refused with 422, what only its rules refuse with 400.
async fn refused_creates(c: &mut Contract, rig: &Rig, volume: &str) {
    let create = "/paths/~1v2~1pods/post/requestBody/content/application~1json/schema";
    let with = |pointer: &str, value: Value| {
        let mut body = rig.create_body(Some(volume));
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = body.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Value::Null => drop(parent.remove(name)),
            value => drop(parent.insert(name.to_owned(), value)),
        }
        body
    };
    let workspace = json!([{"volumeId": volume, "path": "/workspace"}]);
    let elsewhere = json!([{"volumeId": "localno", "path": rig.mount()}]);
    let two = json!([workspace[0], workspace[0]]);
    for (body, status, word) in [
        (with("/name", Value::Null), 422, "missing property 'name'"),
        (with("/image", Value::Null), 422, "missing property 'image'"),
        (with("/interruptible", json!(true)), 422, "additional properties 'interruptible'"),
        (with("/gpu/minCuda", json!("12.4")), 422, "additional properties 'minCuda'"),
        (with("/gpu/allowedCudaVersions", json!(["12"])), 422, "major.minor"),
        (with("/disk", json!(0)), 422, "minimum is 1"),
        (with("/env", json!({"A": 1})), 422, "$.env.A"),
        (with("/cloud", json!("ALL")), 422, "SECURE, COMMUNITY"),
        (with("/mounts/network", two), 422, "at most 1"),
        (with("/mounts/nfs", json!([])), 422, "additional properties 'nfs'"),
        (with("/gpu", Value::Null), 400, "exactly one of gpu and cpu"),
        (with("/cpu", json!({"id": "cpu3c", "vcpuCount": 2})), 400, "exactly one"),
        (with("/gpu/id", json!("NVIDIA X")), 400, "valid ids: NVIDIA GeForce RTX 4090"),
        (with("/gpu/count", Value::Null), 400, "no longer any instances"),
        (with("/gpu/count", json!(99)), 400, "no longer any instances"),
        (with("/gpu/allowedCudaVersions", json!(["11.0"])), 400, "no longer any instances"),
        (with("/dataCenterIds", json!(["XX-1"])), 400, "valid data centers: EU-RO-1"),
        (with("/dataCenterIds", json!(["US-TX-3"])), 400, "no longer any instances"),
        (with("/cloud", json!("COMMUNITY")), 400, "SECURE cloud only"),
        (with("/mounts/network", workspace), 400, "use a path below"),
        (with("/mounts/network", elsewhere), 400, "localno not found"),
        (with("/mounts/persistent", json!({"size": 10, "path": "/x"})), 400, "persistent"),
    ] {
        // The twin and the document must agree on which of the two it is.
        let errors = c.errors(create, &body);
        assert_eq!(errors.is_empty(), status == 400, "{word}: {errors:?}");
        let answer = c.drive(rig, ("POST", PODS), PODS, Some(body), status).await;
        assert!(answer.to_string().contains(word), "{word}: {answer}");
    }
}

/// I02, I03: what was billed adds up, to the second, and comes late.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_pod_bills_its_running_time_and_nothing_after() {
    let rig = Rig::start_with(&["--billing-lag-sec", "0"]).await;
    let (id, _) = rig.pod(None).await;
    rig.act(&id, "stop").await;
    let total = || async {
        let path = format!("{POD_BILLING}?bucketSize=hour&podId={id}");
        let (_, billing) = rig.api("GET", &path, None).await;
        billing["metadata"]["totals"]["gpuAmount"].as_f64().unwrap()
    };
    let first = total().await;
    let text = std::fs::read_to_string(rig.state().join("cloud.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let time = |name: &str| -> chrono::DateTime<chrono::Utc> {
        document["pod_spans"][0][name].as_str().unwrap().parse().unwrap()
    };
    let seconds = (time("end") - time("start")).as_seconds_f64();
    assert!(seconds > 0.9, "{seconds}");
    let expected = 0.69 * seconds / 3600.0;
    assert!((first - expected).abs() < 3e-6, "{first} is not {expected}");
    rig.pod(None).await;
    assert!((total().await - first).abs() < 1e-9, "a stopped pod bills nothing");

    let lagging = Rig::start(&[]).await;
    let (_, port) = lagging.pod(None).await;
    lagging.run(port, "true").await;
    let (_, billing) = lagging.api("GET", POD_BILLING, None).await;
    assert_eq!(billing["records"], json!([]), "nothing of the last hour is known yet");
}

/// A clock that moves when it is told to.
struct SetClock(std::sync::Mutex<chrono::DateTime<chrono::Utc>>);

impl Clock for SetClock {
    fn now(&self) -> chrono::DateTime<chrono::Utc> {
        *self.0.lock().unwrap()
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// I02, I04: hours cut by bucket edges are counted once, and the last hour is not known yet.
#[tokio::test(flavor = "multi_thread")]
async fn billing_adds_up_over_buckets_and_lags_by_an_hour() {
    let start = "2026-11-26T22:30:00Z".parse::<chrono::DateTime<chrono::Utc>>().unwrap();
    let clock = Arc::new(SetClock(std::sync::Mutex::new(start)));
    let at = |minutes: i64| *clock.0.lock().unwrap() = start + chrono::TimeDelta::minutes(minutes);
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        state: folder.path().join("state"),
        port: 0,
        faults: Vec::new(),
        program: program().to_owned(),
        timing: Timing::default(),
    };
    let cloud = LocalCloud::start(options, Arc::<SetClock>::clone(&clock)).await.unwrap();
    let (url, key) = (cloud.url().to_owned(), cloud.key());
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(cloud.serve(async { drop(ended.await) }));
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let post = async |path: &str, body: Value| -> Value {
        let request = client.post(format!("{url}{path}")).bearer_auth(key.reveal()).json(&body);
        request.send().await.unwrap().json().await.unwrap()
    };
    let records = async |path: &str, field: &str| -> Vec<(String, f64)> {
        let request = client.get(format!("{url}{path}")).bearer_auth(key.reveal());
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        let records = answer["records"].as_array().unwrap().iter();
        records
            .map(|one| {
                (one["startTime"].as_str().unwrap()[..13].to_owned(), one[field].as_f64().unwrap())
            })
            .collect()
    };
    let volume = json!({"name": "data", "size": 10, "dataCenter": "US-KS-2"});
    post(VOLUMES, volume).await;
    let body = json!({
        "name": "rover", "image": "x", "disk": 10,
        "gpu": {"id": "NVIDIA H100 80GB HBM3", "count": 2},
        "dataCenterIds": ["US-KS-2"],
    });
    let pod = post(PODS, body).await;
    assert_eq!(pod["cost"], json!(5.38));
    let action = format!("{PODS}/{}/action", pod["id"].as_str().unwrap());

    at(120);
    let by_day = format!("{POD_BILLING}?bucketSize=day");
    let known = records(&by_day, "gpuAmount").await;
    assert_eq!(known, [("2026-11-26T00".to_owned(), 5.38)], "the first hour, no more");
    post(&action, json!({"action": "stop"})).await;
    at(24 * 60);
    let known = records(&by_day, "gpuAmount").await;
    let (first, second) = ("2026-11-26T00".to_owned(), "2026-11-27T00".to_owned());
    assert_eq!(known, [(first, 8.07), (second, 2.69)], "an hour and a half, and half an hour");
    let by_hour = records(&format!("{POD_BILLING}?bucketSize=hour"), "gpuAmount").await;
    assert_eq!(by_hour.iter().map(|(_, amount)| *amount).collect::<Vec<_>>(), [2.69, 5.38, 2.69]);
    // $0.70 for a month of 730 hours, each rounded up to the micro-dollar; 23 hours are known.
    let volumes = records(&format!("{VOLUME_BILLING}?bucketSize=month"), "totalAmount").await;
    assert_eq!(volumes, [("2026-11-01T00".to_owned(), 0.022_057)]);

    end.send(()).unwrap();
    serving.await.unwrap().unwrap();
}
