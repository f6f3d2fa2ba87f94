//! Where a job comes from, as far as it can be told in bounded time: it is written beside the job and
//! into the journal, so that a run can be told from another years later. Whatever could not be told is
//! told so; nothing here keeps a job from being launched.

use super::Tether;
use crate::digest::{hex, sha256_of_file};
use crate::domain::{Labels, Pod, UsdPerHour, Vehicle};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;

/// A job's record: word to value.
pub(crate) type Provenance = BTreeMap<String, Value>;

/// For everything that git is asked. A folder on a network drive must not hold up a launch.
const GIT_TIME: Duration = Duration::from_secs(3);
/// The longest difference that is hashed, in bytes.
const DIFF_MAX: u64 = 64 << 20;
/// The longest lock file that is hashed, in bytes.
const LOCK_MAX: u64 = 16 << 20;
/// How many lock files are noted at most: the record must fit into a look at the pod.
const LOCKS: usize = 8;

/// Files that pin what a program is built from.
const LOCK_FILES: [&str; 9] = [
    "uv.lock",
    "poetry.lock",
    "Pipfile.lock",
    "pdm.lock",
    "pixi.lock",
    "conda-lock.yml",
    "environment.yml",
    "Cargo.lock",
    "package-lock.json",
];

impl Tether {
    /// What is known of a job before it is launched.
    pub(super) async fn provenance(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        driver: Option<&str>,
        labels: &Labels,
    ) -> Provenance {
        let folder = self.config.path.parent().unwrap_or(Path::new("/"));
        let git = match &self.surroundings.path {
            Some(path) => {
                let asked = tokio::time::timeout(GIT_TIME, git(path, folder)).await;
                asked.unwrap_or_else(|_| json!(format!("git did not answer in {GIT_TIME:?}")))
            }
            None => json!("not asked: no PATH"),
        };
        let text = |text: Option<&str>| text.map_or(Value::Null, Value::from);
        let rate = pod.price.known().map(UsdPerHour::per_hour).map(crate::domain::Usd::to_decimal);
        let mut noted = BTreeMap::from([
            ("podtether".to_owned(), env!("CARGO_PKG_VERSION").into()),
            ("vehicle".to_owned(), vehicle.name.0.clone().into()),
            ("image".to_owned(), vehicle.image_name.clone().into()),
            ("driver".to_owned(), text(driver)),
            (
                "gpu".to_owned(),
                match &pod.gpu {
                    Some((gpu, count)) => json!(format!("{count} x {gpu}")),
                    None => Value::Null,
                },
            ),
            ("data_center".to_owned(), text(pod.data_center.as_ref().map(|id| id.0.as_str()))),
            ("usd_per_hour".to_owned(), text(rate.as_deref())),
            ("git".to_owned(), git),
            ("lockfiles".to_owned(), lockfiles(folder)),
        ]);
        let Labels { group, agent } = labels.clone().or(&self.labels());
        for (key, label) in [("group", group), ("agent", agent)] {
            noted.extend(label.map(|label| (key.to_owned(), label.as_str().into())));
        }
        noted
    }
}

/// The commit that the folder is at, and what differs from it.
async fn git(path: &OsStr, folder: &Path) -> Value {
    let commit = match ask(path, folder, &["rev-parse", "HEAD"]).await {
        Ok(Answered { text, .. }) => text.trim().to_owned(),
        Err(why) => return json!(why),
    };
    let (diff, others) = tokio::join!(
        // Of what is tracked, whatever the user's settings make of a difference.
        ask(
            path,
            folder,
            &[
                "diff",
                "HEAD",
                "--binary",
                "--no-color",
                "--no-ext-diff",
                "--no-textconv",
                "--",
                "."
            ]
        ),
        ask(path, folder, &["ls-files", "--others", "--exclude-standard", "--", "."]),
    );
    let untracked = others.map_or(Value::Null, |others| json!(others.text.lines().count()));
    match diff {
        Ok(diff) => json!({
            "commit": commit,
            "dirty": diff.bytes > 0,
            "diff_sha256": (diff.bytes > 0).then_some(diff.sha256),
            "untracked": untracked,
        }),
        Err(why) => json!({"commit": commit, "dirty": why, "untracked": untracked}),
    }
}

/// What git wrote.
struct Answered {
    /// Its beginning.
    text: String,
    bytes: u64,
    sha256: String,
}

async fn ask(path: &OsStr, folder: &Path, arguments: &[&str]) -> Result<Answered, String> {
    #[expect(clippy::disallowed_methods, reason = "the one place that asks git")]
    let mut command = tokio::process::Command::new("git");
    command
        // No program that a repository's settings name is run by looking at it.
        .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-C"])
        .arg(folder)
        .args(arguments)
        .env("PATH", path)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    // Of the repository that podtether happens to be called in.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(name);
    }
    let mut child = command.spawn().map_err(|error| format!("no git: {error}"))?;
    let mut hash = Sha256::new();
    let (mut text, mut bytes) = (Vec::new(), 0_u64);
    if let Some(mut stdout) = child.stdout.take() {
        let mut piece = vec![0; 64 * 1024];
        loop {
            let read = stdout.read(&mut piece).await.map_err(|error| format!("git: {error}"))?;
            let Some(piece) = piece.get(..read).filter(|piece| !piece.is_empty()) else { break };
            hash.update(piece);
            bytes += read as u64;
            if bytes > DIFF_MAX {
                return Err(format!("more than {} MiB differ", DIFF_MAX >> 20));
            }
            if text.len() < 64 * 1024 {
                text.extend_from_slice(piece);
            }
        }
    }
    let status = child.wait().await.map_err(|error| format!("git: {error}"))?;
    match status.code() {
        Some(0) => Ok(Answered {
            text: String::from_utf8_lossy(&text).into_owned(),
            bytes,
            sha256: hex(&hash.finalize()),
        }),
        Some(128) => Err("not a git repository, or one without a commit".to_owned()),
        _ => Err(format!("git ended with {status}")),
    }
}

/// Lock files beside the config, with their hashes.
fn lockfiles(folder: &Path) -> Value {
    let Ok(entries) = std::fs::read_dir(folder) else { return Value::Null };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| {
            let is_list = name.starts_with("requirements") && name.ends_with(".txt");
            LOCK_FILES.contains(&name.as_str()) || is_list
        })
        .collect();
    names.sort();
    let found: serde_json::Map<String, Value> = names
        .into_iter()
        .take(LOCKS)
        .filter_map(|name| {
            let path = folder.join(&name);
            let size = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?.len();
            let sha256 = match size {
                0..=LOCK_MAX => hex(&sha256_of_file(&path).ok()?.1),
                _ => format!("not hashed: {size} bytes"),
            };
            Some((name, sha256.into()))
        })
        .collect();
    Value::Object(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "the test makes a real repository")]
    fn run(folder: &Path, arguments: &[&str]) {
        let done = std::process::Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b", "-C"])
            .arg(folder)
            .args(arguments)
            .output()
            .unwrap();
        assert!(done.status.success(), "{arguments:?}: {done:?}");
    }

    #[expect(clippy::disallowed_methods, reason = "the tests' own PATH")]
    fn path() -> std::ffi::OsString {
        std::env::var_os("PATH").unwrap()
    }

    #[tokio::test]
    async fn a_commit_and_what_differs_from_it_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        assert_eq!(git(&path(), at).await, json!("not a git repository, or one without a commit"));
        run(at, &["init", "-q"]);
        std::fs::write(at.join("a"), "1\n").unwrap();
        run(at, &["add", "a"]);
        run(at, &["commit", "-qm", "x"]);
        let clean = git(&path(), at).await;
        assert_eq!(clean["commit"].as_str().unwrap().len(), 40);
        assert_eq!((&clean["dirty"], &clean["untracked"]), (&json!(false), &json!(0)));
        assert_eq!(clean["diff_sha256"], Value::Null);
        std::fs::write(at.join("a"), "2\n").unwrap();
        std::fs::write(at.join("b"), "new\n").unwrap();
        let dirty = git(&path(), at).await;
        assert_eq!((&dirty["dirty"], &dirty["untracked"]), (&json!(true), &json!(1)));
        let sum = dirty["diff_sha256"].as_str().unwrap().to_owned();
        std::fs::write(at.join("a"), "3\n").unwrap();
        assert_ne!(git(&path(), at).await["diff_sha256"], json!(sum));
        std::fs::write(at.join("a"), "2\n").unwrap();
        assert_eq!(git(&path(), at).await["diff_sha256"], json!(sum));
        // Without git nothing is known, and that is said.
        let none = git(at.as_os_str(), at).await;
        assert!(none.as_str().unwrap().starts_with("no git"), "{none}");
    }

    #[test]
    fn lock_files_are_noted_with_their_hashes() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["uv.lock", "requirements-dev.txt", "notes.txt", "Cargo.toml"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let found = lockfiles(folder.path());
        let names: Vec<&String> = found.as_object().unwrap().keys().collect();
        assert_eq!(names, ["requirements-dev.txt", "uv.lock"]);
        assert_eq!(found["uv.lock"], crate::digest::sha256_hex(b"uv.lock"));
    }
}
