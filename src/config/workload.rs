//! What a vehicle's pod is set up with, patched with and swept with: scripts of the user's, named in
//! the config. Nothing is read here; a script that is missing stands in no stop's way.

use super::declared::Declared;
use super::error::{Problems, nearest};
use super::paths;
use super::read::{Entry, Section, Value, join};
use crate::domain::{Template, VehicleName};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A script that runs on the pod as a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodScript {
    /// The script on this machine, absolute.
    pub script: PathBuf,
    /// More files that are placed beside it, absolute.
    pub files: Vec<PathBuf>,
    /// The words that run it, with placeholders: see [`PLACEHOLDERS`].
    pub command: Vec<Template>,
}

/// A sweep over the thrusters, and the marker that it leaves when it passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// The script.
    pub run: PodScript,
    /// Its PASS marker, relative to the volume's mount path.
    pub marker: String,
}

/// Patches of the trainings' source on the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patches {
    /// The script that applies them; podtether's own for the BlueROV2 when `None`.
    pub script: Option<PathBuf>,
    /// Files that are placed beside it and given to it, absolute.
    pub files: Vec<PathBuf>,
    /// The checkout that is patched, relative to the volume's mount path.
    pub checkout: String,
    /// The commit that it must be at, 40 hexadecimal digits.
    pub commit: String,
    /// The marker that is there while the patches are in, relative to the volume's mount path.
    pub marker: String,
}

/// What a vehicle declares of all this.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// For `run_pod_setup`.
    pub setup: Option<PodScript>,
    /// For `apply_bluerov_patches`.
    pub patches: Option<Patches>,
    /// For `axis_sanity_sweep`.
    pub sweep: Option<Sweep>,
}

/// What a word of a command may hold in braces: the script and the folder it is placed in, the
/// volume's mount path, and the sweep's marker.
pub const PLACEHOLDERS: [&str; 4] = ["script", "files", "mount", "marker"];

/// The file's part and what its paths are relative to.
pub(super) struct Reader<'a> {
    pub file: &'a Section,
    pub defaults: &'a Section,
    pub folder: &'a Path,
    pub home: Option<&'a Path>,
}

impl Reader<'_> {
    /// What every vehicle declares. `patches` and `sweep` belong to one vehicle, since the tools that
    /// use them name none.
    pub(super) fn workloads(
        &self,
        declared: &[Declared],
        problems: &mut Problems,
    ) -> BTreeMap<VehicleName, Workload> {
        for group in ["patches", "sweep"] {
            let mut having = declared.iter().filter(|one| one.gives(group));
            if let (Some(first), Some(second)) = (having.next(), having.next()) {
                let path = join(&second.path, group);
                let what = format!("is declared by {} too", first.path);
                let fix = "declare it for one vehicle: its tool does not name a vehicle";
                problems.add(second.section.line, path, what, fix);
            }
        }
        let of = |one: &Declared, problems: &mut Problems| Workload {
            setup: self.script(one, "setup", false, problems),
            patches: self.patches(one, problems),
            sweep: self.sweep(one, problems),
        };
        let all = declared.iter();
        all.map(|one| (VehicleName(one.name.clone()), of(one, problems))).collect()
    }

    fn get<'a>(&'a self, of: &'a Declared, name: &str) -> Option<&'a Entry> {
        of.section.get(name).or_else(|| self.file.get(name)).or_else(|| self.defaults.get(name))
    }

    fn script(
        &self,
        of: &Declared,
        group: &str,
        has_marker: bool,
        problems: &mut Problems,
    ) -> Option<PodScript> {
        let name = format!("{group}.script");
        let Some(entry) = self.get(of, &name) else {
            let inside = format!("{group}.");
            let mut keys = super::keys::SHARED.iter().filter(|key| key.name.starts_with(&inside));
            let is_given = of.gives(group) || keys.any(|key| self.file.was_given(key.name));
            if is_given && !of.section.was_given(&name) && !self.file.was_given(&name) {
                missing(of, &name, problems);
            }
            return None;
        };
        let Value::Path(written) = &entry.value else { return None };
        let script = self.expanded(written, entry, problems)?;
        let files = self.files(of, &format!("{group}.files"), problems);
        let command = self.get(of, &format!("{group}.command"));
        let command = match command {
            Some(entry) => templates(entry, has_marker, problems),
            None => words(&script, has_marker),
        };
        Some(PodScript { script, files, command })
    }

    fn sweep(&self, of: &Declared, problems: &mut Problems) -> Option<Sweep> {
        let run = self.script(of, "sweep", true, problems);
        if !of.gives("sweep") {
            return None;
        }
        let marker = self.on_volume(of, "sweep.marker", problems);
        Some(Sweep { run: run?, marker: marker? })
    }

    fn patches(&self, of: &Declared, problems: &mut Problems) -> Option<Patches> {
        if !of.gives("patches") {
            return None;
        }
        let script = self.get(of, "patches.script").and_then(|entry| match &entry.value {
            Value::Path(written) => self.expanded(written, entry, problems),
            _ => None,
        });
        let files = self.files(of, "patches.files", problems);
        let checkout = self.on_volume(of, "patches.checkout", problems);
        let marker = self.on_volume(of, "patches.marker", problems);
        let commit = match self.get(of, "patches.commit").map(|entry| &entry.value) {
            Some(Value::Text(commit)) => Some(commit.clone()),
            _ => {
                if !of.section.was_given("patches.commit") {
                    missing(of, "patches.commit", problems);
                }
                None
            }
        };
        Some(Patches { script, files, checkout: checkout?, commit: commit?, marker: marker? })
    }

    /// A path on the volume that must be there.
    fn on_volume(&self, of: &Declared, name: &str, problems: &mut Problems) -> Option<String> {
        let Some(entry) = self.get(of, name) else {
            if !of.section.was_given(name) {
                missing(of, name, problems);
            }
            return None;
        };
        let mount = self.get(of, "volume_mount_path").map(|entry| &entry.value);
        let (Value::Text(written), Some(Value::Text(mount))) = (&entry.value, mount) else {
            return None;
        };
        on_volume(written, mount)
            .map_err(|(what, fix)| problems.add(entry.line, &entry.path, what, fix))
            .ok()
    }

    /// The files' names must differ, since they come to lie in one folder.
    fn files(&self, of: &Declared, name: &str, problems: &mut Problems) -> Vec<PathBuf> {
        let Some(entry) = self.get(of, name) else { return Vec::new() };
        let Value::Texts(list) = &entry.value else { return Vec::new() };
        let mut files: Vec<PathBuf> = Vec::new();
        for written in list {
            let Some(path) = self.expanded(written, entry, problems) else { continue };
            if files.iter().any(|other| other.file_name() == path.file_name()) {
                let what = format!("{written} has the name of another file of the list");
                problems.add(entry.line, &entry.path, what, "rename one of them");
            }
            files.push(path);
        }
        files
    }

    fn expanded(&self, written: &str, entry: &Entry, problems: &mut Problems) -> Option<PathBuf> {
        paths::expand(written, self.folder, self.home)
            .map_err(|(what, fix)| problems.add(entry.line, &entry.path, what, fix))
            .ok()
    }
}

fn missing(of: &Declared, name: &str, problems: &mut Problems) {
    let mut keys = super::keys::OWN_OPTIONAL.iter().chain(super::keys::SHARED);
    let example = keys.find(|key| key.name == name);
    let example = example.map_or("a path", |key| key.example);
    let fix = format!("write for example {name}: {example}");
    problems.add(of.section.line, join(&of.path, name), "is missing", fix);
}

/// The words that run a script when the config says none.
fn words(script: &Path, has_marker: bool) -> Vec<Template> {
    let is_python = script.extension().is_some_and(|extension| extension == "py");
    let program = if is_python { "python3" } else { "bash" };
    let marker: &[&str] = if has_marker { &["--marker", "{marker}"] } else { &[] };
    [program, "{script}"]
        .iter()
        .chain(marker)
        .filter_map(|word| Template::parse(word).ok())
        .collect()
}

/// The words of a command. Each placeholder must stand for something, and one of them for the script.
fn templates(entry: &Entry, has_marker: bool, problems: &mut Problems) -> Vec<Template> {
    let Value::Texts(words) = &entry.value else { return Vec::new() };
    let known = PLACEHOLDERS.iter().filter(|name| has_marker || **name != "marker");
    let mut templates = Vec::new();
    for word in words {
        match Template::parse(word) {
            Ok(template) => templates.push(template),
            Err(error) => {
                problems.add(entry.line, &entry.path, error.to_string(), "double the plain braces");
            }
        }
    }
    let names = || templates.iter().flat_map(Template::placeholders);
    for name in names() {
        if !known.clone().any(|known| *known == name) {
            let what = format!("{{{name}}} stands for nothing");
            problems.add(entry.line, &entry.path, what, nearest(name, known.clone().copied()));
        }
    }
    if !names().any(|name| name == "script") {
        let fix = "name the script as \"{script}\" in it";
        problems.add(entry.line, &entry.path, "does not run the script", fix);
    }
    templates
}

/// A path on the volume, relative to its mount path. One that is absolute must lie below the mount
/// path as the config has it: everything else on a pod is wiped by a stop.
pub(super) fn on_volume(written: &str, mount: &str) -> Result<String, (String, String)> {
    let inside = match written.strip_prefix(mount).and_then(|rest| rest.strip_prefix('/')) {
        Some(inside) => inside,
        None if written.starts_with('/') => {
            return Err((
                format!("{written} is not below volume_mount_path {mount}"),
                "write it relative to the volume, such as markers/done".to_owned(),
            ));
        }
        None => written,
    };
    let parts: Vec<&str> = inside.split('/').collect();
    if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
        return Err((
            format!("{written} is not a plain path on the volume"),
            "write it without ., .. and double slashes, such as markers/done".to_owned(),
        ));
    }
    Ok(inside.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_on_the_volume_is_below_its_mount_path_and_nothing_else() {
        for (written, inside) in [
            ("/workspace/isaac-auv-env", Some("isaac-auv-env")),
            ("markers/done", Some("markers/done")),
            ("/root/x", None),
            ("/workspace", None),
            ("/workspace2/x", None),
            ("../x", None),
            ("/workspace/../x", None),
            ("a//b", None),
            ("", None),
        ] {
            assert_eq!(on_volume(written, "/workspace").ok().as_deref(), inside, "{written}");
        }
    }
}
