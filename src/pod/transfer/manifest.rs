//! What is in a folder of the pod, as the pod itself lists it. rsync's own checks cover only what
//! it sent, and the exit codes and file lists of the older clients cannot be trusted.

use super::TransferError;
use crate::domain::{RemoteCommand, Script};
use crate::pod::{ExecLimits, ExecStatus, Shell, ShellErrorKind};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// The script that makes the list.
pub const MANIFEST: Script = Script {
    name: "manifest.sh",
    parts: &["manifest.sh"],
    text: include_str!("../../../remote/manifest.sh"),
};

/// A list longer than this many bytes is refused; it would be some two million files.
const LONGEST: usize = 256 << 20;

/// How the list begins. What stands before it, the shell's start-up files wrote.
const FIRST: &[u8] = b"podtether-list\0";

/// How closely what was received is compared with what the pod has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Every file's SHA-256, computed anew where either side has changed since it was last equal.
    /// For the pull that counts.
    Hashes,
    /// Every file's size. For pulls while a job still writes: hashing reads every byte that the
    /// pod has.
    Sizes,
}

/// A file on the volume that proves that the volume is there, and is the one that is meant (D08).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Its path on the pod.
    pub path: String,
    /// Its first line.
    pub token: String,
}

/// Which folder is listed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) folder: &'a str,
    pub(super) marker: Option<&'a Marker>,
}

/// What changes whenever a file does: the times of content and inode and the inode's number, in
/// the pod's spelling. Compared, never reckoned with, except for the second of the latest change.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub(super) struct Stamp(pub(super) String);

impl Stamp {
    /// The latest change, in seconds of the Unix epoch.
    pub(super) fn changed_at(&self) -> Option<i64> {
        let second = |text: &str| text.split('.').next()?.parse::<i64>().ok();
        let mut times = self.0.split('/');
        Some(second(times.next()?)?.max(second(times.next()?)?))
    }
}

/// What the pod has under one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    File {
        size: u64,
        stamp: Stamp,
        hash: Option<[u8; 32]>,
    },
    Link,
    /// A pipe, socket or device, which is never transferred.
    Other,
}

/// A folder's content by path, relative to the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) entries: BTreeMap<PathBuf, Entry>,
    /// The pod's clock before it looked, in seconds of the Unix epoch.
    pub(super) taken_at: i64,
    /// Free on the folder's file system, in bytes.
    pub(super) free: u64,
    /// What start-up files of the pod's shell wrote in front.
    pub(super) noise: String,
}

impl Manifest {
    /// Asks the pod for a list, and for the hashes of the files that are `named`.
    pub(super) async fn of(
        shell: &dyn Shell,
        source: Source<'_>,
        named: &[&Path],
        timeout: Duration,
    ) -> Result<Self, TransferError> {
        let folder = source.folder;
        let marker = source.marker.into_iter().flat_map(|marker| [&*marker.path, &*marker.token]);
        let words = std::iter::once(folder).chain(marker);
        let command = RemoteCommand::script(MANIFEST, words).with_stdin(names(named));
        let limits = ExecLimits { timeout, stdout_bytes: LONGEST, stderr_bytes: 2000 };
        let fault = |detail: String| TransferError::NotListed { folder: folder.to_owned(), detail };
        let mut tries = 0;
        loop {
            tries += 1;
            let output = match shell.run(&command, limits).await {
                Ok(output) => output,
                // It only reads, so it may be asked again.
                Err(error) if error.kind == ShellErrorKind::Lost && tries < 3 => continue,
                Err(error) => return Err(error.into()),
            };
            match output.status {
                ExecStatus::Code(0) if output.stdout.is_truncated() => {
                    return Err(fault("it holds too many files to list".to_owned()));
                }
                ExecStatus::Code(0) => {
                    return Self::parse(&output.stdout.bytes)
                        .ok_or_else(|| fault("the list makes no sense".to_owned()));
                }
                ExecStatus::Code(3) => {
                    return Err(TransferError::NoSuchFolder { folder: folder.to_owned() });
                }
                ExecStatus::Code(5) => {
                    return Err(TransferError::NotMounted {
                        folder: folder.to_owned(),
                        detail: output.stderr.text().trim().to_owned(),
                    });
                }
                // A folder that vanishes while it is being listed.
                ExecStatus::Code(4) if tries < 3 => {}
                status => {
                    let said = output.stderr.text();
                    return Err(fault(format!("{status:?} {}", said.trim())));
                }
            }
        }
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let begin = bytes.windows(FIRST.len()).position(|window| window == FIRST)?;
        let (noise, list) = bytes.split_at(begin);
        let list = list.strip_prefix(FIRST)?;
        let mut records: Vec<&[u8]> = list.strip_suffix(b"\0")?.split(|byte| *byte == 0).collect();
        if records.pop()? != b"end" {
            return None;
        }
        let noise: String = String::from_utf8_lossy(noise).trim().chars().take(200).collect();
        let mut read = Self { noise, ..Self::default() };
        for record in records {
            if let Some((hash, path)) = hash_record(record) {
                // A file that appeared after the list was made has no entry; the next pull has it.
                if let Some(Entry::File { hash: known, .. }) = read.entries.get_mut(&path) {
                    *known = Some(hash);
                }
                continue;
            }
            let mut fields = record.splitn(4, |byte| *byte == b' ');
            let (kind, number) = (fields.next()?, std::str::from_utf8(fields.next()?).ok()?);
            let stamp = std::str::from_utf8(fields.next()?).ok()?;
            let entry = match kind {
                b"t" => {
                    read.taken_at = number.parse().ok()?;
                    continue;
                }
                b"v" => {
                    read.free = number.parse().ok()?;
                    continue;
                }
                b"f" => Entry::File {
                    size: number.parse().ok()?,
                    stamp: Stamp(stamp.to_owned()),
                    hash: None,
                },
                b"l" => Entry::Link,
                b"o" => Entry::Other,
                _ => return None,
            };
            read.entries.insert(inside(fields.next()?)?, entry);
        }
        Some(read)
    }

    /// The regular files.
    pub(super) fn files(&self) -> impl Iterator<Item = (&Path, u64, &Stamp)> {
        self.entries.iter().filter_map(|(path, entry)| match entry {
            Entry::File { size, stamp, .. } => Some((path.as_path(), *size, stamp)),
            Entry::Link | Entry::Other => None,
        })
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.files().map(|(_, size, _)| size).fold(0, u64::saturating_add)
    }

    /// Takes over what an earlier list has hashed, where nothing has changed since and the last
    /// change had long been over when it was made.
    pub(super) fn take_over(&mut self, earlier: &Self, settled: Duration) {
        for (path, entry) in &mut self.entries {
            let Entry::File { size, stamp, hash: hash @ None } = entry else { continue };
            let Some(Entry::File { size: size_then, stamp: stamp_then, hash: known }) =
                earlier.entries.get(path)
            else {
                continue;
            };
            if size == size_then && stamp == stamp_then && earlier.is_settled(stamp, settled) {
                *hash = *known;
            }
        }
    }

    /// Whether a file's last change was over for so long, by the pod's clock. A file that changes
    /// twice within one tick of its file system's clock keeps its stamp.
    pub(super) fn is_settled(&self, stamp: &Stamp, settled: Duration) -> bool {
        let settled = i64::try_from(settled.as_secs()).unwrap_or(i64::MAX);
        stamp.changed_at().is_some_and(|at| at <= self.taken_at.saturating_sub(settled))
    }
}

/// Names as the scripts and rsync's `--from0` read them.
pub(super) fn names(paths: &[&Path]) -> Vec<u8> {
    let mut text = Vec::new();
    for path in paths {
        // A name may begin with what rsync would take for a comment or an option.
        text.extend_from_slice(b"./");
        text.extend_from_slice(path.as_os_str().as_bytes());
        text.push(0);
    }
    text
}

/// `<64 hex><two characters>./<path>`.
fn hash_record(record: &[u8]) -> Option<([u8; 32], PathBuf)> {
    let (digits, rest) = record.split_at_checked(64)?;
    let path = rest.get(2..)?.strip_prefix(b"./")?;
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some((hash, inside(path)?))
}

/// A path that stays inside the folder; the pod's word on that is not taken.
fn inside(bytes: &[u8]) -> Option<PathBuf> {
    let path = PathBuf::from(OsString::from_vec(bytes.to_vec()));
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    (!bytes.is_empty() && is_inside).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::fs;
    use std::io::{Seek as _, Write as _};

    fn run(arguments: &[&OsStr], stdin: &[u8], path: Option<&Path>) -> std::process::Output {
        #[expect(clippy::disallowed_methods, reason = "the test runs the script")]
        let mut bash = std::process::Command::new("/bin/bash");
        bash.args(["-c", MANIFEST.text, MANIFEST.name]).args(arguments);
        if let Some(path) = path {
            let usual = std::env::join_paths([path, Path::new("/usr/bin"), Path::new("/bin")]);
            bash.env("PATH", usual.unwrap());
        }
        let mut names = tempfile::tempfile().unwrap();
        names.write_all(stdin).unwrap();
        names.rewind().unwrap();
        bash.stdin(names).output().unwrap()
    }

    fn list(folder: &Path, named: &[&Path], path: Option<&Path>) -> Manifest {
        let output = run(&[folder.as_os_str()], &names(named), path);
        assert!(output.status.success(), "{output:?}");
        Manifest::parse(&output.stdout).unwrap()
    }

    /// D09: any name comes back byte for byte.
    #[test]
    fn the_script_lists_every_file_whatever_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let names =
            ["a", "a b", " lead", "new\nline", "\\back", "*", "-n", "é", "$(x)", "'", ".dot"];
        fs::create_dir(folder.path().join("sub dir")).unwrap();
        for name in names {
            fs::write(folder.path().join("sub dir").join(name), name).unwrap();
        }
        fs::write(folder.path().join("empty"), "").unwrap();
        std::os::unix::fs::symlink("a", folder.path().join("link")).unwrap();
        let sizes = list(folder.path(), &[], None);
        let all: Vec<&Path> = sizes.files().map(|(path, _, _)| path).collect();
        let manifest = list(folder.path(), &all, None);
        assert_eq!(manifest.entries.len(), names.len() + 2);
        for name in names {
            use sha2::Digest as _;
            let hash = Some(sha2::Sha256::digest(name.as_bytes()).into());
            let entry = &manifest.entries[&PathBuf::from("sub dir").join(name)];
            let Entry::File { size, hash: found, stamp } = entry else { panic!("{name}") };
            assert_eq!((*size, *found), (name.len() as u64, hash), "{name}");
            let now = manifest.taken_at;
            assert!(stamp.changed_at().is_some_and(|at| (now - 60..=now).contains(&at)));
        }
        assert_eq!(manifest.entries[&PathBuf::from("link")], Entry::Link);
        assert_eq!(sizes.bytes(), manifest.bytes());
        assert!(manifest.free > 0 && manifest.noise.is_empty());
        let hash_of = |list: &Manifest, name: &str| match &list.entries[Path::new(name)] {
            Entry::File { hash, .. } => *hash,
            other => panic!("{other:?}"),
        };
        assert_eq!(hash_of(&sizes, "empty"), None);
        let one = list(folder.path(), &[Path::new("empty"), Path::new("no such")], None);
        assert!(hash_of(&one, "empty").is_some() && hash_of(&one, "sub dir/a").is_none());
        if cfg!(target_os = "linux") {
            let tools = mac_tools();
            let found = list(folder.path(), &all, Some(tools.path()));
            let bare = |list: &Manifest| -> Vec<(PathBuf, Option<Option<[u8; 32]>>)> {
                let entries = list.entries.iter();
                entries
                    .map(|(path, entry)| match entry {
                        Entry::File { hash, stamp, .. } => {
                            assert!(stamp.changed_at().is_some(), "{stamp:?}");
                            (path.clone(), Some(*hash))
                        }
                        _ => (path.clone(), None),
                    })
                    .collect()
            };
            assert_eq!(bare(&found), bare(&manifest));
        }
    }

    /// A PATH whose tools take what a Mac's do: no -printf, stat -f, shasum.
    fn mac_tools() -> tempfile::TempDir {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        for (name, body) in [
            (
                "find",
                r#"for word; do [[ $word != -printf ]] || exit 1; done; exec /usr/bin/find "$@""#,
            ),
            (
                "stat",
                r#"[[ $1 == -f && $2 == '%z %Fm/%Fc/%i' ]] || exit 1; shift 2; exec /usr/bin/stat -c '%s %.9Y/%.9Z/%i' "$@""#,
            ),
            (
                "shasum",
                r#"[[ $1 == -a && $2 == 256 ]] || exit 1; shift 2; exec /usr/bin/sha256sum "$@""#,
            ),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, format!("#!/bin/bash\n{body}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    /// D08: a volume that is not mounted has no marker, another one has another.
    #[test]
    fn a_volume_without_its_marker_is_not_listed() {
        let folder = tempfile::tempdir().unwrap();
        let marker = folder.path().join("identity");
        fs::write(folder.path().join("a"), "a").unwrap();
        let ask = |token: &str| {
            let words = [folder.path().as_os_str(), marker.as_os_str(), OsStr::new(token)];
            let output = run(&words, b"", None);
            (output.status.code(), String::from_utf8(output.stderr).unwrap())
        };
        let (code, said) = ask("ours");
        assert!(code == Some(5) && said.contains("there is no"), "{code:?} {said}");
        fs::write(&marker, "theirs\n").unwrap();
        let (code, said) = ask("ours");
        assert!(code == Some(5) && said.contains("names theirs"), "{code:?} {said}");
        fs::write(&marker, "ours\nmore\n").unwrap();
        assert_eq!(ask("ours").0, Some(0));
    }

    #[test]
    fn a_list_that_is_cut_short_or_leads_out_is_no_list() {
        for text in [
            "",
            "end",
            "f 1 s a\0",
            "f 1 s a\0en\0",
            "f 1 s ../a\0end\0",
            "f 1 s /a\0end\0",
            "f x s a\0end\0",
            "f 1 s \0end\0",
            "f 1 a\0end\0",
            "q 1 s a\0end\0",
        ] {
            let list = format!("podtether-list\0{text}");
            assert_eq!(Manifest::parse(list.as_bytes()), None, "{text:?}");
        }
        assert_eq!(Manifest::parse(b"end\0"), None);
        assert_eq!(Manifest::parse(b"podtether-list\0end\0"), Some(Manifest::default()));
    }

    /// What a talkative ~/.bashrc writes is told and does no harm.
    #[test]
    fn what_the_shell_wrote_in_front_is_told_apart() {
        let list =
            b"Welcome, root!\nf 3 \0end\0podtether-list\0t 9 - -\0v 7 - -\0f 1 2.5/3.5/4 a\0end\0";
        let manifest = Manifest::parse(list).unwrap();
        assert!(manifest.noise.starts_with("Welcome, root!"));
        assert_eq!((manifest.entries.len(), manifest.taken_at, manifest.free), (1, 9, 7));
    }

    #[test]
    fn a_hash_is_taken_over_only_where_nothing_has_changed_and_the_change_was_long_over() {
        let list = |text: &str| {
            Manifest::parse(format!("podtether-list\0t 100 - -\0{text}end\0").as_bytes()).unwrap()
        };
        let hash = "ab".repeat(32);
        let earlier = list(&format!(
            "f 1 9/9/1 a\0f 1 9/9/2 b\0f 1 99/99/3 c\0{hash}  ./a\0{hash}  ./b\0{hash}  ./c\0"
        ));
        let mut now = list("f 1 9/9/1 a\0f 1 9/10/2 b\0f 1 99/99/3 c\0f 1 9/9/4 d\0");
        now.take_over(&earlier, Duration::from_secs(60));
        let hashed: Vec<&Path> = now
            .entries
            .iter()
            .filter(|(_, entry)| matches!(entry, Entry::File { hash: Some(_), .. }))
            .map(|(path, _)| path.as_path())
            .collect();
        assert_eq!(hashed, [Path::new("a")]);
    }
}
