//! The client against the provider's own OpenAPI file, offline: request bodies, query parameters,
//! and the replies that the other tests are made of.

use super::runpod_client::approved::every_change;
use super::runpod_client::server::{Reply, Server};
use super::runpod_client::{ONCE, client, fixture};
use chrono::{TimeDelta, Utc};
use jsonschema::Validator;
use podtether::cloud::Cloud;
use podtether::cloud::runpod::request;
use podtether::domain::{CloudTier, PodId, PodStatus, Stock, VolumeId};
use podtether::plan::Change;
use serde_json::{Value, json};

/// The specification, or `None` with a word on stderr when it is not beside the project.
#[expect(clippy::print_stderr, reason = "a check that does not run has to say so")]
fn spec() -> Option<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/runpod-openapi-v2.json");
    match std::fs::read(path) {
        Ok(bytes) => Some(serde_json::from_slice(&bytes).unwrap()),
        Err(error) => {
            eprintln!("SKIPPED: the contract is not checked, {path}: {error}");
            None
        }
    }
}

/// A validator of a schema inside the specification; `$ref`s in it lead back into it.
fn validator(spec: &Value, schema: &Value) -> Validator {
    let whole = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "components": spec["components"],
        "allOf": [schema],
    });
    jsonschema::options().should_validate_formats(true).build(&whole).unwrap()
}

fn named(spec: &Value, name: &str) -> Validator {
    validator(spec, &json!({ "$ref": format!("#/components/schemas/{name}") }))
}

/// The operation that a request hits, found by its path's shape.
fn operation<'a>(spec: &'a Value, method: &str, path: &str) -> (&'a str, &'a Value) {
    let fits = |template: &str| {
        let (template, path): (Vec<&str>, Vec<&str>) =
            (template.split('/').collect(), path.split('/').collect());
        template.len() == path.len()
            && template.iter().zip(&path).all(|(t, p)| t == p || t.starts_with('{'))
    };
    let paths = spec["paths"].as_object().unwrap();
    let (template, item) = paths.iter().find(|(template, _)| fits(template)).unwrap();
    (template, item.get(method.to_ascii_lowercase()).unwrap())
}

fn errors(validator: &Validator, value: &Value) -> Vec<String> {
    validator.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect()
}

/// G13: a field that the API does not know makes every create fail.
#[test]
fn every_request_body_is_what_the_specification_takes() {
    let Some(spec) = spec() else { return };
    let mut changes = every_change(false);
    changes.extend(every_change(true));
    if let Change::CreatePod(pod) = &changes[1] {
        let mut bare = pod.clone();
        bare.allowed_cuda_versions.clear();
        bare.env.clear();
        bare.ports = vec!["22/tcp".into(), "8888/http".into()];
        bare.gpu_count = 8;
        changes.push(Change::CreatePod(bare));
    }
    let mut bodies = 0;
    for change in &changes {
        let view = request::for_change(change, Some(&VolumeId("nv9e5u2b".into())));
        let (template, operation) = operation(&spec, &view.method, &view.path);
        let schema = operation.pointer("/requestBody/content/application~1json/schema");
        let (Some(body), Some(schema)) = (&view.body, schema) else {
            assert_eq!((view.body.is_none(), schema.is_none()), (true, true), "{template}");
            continue;
        };
        bodies += 1;
        let validator = validator(&spec, schema);
        assert_eq!(errors(&validator, body), Vec::<String>::new(), "{template} {body}");
        // The check has teeth: one field too many is refused.
        let mut wrong = body.clone();
        wrong["bogus"] = json!(1);
        assert!(!validator.is_valid(&wrong), "{template}");
    }
    assert_eq!(bodies, 9);
}

/// Unknown query parameters are ignored with a 200, so a misspelt one would never be noticed (B07).
/// `cursor` is newer than the specification.
#[tokio::test]
async fn every_query_parameter_is_one_that_the_specification_knows() {
    let Some(spec) = spec() else { return };
    let server = Server::start([
        Reply::json(200, &fixture("pods_page_1")),
        Reply::json(200, &fixture("pods_page_2")),
        Reply::json(200, &fixture("pod_created")),
        Reply::json(200, &fixture("network_volumes")),
        Reply::json(200, &fixture("catalog_gpus")),
        Reply::json(200, &fixture("catalog_datacenters")),
        Reply::json(200, &fixture("billing_pods")),
        Reply::json(200, &fixture("billing_network_volumes")),
    ])
    .await;
    let cloud = client(&server, ONCE);
    let since = Utc::now() - TimeDelta::days(60);
    cloud.pods().await.unwrap();
    cloud.pod(&PodId("n2d7s4v6c8".into())).await.unwrap();
    cloud.volumes().await.unwrap();
    cloud.gpu_offers(1).await.unwrap();
    cloud.data_centers().await.unwrap();
    cloud.pod_billing(since).await.unwrap();
    cloud.volume_billing(since).await.unwrap();
    let mut checked = 0;
    for asked in server.asked() {
        let (template, operation) = operation(&spec, &asked.method, asked.path());
        let declared: Vec<&Value> = operation["parameters"]
            .as_array()
            .map(|parameters| parameters.iter().map(|one| resolved(&spec, one)).collect())
            .unwrap_or_default();
        for (name, value) in asked.query().iter().filter(|(name, _)| name != "cursor") {
            let parameter = declared.iter().find(|parameter| parameter["name"] == *name);
            let parameter = parameter.unwrap_or_else(|| panic!("{template} has no {name}"));
            let validator = validator(&spec, &parameter["schema"]);
            let typed = match parameter["schema"]["type"].as_str() {
                Some("array") => json!([value]),
                Some("integer" | "boolean") => serde_json::from_str(value).unwrap(),
                _ => json!(value),
            };
            assert_eq!(errors(&validator, &typed), Vec::<String>::new(), "{template} {name}");
            checked += 1;
        }
    }
    assert_eq!(checked, 10);
}

fn resolved<'a>(spec: &'a Value, parameter: &'a Value) -> &'a Value {
    match parameter["$ref"].as_str() {
        Some(reference) => spec.pointer(reference.trim_start_matches('#')).unwrap(),
        None => parameter,
    }
}

#[test]
fn the_replies_of_the_tests_have_the_shape_of_the_specification() {
    let Some(spec) = spec() else { return };
    for (name, schema) in [
        ("pods_page_1", "ListPodsResponse"),
        ("pods_page_2", "ListPodsResponse"),
        ("pod_created", "Pod"),
        ("network_volumes", "ListNetworkVolumesResponse"),
        ("network_volume_created", "NetworkVolume"),
        ("catalog_gpus", "ListGpuTypesResponse"),
        ("catalog_datacenters", "ListDataCentersResponse"),
        ("billing_pods", "ListPodBillingResponse"),
        ("billing_network_volumes", "ListNetworkVolumeBillingResponse"),
        ("problem_no_capacity", "ErrorResponse"),
    ] {
        let reply = serde_json::from_str(&fixture(name)).unwrap();
        assert_eq!(errors(&named(&spec, schema), &reply), Vec::<String>::new(), "{name}");
        let other = if schema == "ErrorResponse" { "Pod" } else { "ErrorResponse" };
        assert!(!named(&spec, other).is_valid(&reply), "{name} passes as {other}");
    }
}

/// Each word that the specification lists is one that the domain knows by name.
#[tokio::test]
async fn every_status_tier_and_stock_of_the_specification_is_known() {
    let Some(spec) = spec() else { return };
    let words = |schema: &str| -> Vec<String> {
        serde_json::from_value(spec["components"]["schemas"][schema]["enum"].clone()).unwrap()
    };
    let pod: Value = serde_json::from_str(&fixture("pod_created")).unwrap();
    for status in words("PodStatus") {
        for tier in words("Cloud") {
            let mut pod = pod.clone();
            (pod["status"], pod["cloud"]) = (json!(status), json!(tier));
            assert_eq!(errors(&named(&spec, "Pod"), &pod), Vec::<String>::new());
            let server = Server::start([Reply::json(200, &pod.to_string())]).await;
            let id = PodId("n2d7s4v6c8".into());
            let read = client(&server, ONCE).pod(&id).await.unwrap().unwrap();
            assert!(!matches!(read.status, PodStatus::Other(_)), "{status}");
            assert!(!matches!(read.cloud, CloudTier::Other(_)), "{tier}");
        }
    }
    let mut catalog: Value = serde_json::from_str(&fixture("catalog_gpus")).unwrap();
    for level in words("AvailabilityLevel") {
        catalog["gpus"][0]["availability"] = json!(level);
        let server = Server::start([Reply::json(200, &catalog.to_string())]).await;
        let offers = client(&server, ONCE).gpu_offers(1).await.unwrap();
        assert_ne!(offers[0].stock, Stock::Unknown, "{level}");
        assert_eq!(offers[0].stock.to_string(), level);
    }
}
