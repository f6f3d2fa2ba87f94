//! A job that ended with an earlier boot of its pod: what it came to is on the volume. It is looked up
//! and brought home; nothing is launched and nothing is stopped.

use super::capture::capture;
use super::earlier::read_summary;
use super::options::{Note, Options, PULL_EVERY};
use super::run::save;
use super::summary::Summary;
use crate::domain::{JobId, JobState, Vehicle};
use crate::error::Failure;
use crate::notify::Notifier;
use crate::ops::{RunJobRequest, Tether};
use std::path::Path;
use std::time::Duration;

/// Looks at the job of the run that left this summary. One that succeeded is captured; the summary that
/// is returned and written says 0 then, else 1.
///
/// # Errors
/// When the summary cannot be read, or the pod does not answer: nothing is known then.
pub(crate) async fn look_up(
    tether: &Tether,
    vehicle: &Vehicle,
    path: &Path,
    tell: &mut (dyn FnMut(Note) + Send),
) -> Result<Summary, Failure> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Failure::bad_input(format!("the summary {} cannot be read: {error}", path.display()))
    };
    let summary = read_summary(path)?.ok_or_else(|| unreadable(&"there is no such file"))?;
    let mut summary = summary.taken_up(path.to_owned());
    let id = summary.job_id.as_deref().and_then(JobId::parse);
    let id = id.ok_or_else(|| unreadable(&"it names no job id that podtether gives"))?;
    let status = tether.job_status(&id.to_string(), 1, Some(&vehicle.name.0)).await?;
    if status.state == JobState::Unknown {
        return Err(Failure::new(
            crate::error::FailureKind::Timeout,
            format!("what job {id} came to is not known now"),
            "run the campaign again; nothing was changed",
        ));
    }
    summary.state = Some(status.state.to_string());
    summary.exit_code = status.exit_code;
    let succeeded = status.state == JobState::Succeeded;
    if succeeded {
        let options = Options {
            job: RunJobRequest::default(),
            interval: Duration::from_secs(45),
            max_wait: None,
            backstop: Duration::ZERO,
            no_stop: true,
            sync_subdir: summary.spec.sync_subdir.clone(),
            pull_every: PULL_EVERY,
            notifier: Notifier::silent(),
            summary_path: Some(path.to_owned()),
        };
        capture(tether, &options, (vehicle, None), &id, &mut summary, tell).await;
    }
    summary.pod_may_still_be_running = true;
    summary.ended_at = Some(tether.clock().now());
    let whole = succeeded && summary.capture_complete;
    summary.process_exit_code = Some(if whole { 0 } else { 1 });
    save(&mut summary, tell);
    Ok(summary)
}
