//! The mapping of names `vehicles`, and the words that point into it.

use super::error::{Problems, nearest};
use super::read::{self, Entry, Section, Value};
use super::{keys, value, yaml};
use crate::domain::VehicleName;

/// A vehicle's checked keys.
pub(super) struct Declared {
    pub name: String,
    pub path: String,
    pub section: Section,
}

impl Declared {
    /// Whether it has a key of this group itself, also one that did not pass.
    pub(super) fn gives(&self, group: &str) -> bool {
        let inside = format!("{group}.");
        let all = keys::OWN_OPTIONAL.iter().chain(keys::SHARED);
        let mut own = all.filter(|key| key.name.starts_with(&inside));
        own.any(|key| self.section.was_given(key.name))
    }
}

pub(super) fn vehicles(file: &Section, problems: &mut Problems) -> Vec<Declared> {
    let Some(Entry { line, value: Value::Mapping(node), .. }) = file.get("vehicles") else {
        if !file.was_given("vehicles") {
            problems.add(0, "vehicles", "is missing", "declare at least one vehicle under it");
        }
        return Vec::new();
    };
    let Some(pairs) = read::mapping(node, "vehicles", problems) else { return Vec::new() };
    if pairs.is_empty() {
        problems.add(*line, "vehicles", "is empty", "declare at least one vehicle under it");
    }
    let known = keys::of_vehicle();
    let mut declared = Vec::new();
    for (name, node) in pairs {
        let path = read::join("vehicles", &name.name);
        if let Err(fault) = value::declared_name(&name.name) {
            problems.add(name.at.line, &path, fault.why, fault.fix);
        }
        let mut section = read::section(node, &path, &known, problems);
        section.line = name.at.line;
        for key in keys::OWN {
            if matches!(node.value, yaml::Value::Map(_)) && !section.was_given(key.name) {
                let fix = format!("write for example {}: {}", key.name, key.example);
                problems.add(name.at.line, read::join(&path, key.name), "is missing", fix);
            }
        }
        declared.push(Declared { name: name.name.clone(), path, section });
    }
    declared
}

pub(super) fn default_vehicle(
    file: &Section,
    declared: &[Declared],
    problems: &mut Problems,
) -> VehicleName {
    let given = file.get("default_vehicle");
    given
        .and_then(|entry| declared_vehicle(entry, declared, problems))
        // The first that is declared; with none at all there is a problem already.
        .unwrap_or_else(|| {
            VehicleName(declared.first().map_or_else(String::new, |v| v.name.clone()))
        })
}

pub(super) fn declared_vehicle(
    entry: &Entry,
    declared: &[Declared],
    problems: &mut Problems,
) -> Option<VehicleName> {
    let Value::Text(name) = &entry.value else { return None };
    if declared.iter().any(|vehicle| vehicle.name == *name) {
        return Some(VehicleName(name.clone()));
    }
    let fix = nearest(name, declared.iter().map(|vehicle| vehicle.name.as_str()));
    problems.add(entry.line, &entry.path, format!("{name} is not a declared vehicle"), fix);
    None
}

pub(super) fn names(declared: &[Declared]) -> String {
    declared.iter().map(|vehicle| vehicle.name.as_str()).collect::<Vec<_>>().join(", ")
}
