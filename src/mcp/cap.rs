//! Keeps every answer within what clients show: at most 32 KB of JSON (G07).

use serde_json::Value;

/// The most bytes of JSON in one answer.
pub const MAX_BYTES: usize = 32 * 1024;

/// Halves the largest text or list, from the front, until the whole fits; then `truncated` is true.
pub fn cap(mut value: Value) -> Value {
    let mut cut = false;
    while value.to_string().len() > MAX_BYTES - 32 && halve_largest(&mut value) {
        cut = true;
    }
    if cut && let Value::Object(object) = &mut value {
        object.insert("truncated".to_owned(), Value::Bool(true));
    }
    value
}

fn halve_largest(value: &mut Value) -> bool {
    let Some(path) = largest(value) else { return false };
    let mut at = value;
    for step in path {
        let next = match (at, step) {
            (Value::Object(object), Step::Key(key)) => object.get_mut(&key),
            (Value::Array(items), Step::Index(index)) => items.get_mut(index),
            _ => None,
        };
        match next {
            Some(next) => at = next,
            None => return false,
        }
    }
    match at {
        Value::String(text) => {
            let middle = text.len() / 2;
            let start =
                (middle..text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(text.len());
            *text = text.split_off(start);
            true
        }
        Value::Array(items) => {
            items.truncate(items.len() / 2);
            true
        }
        _ => false,
    }
}

enum Step {
    Key(String),
    Index(usize),
}

/// The path to the longest text, or to the longest list when no text is longer than its share.
fn largest(value: &Value) -> Option<Vec<Step>> {
    fn walk(value: &Value, best: &mut (usize, Vec<Step>), path: &mut Vec<Step>) {
        let weight = match value {
            Value::String(text) if text.len() > 64 => text.len(),
            // A list weighs as much as it would free when halved.
            Value::Array(items) if items.len() > 1 => value.to_string().len() / 2,
            _ => 0,
        };
        if weight > best.0 {
            let copy = path
                .iter()
                .map(|step| match step {
                    Step::Key(key) => Step::Key(key.clone()),
                    Step::Index(index) => Step::Index(*index),
                })
                .collect();
            *best = (weight, copy);
        }
        match value {
            Value::Object(object) => {
                for (key, inner) in object {
                    path.push(Step::Key(key.clone()));
                    walk(inner, best, path);
                    path.pop();
                }
            }
            Value::Array(items) => {
                for (index, inner) in items.iter().enumerate() {
                    path.push(Step::Index(index));
                    walk(inner, best, path);
                    path.pop();
                }
            }
            _ => {}
        }
    }
    let mut best = (0, Vec::new());
    walk(value, &mut best, &mut Vec::new());
    (best.0 > 0).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// G07: every answer fits, and says when something was left off.
    #[test]
    fn an_answer_is_cut_at_its_largest_part_and_says_so() {
        let small = json!({"a": "x", "n": [1, 2, 3]});
        assert_eq!(cap(small.clone()), small);
        let long = cap(json!({"status": "running", "log": "é".repeat(100_000)}));
        assert!(long.to_string().len() <= MAX_BYTES);
        assert_eq!((&long["status"], &long["truncated"]), (&json!("running"), &json!(true)));
        assert!(long["log"].as_str().unwrap().len() > 10_000);
        let list: Vec<_> =
            (0..5_000).map(|i| json!({"id": format!("pod{i}"), "name": "stranger"})).collect();
        let listed = cap(json!({"pods": list}));
        assert!(listed.to_string().len() <= MAX_BYTES);
        assert!(!listed["pods"].as_array().unwrap().is_empty());
        let nested = cap(json!({"plan": [{"command": "x".repeat(60_000)}, {"command": "y"}]}));
        assert!(nested.to_string().len() <= MAX_BYTES);
    }
}
