//! What a model reads of the server, frozen: names, words, schemas, annotations, and their size.

use super::client::{Client, ERAS, Era};
use super::scene::Scene;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Of `tools/list`, for each tool: 24 KB for ten. RunPod's own server takes 119 KB for its 68.
const BYTES_PER_TOOL: usize = 2_450;
/// Some clients cut descriptions and instructions at 2 KB (G07).
const TEXT_BYTES: usize = 2_000;

/// Name; whether it only reads, may destroy, may be repeated.
const EFFECTS: [(&str, bool, bool, bool); 14] = [
    ("gpu_availability", true, false, true),
    ("ensure_pod", false, false, true),
    ("pod_status", true, false, true),
    ("run_pod_setup", false, false, false),
    ("exec_on_pod", false, true, false),
    ("run_job", false, false, false),
    ("launch_training", false, false, false),
    ("job_status", true, false, true),
    ("sync_logs", false, false, true),
    ("apply_bluerov_patches", false, false, true),
    ("axis_sanity_sweep", false, false, false),
    ("stop_pod", false, true, true),
    ("terminate_pod", false, true, true),
    ("spend_report", true, false, true),
];

fn fixture() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/mcp/tools.json"))
}

fn started(era: Era) -> Client {
    Client::start(Scene::without_config().bare_server(), era)
}

#[test]
fn the_surface_is_the_frozen_one_in_both_eras() {
    for era in ERAS {
        let client = started(era);
        let server = match era {
            Era::Initialize => &client.info["serverInfo"],
            Era::Stateless => &client.info["_meta"]["io.modelcontextprotocol/serverInfo"],
        };
        assert_eq!(server["name"], "runpod", "{}", client.info);
        let surface = json!({"instructions": client.info["instructions"], "tools": client.tools});
        let text = serde_json::to_string_pretty(&surface).unwrap() + "\n";
        if std::env::var_os("PODTETHER_RENEW_FIXTURES").is_some() {
            // A machine that only checks must not be able to agree with itself.
            assert!(std::env::var_os("CI").is_none(), "fixtures are not renewed in CI");
            std::fs::write(fixture(), &text).unwrap();
            panic!(
                "{} was renewed: read its diff, then run again without PODTETHER_RENEW_FIXTURES",
                fixture().display()
            );
        }
        let frozen: Value = serde_json::from_slice(&std::fs::read(fixture()).unwrap()).unwrap();
        for (now, then) in client.tools.iter().zip(frozen["tools"].as_array().unwrap()) {
            assert_eq!(
                now, then,
                "{}: if meant, PODTETHER_RENEW_FIXTURES=1 cargo test --test it the_surface",
                now["name"]
            );
        }
        assert_eq!(
            surface, frozen,
            "if meant, PODTETHER_RENEW_FIXTURES=1 cargo test --test it the_surface"
        );
    }
}

#[test]
fn the_surface_stays_small() {
    let client = started(Era::Stateless);
    let bytes = json!({"tools": client.tools}).to_string().len();
    let budget = client.tools.len() * BYTES_PER_TOOL;
    assert!(bytes < budget, "tools/list takes {bytes} of {budget} bytes: shorten words");
    let instructions = client.info["instructions"].as_str().unwrap();
    assert!(instructions.len() <= TEXT_BYTES, "{}", instructions.len());
    for tool in &client.tools {
        let description = tool["description"].as_str().unwrap();
        assert!((80..=TEXT_BYTES).contains(&description.len()), "{}", tool["name"]);
    }
}

#[test]
fn every_tool_says_what_it_may_change() {
    let client = started(Era::Initialize);
    let hints: Vec<(&str, bool, bool, bool)> = client
        .tools
        .iter()
        .map(|tool| {
            let hint = |name: &str| tool["annotations"][name].as_bool().unwrap_or_default();
            let name = tool["name"].as_str().unwrap();
            (name, hint("readOnlyHint"), hint("destructiveHint"), hint("idempotentHint"))
        })
        .collect();
    assert_eq!(hints, EFFECTS);
    for tool in &client.tools {
        assert!(tool["title"].as_str().is_some_and(|title| !title.is_empty()), "{}", tool["name"]);
        // Where the hint is missing, a client has to take it for destructive.
        let annotations = tool["annotations"].as_object().unwrap();
        assert!(annotations.contains_key("readOnlyHint"), "{}", tool["name"]);
        let is_reader = annotations["readOnlyHint"] == true;
        assert!(is_reader || annotations.contains_key("destructiveHint"), "{}", tool["name"]);
        // A model is told what a stop ends, whoever asks for it.
        let names_vehicle = tool["inputSchema"]["required"]
            .as_array()
            .is_some_and(|required| required.contains(&json!("vehicle")));
        let ends = ["stop_pod", "terminate_pod"].contains(&tool["name"].as_str().unwrap());
        assert_eq!(names_vehicle, ends, "{}", tool["name"]);
    }
}

#[test]
fn schemas_are_plain_objects_without_unions_and_number_formats() {
    let client = started(Era::Stateless);
    for tool in &client.tools {
        let (input, output) = (&tool["inputSchema"], &tool["outputSchema"]);
        for schema in [input, output] {
            assert_eq!(schema["type"], "object", "{}", tool["name"]);
            each_object(schema, &mut |object| {
                assert!(!object.contains_key("$schema"), "{}: {object:?}", tool["name"]);
                let format = object.get("format").and_then(Value::as_str).unwrap_or_default();
                let is_number = format.contains("int") || ["double", "float"].contains(&format);
                assert!(!is_number, "{}: {object:?}", tool["name"]);
            });
        }
        each_object(input, &mut |object| {
            for word in ["anyOf", "oneOf", "$ref"] {
                assert!(!object.contains_key(word), "{}: {object:?}", tool["name"]);
            }
            assert!(!object.get("type").is_some_and(Value::is_array), "{}", tool["name"]);
        });
        assert_eq!(input["additionalProperties"], false, "{}", tool["name"]);
        for (name, argument) in input["properties"].as_object().into_iter().flatten() {
            assert!(argument["description"].is_string(), "{}: {name}", tool["name"]);
        }
    }
}

fn each_object(value: &Value, see: &mut dyn FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            see(object);
            object.values().for_each(|inner| each_object(inner, see));
        }
        Value::Array(items) => items.iter().for_each(|inner| each_object(inner, see)),
        _ => {}
    }
}
