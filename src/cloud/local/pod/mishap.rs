//! What can be wrong on a pod that runs: stand-ins for the programs that would notice, a mount that
//! leads nowhere, a boot id, pids that belong to others.

use super::folder::Folder;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The programs through which scripts and jobs touch a volume.
const PROGRAMS: [&str; 17] = [
    "cat", "cp", "dd", "df", "find", "head", "ls", "mkdir", "mv", "rm", "rsync", "stat", "sync",
    "tail", "tee", "touch", "wc",
];

const STAND_IN: &str = include_str!("../shim/mishap.sh");

/// What is wrong with a pod's volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// Whoever touches it hangs.
    Frozen,
    /// Whoever writes to it fails.
    Full,
}

impl Folder {
    fn mishap(&self) -> PathBuf {
        self.machine().with_file_name("mishap")
    }

    /// The file that `PODTETHER_BOOT_ID` names on a local pod: while it is not there the machine's own
    /// boot counts.
    pub(super) fn boot_id(&self) -> PathBuf {
        self.machine().with_file_name("boot_id")
    }

    /// Has this be wrong with the volume that lies at `volume` and is mounted at `mount`, or nothing.
    pub fn set_mishap(
        &self,
        mishap: Option<Mishap>,
        mount: &Path,
        volume: &Path,
    ) -> io::Result<()> {
        let word = match mishap {
            None if !self.mishap().exists() => return Ok(()),
            None => {
                remove(&self.mishap())?;
                return self.without_stand_ins();
            }
            Some(Mishap::Frozen) => "frozen",
            Some(Mishap::Full) => "full",
        };
        let text = format!("{word}\n{}\n{}\n", mount.display(), volume.display());
        if std::fs::read_to_string(self.mishap()).is_ok_and(|now| now == text) {
            return Ok(());
        }
        self.stand_ins()?;
        // By a rename: whoever hangs reads it all the time.
        let new = self.mishap().with_extension("new");
        std::fs::write(&new, text)?;
        std::fs::rename(new, self.mishap())
    }

    /// Gives the pod's machine another boot id.
    pub fn reboot(&self, boot_id: &str) -> io::Result<()> {
        std::fs::write(self.boot_id(), format!("{boot_id}\n"))
    }

    /// Everything is well: a new container has none of it.
    pub fn forget_mishaps(&self) -> io::Result<()> {
        remove(&self.mishap())?;
        remove(&self.boot_id())?;
        self.without_stand_ins()
    }

    fn stand_ins(&self) -> io::Result<()> {
        for name in PROGRAMS {
            let path = self.program(name);
            std::fs::write(&path, STAND_IN)?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    }

    fn without_stand_ins(&self) -> io::Result<()> {
        // Others may stand in for the same programs.
        let ours = |path: &Path| std::fs::read_to_string(path).is_ok_and(|text| text == STAND_IN);
        PROGRAMS
            .iter()
            .map(|name| self.program(name))
            .filter(|path| ours(path))
            .try_for_each(|path| remove(&path))
    }

    fn program(&self, name: &str) -> PathBuf {
        self.machine().with_file_name("bin").join(name)
    }
}

/// Has the jobs of a volume that have no exit code point to process `pid`. How many there were.
pub fn give_pids_away(volume: &Path, pid: u32) -> usize {
    let folders = std::fs::read_dir(volume.join("jobs")).into_iter().flatten().flatten();
    let open = folders.map(|job| job.path()).filter(|job| !job.join("exit_code").exists());
    open.filter(|job| {
        let file = job.join("pid");
        let Ok(text) = std::fs::read_to_string(&file) else { return false };
        let rest = text.split_once(' ').map_or("", |(_, rest)| rest);
        std::fs::write(file, format!("{pid} {rest}")).is_ok()
    })
    .count()
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
