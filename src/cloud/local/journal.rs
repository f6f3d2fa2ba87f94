//! Append-only records, one JSON object a line, held to two files of a fixed size.

use crate::secret::scrub;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A file is set aside as `NAME.1` when it is larger than this, in bytes.
const LARGEST: u64 = 16 << 20;

/// One journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    largest: u64,
    writing: Mutex<()>,
}

impl Journal {
    pub fn new(path: PathBuf) -> Self {
        Self { path, largest: LARGEST, writing: Mutex::new(()) }
    }

    /// Adds one line. A journal that cannot be written is said in the log and stops nothing.
    pub fn append(&self, entry: &serde_json::Value) {
        let line = format!("{}\n", scrub(&entry.to_string(), &[]));
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let written = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&self.path)
            .and_then(|mut file| {
                file.write_all(line.as_bytes())?;
                file.metadata()
            })
            .and_then(|metadata| {
                if metadata.len() > self.largest {
                    let mut aside = self.path.clone().into_os_string();
                    aside.push(".1");
                    std::fs::rename(&self.path, aside)?;
                }
                Ok(())
            });
        if let Err(error) = written {
            tracing::warn!(path = %self.path.display(), %error, "journal not written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_journal_never_grows_past_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("requests.jsonl");
        let journal = Journal { largest: 200, ..Journal::new(path.clone()) };
        for number in 0..100 {
            journal.append(&json!({"number": number, "text": "twenty characters here"}));
        }
        let size = |name: &str| {
            std::fs::metadata(folder.path().join(name)).map_or(0, |metadata| metadata.len())
        };
        let (current, aside) = (size("requests.jsonl"), size("requests.jsonl.1"));
        assert!(current <= 200, "{current}");
        assert!((200..300).contains(&aside), "{aside}");
        assert!(std::fs::read_dir(folder.path()).unwrap().count() <= 2);
    }
}
