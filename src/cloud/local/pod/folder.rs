//! A pod's folder: container disk, stand-in programs, host key, and what its sessions see.

use crate::domain::join_quoted;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The variable that marks every process of a pod, so that a stop finds those too that left their
/// session.
pub const MARK: &str = "PODTETHER_LOCAL_POD";

/// Where programs of the machine are looked for, in this order. Homebrew comes first: macOS has
/// bash 3.2 and BSD tools of its own, a pod has bash 5 and GNU tools.
const SYSTEM_PATH: &[&str] = &[
    "/opt/homebrew/opt/coreutils/libexec/gnubin",
    "/opt/homebrew/opt/findutils/libexec/gnubin",
    "/usr/local/opt/coreutils/libexec/gnubin",
    "/usr/local/opt/findutils/libexec/gnubin",
    "/opt/homebrew/bin",
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// The machine that a pod pretends to be, for the stand-in nvidia-smi.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Machine {
    pub gpu: String,
    pub count: u32,
    pub memory_mib: u32,
    pub driver: String,
    pub cuda: String,
}

/// What is out of the ordinary with a pod's programs.
#[derive(Clone, Copy, Debug, Default)]
pub struct OddPrograms {
    /// No rsync, which apt-get brings.
    pub no_rsync: bool,
    /// Nothing that apt-get could bring.
    pub no_packages: bool,
    pub no_runpodctl: bool,
    /// Seconds by which `date` is wrong. Files keep the machine's time, as those of a file server do.
    pub date_off_by: Option<i64>,
}

/// What is out of the ordinary with the environment file.
#[derive(Clone, Debug, Default)]
pub struct EnvironmentShape {
    /// The file ends in the middle of this value.
    pub ends_in: Option<String>,
    /// No `export`, and single quotes.
    pub unexported: bool,
}

/// A pod's folder.
#[derive(Clone, Debug)]
pub struct Folder {
    dir: PathBuf,
}

impl Folder {
    pub const fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// The container disk.
    pub fn disk(&self) -> PathBuf {
        self.dir.join("disk")
    }

    /// Home of the pod's user, and the working folder of its sessions.
    pub fn home(&self) -> PathBuf {
        self.disk().join("root")
    }

    fn bin(&self) -> PathBuf {
        self.dir.join("bin")
    }

    pub fn machine(&self) -> PathBuf {
        self.dir.join("machine.json")
    }

    pub fn host_key(&self) -> PathBuf {
        self.dir.join("ssh_host_ed25519_key")
    }

    /// Every command that ran, kept over stops.
    pub fn sessions(&self) -> PathBuf {
        self.dir.join("sessions.jsonl")
    }

    /// One empty file for each process group that was started, named by its id.
    pub fn groups(&self) -> PathBuf {
        self.dir.join("groups")
    }

    /// All programs of the machine but rsync, where a pod is to have none.
    fn without_rsync(&self) -> PathBuf {
        self.dir.join("without-rsync")
    }

    /// There when apt-get is to find nothing.
    pub fn no_packages(&self) -> PathBuf {
        self.dir.join("no-packages")
    }

    /// Where apt-get puts rsync.
    pub fn installed_rsync(&self) -> PathBuf {
        self.bin().join("rsync")
    }

    fn environment(&self) -> PathBuf {
        self.disk().join("etc").join("rp_environment")
    }

    /// Makes what is missing, and the stand-ins anew: they name this very program.
    pub fn prepare(&self, program: &Path, machine: &Machine, odd: OddPrograms) -> io::Result<()> {
        for folder in [self.home(), self.disk().join("tmp"), self.disk().join("etc")] {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::create_dir_all(self.bin())?;
        std::fs::create_dir_all(self.groups())?;
        std::fs::set_permissions(&self.dir, std::fs::Permissions::from_mode(0o700))?;
        std::fs::write(self.machine(), serde_json::to_string(machine)?)?;
        let (program, pod) = (text(program)?, text(&self.dir)?);
        self.take_away(odd)?;
        // apt-get too: a command that is meant for a pod must not change this machine.
        for name in ["runpodctl", "nvidia-smi", "apt-get"] {
            self.stand_in(name, &[program, "pod-shim", "--pod", pod, name])?;
        }
        if odd.no_runpodctl {
            std::fs::remove_file(self.bin().join("runpodctl"))?;
        }
        match odd.date_off_by {
            Some(seconds) => self.wrong_date(seconds)?,
            None => ignore_missing(std::fs::remove_file(self.bin().join("date")))?,
        }
        for name in ["setsid", "timeout"] {
            if find_program(name).is_none() {
                self.stand_in(name, &[program, "pod-shim", "--pod", pod, name])?;
            }
        }
        self.stand_in("podtether", &[program])
    }

    /// A `date` that is off. GNU's takes a moment as `-d @SECONDS`, BSD's as `-r SECONDS`.
    fn wrong_date(&self, seconds: i64) -> io::Result<()> {
        self.write_program(
            "date",
            &format!(
                "at=$(($(/bin/date +%s) + {seconds}))\n\
                 /bin/date -d @0 +%s >/dev/null 2>&1 && exec /bin/date -d \"@$at\" \"$@\"\n\
                 exec /bin/date -r \"$at\" \"$@\"\n"
            ),
        )
    }

    fn take_away(&self, odd: OddPrograms) -> io::Result<()> {
        ignore_missing(std::fs::remove_dir_all(self.without_rsync()))?;
        ignore_missing(std::fs::remove_file(self.no_packages()))?;
        if odd.no_packages {
            std::fs::write(self.no_packages(), "")?;
        }
        if !odd.no_rsync {
            return Ok(());
        }
        std::fs::create_dir(self.without_rsync())?;
        for folder in SYSTEM_PATH {
            for program in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let name = program.file_name();
                let link = self.without_rsync().join(&name);
                if name != "rsync" && std::fs::symlink_metadata(&link).is_err() {
                    std::os::unix::fs::symlink(program.path(), link)?;
                }
            }
        }
        Ok(())
    }

    fn stand_in(&self, name: &str, words: &[&str]) -> io::Result<()> {
        let command = join_quoted(words.iter().copied());
        self.write_program(name, &format!("exec {command} \"$@\"\n"))
    }

    fn write_program(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.bin().join(name);
        std::fs::write(&path, format!("#!/usr/bin/env bash\n{text}"))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
    }

    /// Empties the container disk and forgets the host key.
    pub fn wipe(&self) -> io::Result<()> {
        for gone in [self.disk(), self.groups()] {
            ignore_missing(std::fs::remove_dir_all(gone))?;
        }
        ignore_missing(std::fs::remove_file(self.installed_rsync()))?;
        ignore_missing(std::fs::remove_file(self.host_key()))
    }

    /// Removes everything but the record of sessions.
    pub fn remove(&self) -> io::Result<()> {
        self.wipe()?;
        ignore_missing(std::fs::remove_dir_all(self.bin()))?;
        ignore_missing(std::fs::remove_dir_all(self.without_rsync()))?;
        ignore_missing(std::fs::remove_file(self.no_packages()))?;
        ignore_missing(std::fs::remove_file(self.machine()))
    }

    /// Writes the environment file in the shape of the provider's images: upper-case names only,
    /// one line each, without PUBLIC_KEY, values as they are between double quotes. Values with
    /// quotes or `$` break it there too.
    pub fn write_environment<'a>(
        &self,
        variables: impl Iterator<Item = (&'a str, &'a str)>,
        shape: EnvironmentShape,
    ) -> io::Result<()> {
        let upper = |name: &str| {
            let mut bytes = name.bytes();
            bytes.next().is_some_and(|byte| byte.is_ascii_uppercase() || byte == b'_')
                && bytes.all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        };
        let (export, quote) = if shape.unexported { ("", '\'') } else { ("export ", '"') };
        let mut lines: String = variables
            .filter(|(name, _)| upper(name) && !name.starts_with("PUBLIC_KEY"))
            .map(|(name, value)| {
                let value = value.lines().next().unwrap_or_default();
                format!("{export}{name}={quote}{value}{quote}\n")
            })
            .collect();
        if let Some((at, value)) =
            shape.ends_in.and_then(|value| Some((lines.find(&value)?, value)))
        {
            lines.truncate(at + value.len() / 2);
        }
        let path = self.environment();
        let new = path.with_extension("new");
        let options = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new);
        io::Write::write_all(&mut options?, lines.as_bytes())?;
        std::fs::rename(new, path)
    }

    /// The whole environment of a session. The pod's own variables are not in it, as on a real pod.
    pub fn session_environment(&self, pod_id: &str) -> Vec<(OsString, OsString)> {
        let mut path = self.bin().into_os_string();
        let less = self.without_rsync();
        if less.is_dir() {
            path.push(":");
            path.push(less);
        } else {
            for folder in SYSTEM_PATH {
                path.push(":");
                path.push(folder);
            }
        }
        [
            ("HOME", self.home().into_os_string()),
            ("USER", "root".into()),
            ("LOGNAME", "root".into()),
            ("SHELL", bash().into_os_string()),
            ("LANG", "C.UTF-8".into()),
            ("TMPDIR", self.disk().join("tmp").into_os_string()),
            ("PATH", path),
            ("PODTETHER_RP_ENVIRONMENT", self.environment().into_os_string()),
            ("PODTETHER_BOOT_ID", self.boot_id().into_os_string()),
            (MARK, pod_id.into()),
        ]
        .into_iter()
        .map(|(name, value)| (name.into(), value))
        .collect()
    }
}

/// The newest bash of the machine, in the order of [`SYSTEM_PATH`].
pub fn bash() -> PathBuf {
    find_program("bash").unwrap_or_else(|| PathBuf::from("/bin/bash"))
}

/// Where the machine has a program.
pub fn find_program(name: &str) -> Option<PathBuf> {
    SYSTEM_PATH.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}

fn text(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{} is not UTF-8", path.display()))
    })
}

fn ignore_missing(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_file_has_the_shape_of_the_providers_images() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path().to_owned());
        std::fs::create_dir_all(folder.disk().join("etc")).unwrap();
        let variables = [
            ("RUNPOD_POD_ID", "local1"),
            ("lower", "dropped"),
            ("PUBLIC_KEY", "ssh-ed25519 AAAA"),
            ("TWO_LINES", "first\nsecond"),
            ("9BAD", "x"),
        ];
        folder.write_environment(variables.into_iter(), EnvironmentShape::default()).unwrap();
        assert_eq!(
            std::fs::read_to_string(folder.environment()).unwrap(),
            "export RUNPOD_POD_ID=\"local1\"\nexport TWO_LINES=\"first\"\n"
        );
    }
}
