//! `trainings`: from checked keys to recipes, and what must hold between the keys of one.

mod levels;

use super::declared::{self, Declared};
use super::error::{Problems, nearest};
use super::keys::{self, Key};
use super::read::{self, Section, Value};
use super::yaml::{self, Node};
use super::{paths, value};
use crate::digest::hex;
use crate::domain::{
    CrossCheck, Expected, Level, LinePattern, Marker, Recipe, RewardRange, RunLogs, SourceEdit,
    Template,
};
use sha2::{Digest as _, Sha256};
use std::path::Path;

/// What a recipe is read against.
pub(super) struct Around<'a> {
    /// The folder of the file.
    pub folder: &'a Path,
    pub home: Option<&'a Path>,
    /// The shared keys when neither file nor vehicle has them.
    pub defaults: &'a Section,
}

/// What a command may always have a hole for; the names of values come to it.
const HOLES: [&str; 5] = ["seed", "level", "training", "vehicle", "mount"];
/// What the name of an artifact may have a hole for.
const ARTIFACT_HOLES: [&str; 3] = ["iterations", "last", "seed"];

pub(super) fn trainings(
    file: &Section,
    declared: &[Declared],
    around: &Around<'_>,
    problems: &mut Problems,
) -> Vec<Recipe> {
    let Some(read::Entry { value: Value::Mapping(node), .. }) = file.get("trainings") else {
        return Vec::new();
    };
    let known: Vec<&'static Key> = keys::TRAINING.iter().collect();
    let mut recipes = Vec::new();
    for (name, node) in read::mapping(node, "trainings", problems).unwrap_or_default() {
        let path = read::join("trainings", &name.name);
        if let Err(fault) = value::declared_name(&name.name) {
            problems.add(name.at.line, &path, fault.why, fault.fix);
        }
        let section = read::section(node, &path, &known, problems);
        match section.get("vehicle") {
            Some(entry) => {
                if let Some(vehicle) = declared::declared_vehicle(entry, declared, problems) {
                    let of_vehicle = declared.iter().find(|one| one.name == vehicle.0);
                    let mount = of_vehicle
                        .and_then(|one| one.section.get("volume_mount_path"))
                        .or_else(|| file.get("volume_mount_path"))
                        .or_else(|| around.defaults.get("volume_mount_path"));
                    let mount = match mount.map(|entry| &entry.value) {
                        Some(Value::Text(mount)) => mount.clone(),
                        _ => String::new(),
                    };
                    let mut reader = Reader { section: &section, path: &path, mount, problems };
                    recipes.push(reader.recipe(&name.name, vehicle, node, around));
                }
            }
            None if matches!(node.value, yaml::Value::Map(_)) && !section.was_given("vehicle") => {
                let fix = format!("name one of: {}", declared::names(declared));
                problems.add(name.at.line, read::join(&path, "vehicle"), "is missing", fix);
            }
            None => {}
        }
    }
    recipes
}

struct Reader<'a> {
    section: &'a Section,
    path: &'a str,
    /// The mount path as it is configured, for paths that are written absolute.
    mount: String,
    problems: &'a mut Problems,
}

impl Reader<'_> {
    fn recipe(
        &mut self,
        name: &str,
        vehicle: crate::domain::VehicleName,
        node: &Node,
        around: &Around<'_>,
    ) -> Recipe {
        let levels = self.levels(name);
        let mut holes: Vec<&str> = HOLES.to_vec();
        let fields = levels.first().map(|level| level.values.keys().map(String::as_str));
        holes.extend(fields.into_iter().flatten());
        let command = self.templates("command", &holes);
        let artifacts = self.templates("artifacts", &ARTIFACT_HOLES);
        let edits = self.edits(&levels);
        let default_level = self.level_named("default_level", &levels);
        self.check_values_are_used(&levels, &command, &edits);
        Recipe {
            name: name.to_owned(),
            vehicle,
            workdir: self.pod_path("workdir").unwrap_or_default(),
            command,
            seed_max: self.whole("seed.max").unwrap_or(u32::MAX),
            seed_marker: self.pod_path("seed.marker"),
            gates: [("gates.require", true), ("gates.forbid", false)]
                .into_iter()
                .flat_map(|(key, must_exist)| {
                    let paths = self.pod_paths(self.section, key);
                    paths.into_iter().map(move |path| Marker { path, must_exist })
                })
                .collect(),
            expect: Expected {
                iterations: self.whole("expect.iterations"),
                iterations_option: self.text("expect.iterations_option"),
                startup_sec: self.whole("expect.startup_sec"),
                ms_per_iteration: self.whole("expect.ms_per_iteration"),
                reward: match self.section.get("expect.reward").map(|entry| &entry.value) {
                    Some(Value::Range(low, high)) => {
                        Some(RewardRange { low: low.clone(), high: high.clone() })
                    }
                    _ => None,
                },
            },
            logs: RunLogs {
                root: self.pod_path("logs.root"),
                run_line: self.text("logs.run_line"),
            },
            artifacts,
            checks: self.checks(&levels, around),
            default_level,
            edits,
            levels,
            sha256: sha256_of(node),
        }
    }

    fn text(&self, key: &str) -> Option<String> {
        match &self.section.get(key)?.value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    fn whole(&self, key: &str) -> Option<u32> {
        match self.section.get(key)?.value {
            Value::Whole(number) => Some(number),
            _ => None,
        }
    }

    fn pod_path(&mut self, key: &str) -> Option<String> {
        let entry = self.section.get(key)?;
        let Value::Text(written) = &entry.value else { return None };
        below(&self.mount, written)
            .map_err(|(what, fix)| self.problems.add(entry.line, &entry.path, what, fix))
            .ok()
    }

    fn pod_paths(&mut self, section: &Section, key: &str) -> Vec<String> {
        let Some(entry) = section.get(key) else { return Vec::new() };
        let Value::Texts(list) = &entry.value else { return Vec::new() };
        let mut paths = Vec::new();
        for written in list {
            match below(&self.mount, written) {
                Ok(path) => paths.push(path),
                Err((what, fix)) => self.problems.add(entry.line, &entry.path, what, fix),
            }
        }
        paths
    }

    fn templates(&mut self, key: &str, holes: &[&str]) -> Vec<Template> {
        let Some(entry) = self.section.get(key) else { return Vec::new() };
        let Value::Texts(words) = &entry.value else { return Vec::new() };
        let mut templates = Vec::new();
        for word in words {
            match Template::parse(word) {
                Err(error) => {
                    self.problems.add(entry.line, &entry.path, error.to_string(), "mend the braces")
                }
                Ok(template) => {
                    for hole in template.placeholders().filter(|hole| !holes.contains(hole)) {
                        let what = format!("{{{hole}}} is not a placeholder");
                        let fix = nearest(hole, holes.iter().copied());
                        self.problems.add(entry.line, &entry.path, what, fix);
                    }
                    templates.push(template);
                }
            }
        }
        templates
    }

    /// A value that reaches neither the command nor a file: every level would train the same, under the
    /// name of its own.
    fn check_values_are_used(
        &mut self,
        levels: &[Level],
        command: &[Template],
        edits: &[SourceEdit],
    ) {
        let (Some(first), Some(entry)) = (levels.first(), self.section.get("levels")) else {
            return;
        };
        let holes: Vec<&str> = command.iter().flat_map(Template::placeholders).collect();
        let is_known = |hole: &&str| HOLES.contains(hole) || first.values.contains_key(*hole);
        // The command may look the level up by its name; a slip in a placeholder was told already.
        if command.is_empty() || holes.contains(&"level") || !holes.iter().all(is_known) {
            return;
        }
        let is_edited = |field: &String| edits.iter().any(|edit| edit.fields.contains(field));
        for field in first.values.keys() {
            if !holes.contains(&field.as_str()) && !is_edited(field) {
                let what = format!("{field} is used nowhere, so no level would change it");
                let fix = format!("write {{{field}}} into the command, or name it in edits.fields");
                self.problems.add(entry.line, &entry.path, what, fix);
            }
        }
    }

    /// The level that a key names, by its name or an alias.
    fn level_named(&mut self, key: &str, levels: &[Level]) -> Option<String> {
        let entry = self.section.get(key)?;
        let Value::Text(given) = &entry.value else { return None };
        self.known_level(given, levels, entry.line, &entry.path)
    }

    fn known_level(
        &mut self,
        given: &str,
        levels: &[Level],
        line: u64,
        path: &str,
    ) -> Option<String> {
        let found = levels.iter().find(|level| level.is_called(given));
        if found.is_none() {
            let fix = nearest(given, levels.iter().map(|level| level.name.as_str()));
            self.problems.add(line, path, format!("{given} is not a level"), fix);
        }
        found.map(|level| level.name.clone())
    }

    fn edits(&mut self, levels: &[Level]) -> Vec<SourceEdit> {
        let mut edits: Vec<SourceEdit> = Vec::new();
        for (path, section) in self.items("edits", keys::EDIT) {
            let missing = self.missing(&section, &path, &["file", "fields"]);
            let text = |key: &str| match section.get(key).map(|entry| &entry.value) {
                Some(Value::Text(text)) => Some(text.clone()),
                _ => None,
            };
            let fields = match section.get("fields") {
                Some(read::Entry { line, path, value: Value::Texts(fields) }) => {
                    let known: Vec<&str> = levels
                        .first()
                        .map(|level| level.values.keys().map(String::as_str).collect())
                        .unwrap_or_default();
                    for field in fields.iter().filter(|field| !known.contains(&field.as_str())) {
                        let what = format!("no level has a value for {field}");
                        self.problems.add(*line, path, what, nearest(field, known.iter().copied()));
                    }
                    fields.clone()
                }
                _ => Vec::new(),
            };
            let pattern = text("pattern").unwrap_or_else(|| "{name} = {value}".to_owned());
            let file = text("file").unwrap_or_default();
            let file = below(&self.mount, &file).unwrap_or_else(|(what, fix)| {
                if !missing {
                    self.problems.add(section.line, read::join(&path, "file"), what, fix);
                }
                file
            });
            if edits.iter().any(|edit| edit.file == file) {
                let fix = "put all its fields into one";
                self.problems.add(section.line, &path, format!("{file} has an edit already"), fix);
            }
            let same_as = self.pod_paths(&section, "same_as");
            if let Some(pattern) = LinePattern::parse(&pattern) {
                edits.push(SourceEdit { file, fields, pattern, same_as });
            }
        }
        edits
    }

    fn checks(&mut self, levels: &[Level], around: &Around<'_>) -> Vec<CrossCheck> {
        let mut checks = Vec::new();
        for (path, section) in self.items("checks", keys::CHECK) {
            if self.missing(&section, &path, &["file", "key", "level", "field"]) {
                continue;
            }
            let (Some(file), Some(key), Some(level), Some(field)) = (
                section.get("file"),
                section.get("key"),
                section.get("level"),
                section.get("field"),
            ) else {
                continue;
            };
            let (Value::Path(written), Value::Text(key), Value::Text(given), Value::Text(name)) =
                (&file.value, &key.value, &level.value, &field.value)
            else {
                continue;
            };
            let file = paths::expand(written, around.folder, around.home)
                .map_err(|(what, fix)| self.problems.add(file.line, &file.path, what, fix));
            let found = self.known_level(given, levels, level.line, &level.path);
            let known: Vec<&str> = levels
                .first()
                .map(|level| level.values.keys().map(String::as_str).collect())
                .unwrap_or_default();
            if !known.contains(&name.as_str()) {
                let fix = nearest(name, known);
                self.problems.add(field.line, &field.path, format!("no level has {name}"), fix);
            }
            if let (Ok(file), Some(level)) = (file, found) {
                checks.push(CrossCheck { file, key: key.clone(), level, field: name.clone() });
            }
        }
        checks
    }

    /// The mappings of a list, each with its path.
    fn items(&mut self, key: &str, known: &'static [Key]) -> Vec<(String, Section)> {
        let Some(entry) = self.section.get(key) else { return Vec::new() };
        let Value::Items(nodes) = &entry.value else { return Vec::new() };
        let known: Vec<&'static Key> = known.iter().collect();
        let read = |(i, node): (usize, &Node)| {
            let path = format!("{}[{i}]", entry.path);
            let section = read::section(node, &path, &known, self.problems);
            (path, section)
        };
        nodes.iter().enumerate().map(read).collect()
    }

    fn missing(&mut self, section: &Section, path: &str, required: &[&str]) -> bool {
        let missing: Vec<&&str> = required.iter().filter(|key| !section.was_given(key)).collect();
        for key in &missing {
            let fix = format!("see `{}` in docs/trainings.md", self.path);
            self.problems.add(section.line, read::join(path, key), "is missing", fix);
        }
        !missing.is_empty()
    }
}

/// A path on the pod, relative to the mount path.
fn below(mount: &str, written: &str) -> Result<String, (String, String)> {
    if !written.starts_with('/') {
        return Ok(written.to_owned());
    }
    match written.strip_prefix(mount).and_then(|rest| rest.strip_prefix('/')) {
        Some(rest) => Ok(rest.to_owned()),
        None => Err((
            format!(
                "{written} is not below {mount}, and what lies elsewhere is gone at the first stop"
            ),
            format!("write a path below {mount}"),
        )),
    }
}

/// SHA-256 over keys and values, in their order, without layout and comments.
fn sha256_of(node: &Node) -> String {
    fn add(hash: &mut Sha256, node: &Node) {
        match &node.value {
            yaml::Value::Map(pairs) => {
                hash.update(b"{");
                for (key, value) in pairs {
                    hash.update(key.name.as_bytes());
                    hash.update([0]);
                    add(hash, value);
                }
                hash.update(b"}");
            }
            yaml::Value::List(items) => {
                hash.update(b"[");
                items.iter().for_each(|item| add(hash, item));
                hash.update(b"]");
            }
            yaml::Value::Text(text) => {
                hash.update(text.as_bytes());
                hash.update([0]);
            }
            _ => {
                hash.update(node.source.as_bytes());
                hash.update([0]);
            }
        }
    }
    let mut hash = Sha256::new();
    add(&mut hash, node);
    hex(&hash.finalize())
}
