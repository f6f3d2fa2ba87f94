//! A run from its plan to its launch: nothing is spent before the plan has a finite end and a fuse that
//! outlives this process is armed.

use super::fuse;
use super::options::{Note, Options};
use super::patience::{self, CAPTURE_MAX, later};
use super::refused::{ended_before, refused};
use super::run::{Run, Signals};
use super::state::{Event, State};
use super::summary::{Spec, Summary, TrainingSpec};
use super::vigil;
use crate::apply::OffSettings;
use crate::domain::{Ceiling, JobEnd};
use crate::error::{Failure, FailureKind};
use crate::ops::{JobKind, Tether, checked_subdir};
use std::path::Path;
use std::time::Duration;

/// Runs a job under supervision. Returns the summary, whose `process_exit_code` is the outcome, and
/// the points of the reward curve.
pub async fn run(
    tether: &Tether,
    options: &Options,
    signals: &mut Signals,
    tell: &mut (dyn FnMut(Note) + Send),
) -> (Summary, Vec<(u64, f64)>) {
    begin(tether, options, None, signals, tell).await
}

/// What is told of a run before anything of it is launched; what it answers with keeps it from that.
pub(crate) type Begins<'a> = &'a mut (dyn FnMut(&Summary) -> Result<(), Failure> + Send);

/// The same for a link of a campaign, whose pod goes on with the campaign (`options.no_stop`): it is
/// watched and counted as what is stopped at the end, and `begins` is told of it before its launch.
pub(crate) async fn run_link(
    tether: &Tether,
    options: &Options,
    begins: Begins<'_>,
    signals: &mut Signals,
    tell: &mut (dyn FnMut(Note) + Send),
) -> Summary {
    begin(tether, options, Some(begins), signals, tell).await.0
}

async fn begin(
    tether: &Tether,
    options: &Options,
    begins: Option<Begins<'_>>,
    signals: &mut Signals,
    tell: &mut (dyn FnMut(Note) + Send),
) -> (Summary, Vec<(u64, f64)>) {
    let is_link = begins.is_some();
    let started_at = tether.clock().now();
    let spec = Spec {
        vehicle: options
            .job
            .vehicle
            .clone()
            .unwrap_or_else(|| tether.config().default_vehicle.0.clone()),
        name: options.job.name.clone(),
        command: options.job.command.clone(),
        workdir: options.job.workdir.clone(),
        max_runtime_sec: options.job.max_runtime_sec,
        sync_subdir: options.sync_subdir.clone(),
        no_stop: options.no_stop,
        training: training_spec(options),
    };
    let mut summary = Summary::new(tether.cloud_name(), spec, started_at);
    summary.summary_path.clone_from(&options.summary_path);

    // What could not be pulled at the end is told now, not after a night of training.
    if let Some(Err(failure)) = options.sync_subdir.as_deref().map(checked_subdir) {
        return (refused(summary, tether, options, failure), Vec::new());
    }
    // The pod must run already, and the plan must have a finite end, before anything is spent.
    let end = end_of_job(options, is_link, tether.settings().off);
    let planned = tokio::select! {
        biased;
        job = tether.plan_job(&options.job, end) => Some(job),
        // A provider that does not answer keeps nobody from leaving.
        Some(Event::Interrupt | Event::Leave) = signals.recv() => None,
    };
    let job = match planned {
        Some(Ok(job)) => job,
        Some(Err(failure)) => return (refused(summary, tether, options, failure), Vec::new()),
        None => return (ended_before(summary, tether, options, false), Vec::new()),
    };
    if let (Some((level, seed, edits)), Some(spec)) =
        (job.of_training(), &mut summary.spec.training)
    {
        (spec.level, spec.seed, spec.edits) = (level, seed.to_string(), edits);
        summary.spec.name.clone_from(&job.name);
        summary.spec.command.clone_from(&job.command);
        summary.spec.workdir = Some(job.workdir.clone());
    }
    tell(Note::Said(format!(
        "plan: job {} on pod {}, ceiling {} s, worst case {}",
        job.id,
        job.pod.id,
        job.ceiling.as_secs(),
        job.worst_case().total(),
    )));
    if let Some(estimate) = tether.estimate_of(&job) {
        tell(Note::Said(format!("expected: {}", estimate.told())));
    }
    if let Some(told) = tether.receipts_told(&job.vehicle) {
        tell(Note::Said(told));
    }
    for warning in tether.warnings() {
        tell(Note::Said(format!("note: {warning}")));
    }
    let longest = job.ceiling.duration()
        + Duration::from_secs(u64::from(Ceiling::KILL_GRACE_SEC))
        + options.backstop;
    let max_wait = options.max_wait.unwrap_or(longest);
    let deadline = later(started_at, max_wait);
    let terms = patience::terms(deadline, options.no_stop, tether.settings().off);
    summary.set_terms(terms);
    let over = later(deadline, patience::last_part(tether.settings().off));
    if let Err(failure) = fuse::arm(tether, &job.vehicle, &job.pod, over, tell).await {
        return (refused(summary, tether, options, failure), Vec::new());
    }
    // Whoever asked for an end by now wants no launch.
    if let Ok(Event::Interrupt | Event::Leave) = signals.try_recv() {
        return (ended_before(summary, tether, options, true), Vec::new());
    }
    summary.fuse_claim = tether.claim(&job.vehicle);
    summary.job_id = Some(job.id.to_string());
    let default_path = || job.vehicle.local_log_dir.join(format!("supervise-{}.json", job.id));
    summary.summary_path = Some(options.summary_path.clone().unwrap_or_else(default_path));
    summary.pod_id = Some(job.pod.id.clone());
    summary.pod_started_at = job.pod.started_at;
    summary.stops_by = (!options.no_stop).then_some(over);
    if let Some(begins) = begins
        && let Err(failure) = begins(&summary)
    {
        summary.job_id = None;
        return (refused(summary, tether, options, failure), Vec::new());
    }
    // Before the summary: who reads one can tell by the lock whether its process lives.
    let vigil = vigil::begin(&summary, &job.vehicle, &job.pod.id, tell).await.unwrap_or(None);
    if let Err(error) = summary.write() {
        // A run of which nobody could read what became is not begun.
        if let Some(vigil) = vigil {
            vigil.end();
        }
        let failure = unwritable(&summary, options, &error);
        (summary.job_id, summary.summary_path) = (None, None);
        return (refused(summary, tether, options, failure), Vec::new());
    }

    let of_job = (&job.vehicle, &job.pod, &job.id, job.ceiling);
    let mut run = Run::new(tether, options, of_job, terms, summary);
    run.to_launch = Some(&job);
    run.is_link = is_link;
    run.go_on(State::Launching, vigil, signals, tell).await
}

/// Nothing was launched: the summary, from which everything later goes on, has no place.
fn unwritable(summary: &Summary, options: &Options, error: &std::io::Error) -> Failure {
    let path = summary.summary_path.as_deref().unwrap_or(Path::new("?")).display();
    let message = format!("the summary {path} cannot be written: {error}");
    let (kind, hint) = match options.summary_path {
        Some(_) => (FailureKind::BadInput, "give --summary-path a file that can be written"),
        None => {
            (FailureKind::Internal, "make room in the vehicle's log folder, or give --summary-path")
        }
    };
    Failure::new(kind, message, format!("{hint}; nothing was launched"))
}

/// A training as it was asked for.
fn training_spec(options: &Options) -> Option<TrainingSpec> {
    let JobKind::Training(choice) = &options.job.kind else { return None };
    Some(TrainingSpec {
        training: choice.training.clone(),
        level: choice.dr_level.clone(),
        seed: choice.seed.clone().unwrap_or_else(|| "1".to_owned()),
        extra_args: choice.extra_args.clone(),
        edits: Vec::new(),
    })
}

/// What comes after the job, each part for as long as it may take.
fn end_of_job(options: &Options, is_link: bool, off: OffSettings) -> JobEnd {
    match options.no_stop && !is_link {
        true => JobEnd::Left,
        false => JobEnd::Supervised {
            max_wait: options.max_wait,
            backstop: options.backstop,
            capture: CAPTURE_MAX,
            stop: patience::longest_stop(off),
        },
    }
}
