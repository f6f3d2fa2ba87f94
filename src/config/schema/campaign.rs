//! The JSON Schema of a campaign's file: its table of keys, and which of them go together.

use super::{DRAFT, object};
use crate::config::keys::{CAMPAIGN, Key, PIN, WORK};
use serde_json::{Value, json};

/// Keys of one kind of link alone, with the keys of which it has one then.
const ONLY_WITH: [(&str, &[&str]); 6] = [
    ("dr", &["training"]),
    ("seed", &["training"]),
    ("extra_args", &["training"]),
    ("workdir", &["command"]),
    ("max_runtime_sec", JOBS),
    ("pull", JOBS),
];

/// What is run as a job.
const JOBS: &[&str] = &["setup", "training", "sweep", "command"];

/// The JSON Schema (2020-12) of a campaign's file. It is for completion and hints while writing: what
/// [`super::super::load_campaign`] checks is stricter, since it knows the config.
#[must_use]
pub fn campaign_schema() -> Value {
    let mut file = object(&CAMPAIGN.iter().collect::<Vec<&'static Key>>(), None);
    if let Some(link) = file.pointer_mut("/properties/links/items") {
        refine_link(link);
    }
    let links = &mut file["properties"]["links"];
    links["minItems"] = json!(1);
    // That it is the last one is more than a schema can say.
    links["contains"] = json!({"required": ["stop"]});
    links["maxContains"] = json!(1);
    file["properties"]["campaign"] = name(&file["properties"]["campaign"]);
    file["$schema"] = json!(DRAFT);
    file["title"] = json!("podtether campaign");
    file["required"] = json!(["campaign", "links"]);
    file
}

fn refine_link(link: &mut Value) {
    let keys = &mut link["properties"];
    let say = |key: &mut Value, what: Value| {
        let description = key["description"].clone();
        *key = what;
        key["description"] = description;
    };
    for switch in ["setup", "patches", "sweep", "stop"] {
        say(&mut keys[switch], json!({"const": true}));
    }
    say(&mut keys["pause"], json!({"enum": ["stop", "leave", true]}));
    let lines = json!({"oneOf": [{"type": "integer", "minimum": 1}, {"const": "iterations"}]});
    say(&mut keys["expect"]["properties"]["reward_lines"], lines);
    keys["name"] = name(&keys["name"]);
    let pin = &mut keys["pins"]["items"];
    pin["properties"]["sha256"]["pattern"] = json!("^[0-9a-f]{64}$");
    pin["required"] = json!(["sha256"]);
    pin["oneOf"] = PIN
        .iter()
        .filter(|key| key.name != "sha256")
        .map(|key| json!({"required": [key.name]}))
        .collect();

    link["required"] = json!(["name"]);
    // Exactly one thing to do, within an envelope; or nothing but the stop.
    let one_of_work: Vec<Value> = WORK.iter().map(|key| json!({"required": [key]})).collect();
    let mut rules = vec![json!({
        "if": {"anyOf": one_of_work},
        "then": {"required": ["max_usd"], "oneOf": one_of_work},
        "else": {"required": ["stop"]},
    })];
    rules.extend(ONLY_WITH.iter().map(|(key, owners)| {
        let owners: Vec<Value> = owners.iter().map(|key| json!({"required": [key]})).collect();
        json!({"if": {"required": [key]}, "then": {"anyOf": owners}})
    }));
    rules.push(json!({"not": {"required": ["stop", "pause"]}}));
    link["allOf"] = json!(rules);
}

/// A name becomes part of a file's name.
fn name(property: &Value) -> Value {
    let mut property = property.clone();
    property["pattern"] = json!("^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$");
    property
}
