//! Takes up a run whose process is gone: the same job, the same deadline, the same summary. Nothing is
//! ever launched here.

use super::earlier;
use super::fuse;
use super::options::{Note, Options, ResumeOptions};
use super::patience::{self, later};
use super::record;
use super::run::{Run, Signals, save};
use super::state::State;
use super::summary::{Mode, Summary};
use super::vigil;
use crate::domain::{Ceiling, JobId, JobState, Pod, Vehicle};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::ops::vigil::Kept;
use crate::ops::{PodOfRun, RunJobRequest, Tether};
use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;

/// Goes on with the run that left the summary. Returns what [`super::run`] returns.
///
/// # Errors
/// When there is nothing to take up, its process lives, the pod is in another boot or runs what is not
/// of this run, or the provider cannot be asked. Nothing was changed then, and the summary is as it was.
pub async fn resume(
    tether: &Tether,
    asked: &ResumeOptions,
    signals: &mut Signals,
    tell: &mut (dyn FnMut(Note) + Send),
) -> Result<(Summary, Vec<(u64, f64)>), Failure> {
    take_up(tether, asked, false, signals, tell).await
}

/// The same for a link of a campaign.
///
/// # Errors
/// As [`resume`].
pub(crate) async fn resume_link(
    tether: &Tether,
    asked: &ResumeOptions,
    signals: &mut Signals,
    tell: &mut (dyn FnMut(Note) + Send),
) -> Result<Summary, Failure> {
    take_up(tether, asked, true, signals, tell).await.map(|(summary, _)| summary)
}

async fn take_up(
    tether: &Tether,
    asked: &ResumeOptions,
    is_link: bool,
    signals: &mut Signals,
    tell: &mut (dyn FnMut(Note) + Send),
) -> Result<(Summary, Vec<(u64, f64)>), Failure> {
    let (earlier, vehicle) = earlier::read(tether, asked)?;
    let written_at = written_at(asked);
    let before = earlier.pid;
    let path = std::path::absolute(&asked.summary).unwrap_or_else(|_| asked.summary.clone());
    let mut summary = earlier.taken_up(path);
    let ids = summary.job_id.as_deref().and_then(JobId::parse).zip(summary.pod_id.clone());
    let Some((id, pod_id)) = ids else {
        return Err(Failure::bad_input("the summary names no job id that podtether gives"));
    };
    let max_wait = TimeDelta::try_seconds(summary.max_wait_sec.unwrap_or(0)).unwrap_or_default();
    // The deadline is that of the first run: a new process gives no more time (C02).
    let deadline = summary.started_at.checked_add_signed(max_wait).unwrap_or(summary.started_at);
    let over =
        later(deadline.max(tether.clock().now()), patience::last_part(tether.settings().off));
    let options = options(asked, &summary);
    summary.stops_by = (!options.no_stop).then_some(over);
    let Ok(vigil) = vigil::begin(&summary, &vehicle, &pod_id, tell).await else {
        return Err(refusal(
            &vehicle,
            format!(
                "the process of this run (or of another --resume of it) lives and follows job {id}; the summary names process {before}"
            ),
        ));
    };
    let pod = match tether.pod_of_run(&vehicle, &pod_id).await? {
        PodOfRun::On(pod) => pod,
        PodOfRun::Off(pod) => {
            let what = format!("the pod was found {}", pod.status);
            return Ok(end_off(tether, &vehicle, &id, summary, vigil, &what, tell).await);
        }
        PodOfRun::Gone { instead } => {
            let instead = instead.map_or_else(String::new, |other| {
                format!("; the vehicle's pod is {other} now, which is not of this run and was not touched")
            });
            let what = format!("the account shows pod {pod_id} no more{instead}");
            return Ok(end_off(tether, &vehicle, &id, summary, vigil, &what, tell).await);
        }
    };
    is_of_this_boot(&vehicle, &summary, &pod, &id)?;

    let terms = patience::terms(deadline, options.no_stop, tether.settings().off);
    let asked_for = summary.spec.max_runtime_sec;
    let default = match summary.mode {
        Mode::Job => vehicle.timeouts.job,
        Mode::Training => vehicle.timeouts.training,
    };
    let ceiling = Ceiling::new("max_runtime_sec", asked_for, default).unwrap_or(default);
    let was_seen = summary.state.is_some();
    let mut run = Run::new(tether, &options, (&vehicle, &pod, &id, ceiling), terms, summary);
    run.is_link = is_link;
    if let Some(at) = written_at {
        // A wall clock that was set back since does not put the deadline off either.
        run.moment = run.moment.no_earlier(at);
    }
    // A pod that does not answer now is followed on: unknown is not done.
    if let Ok(found) = run.follower.look().await
        && let Some(other) = found.look.live_jobs.iter().flatten().find(|other| **other > id)
        && !options.no_stop
    {
        return Err(refusal(
            &vehicle,
            format!(
                "job {other} lives on pod {pod_id} and was started after this run: to go on would end it with the pod"
            ),
        ));
    }
    tell(Note::Said(format!(
        "taken up: job {id} on pod {pod_id}, begun {}, until {}",
        run.summary.started_at.format("%Y-%m-%d %H:%M UTC"),
        deadline.format("%Y-%m-%d %H:%M UTC")
    )));
    // The pod bills already: without a fuse it is all the more to be followed.
    if let Err(failure) = fuse::arm(tether, &vehicle, &pod, over, tell).await {
        run.summary.trouble("fuse", failure.apart_from_the_bill());
        tell(Note::Said(format!("no fuse could be armed: {}", failure.message)));
    }
    save(&mut run.summary, tell);
    // Nobody has seen whether it was launched: it is looked for, as after a lost answer.
    let state = if was_seen { State::Following } else { State::Adopting { looks: 0 } };
    Ok(run.go_on(state, vigil, signals, tell).await)
}

fn options(asked: &ResumeOptions, summary: &Summary) -> Options {
    let spec = &summary.spec;
    Options {
        job: RunJobRequest { vehicle: Some(spec.vehicle.clone()), ..RunJobRequest::default() },
        interval: asked.interval,
        max_wait: None,
        backstop: Duration::ZERO,
        no_stop: spec.no_stop,
        sync_subdir: spec.sync_subdir.clone(),
        pull_every: asked.pull_every,
        notifier: asked.notifier.clone(),
        summary_path: summary.summary_path.clone(),
    }
}

/// When the summary was written last, as far as this computer knows.
fn written_at(asked: &ResumeOptions) -> Option<DateTime<Utc>> {
    let written = std::fs::metadata(&asked.summary).and_then(|meta| meta.modified()).ok()?;
    Some(written.into())
}

fn refusal(vehicle: &Vehicle, message: String) -> Failure {
    let name = &vehicle.name;
    let hint = format!(
        "nothing was changed; to take the pod off the bill: podtether stop --vehicle {name}"
    );
    Failure::new(FailureKind::Refused, message, hint).billing(StillBilling::Yes)
}

/// How far the provider's times of one start may differ.
const SAME_START: TimeDelta = TimeDelta::seconds(60);

/// When the pod was started anew after `began`, a time in the boot that is meant; `None` in the same boot.
pub(crate) fn later_boot(pod: &Pod, began: DateTime<Utc>) -> Option<DateTime<Utc>> {
    pod.started_at.filter(|at| *at - began > SAME_START)
}

/// A pod that was started again since is somebody else's: this run ended with its boot.
fn is_of_this_boot(
    vehicle: &Vehicle,
    summary: &Summary,
    pod: &Pod,
    id: &JobId,
) -> Result<(), Failure> {
    let boot = summary.pod_started_at.unwrap_or(summary.started_at);
    match later_boot(pod, boot) {
        Some(at) => Err(refusal(
            vehicle,
            format!(
                "pod {} was started again at {}, after this run began: job {id} ended with the boot before, and what runs now is not of this run. Its results are still on the volume (sync_logs, subdir jobs/{id})",
                pod.id,
                at.format("%Y-%m-%d %H:%M UTC")
            ),
        )),
        None => Ok(()),
    }
}

/// The pod is off the bill: nothing is left to capture or to stop, and what is home is said.
async fn end_off(
    tether: &Tether,
    vehicle: &Vehicle,
    id: &JobId,
    mut summary: Summary,
    vigil: Option<Kept>,
    what: &str,
    tell: &mut (dyn FnMut(Note) + Send),
) -> (Summary, Vec<(u64, f64)>) {
    // Killed between the stop and the last word: everything was done.
    let was_whole = summary.capture_complete && summary.job_has_ended();
    if !was_whole {
        summary.trouble("resume", format!("{what} before the job was seen to end"));
    }
    let home = match (&summary.pulled, was_whole) {
        (_, true) => "everything is home".to_owned(),
        (pulled, false) => match &pulled.while_running {
            Some(early) => format!(
                "nothing can be captured; home is what came while the job ran: {} MB, the last of it at {}",
                early.bytes / 1_000_000,
                early.last_at.format("%Y-%m-%d %H:%M UTC")
            ),
            None => "nothing can be captured and nothing is home; the volume keeps it".to_owned(),
        },
    };
    tell(Note::Said(format!("{what}; {home}")));
    match tether.spend_report().await {
        Ok(report) => summary.spend = Some(report),
        Err(failure) => summary.trouble("spend", failure.apart_from_the_bill()),
    }
    let succeeded = summary.state.as_deref() == Some(JobState::Succeeded.as_str());
    summary.pod_may_still_be_running = false;
    // This process has claimed nothing: what counts is what the run before it did.
    fuse::call_off(tether, vehicle, false, summary.fuse_claim.as_ref(), tell).await;
    summary.ended_at = Some(tether.clock().now());
    summary.process_exit_code = Some(if was_whole && succeeded { 0 } else { 1 });
    save(&mut summary, tell);
    record::over(tether, vehicle, id, &summary).await;
    vigil::end(vigil, &summary);
    (summary, Vec::new())
}
