//! JSON Schemas of the files, for editors. Made from the tables of keys, so they cannot drift.

mod campaign;

use super::keys::{self, Key, Kind};
use super::resolve::DEFAULTS;
use super::yaml::{self, Node};
use crate::domain::BudgetWindow;
pub use campaign::campaign_schema;
use serde_json::{Map, Value, json};

/// The version of JSON Schema.
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The JSON Schema (2020-12) of `podtether.yaml`. It is for completion and hints while writing:
/// what [`super::load`] checks is stricter.
#[must_use]
pub fn schema() -> Value {
    let defaults = yaml::parse(DEFAULTS).ok();
    let mut file = object(&keys::of_file(), defaults.as_ref());
    let mut vehicle = object(&keys::of_vehicle(), None);
    if let Some(vehicle) = vehicle.as_object_mut() {
        let required: Vec<&str> = keys::OWN.iter().map(|key| key.name).collect();
        vehicle.insert("required".to_owned(), json!(required));
    }
    if let Some(property) = file.pointer_mut("/properties/vehicles") {
        property["additionalProperties"] = vehicle;
    }
    if let Some(training) = file.pointer_mut("/properties/trainings/additionalProperties") {
        training["required"] = json!(["vehicle"]);
    }
    file["$schema"] = json!(DRAFT);
    file["title"] = json!("podtether.yaml");
    file["required"] = json!(["vehicles"]);
    file
}

fn object(keys: &[&'static Key], defaults: Option<&Node>) -> Value {
    let mut properties = Map::new();
    for key in keys {
        let mut property = one(key);
        if let Some(default) = defaults.and_then(|defaults| lookup(defaults, key.name)) {
            property["default"] = plain(default);
        }
        place(&mut properties, key.name, property);
    }
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

/// Puts a property where its dotted name says, in the groups that the dots stand for.
fn place(properties: &mut Map<String, Value>, name: &str, property: Value) {
    let Some((group, name)) = name.split_once('.') else {
        properties.insert(name.to_owned(), property);
        return;
    };
    let group = properties.entry(group).or_insert_with(
        || json!({"type": "object", "additionalProperties": false, "properties": {}}),
    );
    if let Some(properties) = group["properties"].as_object_mut() {
        place(properties, name, property);
    }
}

fn one(key: &Key) -> Value {
    let mut property = match key.kind {
        Kind::Text(_) if key.name == "cloud" => json!({"enum": ["runpod", "local"]}),
        Kind::Text(_) if key.name == "limits.budget_window" => {
            json!({"enum": BudgetWindow::ALL.map(BudgetWindow::as_str)})
        }
        Kind::Text(_) if key.name == "notify.desktop" => json!({"type": "boolean"}),
        Kind::Text(_) if key.name == "notify.webhook" => json!({"enum": ["ntfy", "slack"]}),
        Kind::Text(_) if key.name == "cloud_type" => json!({"enum": ["SECURE"]}),
        Kind::Text(_) | Kind::Path => json!({"type": ["string", "number"]}),
        Kind::Texts(_) => json!({
            "type": "array", "items": {"type": ["string", "number"]}, "minItems": 1, "uniqueItems": true,
        }),
        Kind::Whole { min, max, .. } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Money => json!({"type": "number", "exclusiveMinimum": 0}),
        Kind::FuseHours => json!({
            "oneOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 168}, {"const": "off"}],
        }),
        Kind::Strangers => json!({
            "oneOf": [{"const": "refuse"}, object(&keys::STRANGERS.iter().collect::<Vec<_>>(), None)],
        }),
        Kind::Words => json!({
            "oneOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": ["string", "number"]}, "minItems": 1},
            ],
        }),
        Kind::Range => range(),
        Kind::RangeOr(word) => json!({"oneOf": [range(), {"const": word}]}),
        Kind::Items(keys) => json!({"type": "array", "items": inner(keys)}),
        Kind::Named(keys) => json!({"type": "object", "additionalProperties": inner(keys)}),
        Kind::Mapping => json!({"type": "object"}),
    };
    property["description"] = json!(key.meaning);
    property
}

fn range() -> Value {
    json!({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2})
}

fn inner(keys: &'static [Key]) -> Value {
    object(&keys.iter().collect::<Vec<_>>(), None)
}

fn lookup<'a>(node: &'a Node, dotted: &str) -> Option<&'a Node> {
    dotted.split('.').try_fold(node, |node, name| match &node.value {
        yaml::Value::Map(pairs) => {
            pairs.iter().find(|(key, _)| key.name == name).map(|(_, value)| value)
        }
        _ => None,
    })
}

fn plain(node: &Node) -> Value {
    match &node.value {
        yaml::Value::Null | yaml::Value::Map(_) => Value::Null,
        yaml::Value::Text(text) => json!(text),
        yaml::Value::Bool | yaml::Value::Number => {
            serde_json::from_str(&node.source).unwrap_or(Value::Null)
        }
        yaml::Value::List(items) => items.iter().map(plain).collect(),
    }
}
