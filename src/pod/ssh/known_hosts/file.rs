//! The file itself: read only when nobody else can have written it, replaced whole under a lock.

use super::KnownHostsError;
use super::line::Line;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Every line; a file that does not exist has none.
pub(super) fn read(path: &Path) -> Result<Vec<Line>, KnownHostsError> {
    let untrusted = |why: String| KnownHostsError::Untrusted { file: path.to_owned(), why };
    let failed = |source| io_error("reading", path, source);
    // Not followed, and then asked of the open file: what is checked is what is read.
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0))
        .open(path);
    let mut file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(untrusted("is a symbolic link; name the file itself".to_owned()));
        }
        Err(error) => return Err(failed(error)),
    };
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() {
        return Err(untrusted("is not a regular file".to_owned()));
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(untrusted(format!("belongs to user {}, not to you", meta.uid())));
    }
    if meta.mode() & 0o022 != 0 {
        let mode = meta.mode() & 0o777;
        return Err(untrusted(format!("can be written by others (mode {mode:03o}); chmod 600 it")));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
    text.lines()
        .enumerate()
        .map(|(index, line)| {
            Line::parse(line).ok_or_else(|| KnownHostsError::Malformed {
                file: path.to_owned(),
                number: index + 1,
            })
        })
        .collect()
}

/// Replaces the lines by what `change` makes of them, under a lock; `None` leaves the file alone.
/// A crash leaves either the old file or the new one.
pub(super) fn rewrite(
    path: &Path,
    change: impl FnOnce(&[Line]) -> Result<Option<Vec<Line>>, KnownHostsError>,
) -> Result<(), KnownHostsError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|source| io_error("creating the folder", folder, source))?;
    let lock_path = beside(path, ".lock");
    let locked = |source| io_error("locking", &lock_path, source);
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&lock_path)
        .map_err(locked)?;
    lock.lock().map_err(locked)?;

    let Some(lines) = change(&read(path)?)? else { return Ok(()) };
    let failed = |source| io_error("writing", path, source);
    // A named temporary file is 0600 from its first moment.
    let mut next =
        tempfile::Builder::new().prefix(".known_hosts-").tempfile_in(folder).map_err(failed)?;
    for line in &lines {
        writeln!(next, "{}", line.text()).map_err(failed)?;
    }
    next.as_file().sync_all().map_err(failed)?;
    next.persist(path).map_err(|error| failed(error.error))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn io_error(doing: &'static str, file: &Path, source: io::Error) -> KnownHostsError {
    KnownHostsError::Io { doing, file: file.to_owned(), source }
}
