//! State files that a reader finds whole, whenever it looks and whoever dies in the middle.

use serde::Serialize;
use std::io::{self, Write as _};
use std::path::Path;

/// Whether a file that is replaced again and again is older than what was to be in it, and why. A disk that
/// stays full is news once, whatever it says next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unwritten(Option<io::ErrorKind>);

impl Unwritten {
    /// Notes how the last write went; returns what is new about that, in words that `what` begins, such as
    /// `the summary`.
    pub fn note<T>(
        &mut self,
        what: &str,
        written: io::Result<T>,
    ) -> Option<Result<String, String>> {
        let before = self.0.take();
        match written {
            Ok(_) => before.map(|_| Ok(format!("{what} is written again"))),
            Err(error) => {
                self.0 = Some(error.kind());
                before.is_none().then(|| Err(format!("{what} could not be written: {error}")))
            }
        }
    }

    /// The last line of a command about it: where it is, or that what lies there is older.
    #[must_use]
    pub fn told(&self, what: &str, path: &Path) -> String {
        let path = path.display();
        match self.0 {
            None => format!("{what}: {path}"),
            Some(why) => format!("{what}: NOT WRITTEN ({why}); what lies at {path} is older"),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_a_file_from_being_written_is_news_once_and_so_is_its_end() {
        let mut file = Unwritten::default();
        let failed = |kind: io::ErrorKind| Err::<(), _>(io::Error::from(kind));
        assert_eq!(file.note("it", Ok(())), None);
        assert_eq!(file.told("it", Path::new("/a")), "it: /a");
        let first = file.note("it", failed(io::ErrorKind::StorageFull)).unwrap().unwrap_err();
        assert!(first.starts_with("it could not be written: "), "{first}");
        assert_eq!(file.note("it", failed(io::ErrorKind::NotADirectory)), None);
        assert_eq!(
            file.told("it", Path::new("/a")),
            "it: NOT WRITTEN (not a directory); what lies at /a is older"
        );
        assert_eq!(file.note("it", Ok(())), Some(Ok("it is written again".to_owned())));
        assert_eq!(file.note("it", Ok(())), None);
    }
}
