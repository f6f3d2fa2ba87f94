//! Schemas as clients like them: a plain object at the root, no nullable unions, no Rust number formats.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use std::sync::Arc;

/// The schema of a tool's arguments.
pub fn input<T: JsonSchema>() -> Arc<JsonObject> {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    let mut object = tidy(schema.to_value());
    // "Arguments of …" stands beside the tool's own name.
    object.remove("description");
    Arc::new(object)
}

/// The schema of a tool's answer, with the `truncated` flag that every answer may carry.
pub fn output<T: JsonSchema>() -> Arc<JsonObject> {
    let schema =
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    let mut object = tidy(schema.to_value());
    // The words of the answer's own fields stay. No client shows a model those of the parts, and
    // every conversation would carry them.
    object.remove("description");
    if let Some(parts) = object.get_mut("$defs") {
        shorten(parts, false);
    }
    if let Some(plan) = object.get_mut("properties").and_then(|all| all.get_mut("plan")) {
        // A model reads the steps of a plan; their shape says nothing more, in every tool that has one.
        plan["items"] = json!({"type": "object"});
    }
    drop_unused_parts(&mut object);
    inline_small_parts(&mut object);
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        // Every answer has these two, and their names say what they are.
        for name in ["cloud", "vehicle"] {
            if let Some(Value::Object(property)) = properties.get_mut(name) {
                property.remove("description");
            }
        }
        let flag = json!({"type": "boolean", "description": "Cut to fit 32 KB"});
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

/// Takes out parts that nothing refers to any more.
fn drop_unused_parts(object: &mut JsonObject) {
    loop {
        let whole = Value::Object(object.clone()).to_string();
        let Some(Value::Object(parts)) = object.get_mut("$defs") else { return };
        let is_used = |name: &String| whole.contains(&format!("\"#/$defs/{name}\""));
        let before = parts.len();
        parts.retain(|name, _| is_used(name));
        let (after, is_empty) = (parts.len(), parts.is_empty());
        if is_empty {
            object.remove("$defs");
        }
        if after == before {
            return;
        }
    }
}

/// Puts parts where they are used when that is shorter than to refer to them: what is nothing but a
/// type, such as an amount or an id, and what is used once.
fn inline_small_parts(object: &mut JsonObject) {
    loop {
        let Some(Value::Object(parts)) = object.get("$defs") else { return };
        let whole = Value::Object(object.clone()).to_string();
        let fits = |(name, part): &(&String, &Value)| {
            let is_plain = part.as_object().is_some_and(|p| p.len() == 1 && p.contains_key("type"));
            is_plain || whole.matches(&format!("\"#/$defs/{name}\"")).count() == 1
        };
        let Some((name, part)) = parts.iter().find(fits) else { return };
        let (name, part) = (name.clone(), part.clone());
        if let Some(Value::Object(parts)) = object.get_mut("$defs") {
            parts.remove(&name);
            if parts.is_empty() {
                object.remove("$defs");
            }
        }
        let reference = format!("#/$defs/{name}");
        object.values_mut().for_each(|value| inline(value, &reference, &part));
    }
}

fn inline(value: &mut Value, reference: &str, part: &Value) {
    match value {
        Value::Object(object) => {
            if let Value::Object(part) = part
                && object.get("$ref").is_some_and(|named| named == reference)
            {
                object.remove("$ref");
                for (key, inner) in part {
                    object.entry(key).or_insert_with(|| inner.clone());
                }
            }
            object.values_mut().for_each(|inner| inline(inner, reference, part));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| inline(item, reference, part)),
        _ => {}
    }
}

/// Takes descriptions out of a schema and makes lists of words out of choices of one word each.
/// Among properties, `description` is a name like any other.
fn shorten(value: &mut Value, names_are_keys: bool) {
    let Value::Object(object) = value else {
        if let Value::Array(items) = value {
            items.iter_mut().for_each(|item| shorten(item, false));
        }
        return;
    };
    if !names_are_keys {
        // What a part always has is no news to a model, and a check of it would be stricter only.
        for word in ["description", "minimum", "format", "required"] {
            object.remove(word);
        }
        let words: Option<Vec<Value>> = match object.get("oneOf") {
            Some(Value::Array(choices)) => {
                choices.iter().map(|choice| choice.get("const").cloned()).collect()
            }
            _ => None,
        };
        if let Some(words) = words {
            object.remove("oneOf");
            object.insert("enum".to_owned(), Value::Array(words));
        }
    }
    for (key, inner) in object.iter_mut() {
        shorten(inner, key == "properties" && !names_are_keys);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Serialize, JsonSchema)]
    struct Whole {
        /// Kept.
        part: Option<Part>,
        many: Vec<Part>,
    }

    #[derive(Clone, serde::Serialize, JsonSchema)]
    struct Part {
        /// Dropped.
        description: Word,
        size: u32,
        name: Name,
    }

    #[derive(Clone, serde::Serialize, JsonSchema)]
    struct Name(String);

    #[derive(Clone, Copy, serde::Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Word {
        /// Dropped.
        One,
        /// Dropped.
        Two,
    }

    #[test]
    fn the_words_of_parts_are_dropped_and_nothing_else() {
        let schema = Value::Object((*output::<Whole>()).clone());
        assert_eq!(schema["properties"]["part"]["description"], "Kept.");
        let part = &schema["$defs"]["Part"];
        assert_eq!(part["properties"]["description"], json!({"enum": ["one", "two"]}));
        assert_eq!(schema["properties"]["many"]["items"], json!({"$ref": "#/$defs/Part"}));
        assert_eq!(schema["$defs"].as_object().map(serde_json::Map::len), Some(1));
        assert_eq!(part["properties"]["size"], json!({"type": "integer"}));
        assert_eq!(part["required"], Value::Null);
        assert_eq!(
            part["properties"]["name"],
            json!({"type": "string"}),
            "stands where it is used"
        );
        assert!(!schema.to_string().contains("Dropped"));
        assert!(schema["properties"]["truncated"].is_object());
    }
}
