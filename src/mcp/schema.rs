//! Schemas as clients like them: a plain object at the root, no nullable unions, no Rust number formats.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use std::sync::Arc;

/// The schema of a tool's arguments.
pub fn input<T: JsonSchema>() -> Arc<JsonObject> {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    Arc::new(tidy(schema.to_value()))
}

/// The schema of a tool's answer, with the `truncated` flag that every answer may carry.
pub fn output<T: JsonSchema>() -> Arc<JsonObject> {
    let schema =
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    let mut object = tidy(schema.to_value());
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        let flag =
            json!({"type": "boolean", "description": "Set when the answer was cut to fit 32 KB"});
        properties.entry("truncated").or_insert(flag);
    }
    Arc::new(object)
}

fn tidy(mut schema: Value) -> JsonObject {
    simplify(&mut schema);
    match schema {
        Value::Object(mut object) => {
            object.remove("$schema");
            object.remove("title");
            object
        }
        _ => JsonObject::new(),
    }
}

/// Optional arguments become plain optional ones: an explicit null is accepted all the same, and
/// clients that know no unions understand the schema.
fn simplify(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get("type") {
                let kept: Vec<Value> =
                    types.iter().filter(|kind| *kind != "null").cloned().collect();
                if let [only] = &kept[..] {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(options)) = object.get("anyOf") {
                let kept: Vec<Value> =
                    options.iter().filter(|option| option["type"] != "null").cloned().collect();
                if let ([Value::Object(only)], true) = (&kept[..], kept.len() < options.len()) {
                    let only = only.clone();
                    object.remove("anyOf");
                    for (key, inner) in only {
                        object.entry(key).or_insert(inner);
                    }
                }
            }
            let rust_number = |format: &Value| {
                format.as_str().is_some_and(|name| {
                    name.starts_with("uint")
                        || name.starts_with("int")
                        || name == "double"
                        || name == "float"
                })
            };
            if object.get("format").is_some_and(rust_number) {
                object.remove("format");
            }
            if object.get("default") == Some(&Value::Null) {
                object.remove("default");
            }
            object.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}
