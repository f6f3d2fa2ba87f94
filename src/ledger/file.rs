//! The journal on disk: one file for each project, one lock over every process of this machine.
//! Every line is flushed to the disk before the call that it announces.

use super::book::Book;
use super::entry::{Entry, Event};
use super::line::{self, LineFault};
use super::noted::Noted;
use crate::clock::SharedClock;
use crate::digest::hex;
use crate::held::Held;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A journal that cannot be used. What spends is refused then; a stop never is.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// A file cannot be read or written.
    #[error("could not {doing} the journal {}: {source}; free the disk or mend the folder's permissions", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A later version of podtether wrote it.
    #[error("the journal {} was written by a newer podtether (version {version}); update podtether", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// Another process holds it.
    #[error("another podtether is changing something right now and holds the journal {}; try again in a moment", path.display())]
    Busy {
        /// The lock file.
        path: PathBuf,
    },
    /// An entry cannot be put into words. A mistake of podtether's own.
    #[error("an entry of the journal cannot be written: {0}")]
    Entry(serde_json::Error),
}

/// Where a project keeps its journal: below the state folder, named by the config file's folder and
/// told apart by its whole path, so that two projects never share one.
#[must_use]
pub fn project_folder(state_dir: &Path, config: &Path) -> PathBuf {
    let folder = config.parent().unwrap_or(config);
    let name: String = folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(40)
        .collect();
    let digest = Sha256::digest(config.as_os_str().as_encoded_bytes());
    let key = hex(&digest[..6]);
    state_dir.join("projects").join(format!("{name}-{key}"))
}

/// The journal of one project.
pub struct Ledger {
    folder: PathBuf,
    config: String,
    clock: SharedClock,
    /// What was read and written last; another process may have added lines since.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Length of the file as far as it was read, in bytes.
    length: u64,
    sum: String,
    book: Book,
}

/// The file is held for some milliseconds at a time; after two seconds somebody is stuck.
const ALONE_TRIES: u32 = 80;
const ALONE_AGAIN: Duration = Duration::from_millis(25);
/// How often a taken lock is tried again.
const AGAIN: Duration = Duration::from_millis(100);

impl Ledger {
    /// The journal in `folder` of the project with this config file. Nothing is read yet.
    #[must_use]
    pub fn new(folder: PathBuf, config: &Path, clock: SharedClock) -> Self {
        let config = config.display().to_string();
        Self { folder, config, clock, state: Mutex::default() }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join("journal.jsonl")
    }

    /// Takes the lock that spans looking and changing over every process (B05); it is given back
    /// when it is dropped, or by the system when the process ends, however that comes.
    ///
    /// # Errors
    /// When the lock file cannot be made, or another process holds it for longer than `wait`.
    pub async fn lock(&self, wait: Duration) -> Result<Held, LedgerError> {
        self.make_folder()?;
        let path = self.folder.join("lock");
        let io = |source| LedgerError::Io { doing: "lock", path: path.clone(), source };
        let file =
            File::options().create(true).append(true).mode(0o600).open(&path).map_err(&io)?;
        let start = self.clock.monotonic();
        loop {
            if let Some(held) = Held::alone(&file).map_err(&io)? {
                return Ok(held);
            }
            if self.clock.monotonic().saturating_sub(start) >= wait {
                return Err(LedgerError::Busy { path });
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// What the journal adds up to now. A torn last line is taken off, a journal that cannot be
    /// read is set aside, and both are said in the book.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn book(&self) -> Result<Book, LedgerError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let _alone = self.alone()?;
        self.read(&mut state)?;
        Ok(state.book.clone())
    }

    /// Appends one event and flushes it to the disk.
    ///
    /// # Errors
    /// [`LedgerError`]; then nothing was announced, and what it was to announce must not be done.
    pub fn append(&self, event: Event) -> Result<(), LedgerError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let _alone = self.alone()?;
        self.read(&mut state)?;
        self.write(&mut state, event)
    }

    /// Appends an intent under an id of its own, which is returned.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn intend(&self, make: impl FnOnce(u64) -> Event) -> Result<u64, LedgerError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let _alone = self.alone()?;
        self.read(&mut state)?;
        let id = state.book.next_id();
        self.write(&mut state, make(id))?;
        Ok(id)
    }

    /// Keeps other processes from the file for the moment of a read and a write. Bounded: a process
    /// that was suspended in that moment must not keep anybody from a stop.
    fn alone(&self) -> Result<Held, LedgerError> {
        self.make_folder()?;
        let path = self.folder.join("journal.lock");
        let io = |source| LedgerError::Io { doing: "lock", path: path.clone(), source };
        let file =
            File::options().create(true).append(true).mode(0o600).open(&path).map_err(&io)?;
        for _ in 0..ALONE_TRIES {
            if let Some(held) = Held::alone(&file).map_err(&io)? {
                return Ok(held);
            }
            std::thread::sleep(ALONE_AGAIN);
        }
        Err(LedgerError::Busy { path })
    }

    fn make_folder(&self) -> Result<(), LedgerError> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(
            |source| LedgerError::Io {
                doing: "make the folder of",
                path: self.folder.clone(),
                source,
            },
        )
    }

    fn read(&self, state: &mut State) -> Result<(), LedgerError> {
        let path = self.path();
        let io = |doing| {
            let path = path.clone();
            move |source| LedgerError::Io { doing, path, source }
        };
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(io("read")(error)),
        };
        if bytes.len() as u64 == state.length && !state.sum.is_empty() {
            return Ok(());
        }
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut fresh = State { length: 0, sum: line::FIRST.to_owned(), book: Book::default() };
        for text in bytes[..whole].split_inclusive(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&text[..text.len() - 1]);
            match line::read(&fresh.sum, &line) {
                Ok((entry, sum)) => {
                    fresh.book.add(&entry);
                    fresh.sum = sum;
                    fresh.length += text.len() as u64;
                }
                Err(LineFault::Newer(version)) => return Err(LedgerError::Newer { path, version }),
                // The last line may be half of one that a crash cut off and a later write ended.
                Err(LineFault::Broken) => return self.set_aside(state, &path),
            }
        }
        if whole < bytes.len() {
            let file = File::options().write(true).open(&path).map_err(io("repair"))?;
            file.set_len(whole as u64).and_then(|()| file.sync_all()).map_err(io("repair"))?;
            tracing::warn!(journal = %path.display(), "a line that a crash had cut off was taken off");
        }
        *state = fresh;
        Ok(())
    }

    /// A journal that cannot be read is kept under another name, and a new one says where.
    fn set_aside(&self, state: &mut State, path: &Path) -> Result<(), LedgerError> {
        let stamp = self.clock.now().format("%Y%m%d-%H%M%S%.3f");
        let aside = self.folder.join(format!("journal.corrupt-{stamp}.jsonl"));
        std::fs::rename(path, &aside).map_err(|source| LedgerError::Io {
            doing: "set aside",
            path: path.to_owned(),
            source,
        })?;
        tracing::error!(journal = %aside.display(), "the journal could not be read and was set aside");
        *state = State { length: 0, sum: line::FIRST.to_owned(), book: Book::default() };
        let config = self.config.clone();
        self.write(state, Event::Opened { config, set_aside: Some(aside.display().to_string()) })
    }

    fn write(&self, state: &mut State, event: Event) -> Result<(), LedgerError> {
        if state.length == 0 && !matches!(event, Event::Opened { .. }) {
            let config = self.config.clone();
            self.write(state, Event::Opened { config, set_aside: None })?;
        }
        let path = self.path();
        let io = |source| LedgerError::Io { doing: "write", path: path.clone(), source };
        let Noted { at, up } = Noted::now(&*self.clock);
        let entry = Entry { at, up, event };
        let (mut text, sum) = line::write(&state.sum, &entry).map_err(LedgerError::Entry)?;
        text.push('\n');
        let mut file = File::options()
            .create(true)
            .write(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(io)?;
        file.seek(SeekFrom::Start(state.length)).map_err(io)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        if let Err(error) = written {
            // A full disk leaves half a line; it is taken off, or repaired at the next read.
            let _ = file.set_len(state.length);
            return Err(io(error));
        }
        state.length += text.len() as u64;
        state.sum = sum;
        state.book.add(&entry);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::Action;
    use super::*;
    use crate::clock::SystemClock;

    fn ledger(folder: &Path) -> Ledger {
        Ledger::new(folder.join("p"), Path::new("/x/podtether.yaml"), SystemClock::shared())
    }

    fn intend(ledger: &Ledger, nonce: &str) -> u64 {
        let action = Action::CreatePod { name: "pod".into(), nonce: nonce.into() };
        let make = |id| Event::Intend {
            id,
            vehicle: "hippocampus".into(),
            action,
            micros_per_hour: Some(690_000),
        };
        ledger.intend(make).unwrap()
    }

    fn open(ledger: &Ledger) -> Vec<u64> {
        ledger.book().unwrap().open_intents().iter().map(|intent| intent.id).collect()
    }

    /// B04: what was written is there for the next process, whatever happened to this one.
    #[test]
    fn an_intent_is_read_by_the_next_process() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(open(&ledger(folder.path())), Vec::<u64>::new());
        let (one, other) = (ledger(folder.path()), ledger(folder.path()));
        assert_eq!((intend(&one, "a"), intend(&other, "b"), intend(&one, "c")), (1, 2, 3));
        let done = Event::Done { id: 2, pod: None, observed: "RUNNING".into() };
        one.append(done).unwrap();
        assert_eq!(open(&other), [1, 3]);
        assert_eq!(open(&ledger(folder.path())), [1, 3]);
    }

    /// A crash in the middle of a line leaves a torn tail: it is taken off, the rest stays.
    #[test]
    fn a_torn_tail_is_repaired_at_every_byte() {
        let folder = tempfile::tempdir().unwrap();
        let first = ledger(folder.path());
        intend(&first, "a");
        let before = std::fs::read(first.path()).unwrap();
        intend(&first, "b");
        let whole = std::fs::read(first.path()).unwrap();
        for cut in before.len()..whole.len() {
            std::fs::write(first.path(), &whole[..cut]).unwrap();
            let next = ledger(folder.path());
            assert_eq!(open(&next), [1], "cut at {cut}");
            assert_eq!(intend(&next, "again"), 2);
            assert_eq!(open(&ledger(folder.path())), [1, 2]);
        }
    }

    /// A journal that cannot be read is kept beside the new one, which says so.
    #[test]
    fn a_corrupt_journal_is_set_aside_and_said_so() {
        let folder = tempfile::tempdir().unwrap();
        let first = ledger(folder.path());
        intend(&first, "a");
        intend(&first, "b");
        let mut bytes = std::fs::read(first.path()).unwrap();
        bytes[60] ^= 1;
        std::fs::write(first.path(), &bytes).unwrap();
        let book = ledger(folder.path()).book().unwrap();
        let aside = book.set_aside().unwrap().to_owned();
        assert_eq!(std::fs::read(&aside).unwrap(), bytes);
        let again = ledger(folder.path()).book().unwrap();
        assert_eq!(again.set_aside(), Some(aside.as_str()));
    }

    #[test]
    fn a_journal_of_a_newer_version_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = ledger(folder.path());
        intend(&ledger, "a");
        let entry = Entry {
            at: chrono::DateTime::UNIX_EPOCH,
            up: None,
            event: Event::Opened { config: "x".into(), set_aside: None },
        };
        let (line, _) = line::write(line::FIRST, &entry).unwrap();
        let json = line[17..].replacen("\"v\":1", "\"v\":2", 1);
        let digest = Sha256::digest(format!("{}{json}", line::FIRST));
        let sum = hex(&digest[..8]);
        let newer = format!("{sum} {json}\n");
        std::fs::write(ledger.path(), &newer).unwrap();
        let next = super::tests::ledger(folder.path());
        assert!(matches!(next.book(), Err(LedgerError::Newer { version: 2, .. })));
        assert!(next.append(Event::Done { id: 1, pod: None, observed: String::new() }).is_err());
        assert_eq!(std::fs::read_to_string(ledger.path()).unwrap(), newer);
    }

    /// Bad input: a ledger that is a folder, or whose folder is a file.
    #[test]
    fn a_journal_that_cannot_be_written_is_an_error_and_never_a_silent_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = ledger(folder.path());
        std::fs::create_dir_all(ledger.path()).unwrap();
        let error = ledger.book().unwrap_err().to_string();
        assert!(error.contains("journal.jsonl"), "{error}");
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let inside = Ledger::new(file.join("p"), Path::new("/x.yaml"), SystemClock::shared());
        assert!(inside.append(Event::Done { id: 1, pod: None, observed: String::new() }).is_err());
    }

    #[test]
    fn two_projects_never_share_a_journal() {
        let state = Path::new("/state");
        let folder = |config| project_folder(state, Path::new(config));
        assert_ne!(folder("/a/x/podtether.yaml"), folder("/b/x/podtether.yaml"));
        assert_eq!(folder("/a/x/podtether.yaml"), folder("/a/x/podtether.yaml"));
        assert!(folder("/a/x/podtether.yaml").starts_with("/state/projects"));
    }

    /// B05: whoever is second waits, and is told when that takes too long.
    #[tokio::test]
    async fn the_lock_spans_processes_and_is_given_back_by_the_system() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (ledger(folder.path()), ledger(folder.path()));
        let held = one.lock(Duration::ZERO).await.unwrap();
        assert!(matches!(
            other.lock(Duration::from_millis(1)).await,
            Err(LedgerError::Busy { .. })
        ));
        drop(held);
        assert!(other.lock(Duration::ZERO).await.is_ok());
    }

    /// Every released version stays readable.
    #[test]
    fn the_journals_of_every_released_version_are_readable() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/state");
        let folder = tempfile::tempdir().unwrap();
        let ledger = ledger(folder.path());
        std::fs::create_dir_all(folder.path().join("p")).unwrap();
        std::fs::copy(fixtures.join("journal-v1.jsonl"), ledger.path()).unwrap();
        let book = ledger.book().unwrap();
        assert_eq!(book.set_aside(), None);
        assert_eq!(open(&ledger), [3]);
        assert_eq!(book.known_pods().len(), 1);
    }
}
