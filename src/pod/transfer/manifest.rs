//! What is in a folder of the pod, as the pod itself lists it. rsync's own checks cover only what
//! it sent, and the exit codes and file lists of the older clients cannot be trusted.

use super::TransferError;
use crate::domain::{RemoteCommand, Script};
use crate::pod::{ExecLimits, ExecStatus, Shell};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, PathBuf};
use std::time::Duration;

/// The script that makes the list.
pub const MANIFEST: Script =
    Script { name: "manifest.sh", text: include_str!("../../../remote/manifest.sh") };

/// A list longer than this many bytes is refused; it would be some two million files.
const LONGEST: usize = 256 << 20;

/// How closely what was received is compared with what the pod has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Every file's SHA-256. For the pull that counts.
    Hashes,
    /// Every file's size. For pulls while a job still writes: hashing reads every byte that the
    /// pod has.
    Sizes,
}

/// What the pod has under one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    File {
        size: u64,
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
}

impl Manifest {
    /// Asks the pod.
    pub(super) async fn of(
        shell: &dyn Shell,
        folder: &str,
        check: Check,
        timeout: Duration,
    ) -> Result<Self, TransferError> {
        let mode = match check {
            Check::Hashes => "hashes",
            Check::Sizes => "sizes",
        };
        let command = RemoteCommand::script(MANIFEST, [folder, mode]);
        let limits = ExecLimits { timeout, stdout_bytes: LONGEST, stderr_bytes: 2000 };
        let fault = |detail: String| TransferError::NotListed { folder: folder.to_owned(), detail };
        let mut tries = 0;
        loop {
            let output = shell.run(&command, limits).await?;
            tries += 1;
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
        let mut records: Vec<&[u8]> = bytes.strip_suffix(b"\0")?.split(|byte| *byte == 0).collect();
        if records.pop()? != b"end" {
            return None;
        }
        let mut entries = BTreeMap::new();
        for record in records {
            if let Some((hash, path)) = hash_record(record) {
                // A file that appeared after the list was made has no entry; the next pull has it.
                if let Some(Entry::File { hash: known, .. }) = entries.get_mut(&path) {
                    *known = Some(hash);
                }
                continue;
            }
            let mut fields = record.splitn(3, |byte| *byte == b' ');
            let (kind, size, path) = (fields.next()?, fields.next()?, fields.next()?);
            let size = std::str::from_utf8(size).ok()?.parse().ok()?;
            let entry = match kind {
                b"f" => Entry::File { size, hash: None },
                b"l" => Entry::Link,
                b"o" => Entry::Other,
                _ => return None,
            };
            entries.insert(inside(path)?, entry);
        }
        Some(Self { entries })
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        let size = |entry: &Entry| match entry {
            Entry::File { size, .. } => *size,
            Entry::Link | Entry::Other => 0,
        };
        self.entries.values().map(size).fold(0, u64::saturating_add)
    }

    /// Groups of paths that a file system blind to case would take for one.
    pub(super) fn twins(&self) -> Vec<Vec<PathBuf>> {
        let mut groups: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for path in self.entries.keys() {
            // Folders too: `A/x` and `a/y` would end in one folder.
            for part in path.ancestors().filter(|part| !part.as_os_str().is_empty()) {
                let group = groups.entry(part.to_string_lossy().to_lowercase()).or_default();
                if !group.iter().any(|known| known == part) {
                    group.push(part.to_owned());
                }
            }
        }
        groups.into_values().filter(|group| group.len() > 1).collect()
    }
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
    use std::fs;
    use std::path::Path;

    fn list(folder: &Path, mode: &str, path: Option<&Path>) -> Manifest {
        #[expect(clippy::disallowed_methods, reason = "the test runs the script")]
        let mut bash = std::process::Command::new("/bin/bash");
        bash.args(["-c", MANIFEST.text, MANIFEST.name]).arg(folder).arg(mode);
        if let Some(path) = path {
            bash.env("PATH", path);
        }
        let output = bash.output().unwrap();
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
        let manifest = list(folder.path(), "hashes", None);
        assert_eq!(manifest.entries.len(), names.len() + 2);
        for name in names {
            use sha2::Digest as _;
            let hash = Some(sha2::Sha256::digest(name.as_bytes()).into());
            let entry = &manifest.entries[&PathBuf::from("sub dir").join(name)];
            assert_eq!(entry, &Entry::File { size: name.len() as u64, hash }, "{name}");
        }
        assert_eq!(manifest.entries[&PathBuf::from("link")], Entry::Link);
        let sizes = list(folder.path(), "sizes", None);
        assert_eq!(sizes.bytes(), manifest.bytes());
        assert_eq!(sizes.entries[&PathBuf::from("empty")], Entry::File { size: 0, hash: None });
        if cfg!(target_os = "linux") {
            let tools = mac_tools();
            assert_eq!(list(folder.path(), "hashes", Some(tools.path())), manifest);
            assert_eq!(list(folder.path(), "sizes", Some(tools.path())), sizes);
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
                r#"[[ $1 == -f && $2 == %z ]] || exit 1; shift 2; exec /usr/bin/stat -c %s "$@""#,
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

    #[test]
    fn a_list_that_is_cut_short_or_leads_out_is_no_list() {
        for text in [
            "",
            "end",
            "f 1 a\0",
            "f 1 a\0en\0",
            "f 1 ../a\0end\0",
            "f 1 /a\0end\0",
            "f x a\0end\0",
            "f 1 \0end\0",
            "q 1 a\0end\0",
        ] {
            assert_eq!(Manifest::parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(Manifest::parse(b"end\0"), Some(Manifest::default()));
    }

    #[test]
    fn names_that_differ_only_by_case_are_found() {
        let manifest = Manifest::parse(b"f 1 A/x\0f 1 a/y\0f 1 b\0f 1 B\0f 1 c\0end\0").unwrap();
        let twins = manifest.twins();
        let named = |a: &str, b: &str| vec![PathBuf::from(a), PathBuf::from(b)];
        assert_eq!(twins, [named("A", "a"), named("B", "b")]);
    }
}
