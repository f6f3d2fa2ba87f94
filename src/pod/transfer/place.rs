//! From the staging tree into place, file by file, by rename: whoever reads sees the old file or
//! the new one, and a file that was there before goes only when its successor is whole.

use super::TransferError;
use super::check::{Checked, Local};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What was put in place.
#[derive(Debug, Default)]
pub(super) struct Placed {
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// What could not be, and why.
    pub(super) refused: Vec<(PathBuf, String)>,
}

/// Moves everything good, and `snapshots` of files that are still being written.
pub(super) fn place(
    checked: &Checked,
    snapshots: &[PathBuf],
    tree: &Path,
    local: &Local,
) -> Result<Placed, TransferError> {
    let mut placed = Placed::default();
    for folder in &checked.folders {
        if let Err(why) = real_folder(&local.dir, &local.names.of(folder)) {
            placed.refused.push((folder.clone(), why));
        }
    }
    for path in checked.good.iter().chain(snapshots) {
        let (from, to) = (tree.join(path), local.path(path));
        let parent = local.names.of(path.parent().unwrap_or(Path::new("")));
        if let Err(why) = real_folder(&local.dir, &parent) {
            placed.refused.push((path.clone(), why));
            continue;
        }
        let size = fs::symlink_metadata(&from)
            .map_err(|error| TransferError::local("reading", &from, error))?
            .len();
        match fs::rename(&from, &to) {
            Ok(()) => {
                placed.files += 1;
                placed.bytes += size;
            }
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                placed.refused.push((path.clone(), "a folder is in its place here".to_owned()));
            }
            // Anything else would fail for the next file too: the disk, permissions.
            Err(error) => return Err(TransferError::local("renaming into place", &to, error)),
        }
    }
    Ok(placed)
}

/// Makes sure that every folder from `base` down to `inside` is a real one. A link there could
/// lead anywhere.
fn real_folder(base: &Path, inside: &Path) -> Result<(), String> {
    let mut folder = base.to_owned();
    for part in inside.components() {
        folder.push(part);
        match fs::symlink_metadata(&folder) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(format!("{} is no real folder", folder.display())),
            Err(_) => fs::create_dir(&folder)
                .map_err(|error| format!("{} cannot be made: {error}", folder.display()))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_is_written_through_a_link_and_nothing_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["tree", "tree/d", "tree/e", "local", "local/busy", "outside"] {
            fs::create_dir(at(name)).unwrap();
        }
        for name in ["tree/d/x", "tree/e/y", "tree/busy", "tree/old"] {
            fs::write(at(name), "new").unwrap();
        }
        symlink(at("outside"), at("local/d")).unwrap();
        fs::write(at("local/old"), "old").unwrap();
        fs::write(at("local/other"), "other").unwrap();
        let good = ["busy", "d/x", "e/y", "old"].map(PathBuf::from).to_vec();
        let folders = ["d", "e"].map(PathBuf::from).to_vec();
        let checked = Checked { folders, good, ..Checked::default() };

        let local = Local {
            dir: at("local"),
            names: super::super::apart::LocalNames::default(),
            check: super::super::Check::Hashes,
        };
        let placed = place(&checked, &[], &at("tree"), &local).unwrap();
        assert_eq!((placed.files, placed.bytes), (2, 6));
        let refused: Vec<&Path> = placed.refused.iter().map(|(path, _)| path.as_path()).collect();
        assert_eq!(refused, [Path::new("d"), Path::new("busy"), Path::new("d/x")]);
        assert_eq!(fs::read_dir(at("outside")).unwrap().count(), 0);
        assert_eq!(fs::read_to_string(at("local/old")).unwrap(), "new");
        assert_eq!(fs::read_to_string(at("local/other")).unwrap(), "other");
        assert!(at("local/busy").is_dir() && at("local/e/y").is_file());
    }
}
