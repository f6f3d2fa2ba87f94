//! The place of a vehicle's one fuse: `deadman.lock` in its log folder, which the fuse holds for life,
//! and the files that lie beside it. The system gives the lock back with the process, whatever ends it,
//! and never to another process of the same number (A17).

use super::record::{Record, Summary};
use super::state::Outcome;
use crate::held::Held;
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LOCK: &str = "deadman.lock";
const PID: &str = "deadman.pid";
const ASK: &str = "deadman.ask";
const TURN: &str = "deadman.turn";
/// The fuse's own words.
pub(super) const LOG: &str = "deadman.log";

/// A reader holds a lock for an instant; it is waited out.
const INSTANT: Duration = Duration::from_secs(1);

/// What lies at a vehicle's place.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// A fuse that lives; `None` while it is being armed.
    Lives(Option<Box<Record>>),
    /// A fuse whose process is gone without a word.
    Lost(Box<Record>),
    /// The same, and what it said of itself cannot be read: a power cut or a full disk left that.
    LostUnread(String),
    /// No fuse; the last one that was, if any.
    Nothing(Option<Box<Summary>>),
    /// The folder could not be read.
    Unreadable(String),
}

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    file: Held,
    path: PathBuf,
}

impl Seat {
    /// Whether the folder still is the one in which it was taken: one that was removed and made anew
    /// belongs to whoever takes its lock there.
    pub fn is_in_place(&self) -> bool {
        let own = self.file.metadata().map(|own| (own.dev(), own.ino()));
        let there = std::fs::metadata(&self.path).map(|there| (there.dev(), there.ino()));
        matches!((own, there), (Ok(own), Ok(there)) if own == there)
    }
}

async fn lock(folder: &Path, name: &str, wait: Duration) -> io::Result<Option<Seat>> {
    let path = folder.join(name);
    let file = File::options().create(true).append(true).open(&path)?;
    let held = Held::alone_within(&file, wait).await?;
    Ok(held.map(|file| Seat { file, path }))
}

/// Takes the vehicle's place for life; `None` when a fuse that lives has it.
pub(super) async fn take(folder: &Path) -> io::Result<Option<Seat>> {
    lock(folder, LOCK, INSTANT).await
}

/// Takes the turn to arm, extend or call off: one at a time. `None` when it was not to be had.
pub(super) async fn turn(folder: &Path, patience: Duration) -> io::Result<Option<Seat>> {
    std::fs::create_dir_all(folder)?;
    lock(folder, TURN, patience).await
}

/// Whether a fuse lives here.
fn is_held(folder: &Path) -> io::Result<bool> {
    let file = match File::open(folder.join(LOCK)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    // A shared lock: two who look at once do not see each other.
    Held::beside_others(&file).map(|held| held.is_none())
}

/// What lies here.
#[must_use]
pub(super) fn look(folder: &Path) -> Seen {
    for _ in 0..2 {
        let held = match is_held(folder) {
            Ok(held) => held,
            Err(error) => return Seen::Unreadable(error.to_string()),
        };
        match (held, read::<Record>(&folder.join(PID))) {
            (true, record) => return Seen::Lives(record.map(Box::new)),
            // One that ends writes its summary, removes this file and goes; another look tells it
            // from one that is lost.
            (false, Some(_)) if is_held(folder).unwrap_or(false) => {}
            (false, Some(record)) if folder.join(PID).exists() => {
                return Seen::Lost(Box::new(record));
            }
            // A fuse was armed here, and nobody knows what for: that is no word that none was.
            (false, None) if folder.join(PID).exists() => {
                if is_held(folder).unwrap_or(false) {
                    continue;
                }
                if let Some(why) = unread(&folder.join(PID)) {
                    return Seen::LostUnread(why);
                }
            }
            (false, _) => break,
        }
    }
    Seen::Nothing(last_summary(folder).map(Box::new))
}

pub(super) fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Why a record that is there cannot be read; `None` when it is gone, or can be by now.
fn unread(path: &Path) -> Option<String> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice::<Record>(&bytes).err().map(|error| error.to_string()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(error.to_string()),
    }
}

pub(super) fn last_summary(folder: &Path) -> Option<Summary> {
    summary_names(folder).iter().rev().find_map(|name| read(&folder.join(name)))
}

/// The names of all summaries, oldest first.
fn summary_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_summary = |name: &String| name.starts_with("deadman-") && name.ends_with(".json");
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(is_summary).collect();
    names.sort();
    names
}

/// A stamp that comes after the one in this name: a millisecond later.
fn after(name: &str) -> Option<String> {
    let stamp = name.strip_prefix("deadman-")?.get(..18)?;
    let (second, ms) = stamp.split_at_checked(15)?;
    let second = NaiveDateTime::parse_from_str(second, "%Y%m%d-%H%M%S").ok()?;
    let next = second + TimeDelta::milliseconds(ms.parse::<i64>().ok()? + 1);
    Some(next.format("%Y%m%d-%H%M%S%.3f").to_string().replace('.', ""))
}

/// Puts a whole file in place of the one that is there.
pub(super) fn place<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    whole(path, value, false)?.persist(path).map(|_| ()).map_err(|error| error.error)
}

/// `is_last_word`: on the disk before its name is. A name without bytes is what a power cut may leave
/// otherwise, of the very file that says that a fuse was armed.
fn whole<T: Serialize>(
    path: &Path,
    value: &T,
    is_last_word: bool,
) -> io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".deadman-").tempfile_in(folder)?;
    file.write_all(&serde_json::to_vec_pretty(value)?)?;
    file.flush()?;
    if is_last_word {
        file.as_file().sync_all()?;
    }
    Ok(file)
}

/// What a fuse that is lost has left here, for whoever holds the lock; `Some(None)` when that cannot be read.
pub(super) fn left(folder: &Path) -> Option<Option<Record>> {
    let path = folder.join(PID);
    path.exists().then(|| read(&path))
}

/// Puts the file of a new fuse here, which must hold the lock. What a lost one left is replaced by it and by
/// nothing else: when there is no room for the new one, that a fuse is lost is still known.
pub(super) fn settle(folder: &Path, record: &Record) -> io::Result<()> {
    let path = folder.join(PID);
    let file = whole(&path, record, true)?;
    match std::fs::remove_file(folder.join(ASK)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    file.persist(&path).map(|_| ()).map_err(|error| error.error)
}

/// Brings the fuse's own file up to date.
pub(super) fn update(folder: &Path, record: &Record) -> io::Result<()> {
    place(&folder.join(PID), record)
}

/// Writes what became of a fuse, and then takes its file away. Returns where the summary lies.
pub(super) fn leave(folder: &Path, summary: &Summary) -> io::Result<PathBuf> {
    let stamp = summary.ended_at.format("%Y%m%d-%H%M%S%.3f").to_string().replace('.', "");
    // The last one by its name is the last word: also where the clock was set back since the one before.
    let stamp = match summary_names(folder).pop() {
        Some(last) if last >= format!("deadman-{stamp}.json") => after(&last).unwrap_or(stamp),
        _ => stamp,
    };
    let mut path = folder.join(format!("deadman-{stamp}.json"));
    for more in 1..100 {
        match whole(&path, summary, true)?.persist_noclobber(&path) {
            Ok(_) => break,
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                path = folder.join(format!("deadman-{stamp}-{more}.json"));
            }
            Err(error) => return Err(error.error),
        }
    }
    let _ = std::fs::remove_file(folder.join(ASK));
    match std::fs::remove_file(folder.join(PID)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(path),
    }
}

/// A question to a fuse that lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ask {
    /// Tells this question from any other.
    pub id: String,
    /// The nonce of the fuse that is meant.
    pub to: String,
    /// What is asked.
    pub what: What,
}

/// What a fuse is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    /// To end without stopping the pod.
    Cancel {
        /// Why.
        why: String,
        /// Whether the pod was read off the bill by whoever asks.
        pod_is_off: bool,
    },
    /// To wait longer.
    Extend {
        /// Until when, UTC.
        until: DateTime<Utc>,
        /// The pod's id, when it is known by now.
        pod: Option<crate::domain::PodId>,
        /// What the pod bills for an hour, in micro-dollars.
        micros_per_hour: Option<i64>,
    },
}

/// Puts a question; whoever does must have the turn.
pub(super) fn put(folder: &Path, ask: &Ask) -> io::Result<()> {
    place(&folder.join(ASK), ask)
}

/// Whether a question lies here that nobody has taken yet.
pub(super) fn is_asked(folder: &Path) -> bool {
    folder.join(ASK).exists()
}

/// Takes a question back that nobody answered: it must not be answered hours later.
pub(super) fn withdraw(folder: &Path) {
    let _ = std::fs::remove_file(folder.join(ASK));
}

/// Takes a question that lies here. One for another fuse is thrown away.
pub(super) fn taken(folder: &Path, nonce: &str) -> Option<Ask> {
    let path = folder.join(ASK);
    path.exists().then_some(())?;
    let ask: Option<Ask> = read(&path);
    let _ = std::fs::remove_file(&path);
    ask.filter(|ask| ask.to == nonce)
}

/// Writes off a fuse that is lost and of which nothing can be read: there is nothing to sum up.
pub(super) fn forget(folder: &Path) -> io::Result<()> {
    std::fs::remove_file(folder.join(PID))
}

/// Writes off a fuse that is lost, as called off by hand.
pub(super) fn write_off(
    folder: &Path,
    record: &Record,
    why: &str,
    pod_is_off: bool,
    now: DateTime<Utc>,
) -> io::Result<PathBuf> {
    let summary = Summary {
        record: record.clone(),
        outcome: Outcome::Cancelled,
        stop_status: None,
        ended_at: now,
        pod_may_still_be_running: !pod_is_off,
        exit_code: Outcome::Cancelled.exit_code(),
        message: why.to_owned(),
    };
    leave(folder, &summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a fuse says of itself.
    fn record() -> Record {
        let text = serde_json::json!({
            "pid": 1, "process_started_at": "2026-07-03T13:00:00Z", "armed_at": "2026-07-03T13:00:00Z",
            "fire_at": "2026-07-03T16:00:00Z", "hours": 3.0, "retries": 5, "spacing_sec": 300,
            "vehicle": "rover", "pod_name": "rover", "cloud": "runpod", "config": "podtether.yaml",
            "version": "0.1.0", "nonce": "1", "last_tick": "2026-07-03T13:00:00Z",
            "proof": {"at": "2026-07-03T13:00:00Z", "read": "proven", "stop": "proven"},
        });
        serde_json::from_value(text).unwrap()
    }

    /// Also where the clock was set back since the one before, or stands still.
    #[test]
    fn the_last_summary_is_the_one_that_was_written_last() {
        assert_eq!(after("deadman-20261231-235959999.json").unwrap(), "20270101-000000000");
        assert_eq!(after("deadman-20261231-235959999-1.json").unwrap(), "20270101-000000000");
        assert_eq!(after("deadman-mine.json"), None);
        let folder = tempfile::tempdir().unwrap();
        let at = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let mut summary = Summary {
            record: record(),
            outcome: Outcome::Cancelled,
            stop_status: None,
            ended_at: at,
            pod_may_still_be_running: false,
            exit_code: 0,
            message: String::new(),
        };
        for (number, earlier) in [0, 0, 7_200, 3_600, 10_800].into_iter().enumerate() {
            summary.ended_at = at - TimeDelta::seconds(earlier);
            summary.exit_code = u8::try_from(number).unwrap();
            leave(folder.path(), &summary).unwrap();
            assert_eq!(last_summary(folder.path()).unwrap(), summary);
        }
        assert_eq!(summary_names(folder.path()).len(), 5);
    }

    /// A folder that was removed and made anew is somebody else's place: a fuse that lives on from
    /// before never writes over the file of the one that lives there now.
    #[tokio::test]
    async fn a_place_that_was_made_anew_is_not_ours() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("logs");
        std::fs::create_dir(&folder).unwrap();
        let held = take(&folder).await.unwrap().unwrap();
        assert!(held.is_in_place());
        assert_eq!(look(&folder), Seen::Lives(None));
        std::fs::rename(&folder, parent.path().join("before")).unwrap();
        assert!(!held.is_in_place());
        std::fs::create_dir(&folder).unwrap();
        let other = take(&folder).await.unwrap().unwrap();
        assert!(!held.is_in_place() && other.is_in_place());
        drop(other);
        assert_eq!(look(&folder), Seen::Nothing(None));
    }

    /// Two who ask at once never read each other's question, and one for a fuse of before is dropped.
    #[test]
    fn a_question_for_another_fuse_is_thrown_away() {
        let folder = tempfile::tempdir().unwrap();
        let what = What::Cancel { why: "over".into(), pod_is_off: true };
        let ask = Ask { id: "1".into(), to: "old".into(), what };
        put(folder.path(), &ask).unwrap();
        assert_eq!(taken(folder.path(), "new"), None);
        assert_eq!(taken(folder.path(), "old"), None, "it is gone");
        put(folder.path(), &ask).unwrap();
        assert_eq!(taken(folder.path(), "old"), Some(ask));
        std::fs::write(folder.path().join(ASK), "{").unwrap();
        assert_eq!(taken(folder.path(), "old"), None);
    }

    /// A new fuse whose file cannot be written is none, and the lost one before it stays known: otherwise
    /// nobody would take up what was armed over a pod that bills.
    #[tokio::test]
    async fn a_lost_fuse_stays_lost_when_the_file_of_a_new_one_cannot_be_written() {
        use std::os::unix::ffi::OsStrExt as _;
        let folder = tempfile::tempdir().unwrap();
        let lost = record();
        update(folder.path(), &lost).unwrap();
        let _seat = take(folder.path()).await.unwrap().unwrap();
        // JSON has no word for this path: the write fails as it does on a full disk.
        let config = PathBuf::from(std::ffi::OsStr::from_bytes(b"\xff"));
        let new = Record { config, nonce: "2".into(), ..lost.clone() };
        assert!(settle(folder.path(), &new).is_err());
        assert_eq!(left(folder.path()), Some(Some(lost.clone())));
        settle(folder.path(), &Record { nonce: "2".into(), ..lost }).unwrap();
        assert_eq!(left(folder.path()).unwrap().unwrap().nonce, "2");
    }
}
