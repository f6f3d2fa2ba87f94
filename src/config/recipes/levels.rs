//! The levels of a training, their words and their values.

use super::{HOLES, Reader};
use crate::config::keys::{self, Key};
use crate::config::read::{self, Value};
use crate::config::value;
use crate::config::yaml::{self, Node};
use crate::domain::Level;
use std::collections::BTreeMap;

/// `train-<training>-<level>-s<seed>` must be a job's name, which has at most 64 characters.
const NAMES_MAX: usize = 45;

impl Reader<'_> {
    pub(super) fn levels(&mut self, training: &str) -> Vec<Level> {
        let Some(entry) = self.section.get("levels") else { return Vec::new() };
        let Value::Mapping(node) = &entry.value else { return Vec::new() };
        let known: Vec<&'static Key> = keys::LEVEL.iter().collect();
        let mut levels: Vec<Level> = Vec::new();
        for (name, node) in read::mapping(node, &entry.path, self.problems).unwrap_or_default() {
            let path = read::join(&entry.path, &name.name);
            let line = name.at.line;
            if let Err(fault) = value::declared_name(&name.name) {
                self.problems.add(line, &path, fault.why, fault.fix);
            }
            if training.len() + name.name.len() > NAMES_MAX {
                let what = format!("makes a job's name too long with {training}");
                self.problems.add(line, &path, what, "choose shorter names");
            }
            let section = read::section(node, &path, &known, self.problems);
            let values = match section.get("values").map(|entry| (&entry.path, &entry.value)) {
                Some((path, Value::Mapping(node))) => self.values(node, path),
                _ => BTreeMap::new(),
            };
            let aliases = match section.get("aliases").map(|entry| &entry.value) {
                Some(Value::Texts(list)) => list.clone(),
                _ => Vec::new(),
            };
            for word in aliases.iter().chain([&name.name]) {
                if let Some(other) = levels.iter().find(|level| level.is_called(word)) {
                    let what = format!("{word} means {} already", other.name);
                    self.problems.add(line, &path, what, "give each level words of its own");
                }
            }
            if let Some(first) =
                levels.first().filter(|first| !first.values.keys().eq(values.keys()))
            {
                let fields: Vec<&str> = first.values.keys().map(String::as_str).collect();
                let what = format!("has other values than {}", first.name);
                let fix = format!("give each level a value for: {}", fields.join(", "));
                self.problems.add(line, &path, what, fix);
            }
            levels.push(Level { name: name.name.clone(), aliases, values });
        }
        levels
    }

    /// Values to the letter: a quoted text as it is, anything else as its source stands in the file.
    fn values(&mut self, node: &Node, path: &str) -> BTreeMap<String, String> {
        let mut values = BTreeMap::new();
        for (name, node) in read::mapping(node, path, self.problems).unwrap_or_default() {
            let path = read::join(path, &name.name);
            if let Err(fault) = value::identifier(&name.name) {
                self.problems.add(name.at.line, &path, fault.why, fault.fix);
            }
            if HOLES.contains(&name.name.as_str()) {
                let fix = "choose another name";
                self.problems.add(name.at.line, &path, "is a placeholder of every command", fix);
            }
            let text = match &node.value {
                yaml::Value::Text(text) => Some(text),
                yaml::Value::Number | yaml::Value::Bool | yaml::Value::List(_) => {
                    Some(&node.source)
                }
                yaml::Value::Null | yaml::Value::Map(_) => None,
            };
            let is_plain = |text: &&String| {
                !text.is_empty() && text.trim() == *text && !text.chars().any(char::is_control)
            };
            match text.filter(is_plain) {
                Some(text) => {
                    values.insert(name.name.clone(), text.clone());
                }
                None => self.problems.add(
                    node.at.line,
                    path,
                    "is not a value of one line",
                    "write it in quotes, exactly as it stands in the code, for example \"[0.1, 0.2]\"",
                ),
            }
        }
        values
    }
}
