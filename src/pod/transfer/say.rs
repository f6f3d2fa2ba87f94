//! What a pull has to say beside its figures, one sentence each.

use super::apart::LocalNames;
use super::check::Checked;
use super::manifest::{Entry, Manifest};
use super::room::ALL_BUT_FULL;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Files that are never empty when they are whole (D02).
const NEVER_EMPTY: [&str; 5] = ["pt", "pth", "ckpt", "safetensors", "onnx"];

/// About the files.
pub(super) fn of_files(
    checked: &Checked,
    snapshots: &[PathBuf],
    names: &LocalNames,
) -> Vec<String> {
    let mut said = Vec::new();
    for (path, why) in &checked.bad {
        if snapshots.contains(path) {
            said.push(format!("{} is still being written; this is how it was", shown(path)));
        } else {
            said.push(format!("{} is missing: {why}", shown(path)));
        }
    }
    for (path, why) in &checked.left_out {
        said.push(format!("{} was left out: {why}", shown(path)));
    }
    // rsync's own leftovers of an interrupted run begin with a dot and end in six letters.
    let strangers = checked.unasked.iter().filter(|path| !is_leftover(path)).count();
    if strangers > 0 {
        said.push(format!("{strangers} files that the pod does not list were left out"));
    }
    for (path, here) in names.renamed() {
        said.push(format!(
            "{} is here as {}: this disk cannot tell its name from another that differs only by case",
            shown(path),
            shown(&here)
        ));
    }
    said
}

/// About the pod.
pub(super) fn of_the_pod(manifest: &Manifest) -> Vec<String> {
    let mut said = Vec::new();
    for (path, entry) in &manifest.entries {
        let never_empty = path
            .extension()
            .and_then(OsStr::to_str)
            .is_some_and(|extension| NEVER_EMPTY.contains(&extension));
        if never_empty && matches!(entry, Entry::File { size: 0, .. }) {
            said.push(format!("{} is empty on the pod", shown(path)));
        }
    }
    if manifest.free < ALL_BUT_FULL {
        said.push(format!(
            "the pod's volume is all but full ({} bytes are free): what was written last may be cut short",
            manifest.free
        ));
    }
    if !manifest.noise.is_empty() {
        let noise: String =
            manifest.noise.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        said.push(format!(
            "the pod's shell writes before every command ({noise:?}), which breaks rsync and scp; it was left out here. Have ~/.bashrc say nothing unless the shell is interactive"
        ));
    }
    said
}

fn is_leftover(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(OsStr::to_str) else { return false };
    let Some((_, suffix)) = name.strip_prefix('.').and_then(|rest| rest.rsplit_once('.')) else {
        return false;
    };
    suffix.len() == 6 && suffix.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

pub(super) fn shown(path: &Path) -> String {
    path.to_string_lossy().chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
