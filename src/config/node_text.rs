//! What a value of the file says, for whoever reads it and for whoever is told what is wrong with it.

use super::yaml::{self, Node};

/// A value's faults: suffix of the key, line, what is wrong, what would do.
pub(super) type Wrong = Vec<(String, u64, String, String)>;

/// A scalar's text: a text as it is, a number or boolean as it was written, so that a pod may be
/// called 42 and a CUDA version 12.10.
pub(super) fn text_of(node: &Node) -> Option<&str> {
    match &node.value {
        yaml::Value::Text(text) => Some(text),
        yaml::Value::Number | yaml::Value::Bool => Some(&node.source),
        yaml::Value::Null | yaml::Value::List(_) | yaml::Value::Map(_) => None,
    }
}

/// A value as it was written, cut to 80 characters, without what looks like a key.
pub(super) fn shown(node: &Node) -> String {
    match &node.value {
        yaml::Value::Map(_) => "a mapping".to_owned(),
        yaml::Value::List(_) => "a list".to_owned(),
        yaml::Value::Null => "nothing".to_owned(),
        _ => {
            // No key takes an address, and that of a webhook is a secret as a whole.
            if node.source.contains("://") {
                return "an address (not shown)".to_owned();
            }
            let clean = crate::secret::scrub(&node.source, &[]);
            let mut short: String =
                clean.chars().map(|c| if c.is_control() { ' ' } else { c }).take(80).collect();
            if clean.chars().count() > 80 {
                short.push('…');
            }
            short
        }
    }
}
