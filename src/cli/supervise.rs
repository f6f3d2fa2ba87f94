//! `podtether supervise`: a job from launch to a stop that was read back.

use super::open::{self, ConfigArgs};
use super::progress::Progress;
use super::{logging, print, signals};
use crate::apply::{OffSettings, Settings};
use crate::domain::{Label, LabelError, Labels, join_quoted};
use crate::error::{Failure, StillBilling};
use crate::notify::Notifier;
use crate::ops::{self, JobKind, RunJobRequest, Start, Tether, TrainingChoice};
use crate::supervise::{self, Event, Note, Options, ResumeOptions, Summary};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

/// Arguments of `podtether supervise`.
#[derive(Debug, clap::Args)]
pub struct SuperviseArgs {
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    /// The vehicle; the config's default when left out.
    #[arg(long)]
    vehicle: Option<String>,
    /// A training of the config, by its recipe.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["job_name", "command", "workdir"])]
    training: Option<String>,
    /// The training's level, by name or alias; the recipe's default_level when left out.
    #[arg(long, value_name = "LEVEL", requires = "training")]
    dr: Option<String>,
    /// The training's seed; 1 when left out.
    #[arg(long, value_name = "SEED", requires = "training", allow_hyphen_values = true)]
    seed: Option<String>,
    /// More arguments for the training's command, split into words; nothing in them is expanded.
    #[arg(long, value_name = "WORDS", requires = "training", allow_hyphen_values = true)]
    extra_args: Option<String>,
    /// The job's name.
    #[arg(long, value_name = "NAME", required_unless_present_any = ["resume", "training", "chain"])]
    job_name: Option<String>,
    /// The command that the job runs, by bash.
    #[arg(long, required_unless_present_any = ["resume", "training", "chain"])]
    command: Option<String>,
    /// The folder to run in; the volume's mount path when left out.
    #[arg(long)]
    workdir: Option<String>,
    /// The job's ceiling in seconds; the config's timeouts.job_sec, of a training timeouts.training_sec,
    /// when left out.
    #[arg(long, value_name = "SEC", allow_negative_numbers = true)]
    max_runtime_sec: Option<i64>,
    /// How often the job is looked at, in seconds. Its end is noticed within 2 s all the same.
    #[arg(long, value_name = "SEC", default_value_t = 45, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(super) interval: u64,
    /// How long it is followed at most, in seconds; the ceiling, 60 s and the backstop when left out.
    #[arg(long, value_name = "SEC", value_parser = clap::value_parser!(u64).range(1..=700_000))]
    max_wait: Option<u64>,
    /// What is added to the ceiling for that, in seconds.
    #[arg(long, value_name = "SEC", default_value_t = 300, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    backstop: u64,
    /// Leave the pod running, and billing, at the end.
    #[arg(long)]
    no_stop: bool,
    /// A folder below the mount path to pull, while the job runs and at the end; `none` pulls only the
    /// job's own folder. Of a training its logs.root when left out.
    #[arg(long, value_name = "DIR", required_unless_present_any = ["resume", "training", "chain"])]
    sync_subdir: Option<String>,
    /// What the run belongs together with; the config's labels.group when left out.
    #[arg(long, value_name = "LABEL", value_parser = label)]
    group: Option<Label>,
    /// Who launches the run; the config's labels.agent when left out.
    #[arg(long, value_name = "LABEL", value_parser = label)]
    agent: Option<Label>,
    /// Run beside a job that is still live.
    #[arg(long)]
    force: bool,
    /// Where the summary goes; supervise-<job_id>.json in the vehicle's log folder when left out.
    #[arg(long, value_name = "FILE")]
    summary_path: Option<PathBuf>,
    /// Take up the run that left this summary and whose process is gone: the same job, deadline and
    /// summary. Launches nothing.
    #[arg(long, value_name = "SUMMARY", conflicts_with_all = [
        "training", "job_name", "command", "workdir", "max_runtime_sec", "max_wait", "backstop", "no_stop",
        "sync_subdir", "group", "agent", "force", "summary_path",
    ])]
    resume: Option<PathBuf>,
    /// Run the campaign of this file, link by link, or go on with it: links that are done are skipped.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "vehicle", "training", "job_name", "command", "workdir", "max_runtime_sec", "max_wait", "backstop",
        "no_stop", "sync_subdir", "force", "summary_path", "resume",
    ])]
    pub(super) chain: Option<PathBuf>,
    /// Of --chain: print every link with its worst case and the sum against the budget; change nothing.
    #[arg(long, requires = "chain")]
    pub(super) dry_run: bool,
    /// Of --chain: run this link again, whatever is recorded of it; may be given several times.
    #[arg(long, value_name = "LINK", requires = "chain")]
    pub(super) again: Vec<String>,
    /// How long to wait before a link that made no job is tried again, in seconds.
    #[arg(long, value_name = "SEC", hide = true, default_value_t = 60, value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub(super) rest_sec: u64,
    /// How long one stop at the end is waited for, in seconds; it is asked several times over.
    #[arg(long, value_name = "SEC", hide = true, default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=3600))]
    stop_budget_sec: u64,
    /// How often results are pulled while the job runs, in seconds, at most.
    #[arg(long, value_name = "SEC", hide = true, default_value_t = supervise::PULL_EVERY.as_secs(), value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) pull_every_sec: u64,
    /// Print the summary as JSON on stdout.
    #[arg(long)]
    pub(super) json: bool,
}

/// Runs it: 0 succeeded and stop confirmed, 1 anything else, 2 refusal or usage, 6 the pod may still
/// be running.
pub fn run(args: &SuperviseArgs) -> u8 {
    match open::block_on(supervised(args)) {
        Ok(Ok(summary)) => {
            if args.json {
                print::data(&serde_json::to_string(&summary).unwrap_or_default());
            }
            tell_end(&summary, args);
            summary.process_exit_code.unwrap_or(1)
        }
        Ok(Err(failure)) | Err(failure) => {
            let may_bill = args.resume.is_some() && failure.still_billing != StillBilling::No;
            match open::failed(&failure, args.json) {
                // A run that could not be taken up is still one whose pod may be running.
                1 if may_bill => 6,
                code => code,
            }
        }
    }
}

async fn supervised(args: &SuperviseArgs) -> Result<Summary, Failure> {
    let start = args.config.start()?;
    let _log = logging::start(&start.env);
    // From the first moment on, so that an early Ctrl-C is not a sudden death.
    let (leave, mut signals) = signals::for_supervise();
    // A run that is to be taken up may have left its pod running, whatever cannot be opened now.
    let opened = signals::unless_ended(&mut signals, opened(args, &start)).await;
    let (tether, notifier) = match &args.resume {
        Some(_) => opened.map_err(|failure| failure.billing(StillBilling::Unknown))?,
        None => opened?,
    };
    shown(&leave, async |tell| match &args.resume {
        Some(summary) => {
            let options = ResumeOptions {
                summary: summary.clone(),
                vehicle: args.vehicle.clone(),
                interval: Duration::from_secs(args.interval),
                pull_every: Duration::from_secs(args.pull_every_sec),
                notifier,
            };
            let run = supervise::resume(&tether, &options, &mut signals, tell);
            run.await.map(|(summary, _)| summary)
        }
        None => {
            let options = options(args, &tether, notifier);
            Ok(supervise::run(&tether, &options, &mut signals, tell).await.0)
        }
    })
    .await
}

/// podtether at work, arming fuses, and who is told.
pub(super) async fn opened(
    args: &SuperviseArgs,
    start: &Start,
) -> Result<(Tether, Notifier), Failure> {
    let (tether, secrets) = ops::open(start, open::clock()).await?;
    let notifier = Notifier::new(tether.config(), &start.env, &secrets);
    let tether = tether.arming_fuses().with_settings(Settings {
        off: OffSettings {
            budget: Duration::from_secs(args.stop_budget_sec),
            ..OffSettings::default()
        },
        ..Settings::default()
    });
    Ok((tether, notifier))
}

/// Goes with a run to its end and shows what it tells.
pub(super) async fn shown<T>(
    leave: &UnboundedSender<Event>,
    run: impl AsyncFnOnce(&mut (dyn FnMut(Note) + Send)) -> T,
) -> T {
    let progress = Mutex::new(Progress::new());
    let shown = || progress.lock().unwrap_or_else(PoisonError::into_inner);
    let is_live = shown().is_live();
    let mut tell = |note: Note| {
        let mut shown = shown();
        let was_gone = shown.is_gone();
        shown.tell(&note);
        if shown.is_gone() && !was_gone {
            // Nobody hears it end: the summary is written, the fuse stays armed.
            let _ = leave.send(Event::Leave);
        }
    };
    let mut run = pin!(run(&mut tell));
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    let outcome = loop {
        tokio::select! {
            biased;
            outcome = &mut run => break outcome,
            _ = tick.tick(), if is_live => shown().tick(),
        }
    };
    shown().end();
    outcome
}

fn label(text: &str) -> Result<Label, LabelError> {
    Label::parse(text)
}

fn options(args: &SuperviseArgs, tether: &Tether, notifier: Notifier) -> Options {
    // One that is not known is refused when the run is planned, with the nearest name.
    let recipe = args.training.as_ref().and_then(|name| tether.config().training(name).ok());
    let kind = match &args.training {
        None => JobKind::Command,
        Some(training) => JobKind::Training(TrainingChoice {
            training: training.clone(),
            dr_level: args.dr.clone(),
            seed: args.seed.clone(),
            extra_args: args.extra_args.clone().unwrap_or_default(),
        }),
    };
    let sync_subdir = args.sync_subdir.clone().or_else(|| recipe?.logs.root.clone());
    // Read again later by another process in another folder (--resume).
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    Options {
        job: RunJobRequest {
            name: args.job_name.clone().unwrap_or_default(),
            command: args.command.clone().unwrap_or_default(),
            workdir: args.workdir.clone(),
            force: args.force,
            max_runtime_sec: args.max_runtime_sec,
            vehicle: args.vehicle.clone().or_else(|| Some(recipe?.vehicle.0.clone())),
            kind,
            labels: Labels { group: args.group.clone(), agent: args.agent.clone() },
            ..RunJobRequest::default()
        },
        interval: Duration::from_secs(args.interval),
        max_wait: args.max_wait.map(Duration::from_secs),
        backstop: Duration::from_secs(args.backstop),
        no_stop: args.no_stop,
        sync_subdir: sync_subdir.filter(|folder| folder != "none"),
        pull_every: Duration::from_secs(args.pull_every_sec),
        summary_path: args.summary_path.as_ref().map(absolute),
        notifier,
    }
}

fn tell_end(summary: &Summary, args: &SuperviseArgs) {
    if let Some(reason) = &summary.reason {
        not_begun(summary, reason, args);
        return;
    }
    let state = last_seen(summary.state.as_deref().unwrap_or("unknown"));
    let may_run = summary.pod_may_still_be_running;
    let stop = match (&summary.stop, may_run) {
        (_, true) if summary.spec.no_stop => "the pod was left running and bills".to_owned(),
        (_, true) => "THE POD MAY STILL BE RUNNING AND BILLING".to_owned(),
        (Some(stop), false) => stop.message.clone(),
        (None, false) => "the pod was off the bill".to_owned(),
    };
    print::note(&format!("job {}: {state}; {stop}", summary.job_id.as_deref().unwrap_or("none")));
    for trouble in &summary.errors {
        print::note(&format!("  {}: {}", trouble.step, trouble.error));
    }
    if let Some(path) = &summary.summary_path {
        print::note(&summary.unwritten.told("summary", path));
    }
    if may_run {
        for line in ways_out(summary, args) {
            print::note(&line);
        }
    }
}

/// A job that was last seen at work is not at work because of that: its pod may be off by now.
fn last_seen(state: &str) -> String {
    match state {
        "starting" | "running" => format!("last seen {state}"),
        _ => state.to_owned(),
    }
}

/// A run that was refused, or ended before its launch: what stood in the way, and what bills all the same.
fn not_begun(summary: &Summary, reason: &str, args: &SuperviseArgs) {
    let how = if summary.refused { "refused" } else { "not started" };
    // A guard's refusal says so itself.
    let how = if reason.starts_with("refused") { String::new() } else { format!("{how}: ") };
    print::note(&format!("podtether: {how}{reason}"));
    for hint in summary.hint.iter().flat_map(|hint| hint.lines()) {
        print::note(&format!("  {hint}"));
    }
    if summary.process_exit_code == Some(6) {
        ways_out(summary, args).iter().for_each(|line| print::note(line));
    } else if summary.pod_may_still_be_running {
        let audit = command_of(&["audit"], args);
        print::note(&format!("  nothing was started or stopped, and what runs bills: {audit}"));
    }
}

/// A command of podtether for the same config.
fn command_of(words: &[&str], args: &SuperviseArgs) -> String {
    let config = args.config.config.as_ref().map(|path| path.display().to_string());
    let config = config.iter().flat_map(|path| ["--config", path]);
    join_quoted(["podtether"].into_iter().chain(words.iter().copied()).chain(config))
}

/// The very commands that take the pod off the bill, or the run up again.
fn ways_out(summary: &Summary, args: &SuperviseArgs) -> Vec<String> {
    let vehicle = summary.spec.vehicle.as_str();
    let stop = command_of(&["stop", "--vehicle", vehicle], args);
    let mut lines = vec![format!("stop it:   {stop}")];
    let path = summary.summary_path.as_ref().map(|path| path.display().to_string());
    let is_left = summary.process_exit_code == Some(6) && summary.job_id.is_some();
    if let Some(path) = path.filter(|_| is_left) {
        let resume = command_of(&["supervise", "--resume", &path], args);
        lines.push(format!("take it up: {resume}"));
    }
    lines.push("or stop it in the RunPod console".to_owned());
    lines
}
