//! Capture: brings results home before the pod is stopped.

use super::options::{Note, Options};
use super::results;
use super::summary::Summary;
use crate::domain::{JobId, Vehicle};
use crate::ops::Tether;

/// Brings home the job's folder and what else was asked for, and what was spent. Never fails: what
/// did not come is in the summary, and the stop follows all the same.
pub(super) async fn capture(
    tether: &Tether,
    options: &Options,
    vehicle: &Vehicle,
    id: &JobId,
    summary: &mut Summary,
    tell: &mut (dyn FnMut(Note) + Send),
) {
    let name = Some(vehicle.name.0.as_str());
    match tether
        .sync_logs(&format!("jobs/{id}"), name, false, |progress| tell(Note::Pulling(progress)))
        .await
    {
        Ok(answer) => summary.pulled.job_dir = Some(answer),
        Err(failure) => summary.trouble("capture", &failure),
    }
    if let Some(subdir) = &options.sync_subdir {
        match tether.sync_logs(subdir, name, false, |progress| tell(Note::Pulling(progress))).await
        {
            Ok(answer) => summary.pulled.analysis = Some(answer),
            Err(failure) => summary.trouble("capture", &failure),
        }
    }
    summary.capture_complete = summary.pulled.is_complete(options.sync_subdir.is_some());
    summary.results = results::results(tether, vehicle, id, summary).await;
    if let Some(results) = &summary.results
        && !results.missing.is_empty()
    {
        let missing = results.missing.join(", ");
        let folder = results.run_dir.as_deref().unwrap_or("the run's folder, which is not known");
        tell(Note::Said(format!("missing in {folder}: {missing}")));
        summary.trouble("capture", format!("not there at the end: {missing}"));
    }
    match tether.spend_report().await {
        Ok(report) => summary.spend = Some(report),
        Err(failure) => summary.trouble("spend", &failure),
    }
    let pulled: Vec<String> = [&summary.pulled.job_dir, &summary.pulled.analysis]
        .into_iter()
        .flatten()
        .map(|answer| {
            format!(
                "{} files from {}{}",
                answer.files,
                answer.from,
                if answer.complete { ", complete" } else { ", INCOMPLETE" }
            )
        })
        .collect();
    let said =
        if pulled.is_empty() { "nothing could be pulled".to_owned() } else { pulled.join("; ") };
    tell(Note::Said(format!("captured: {said}")));
}
