//! What was received, against the pod's list: what may be put in place, and what is missing.

use super::TransferError;
use super::apart::LocalNames;
use super::manifest::{Check, Entry, Manifest, Stamp};
use super::rsync_run::PARTIAL_DIR;
use super::verified::{Here, Known, Verified};
use crate::digest::sha256_of_file;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

/// The verdict on one round.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// Folders, parents first.
    pub(super) folders: Vec<PathBuf>,
    /// Files and links in the staging tree that may be put in place.
    pub(super) good: Vec<PathBuf>,
    /// Files that are not as the pod has them, and why.
    pub(super) bad: BTreeMap<PathBuf, &'static str>,
    /// What is left out on purpose, and why.
    pub(super) left_out: BTreeMap<PathBuf, &'static str>,
    /// What is in the staging tree and not on the pod's list.
    pub(super) unasked: Vec<PathBuf>,
    /// Files whose hash was just found equal, as they were when it was.
    pub(super) equal: BTreeMap<PathBuf, Here>,
    /// Files that neither side has changed since their hash was found equal.
    pub(super) unchanged: Vec<Known>,
}

/// Where things are kept here, and what was equal before.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) dir: PathBuf,
    pub(super) names: LocalNames,
    pub(super) check: Check,
}

impl Local {
    /// Where a path of the pod is kept.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        self.dir.join(self.names.of(path))
    }
}

/// Compares the staging tree, and behind it what is already in place, with the pod's list.
/// Reads every file when `check` asks for hashes; call it where blocking is allowed.
pub(super) fn check(
    manifest: &Manifest,
    tree: &Path,
    local: &Local,
    verified: &Verified,
) -> Result<Checked, TransferError> {
    let mut checked = Checked::default();
    let mut staged = BTreeMap::new();
    walk(tree, Path::new(""), &mut checked.folders, &mut staged)?;

    for (path, entry) in &manifest.entries {
        let found = staged.remove(path);
        match (entry, found) {
            (Entry::Other, _) => {
                checked.left_out.insert(path.clone(), "neither file, folder nor link");
            }
            (Entry::Link, Some(Found::Link(target))) => {
                if stays_inside(path, &target) {
                    checked.good.push(path.clone());
                } else {
                    checked.left_out.insert(path.clone(), LEADS_OUT);
                }
            }
            (Entry::Link, _) => {
                // The client drops links that lead out; one that is here already is not sent.
                let is_here = fs::symlink_metadata(local.path(path))
                    .is_ok_and(|meta| meta.file_type().is_symlink());
                if !is_here {
                    checked.left_out.insert(path.clone(), LEADS_OUT);
                }
            }
            (Entry::File { size, stamp, hash }, found) => {
                let (here, is_staged) = match found {
                    Some(Found::File { special: true }) => {
                        checked.bad.insert(path.clone(), "it came with setuid or setgid");
                        continue;
                    }
                    Some(Found::File { .. }) => (tree.join(path), true),
                    Some(_) => {
                        checked.bad.insert(path.clone(), "something else came under its name");
                        continue;
                    }
                    None => (local.path(path), false),
                };
                let known = Some(verified).filter(|_| local.check == Check::Hashes && !is_staged);
                if let Some(known) = known.and_then(|all| all.unchanged(path, *size, stamp, &here))
                {
                    checked.unchanged.push(known.clone());
                    continue;
                }
                match compare(&here, *size, hash.as_ref(), local.check) {
                    Ok(equal) => {
                        checked.equal.extend(equal.map(|equal| (path.clone(), equal)));
                        if is_staged {
                            checked.good.push(path.clone());
                        }
                    }
                    Err(why) => {
                        checked.bad.insert(path.clone(), why);
                    }
                }
            }
        }
    }
    let strangers = staged.into_keys().filter(|path| !local.names.is_apart(path));
    checked.unasked.extend(strangers);
    Ok(checked)
}

const LEADS_OUT: &str = "a link that leads out of the folder";

enum Found {
    File { special: bool },
    Link(PathBuf),
    Other,
}

/// Everything below `base`/`inside`, following no link.
fn walk(
    base: &Path,
    inside: &Path,
    folders: &mut Vec<PathBuf>,
    found: &mut BTreeMap<PathBuf, Found>,
) -> Result<(), TransferError> {
    let folder = base.join(inside);
    let failed = |error| TransferError::local("reading", &folder, error);
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = inside.join(entry.file_name());
        let meta = entry.metadata().map_err(failed)?;
        if meta.is_dir() {
            if entry.file_name() != PARTIAL_DIR {
                folders.push(path.clone());
                walk(base, &path, folders, found)?;
            }
        } else if meta.file_type().is_symlink() {
            let target = fs::read_link(entry.path()).map_err(failed)?;
            found.insert(path, Found::Link(target));
        } else if meta.is_file() {
            let special = meta.permissions().mode() & 0o6000 != 0;
            found.insert(path, Found::File { special });
        } else {
            found.insert(path, Found::Other);
        }
    }
    Ok(())
}

/// Whether a link at `path` stays in the folder: first up, at most to the folder, then only down.
/// A target that goes up after having gone down is refused: what it went down through may itself
/// be a link, and then it ends elsewhere than it reads.
fn stays_inside(path: &Path, target: &Path) -> bool {
    let mut room = path.components().count().saturating_sub(1);
    let mut went_down = false;
    target.components().all(|part| match part {
        Component::Normal(_) => {
            went_down = true;
            true
        }
        Component::CurDir => true,
        Component::ParentDir if went_down || room == 0 => false,
        Component::ParentDir => {
            room -= 1;
            true
        }
        Component::RootDir | Component::Prefix(_) => false,
    })
}

/// `Ok` when it is as the pod has it; with its marks when that was proven by its hash.
fn compare(
    here: &Path,
    size: u64,
    hash: Option<&[u8; 32]>,
    check: Check,
) -> Result<Option<Here>, &'static str> {
    let Ok(meta) = fs::symlink_metadata(here) else { return Err("it did not come") };
    if !meta.is_file() {
        return Err("something else is in its place");
    }
    if meta.len() != size {
        return Err("its size differs from the pod's");
    }
    let hash = match (check, hash) {
        (Check::Sizes, _) => return Ok(None),
        (Check::Hashes, None) => {
            return Err("the pod could not read it, or it changed meanwhile");
        }
        (Check::Hashes, Some(hash)) => hash,
    };
    // Looked at before it is read: what changes it meanwhile changes these.
    let marks = Here::of(here).map_err(|_| "it cannot be read here")?;
    match sha256_of_file(here) {
        Ok((_, own)) if own == *hash => Ok(Some(marks)),
        Ok(_) => Err("its content differs from the pod's"),
        Err(_) => Err("it cannot be read here"),
    }
}

/// What of a list has to be hashed on the pod: everything that is not known to be unchanged.
pub(super) fn unproven<'a>(
    manifest: &'a Manifest,
    local: &Local,
    verified: &Verified,
) -> Vec<(&'a Path, u64)> {
    let is_proven = |path: &Path, size: u64, stamp: &Stamp| {
        verified.unchanged(path, size, stamp, &local.path(path)).is_some()
    };
    manifest
        .files()
        .filter(|(path, size, stamp)| !is_proven(path, *size, stamp))
        .map(|(path, size, _)| (path, size))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest as _, Sha256};
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_may_only_go_up_to_the_folder_and_then_down() {
        for (path, target, stays) in [
            ("l", "a", true),
            ("l", "./a/b", true),
            ("d/l", "../a", true),
            ("d/e/l", "../../a", true),
            ("l", "..", false),
            ("l", "../a", false),
            ("d/l", "../../a", false),
            ("l", "/etc/passwd", false),
            ("l", "a/../..", false),
            ("d/e/l2", "l/../../..", false),
        ] {
            assert_eq!(stays_inside(Path::new(path), Path::new(target)), stays, "{path} {target}");
        }
    }

    fn file(content: &[u8]) -> Entry {
        let hash = Some(Sha256::digest(content).into());
        Entry::File { size: content.len() as u64, stamp: Stamp::default(), hash }
    }

    fn manifest(entries: &[(&str, Entry)]) -> Manifest {
        let entries = entries.iter().map(|(path, entry)| (PathBuf::from(path), entry.clone()));
        Manifest { entries: entries.collect(), ..Manifest::default() }
    }

    fn folders() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (tree, local) = (folder.path().join("tree"), folder.path().join("local"));
        fs::create_dir(&tree).unwrap();
        fs::create_dir(&local).unwrap();
        (folder, tree, local)
    }

    /// D02: what is cut short, differs or did not come is named, and nothing else passes as good.
    #[test]
    fn only_what_the_pod_has_passes() {
        let (_folder, tree, local) = folders();
        fs::write(tree.join("good"), "whole").unwrap();
        fs::write(tree.join("cut"), "who").unwrap();
        fs::write(tree.join("odd"), "WHOLE").unwrap();
        fs::write(tree.join("unasked"), "x").unwrap();
        fs::write(tree.join("setuid"), "whole").unwrap();
        fs::set_permissions(tree.join("setuid"), fs::Permissions::from_mode(0o4755)).unwrap();
        fs::write(local.join("kept"), "whole").unwrap();
        fs::write(local.join("stale"), "WHOLE").unwrap();
        symlink("good", tree.join("link")).unwrap();
        symlink("/etc/passwd", tree.join("out")).unwrap();
        symlink("/etc/passwd", tree.join("swapped")).unwrap();
        let whole = ["good", "cut", "odd", "absent", "setuid", "kept", "stale", "swapped"];
        let mut entries: Vec<(&str, Entry)> =
            whole.iter().map(|name| (*name, file(b"whole"))).collect();
        entries.extend([("link", Entry::Link), ("out", Entry::Link), ("pipe", Entry::Other)]);
        let manifest = manifest(&entries);

        let kept = |check| Local { dir: local.clone(), names: LocalNames::default(), check };
        let nothing = Verified::default();
        let checked = check(&manifest, &tree, &kept(Check::Hashes), &nothing).unwrap();
        let names = |paths: &mut dyn Iterator<Item = &PathBuf>| -> Vec<String> {
            paths.map(|path| path.display().to_string()).collect()
        };
        assert_eq!(names(&mut checked.good.iter()), ["good", "link"]);
        assert_eq!(
            names(&mut checked.bad.keys()),
            ["absent", "cut", "odd", "setuid", "stale", "swapped"]
        );
        assert_eq!(names(&mut checked.left_out.keys()), ["out", "pipe"]);
        assert_eq!(names(&mut checked.unasked.iter()), ["unasked"]);

        let equal = [PathBuf::from("good"), PathBuf::from("kept")];
        assert!(checked.equal.keys().eq(&equal), "{:?}", checked.equal);

        let by_size = check(&manifest, &tree, &kept(Check::Sizes), &nothing).unwrap();
        assert!(by_size.equal.is_empty(), "a size proves nothing");
        assert!(!by_size.bad.contains_key(Path::new("odd")));
        assert!(by_size.bad.contains_key(Path::new("cut")));
    }
}
