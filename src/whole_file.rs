//! State files that a reader finds whole, whenever it looks and whoever dies in the middle.

use serde::Serialize;
use std::io::{self, Write as _};
use std::path::Path;

/// Replaces `path` by `value` as JSON, whole or not at all, and returns what was written; the folder is
/// made where it is missing.
///
/// # Errors
/// When it cannot be written; then the file before stands.
pub fn replace<T: Serialize>(path: &Path, value: &T) -> io::Result<Vec<u8>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    // In one piece: straight into a file each word of it is a call of its own, hundreds a summary.
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&text)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(text)
}
