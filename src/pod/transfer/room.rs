//! Whether there is room for what is about to come, asked before anything moves.

use super::TransferError;
use super::manifest::Manifest;
use std::fs;
use std::path::Path;

/// Below this many free bytes a pod's volume is all but full, and what was written last may be cut.
pub(super) const ALL_BUT_FULL: u64 = 64 << 20;

/// Refuses a pull that would fill this disk to less than `keep_free` bytes. What lies in `staged`
/// already is counted as here, since an interrupted pull goes on with it.
pub(super) fn check(
    manifest: &Manifest,
    local_dir: &Path,
    staged: &Path,
    keep_free: u64,
) -> Result<(), TransferError> {
    let is_here = |path: &Path, size: u64| {
        fs::symlink_metadata(local_dir.join(path)).is_ok_and(|meta| meta.len() == size)
    };
    let missing: u64 = manifest
        .files()
        .filter(|(path, size, _)| !is_here(path, *size))
        .map(|(_, size, _)| size)
        .fold(0, u64::saturating_add);
    if missing == 0 {
        return Ok(());
    }
    let needed = missing.saturating_sub(bytes_below(staged)).saturating_add(keep_free);
    let stat = rustix::fs::statvfs(local_dir)
        .map_err(|error| TransferError::local("asking for room in", local_dir, error.into()))?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if free < needed {
        return Err(TransferError::NoRoom {
            folder: local_dir.to_owned(),
            missing,
            keep_free,
            free,
        });
    }
    Ok(())
}

/// Bytes of the files below a folder; what cannot be read counts as nothing.
fn bytes_below(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes_below(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).fold(0, u64::saturating_add)
}
