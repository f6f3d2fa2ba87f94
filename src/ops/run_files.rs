//! The records of runs as files: `runs/<job_id>.json` in the vehicle's log folder, each written whole or
//! not at all. What lies there and is no record is told by name and left alone.

use crate::domain::JobId;
use crate::held::Held;
use crate::runs::{NotARecord, RunRecord};
use crate::whole_file;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest record that is read, in bytes. One with 64 files and a long command has some 100 KB.
const RECORD_MAX: u64 = 4 << 20;
/// How many files that are no records are named: a folder of that name may be pulled from a volume, too.
const NAMED: usize = 20;
/// How long another process may be writing a record of the same folder.
const TURN: Duration = Duration::from_secs(2);

fn folder(log_dir: &Path) -> PathBuf {
    log_dir.join("runs")
}

/// Where a job's record lies.
pub(super) fn path_of(log_dir: &Path, id: &JobId) -> PathBuf {
    folder(log_dir).join(RunRecord::file_name(id))
}

/// Keeps other processes from the records of this folder while one is read, changed and written.
/// `None` when nobody lets go of it in time: a record that lacks what another one adds is better than
/// none.
pub(super) async fn turn(log_dir: &Path) -> Option<Held> {
    std::fs::create_dir_all(folder(log_dir)).ok()?;
    let path = folder(log_dir).join(".lock");
    let file = File::options().create(true).append(true).open(path).ok()?;
    Held::alone_within(&file, TURN).await.ok().flatten()
}

/// Writes a record; returns the SHA-256 of what was written.
///
/// # Errors
/// When it cannot be written; then the one before stands.
pub(super) fn write(log_dir: &Path, id: &JobId, record: &RunRecord) -> io::Result<String> {
    whole_file::replace(&path_of(log_dir, id), record).map(|text| crate::digest::sha256_hex(&text))
}

/// Reads one record; `None` when there is none.
///
/// # Errors
/// Why the file is none.
pub(super) fn read(log_dir: &Path, id: &JobId) -> Result<Option<RunRecord>, NotARecord> {
    let path = path_of(log_dir, id);
    match std::fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        _ => read_file(&path).map(|(record, _)| Some(record)),
    }
}

/// A record with the SHA-256 of its file.
fn read_file(path: &Path) -> Result<(RunRecord, String), NotARecord> {
    let foreign = |error: io::Error| NotARecord::Foreign(error.to_string());
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // What is no plain file may never end, or answer.
    let meta = std::fs::metadata(path).map_err(foreign)?;
    if !meta.is_file() || meta.len() > RECORD_MAX {
        return Err(NotARecord::Foreign("it is no file of up to 4 MiB".to_owned()));
    }
    let mut text = Vec::new();
    let file = File::open(path).map_err(foreign)?;
    file.take(RECORD_MAX).read_to_end(&mut text).map_err(foreign)?;
    Ok((RunRecord::read(name, &text)?, crate::digest::sha256_hex(&text)))
}

/// Every record of a log folder with its SHA-256, and what lies there and is none, in words.
pub(super) fn all(log_dir: &Path) -> (Vec<(RunRecord, String)>, Vec<String>) {
    let folder = folder(log_dir);
    let (mut records, mut troubles) = (Vec::new(), Vec::new());
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (records, troubles),
        Err(error) => return (records, vec![format!("{}: {error}", folder.display())]),
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        // The lock, and what an interrupted write has left.
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        match read_file(&entry.path()) {
            Ok(found) => records.push(found),
            // With escapes in place of what could move a cursor.
            Err(why) => troubles.push(format!("{:?} in {} {why}", name, folder.display())),
        }
    }
    troubles.sort();
    let more = troubles.len().saturating_sub(NAMED);
    if more > 0 {
        troubles.truncate(NAMED);
        troubles.push(format!("{more} more files in {} are no records", folder.display()));
    }
    (records, troubles)
}
