//! The pull: list, receive, compare, receive again what differs, put in place.

use super::apart::LocalNames;
use super::check::{Checked, Local, check, unproven};
use super::manifest::{Check, Entry, Manifest, Source, names};
use super::place::place;
use super::receive::Receiver;
use super::rsync_run::Which;
use super::staging::Staging;
use super::verified::{Found, Here, Verified};
use super::{Progress, PullReport, PullRequest, PulledFile, TransferError, room, say};
use crate::clock::{Clock as _, SystemClock};
use crate::digest::hex;
use crate::pod::Shell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long the list without hashes may take: it asks for every file's size.
const LISTING: Duration = Duration::from_secs(300);
/// The slowest that a network volume is expected to be read when it is hashed, in bytes a second.
const SLOWEST_HASHING: u64 = 30_000_000;

/// Pulls a folder. `shell` leads to the same pod; it lists the folder, the files come over a
/// connection of their own. `progress` is called often.
///
/// # Errors
/// [`TransferError`] when nothing was put in place. Files that are missing or differ are no error
/// but an incomplete [`PullReport`].
pub async fn pull(
    request: &PullRequest,
    shell: &dyn Shell,
    mut progress: impl FnMut(Progress) + Send,
) -> Result<PullReport, TransferError> {
    let clock = SystemClock::new();
    refuse_odd_path(&request.remote_dir)?;
    let folder = request.remote_dir.as_str();
    let source = Source { folder, marker: request.marker.as_ref() };
    // Before anything else: an empty source is what an unmounted volume looks like.
    let before = Manifest::of(shell, source, &[], LISTING).await?;
    if before.entries.is_empty() {
        return Err(TransferError::EmptyFolder { folder: folder.to_owned() });
    }
    let dir = prepare(&request.local_dir)?;
    let staging = Arc::new(Staging::open(request, &dir)?);
    room::check(&before, &dir, staging.root(), request.keep_free)?;
    let verified = Arc::new(match &request.manifest {
        Some(path) if !request.rehash => Verified::read(path, folder),
        _ => Verified::default(),
    });
    let name_blind = match request.name_blind {
        Some(known) => known,
        None => staging.is_name_blind()?,
    };
    let local = |manifest: &Manifest| {
        let names = if name_blind { LocalNames::blind(manifest) } else { LocalNames::default() };
        Arc::new(Local { dir: dir.clone(), names, check: request.check })
    };
    let mut here = local(&before);

    let (rest, again) = (staging.list_path("rest"), staging.list_path("again"));
    let to_hash = unproven(&before, &here, &verified);
    let links = before.entries.iter().filter(|(_, entry)| **entry == Entry::Link);
    let not_here = to_hash.iter().map(|(path, _)| *path).chain(links.map(|(path, _)| &**path));
    write_list(&rest, not_here)?;
    let mut to_hash: BTreeSet<PathBuf> = match request.check {
        Check::Hashes => to_hash.into_iter().map(|(path, _)| path.to_owned()).collect(),
        Check::Sizes => BTreeSet::new(),
    };
    let of = Progress {
        total_bytes: before.bytes(),
        total_files: before.files().count() as u64,
        ..Progress::default()
    };
    let mut receiver = Receiver::new(request, shell, Arc::clone(&staging), of)?;
    receiver.receive(Which::All { kept: &dir }, &rest, staging.tree(), &mut progress).await?;

    let mut manifest = hashed(shell, source, &before, &to_hash).await?;
    here = local(&manifest);
    let compare = async |list: &Manifest, tree: &Path, here: &Arc<Local>| {
        let (list, tree) = (list.clone(), tree.to_owned());
        let (here, verified) = (Arc::clone(here), Arc::clone(&verified));
        tokio::task::spawn_blocking(move || check(&list, &tree, &here, &verified))
            .await
            .map_err(|error| TransferError::LocalDisk { detail: error.to_string() })?
    };
    let mut checked = compare(&here.names.split(&manifest).0, staging.tree(), &here).await?;
    let mut snapshots = Vec::new();
    if !checked.bad.is_empty() {
        // Once more, only what differs, compared by content.
        write_list(&again, checked.bad.keys().map(PathBuf::as_path))?;
        receiver.receive(Which::Again(&again), &again, staging.tree(), &mut progress).await?;
        let earlier = manifest;
        // What may have changed without a trace is hashed again too.
        let young = |path: &PathBuf| match earlier.entries.get(path) {
            Some(Entry::File { stamp, .. }) => !earlier.is_settled(stamp, request.settled),
            _ => false,
        };
        to_hash.retain(|path| checked.bad.contains_key(path) || young(path));
        if request.check == Check::Hashes {
            to_hash.extend(checked.bad.keys().cloned());
        }
        manifest = hashed(shell, source, &earlier, &to_hash).await?;
        manifest.take_over(&earlier, request.settled);
        here = local(&manifest);
        checked = compare(&here.names.split(&manifest).0, staging.tree(), &here).await?;
        // A file that the pod itself shows differently each time is being written. What came is
        // how it was at one moment, and better than nothing; what differs otherwise is damaged.
        let moving = |path: &&PathBuf| {
            earlier.entries.get(*path) != manifest.entries.get(*path)
                && staging.tree().join(path).is_file()
        };
        snapshots = checked.bad.keys().filter(moving).cloned().collect();
    }
    let mut parts = vec![(checked, staging.tree().to_owned())];
    for (turn, list) in here.names.split(&manifest).1 {
        let tree = staging.apart(turn)?;
        let mut checked = compare(&list, &tree, &here).await?;
        if !checked.bad.is_empty() {
            write_list(&again, checked.bad.keys().map(PathBuf::as_path))?;
            receiver.receive(Which::Again(&again), &again, &tree, &mut progress).await?;
            checked = compare(&list, &tree, &here).await?;
        }
        parts.push((checked, tree));
    }

    let carrier = receiver.carrier();
    let Receiver { received, mut warnings, .. } = receiver;
    warnings.extend(say::of_the_pod(&manifest));
    let mut report = PullReport {
        files: 0,
        bytes: 0,
        received_bytes: received,
        complete: false,
        missing: Vec::new(),
        warnings,
        hashed: 0,
        equal: Vec::new(),
        unchanged: 0,
        unchanged_since: None,
        carrier,
        elapsed: Duration::ZERO,
    };
    let mut now_verified = Verified::default();
    for (index, (checked, tree)) in parts.iter().enumerate() {
        let snapshots = if index == 0 { &snapshots[..] } else { &[] };
        put_in_place(checked, snapshots, tree, &here, &mut report)?;
        for known in &checked.unchanged {
            report.unchanged += 1;
            let since = report.unchanged_since.unwrap_or(known.verified_at);
            report.unchanged_since = Some(since.min(known.verified_at));
            report.equal.extend(known.told());
            now_verified.keep(known);
        }
        for (path, seen) in &checked.equal {
            let Some(Entry::File { size, stamp, hash: Some(hash) }) = manifest.entries.get(path)
            else {
                continue;
            };
            report.hashed += 1;
            report.equal.extend(path.to_str().map(|path| PulledFile {
                path: path.to_owned(),
                bytes: *size,
                sha256: hex(hash),
            }));
            // It has been renamed into place since, or has not been touched.
            let now = Here::of(&here.path(path)).ok();
            let Some(now) = now.filter(|now| seen == now || seen.is_renamed(now)) else { continue };
            let found = Found { path, size: *size, hash, there: stamp, here: now };
            now_verified.add(found, &manifest, request.settled, clock.now());
        }
    }
    if let (Some(path), Check::Hashes) = (&request.manifest, request.check)
        && let Err(error) = now_verified.write(path, folder)
    {
        let path = path.display();
        report.warnings.push(format!(
            "the manifest could not be written to {path} ({error}); the next pull hashes every file"
        ));
    }
    report.complete = report.missing.is_empty();
    if report.complete {
        staging.remove()?;
    }
    report.elapsed = clock.monotonic();
    Ok(report)
}

/// The list with the hashes of what is named; `before` tells how long that may take.
async fn hashed(
    shell: &dyn Shell,
    source: Source<'_>,
    before: &Manifest,
    named: &BTreeSet<PathBuf>,
) -> Result<Manifest, TransferError> {
    let bytes: u64 = before
        .files()
        .filter(|(path, _, _)| named.contains(*path))
        .map(|(_, size, _)| size)
        .fold(0, u64::saturating_add);
    let paths: Vec<&Path> = named.iter().map(PathBuf::as_path).collect();
    let limit = LISTING + Duration::from_secs(bytes / SLOWEST_HASHING);
    Manifest::of(shell, source, &paths, limit).await
}

fn put_in_place(
    checked: &Checked,
    snapshots: &[PathBuf],
    tree: &Path,
    local: &Local,
    report: &mut PullReport,
) -> Result<(), TransferError> {
    let placed = place(checked, snapshots, tree, local)?;
    report.files += placed.files;
    report.bytes += placed.bytes;
    let is_first = tree.ends_with("tree");
    let none = LocalNames::default();
    let names = if is_first { &local.names } else { &none };
    report.warnings.extend(say::of_files(checked, snapshots, names));
    report.missing.extend(checked.bad.keys().map(|path| say::shown(path)));
    for (path, why) in &placed.refused {
        report.warnings.push(format!("{} was not put in place: {why}", say::shown(path)));
        if !checked.folders.contains(path) {
            report.missing.push(say::shown(path));
        }
    }
    Ok(())
}

/// Refuses what rsync would not take literally, and what nobody means (D08).
fn refuse_odd_path(path: &str) -> Result<(), TransferError> {
    let why = if !path.starts_with('/') {
        "it has to be absolute"
    } else if path.trim_matches('/').is_empty() {
        "that is the whole pod"
    } else if path.split('/').any(|part| part == "..") {
        "it leads up"
    } else if path.contains(['*', '?', '[', '\\']) {
        "the rsync on the pod would expand wildcards"
    } else if path.chars().any(char::is_control) {
        "it holds a control character"
    } else {
        return Ok(());
    };
    Err(TransferError::BadRemotePath { path: path.to_owned(), why })
}

/// Makes the folder and returns its absolute path.
fn prepare(local_dir: &Path) -> Result<PathBuf, TransferError> {
    let failed = |error| TransferError::local("creating", local_dir, error);
    fs::create_dir_all(local_dir).map_err(failed)?;
    fs::canonicalize(local_dir).map_err(failed)
}

fn write_list<'a>(list: &Path, paths: impl Iterator<Item = &'a Path>) -> Result<(), TransferError> {
    let paths: Vec<&Path> = paths.collect();
    fs::write(list, names(&paths)).map_err(|error| TransferError::local("writing", list, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pull_can_be_spawned() {
        fn is_send<T: Send>(_: impl FnOnce(PullRequest, Box<dyn Shell>) -> T) {}
        is_send(async |request: PullRequest, shell: Box<dyn Shell>| {
            pull(&request, &*shell, |_| {}).await
        });
    }

    /// D08: nothing that could mean another folder is handed on.
    #[test]
    fn a_remote_path_is_absolute_and_taken_literally() {
        for path in ["", "/", "//", "jobs", "~/x", "/x/../y", "/x/*", "/a[b]", "/a\\b", "/a\nb"] {
            assert!(refuse_odd_path(path).is_err(), "{path:?}");
        }
        for path in ["/workspace/jobs/a b", "/w/it's $(x)", "/w/-n", "/w/..x", "/w/x "] {
            assert!(refuse_odd_path(path).is_ok(), "{path:?}");
        }
    }
}
