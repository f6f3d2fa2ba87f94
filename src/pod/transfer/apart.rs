//! Names that differ only by case or by how an accent is written, on a disk that takes them for one: each but the first gets a name of
//! its own here, and comes in a turn of its own, so that none overwrites another on its way in.

use super::manifest::{Entry, Manifest};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use unicode_normalization::UnicodeNormalization as _;

/// Under which names the pod's paths are kept here.
#[derive(Clone, Debug, Default)]
pub(super) struct LocalNames {
    /// Paths of the pod whose own name is another here, files and folders.
    renamed: BTreeMap<PathBuf, String>,
    /// Files that have to come apart from the others, and in which turn.
    turns: BTreeMap<PathBuf, usize>,
}

impl LocalNames {
    /// Names for a disk that is blind to case and to the form of an accent.
    pub(super) fn blind(manifest: &Manifest) -> Self {
        let groups = groups(manifest);
        let index: BTreeMap<&Path, usize> = groups
            .values()
            .filter(|group| group.len() > 1)
            .flat_map(|group| group.iter().enumerate().map(|(at, path)| (*path, at)))
            .collect();
        let mut names = Self::default();
        let mut taken: BTreeSet<String> = BTreeSet::new();
        let parts: BTreeSet<&Path> = groups.values().flatten().copied().collect();
        // Folders before what is in them, so that one name along the way is enough.
        for part in parts.iter().filter(|_| !index.is_empty()) {
            let mut here = names.of(part);
            for number in 2.. {
                let blind = folded(&here);
                let is_own = number == 2 || !groups.contains_key(&blind);
                if is_own && taken.insert(blind) {
                    break;
                }
                here.set_file_name(suffixed(part, number));
            }
            if here.file_name() != part.file_name() {
                let name = here.file_name().unwrap_or_default().to_string_lossy().into_owned();
                names.renamed.insert((*part).to_owned(), name);
            }
        }
        for path in manifest.entries.keys() {
            let own = || path.ancestors().filter_map(|part| index.get(part));
            // Along the order of the paths of one group this sum only grows, so that no two of a
            // group come in one turn.
            if own().next().is_some() {
                names.turns.insert(path.clone(), own().sum());
            }
        }
        names
    }

    /// Where a path of the pod is kept, relative to the local folder.
    pub(super) fn of(&self, path: &Path) -> PathBuf {
        if self.renamed.is_empty() {
            return path.to_owned();
        }
        let mut there = PathBuf::new();
        let mut here = PathBuf::new();
        for part in path.components() {
            there.push(part);
            match self.renamed.get(&there) {
                Some(name) => here.push(name),
                None => here.push(part),
            }
        }
        here
    }

    /// The paths that have another name here, and that name.
    pub(super) fn renamed(&self) -> impl Iterator<Item = (&Path, PathBuf)> {
        self.renamed.keys().map(|path| (path.as_path(), self.of(path)))
    }

    /// Whether a path comes apart from the others.
    pub(super) fn is_apart(&self, path: &Path) -> bool {
        self.turns.contains_key(path)
    }

    /// The list without what comes apart, and one list for each turn.
    pub(super) fn split(&self, manifest: &Manifest) -> (Manifest, BTreeMap<usize, Manifest>) {
        let empty = || Manifest { entries: BTreeMap::new(), ..manifest.clone() };
        if self.turns.is_empty() {
            return (manifest.clone(), BTreeMap::new());
        }
        let (mut plain, mut turns) = (empty(), BTreeMap::new());
        for (path, entry) in &manifest.entries {
            let list = match self.turns.get(path) {
                Some(turn) => turns.entry(*turn).or_insert_with(empty),
                None => &mut plain,
            };
            list.entries.insert(path.clone(), entry.clone());
        }
        (plain, turns)
    }
}

/// What such a disk goes by: APFS and HFS+ compare names without regard to case and to whether `é` is
/// one character or two (Apple, "Frequently Asked Questions" of the APFS guide).
fn folded(path: &Path) -> String {
    path.to_string_lossy().nfd().flat_map(char::to_lowercase).nfc().collect()
}

/// Paths and their folders, by what a disk that is blind takes them for.
fn groups(manifest: &Manifest) -> BTreeMap<String, Vec<&Path>> {
    let mut groups: BTreeMap<String, Vec<&Path>> = BTreeMap::new();
    for (path, entry) in &manifest.entries {
        if *entry == Entry::Other {
            continue;
        }
        // Folders too: `A/x` and `a/y` would end in one folder.
        for part in path.ancestors().filter(|part| !part.as_os_str().is_empty()) {
            let group = groups.entry(folded(part)).or_default();
            if !group.contains(&part) {
                group.push(part);
            }
        }
    }
    for group in groups.values_mut() {
        group.sort_unstable();
    }
    groups
}

/// `model.pt` and 2 make `model~2.pt`.
fn suffixed(path: &Path, number: usize) -> String {
    let text = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    match path.extension() {
        Some(extension) => {
            format!("{}~{number}.{}", text(path.file_stem()), extension.to_string_lossy())
        }
        None => format!("{}~{number}", text(path.file_name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(paths: &[&str]) -> Manifest {
        let entries = paths.iter().map(|path| (PathBuf::from(path), Entry::Link)).collect();
        Manifest { entries, ..Manifest::default() }
    }

    #[test]
    fn each_of_several_names_that_a_disk_takes_for_one_gets_its_own() {
        let list = manifest(&["A.txt", "a.txt", "a~2.txt", "b", "D/x", "d/x", "d/y"]);
        let names = LocalNames::blind(&list);
        let here = |path: &str| names.of(Path::new(path)).display().to_string();
        assert_eq!(here("A.txt"), "A.txt");
        assert_eq!(here("a.txt"), "a~3.txt", "a~2.txt is taken");
        assert_eq!(here("a~2.txt"), "a~2.txt");
        assert_eq!(
            (here("D/x"), here("d/x"), here("d/y")),
            ("D/x".into(), "d~2/x".into(), "d~2/y".into())
        );
        let all: BTreeSet<String> =
            list.entries.keys().map(|path| folded(&names.of(path))).collect();
        assert_eq!(all.len(), list.entries.len());
        assert!(!names.is_apart(Path::new("b")) && names.is_apart(Path::new("d/y")));
    }

    /// What a pod wrote on Linux and what a Mac user sent there may spell one word in two ways.
    #[test]
    fn an_accent_in_two_forms_is_one_name() {
        let list = manifest(&["e\u{301}t\u{e9}", "\u{c9}t\u{e9}"]);
        let names = LocalNames::blind(&list);
        let here: BTreeSet<String> =
            list.entries.keys().map(|path| folded(&names.of(path))).collect();
        assert_eq!(here.len(), 2);
    }

    #[test]
    fn no_two_names_that_a_disk_takes_for_one_come_in_one_turn() {
        for paths in [
            &["Aa/x", "Aa/X", "aA/x", "AA/q"][..],
            &["A", "a/x", "a/X"],
            &["X/Y/z", "X/y/z", "x/Y/z", "x/y/Z", "x/y/z"],
        ] {
            let (plain, turns) = LocalNames::blind(&manifest(paths)).split(&manifest(paths));
            assert!(plain.entries.is_empty());
            for (turn, list) in &turns {
                let keys = list.entries.keys().flat_map(|path| path.ancestors());
                let spelt: BTreeSet<&Path> =
                    keys.filter(|part| list.entries.contains_key(*part)).collect();
                let blind: BTreeSet<String> = spelt.iter().map(|path| folded(path)).collect();
                assert_eq!(blind.len(), spelt.len(), "turn {turn} of {paths:?}");
            }
            assert_eq!(turns.values().map(|list| list.entries.len()).sum::<usize>(), paths.len());
        }
    }
}
