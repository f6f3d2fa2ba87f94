//! What a supervise that runs leaves for others to see: a file in the vehicle's log folder that it
//! holds locked. The system gives the lock back with the process, whatever ends it, and never to
//! another process of the same number, so a lock that is held is a process that lives (A17).

use crate::domain::{Vigil, VigilSeen};
use crate::held::Held;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A vigil that is being kept. Dropping it gives the lock back and leaves the file: then it shows as
/// one that is gone.
#[derive(Debug)]
pub(crate) struct Kept {
    _file: Held,
    path: PathBuf,
}

/// A reader holds the lock for an instant; it is waited out.
const INSTANT: Duration = Duration::from_secs(1);

fn name(job_id: &str) -> String {
    format!("supervise-{job_id}.lock")
}

/// Begins a vigil that others can see in `folder`.
///
/// # Errors
/// When the file cannot be made or locked; then nobody sees the vigil, and it is kept all the same.
pub(crate) async fn keep(vigil: &Vigil, folder: &Path) -> io::Result<Kept> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(name(&vigil.job_id));
    let file = File::options().create(true).append(true).open(&path)?;
    let held = Held::alone_within(&file, INSTANT).await?;
    let mut held = held.ok_or(io::ErrorKind::WouldBlock)?;
    held.set_len(0)?;
    held.write_all(&serde_json::to_vec(vigil)?)?;
    Ok(Kept { _file: held, path })
}

impl Kept {
    /// Ends it in good order: the pod was read off the bill, or was to be left running.
    pub(crate) fn end(self) {
        // What cannot be removed shows as a vigil that is gone, which is true.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Every vigil that left its file in `folder`. What cannot be read is no vigil.
pub(super) fn seen(folder: &Path) -> Vec<VigilSeen> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| look(&entry.path())).collect()
}

fn look(path: &Path) -> Option<VigilSeen> {
    let name = path.file_name()?.to_str()?;
    (name.starts_with("supervise-") && name.ends_with(".lock")).then_some(())?;
    let mut file = File::open(path).ok()?;
    let lives = Held::beside_others(&file).ok().map(|held| held.is_none());
    let mut text = Vec::new();
    file.read_to_end(&mut text).ok()?;
    Some(VigilSeen { vigil: serde_json::from_slice(&text).ok()?, lives })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::PodId;
    use chrono::DateTime;

    fn vigil() -> Vigil {
        Vigil {
            job_id: "20260703-125000_train_00ab".into(),
            pod: PodId("pod1".into()),
            pid: std::process::id(),
            started_at: DateTime::UNIX_EPOCH,
            stops_by: None,
        }
    }

    fn lives(folder: &Path) -> Vec<Option<bool>> {
        seen(folder).iter().map(|seen| seen.lives).collect()
    }

    /// A17: the number in the file is that of a process that lives, this one; only the lock counts.
    #[tokio::test]
    async fn a_vigil_lives_while_its_lock_is_held_whatever_its_number_says() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        assert_eq!(lives(&logs), []);
        let kept = keep(&vigil(), &logs).await.unwrap();
        assert_eq!(seen(&logs), [VigilSeen { vigil: vigil(), lives: Some(true) }]);
        drop(kept);
        assert_eq!(lives(&logs), [Some(false)], "its process is gone, its number is not");
        keep(&vigil(), &logs).await.unwrap().end();
        assert_eq!(lives(&logs), []);
        std::fs::write(logs.join("supervise-x.lock"), "{").unwrap();
        std::fs::write(logs.join("supervise-x.json"), "{}").unwrap();
        assert_eq!(lives(&logs), []);
    }
}
