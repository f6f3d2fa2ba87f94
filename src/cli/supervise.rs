//! `podtether supervise`: a job from launch to a stop that was read back.

use super::open::{self, ConfigArgs};
use super::progress::Progress;
use super::{logging, print, signals};
use crate::apply::{OffSettings, Settings};
use crate::error::Failure;
use crate::notify::Notifier;
use crate::ops::{self, RunJobRequest};
use crate::supervise::{self, Options, Summary};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `podtether supervise`.
#[derive(Debug, clap::Args)]
pub struct SuperviseArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// The vehicle; the config's default when left out.
    #[arg(long)]
    vehicle: Option<String>,
    /// The job's name.
    #[arg(long, value_name = "NAME")]
    job_name: String,
    /// The command that the job runs, by bash.
    #[arg(long)]
    command: String,
    /// The folder to run in; the volume's mount path when left out.
    #[arg(long)]
    workdir: Option<String>,
    /// The job's ceiling in seconds; the config's timeouts.job_sec when left out.
    #[arg(long, value_name = "SEC", allow_negative_numbers = true)]
    max_runtime_sec: Option<i64>,
    /// How often the job is looked at, in seconds. Its end is noticed within 2 s all the same.
    #[arg(long, value_name = "SEC", default_value_t = 45, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// How long it is followed at most, in seconds; the ceiling, 60 s and the backstop when left out.
    #[arg(long, value_name = "SEC", value_parser = clap::value_parser!(u64).range(1..=700_000))]
    max_wait: Option<u64>,
    /// What is added to the ceiling for that, in seconds.
    #[arg(long, value_name = "SEC", default_value_t = 300, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    backstop: u64,
    /// Leave the pod running, and billing, at the end.
    #[arg(long)]
    no_stop: bool,
    /// A folder below the mount path to pull at the end; `none` pulls only the job's own folder.
    #[arg(long, value_name = "DIR")]
    sync_subdir: String,
    /// Run beside a job that is still live.
    #[arg(long)]
    force: bool,
    /// Where the summary goes; supervise-<job_id>.json in the vehicle's log folder when left out.
    #[arg(long, value_name = "FILE")]
    summary_path: Option<PathBuf>,
    /// How long one stop at the end is waited for, in seconds; it is asked several times over.
    #[arg(long, value_name = "SEC", hide = true, default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=3600))]
    stop_budget_sec: u64,
    /// Print the summary as JSON on stdout.
    #[arg(long)]
    json: bool,
}

/// Runs it: 0 succeeded and stop confirmed, 1 anything else, 2 refusal or usage, 6 the pod may still
/// be running.
pub fn run(args: &SuperviseArgs) -> u8 {
    match open::block_on(supervised(args)) {
        Ok(Ok(summary)) => {
            if args.json {
                print::data(&serde_json::to_string(&summary).unwrap_or_default());
            }
            tell_end(&summary);
            summary.process_exit_code.unwrap_or(1)
        }
        Ok(Err(failure)) | Err(failure) => open::failed(&failure, args.json),
    }
}

async fn supervised(args: &SuperviseArgs) -> Result<Summary, Failure> {
    let start = args.config.start()?;
    let _log = logging::start(&start.env);
    // From the first moment on, so that an early Ctrl-C is not a sudden death.
    let mut signals = signals::for_supervise();
    let (tether, secrets) = ops::open(&start, open::clock()).await?;
    let notifier = Notifier::new(tether.config(), &start.env, &secrets);
    let tether = tether.arming_fuses().with_settings(Settings {
        off: OffSettings {
            budget: Duration::from_secs(args.stop_budget_sec),
            ..OffSettings::default()
        },
        ..Settings::default()
    });
    let options = Options {
        job: RunJobRequest {
            name: args.job_name.clone(),
            command: args.command.clone(),
            workdir: args.workdir.clone(),
            force: args.force,
            max_runtime_sec: args.max_runtime_sec,
            vehicle: args.vehicle.clone(),
            ..RunJobRequest::default()
        },
        interval: Duration::from_secs(args.interval),
        max_wait: args.max_wait.map(Duration::from_secs),
        backstop: Duration::from_secs(args.backstop),
        no_stop: args.no_stop,
        sync_subdir: (args.sync_subdir != "none").then(|| args.sync_subdir.clone()),
        summary_path: args.summary_path.clone(),
        notifier,
    };
    let mut progress = Progress::new();
    let (summary, _) =
        supervise::run(&tether, &options, &mut signals, &mut |note| progress.tell(&note)).await;
    progress.end();
    Ok(summary)
}

fn tell_end(summary: &Summary) {
    if let Some(reason) = &summary.reason {
        print::note(&format!(
            "podtether: {}: {reason}",
            if summary.refused { "refused" } else { "not started" }
        ));
        return;
    }
    let state = summary.state.as_deref().unwrap_or("unknown");
    let stop = match (&summary.stop, summary.pod_may_still_be_running) {
        (_, true) if summary.spec.no_stop => "the pod was left running and bills".to_owned(),
        (_, true) => "THE POD MAY STILL BE RUNNING AND BILLING: run `podtether supervise` no further, stop it with stop_pod or in the RunPod console".to_owned(),
        (Some(stop), false) => stop.message.clone(),
        (None, false) => "the pod was off the bill".to_owned(),
    };
    print::note(&format!("job {}: {state}; {stop}", summary.job_id.as_deref().unwrap_or("none")));
    for trouble in &summary.errors {
        print::note(&format!("  {}: {}", trouble.step, trouble.error));
    }
    if let Some(path) = &summary.summary_path {
        print::note(&format!("summary: {}", path.display()));
    }
}
