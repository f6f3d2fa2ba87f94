//! sync_logs: results from the pod's volume into the vehicle's log folder, checked.

use super::run_left::Pull;
use super::subdir::checked_subdir;
use super::{CloudName, Tether};
use crate::domain::{Pod, PodId, Vehicle};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::pod::transfer::{
    Marker, Progress, PullReport, PullRequest, RsyncProgram, TransferError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long another pull of the same folder is waited for.
const BUSY: Duration = Duration::from_secs(15);
const AGAIN: Duration = Duration::from_millis(250);

/// What has come so far.
pub type SyncProgress = Progress;

/// The answer of sync_logs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SyncAnswer {
    /// Which cloud answered.
    pub cloud: CloudName,
    /// From which vehicle's pod.
    pub vehicle: String,
    /// Folder on the pod.
    pub from: String,
    /// Folder here.
    pub to: String,
    /// Files that this pull brought; those that were here already are not among them.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Whether every file is here with the size and SHA-256 that it has on the pod.
    pub complete: bool,
    /// How many files were hashed on both sides now, how many are unchanged since they were.
    pub proof: String,
    /// What is missing or differs, at most 50 names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// What else to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl SyncAnswer {
    /// How many files came, in words.
    #[must_use]
    pub fn brought(&self) -> String {
        match self.files {
            1 => "1 new file".to_owned(),
            n => format!("{n} new files"),
        }
    }
}

impl Tether {
    /// Pulls `<mount>/<subdir>` into `<local_log_dir>/<subdir>`. Never deletes anything here. With
    /// `rehash` every file is hashed on both sides, also what has not changed since it last was.
    ///
    /// # Errors
    /// Bad input, no running pod, or a transfer that could not be made. An incomplete one is
    /// an answer. The records of the jobs that the folder is about are completed by what came.
    pub async fn sync_logs(
        &self,
        subdir: &str,
        vehicle: Option<&str>,
        rehash: bool,
        progress: impl FnMut(Progress) + Send,
    ) -> Result<SyncAnswer, Failure> {
        let vehicle = self.vehicle(vehicle)?;
        checked_subdir(subdir)?;
        let pod = self.running_pod(&vehicle).await?;
        let (answer, pull) = self.pull_from(&vehicle, &pod, subdir, rehash, progress).await?;
        self.complete_after(&vehicle, &pod, pull).await;
        Ok(answer)
    }

    /// The same without a look at the records: for who completes one record by several pulls. Where the
    /// provider cannot be asked the files come from the pod as it was `known` last: what is on it is
    /// not the provider's, and the way there proves whose pod it is.
    ///
    /// # Errors
    /// As [`Self::sync_logs`].
    pub(crate) async fn pull_logs(
        &self,
        subdir: &str,
        vehicle: &Vehicle,
        known: Option<&Pod>,
        progress: impl FnMut(Progress) + Send,
    ) -> Result<(SyncAnswer, Pull, Pod), Failure> {
        checked_subdir(subdir)?;
        let pod = match (self.running_pod(vehicle).await, known) {
            (Err(failure), Some(known)) if failure.kind.is_of_provider() => known.clone(),
            (pod, _) => pod?,
        };
        let (answer, pull) = self.pull_from(vehicle, &pod, subdir, false, progress).await?;
        Ok((answer, pull, pod))
    }

    /// The same from a pod that is known, without asking the provider for it, and without a look at the
    /// records.
    ///
    /// # Errors
    /// As [`Self::sync_logs`].
    pub(crate) async fn sync_from(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        subdir: &str,
        rehash: bool,
        progress: impl FnMut(Progress) + Send,
    ) -> Result<SyncAnswer, Failure> {
        Ok(self.pull_from(vehicle, pod, subdir, rehash, progress).await?.0)
    }

    /// The same, with what a record needs to know of the pull.
    ///
    /// # Errors
    /// As [`Self::sync_logs`].
    pub(crate) async fn pull_from(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        subdir: &str,
        rehash: bool,
        mut progress: impl FnMut(Progress) + Send,
    ) -> Result<(SyncAnswer, Pull), Failure> {
        let subdir = checked_subdir(subdir)?;
        let remote_dir = vehicle.on_volume(&subdir);
        let local_dir = vehicle.local_log_dir.join(&subdir);
        let failed = |error: TransferError| match error {
            // The way to the pod has its own words, as for any command.
            TransferError::Shell(error) => Failure::from(error),
            error => Failure::new(
                FailureKind::Transfer,
                error,
                "nothing was deleted; call again, a stopped transfer goes on where it was",
            )
            .billing(StillBilling::Yes)
            .retryable(),
        };
        let path = self.surroundings.path.clone().unwrap_or_default();
        // Without rsync here, tar over SSH brings the files; it cannot go on where it was.
        let rsync = RsyncProgram::probe(&path).await.ok();
        let marker = super::shells::volume_token(pod)
            .map(|token| Marker { path: vehicle.on_volume(".podtether/identity"), token });
        let request = PullRequest::new(
            super::shells::target(vehicle, pod)?,
            super::shells::tuning(self.surroundings.ssh_auth_sock.clone()),
            self.surroundings.program.clone(),
            rsync,
            remote_dir.clone(),
            local_dir.clone(),
        );
        let request = PullRequest {
            marker,
            manifest: Some(manifest_file(&vehicle.local_log_dir, &pod.id, &subdir)),
            rehash,
            ..request
        };
        let shell = self.shell(vehicle, pod)?;
        let started = self.clock.monotonic();
        let report = loop {
            match self.pulls.pull(&request, &*shell, &mut progress).await {
                // One that was let go a moment ago, or another session's that will soon be done.
                Err(TransferError::Busy { .. })
                    if self.clock.monotonic().saturating_sub(started) < BUSY =>
                {
                    tokio::time::sleep(AGAIN).await;
                }
                done => break done.map_err(failed)?,
            }
        };
        let proof = proof(&report);
        let mut missing = report.missing;
        missing.truncate(50);
        let pull = Pull { subdir, complete: report.complete, files: report.equal };
        let answer = SyncAnswer {
            cloud: self.cloud_name(),
            vehicle: vehicle.name.0.clone(),
            from: remote_dir,
            to: local_dir.display().to_string(),
            files: report.files,
            bytes: report.bytes,
            complete: report.complete,
            proof,
            missing,
            warnings: report.warnings,
        };
        Ok((answer, pull))
    }
}

/// Where the manifest of a folder is kept: path, size, SHA-256 and time of every file that was equal.
fn manifest_file(log_dir: &Path, pod: &PodId, subdir: &str) -> PathBuf {
    let name: String = subdir
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' })
        .take(60)
        .collect();
    // Two folders may have the same name once it is made plain.
    let key = crate::digest::sha256_hex(format!("{pod}/{subdir}").as_bytes());
    let key = key.get(..8).unwrap_or_default().to_owned();
    log_dir.join(".podtether").join("manifests").join(format!("{name}-{key}.jsonl"))
}

fn proof(report: &PullReport) -> String {
    let mut said = format!("{} files compared by SHA-256 now", report.hashed);
    if let Some(since) = report.unchanged_since {
        said.push_str(&format!(
            "; {} unchanged on both sides since they were so compared, the first on {}",
            report.unchanged,
            since.format("%Y-%m-%dT%H:%M:%SZ")
        ));
    }
    said
}
