//! Reads the journal for who only wants to know: without its lock, and without mending anything.

use super::file::Ledger;
use super::launches::Launches;
use super::line::{self, LineFault};

impl Ledger {
    /// The launches that the journal tells of, and in words what of it could not be read. Nothing is
    /// changed: a line that is being written, or was cut off by a crash, is left to the next writer.
    #[must_use]
    pub fn launches(&self) -> (Launches, Vec<String>) {
        let path = self.path();
        let mut launches = Launches::default();
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                return (launches, vec![format!("the journal {}: {error}", path.display())]);
            }
        };
        let mut troubles = Vec::new();
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut sum = line::FIRST.to_owned();
        for (index, text) in bytes[..whole].split_inclusive(|byte| *byte == b'\n').enumerate() {
            let text = String::from_utf8_lossy(&text[..text.len() - 1]);
            match line::read(&sum, &text) {
                Ok((entry, next)) => {
                    launches.add(&entry);
                    sum = next;
                }
                Err(fault) => {
                    let why = match fault {
                        LineFault::Newer(version) => {
                            format!("was written by a newer podtether (version {version})")
                        }
                        LineFault::Broken => "cannot be read".to_owned(),
                    };
                    let (path, number) = (path.display(), index + 1);
                    troubles.push(format!(
                        "the journal {path}: line {number} {why}; what follows it is not shown"
                    ));
                    break;
                }
            }
        }
        for aside in launches.set_aside() {
            troubles.push(format!(
                "an earlier journal could not be read and was set aside as {aside}: its runs are known by their records alone"
            ));
        }
        (launches, troubles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use std::path::Path;

    /// Who only reads sets nothing aside and cuts nothing off.
    #[test]
    fn a_journal_with_a_broken_line_is_read_up_to_it_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(
            folder.path().to_owned(),
            Path::new("/x/podtether.yaml"),
            SystemClock::shared(),
        );
        assert_eq!(ledger.launches(), (Launches::default(), Vec::new()));
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/state/journal-v1.jsonl");
        let good = std::fs::read_to_string(fixture).unwrap();
        std::fs::write(ledger.path(), format!("{good}0000 {{\"half")).unwrap();
        assert_eq!(ledger.launches().1, Vec::<String>::new());
        let broken = format!("{good}0000000000000000 {{}}\nmore\n");
        std::fs::write(ledger.path(), &broken).unwrap();
        let (_, troubles) = ledger.launches();
        assert!(troubles[0].contains("cannot be read"), "{troubles:?}");
        assert_eq!(std::fs::read_to_string(ledger.path()).unwrap(), broken);
    }
}
