//! A file on a pod that is written anew, as long as it is what it was.

use super::PodStep;
use crate::domain::{PodId, RemoteCommand, scripts};
use std::time::Duration;

/// Generous: a network volume may be slow to answer.
const REPLACE_TIMEOUT: Duration = Duration::from_secs(30);

/// A file and what it becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The file, absolute on the pod.
    pub path: String,
    /// SHA-256 of what was read.
    pub sha256_before: String,
    /// SHA-256 of what it becomes.
    pub sha256_after: String,
    /// What it becomes.
    pub text: String,
}

/// The exit code by which the script says that the file is not what was read.
pub const CHANGED_SINCE: u32 = 6;

/// The step. It may be repeated when its answer was lost, and it compares before it writes: also a file
/// that already is as it should be is asked for its hash, since the launch after it counts on that.
#[must_use]
pub(super) fn replace_step(pod: &PodId, file: &Replacement) -> PodStep {
    let words = [
        file.path.clone(),
        file.sha256_before.clone(),
        file.sha256_after.clone(),
        file.text.len().to_string(),
    ];
    let command = RemoteCommand::script(scripts::REPLACE_FILE, words);
    PodStep {
        pod: pod.clone(),
        label: format!("write the level into {}", file.path),
        command: command.with_stdin(file.text.clone().into_bytes()),
        timeout: REPLACE_TIMEOUT,
    }
}
