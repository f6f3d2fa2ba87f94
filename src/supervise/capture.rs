//! Capture: brings results home before the pod is stopped.

use super::options::{Note, Options};
use super::summary::Summary;
use crate::domain::{JobId, Pod, Vehicle};
use crate::ops::Tether;

/// Brings home the job's folder and what else was asked for, and what was spent. Never fails: what
/// did not come is in the summary, and the stop follows all the same. `known` is the pod as it was told
/// last, for when the provider does not answer.
pub(super) async fn capture(
    tether: &Tether,
    options: &Options,
    (vehicle, known): (&Vehicle, Option<&Pod>),
    id: &JobId,
    summary: &mut Summary,
    tell: &mut (dyn FnMut(Note) + Send),
) {
    let (mut pod, mut pulls) = (None, Vec::new());
    let folders = [Some(format!("jobs/{id}")), options.sync_subdir.clone()];
    for (at, subdir) in folders.into_iter().enumerate() {
        let Some(subdir) = subdir else { continue };
        let pulling = |progress| tell(Note::Pulling(progress));
        match tether.pull_logs(&subdir, vehicle, known, pulling).await {
            Ok((answer, pull, from)) => {
                let place = &mut summary.pulled;
                let place = if at == 0 { &mut place.job_dir } else { &mut place.analysis };
                *place = Some(answer);
                pulls.push(pull);
                pod = Some(from);
            }
            Err(failure) => summary.trouble("capture", failure.apart_from_the_bill()),
        }
    }
    summary.capture_complete = summary.pulled.is_complete(options.sync_subdir.is_some());
    let seen = summary.state.clone().map(|state| (state, summary.exit_code));
    summary.results = tether.complete_run(vehicle, pod.as_ref(), id, &pulls, seen).await;
    if let Some(results) = &summary.results {
        for told in &results.told {
            tell(Note::Said(format!("run: {told}")));
        }
        if !results.missing.is_empty() {
            let missing = results.missing.join(", ");
            summary.trouble("capture", format!("not there at the end: {missing}"));
        }
    }
    match tether.spend_report().await {
        Ok(report) => summary.spend = Some(report),
        Err(failure) => summary.trouble("spend", failure.apart_from_the_bill()),
    }
    let pulled: Vec<String> = [&summary.pulled.job_dir, &summary.pulled.analysis]
        .into_iter()
        .flatten()
        .map(|answer| {
            format!(
                "{} from {}{}",
                answer.brought(),
                answer.from,
                if answer.complete { ", complete" } else { ", INCOMPLETE" }
            )
        })
        .collect();
    let said =
        if pulled.is_empty() { "nothing could be pulled".to_owned() } else { pulled.join("; ") };
    tell(Note::Said(format!("captured: {said}")));
}
