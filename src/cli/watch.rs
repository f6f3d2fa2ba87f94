//! `podtether watch`: follows a job's log and pages; `--replay` judges a log that is finished.

use super::open::{self, ConfigArgs};
use super::signals::Leaving;
use super::watch_view::{self, End, Fixed, Model};
use super::{logging, print};
use crate::domain::Usd;
use crate::error::{Failure, FailureKind};
use crate::notify::{Notice, NoticeKind, Notifier, SETTLE, SETTLE_IN_HASTE};
use crate::ops::{self, CloudName, LogForm, WatchNote, WatchRequest, WatchStatus};
use crate::watch::metrics::{FamilyName, Pattern};
use crate::watch::{PlateauRule, Verdict};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `podtether watch`.
#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// The vehicle; the config's default when left out.
    #[arg(long)]
    vehicle: Option<String>,
    /// The job; the newest live one when left out.
    #[arg(long, value_name = "ID")]
    job_id: Option<String>,
    /// Between two looks, in seconds.
    #[arg(long, value_name = "SEC", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// How long a job may take to appear, and its log to begin, in seconds.
    #[arg(long, value_name = "SEC", default_value_t = 180, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    startup_grace: u64,
    /// How long a log may be silent, in seconds. While the GPU works it is quiet, not stalled.
    #[arg(long, value_name = "SEC", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) stall_sec: u64,
    /// Over how many iterations the reward is looked at.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    plateau_window: u64,
    /// How much less than this the mean reward moves on a plateau.
    #[arg(long, value_name = "X", default_value_t = 3.0, value_parser = positive)]
    plateau_min_delta: f64,
    /// No plateau before this iteration.
    #[arg(long, value_name = "ITERATION")]
    plateau_after: Option<u64>,
    /// On a plateau the reward also moves by less than this share of its level, such as 0.03.
    #[arg(long, value_name = "SHARE", value_parser = positive)]
    plateau_relative: Option<f64>,
    /// No plateau at or above this mean reward: what was to be learnt is learnt.
    #[arg(long, value_name = "REWARD", allow_negative_numbers = true)]
    plateau_below: Option<f64>,
    /// Read the log as this family: rsl_rl, rl_games, sb3, skrl, hugging_face, lightning, ultralytics.
    #[arg(long, value_name = "NAME", value_parser = family)]
    family: Option<FamilyName>,
    /// Read the log by this expression, with groups named iteration, total and value.
    #[arg(long, value_name = "REGEX", conflicts_with = "family")]
    metrics_pattern: Option<String>,
    /// Where the status goes; watch-<job_id>.json in the vehicle's log folder when left out.
    #[arg(long, value_name = "FILE")]
    status_path: Option<PathBuf>,
    /// Judge this finished log instead: when each page would have gone out, and what a stop would have saved.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["vehicle", "job_id", "status_path"])]
    pub(super) replay: Option<PathBuf>,
    /// The pod's price, for what a stop would have saved.
    #[arg(long, value_name = "USD", requires = "replay", value_parser = dollars)]
    pub(super) usd_per_hour: Option<Usd>,
    /// Print lines also at a terminal, where a live view is shown otherwise.
    #[arg(long)]
    plain: bool,
    /// Print the result as JSON on stdout.
    #[arg(long)]
    pub(super) json: bool,
}

fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "no number".to_owned())?;
    if number.is_finite() && number > 0.0 {
        Ok(number)
    } else {
        Err("it is to be above 0".to_owned())
    }
}

fn dollars(text: &str) -> Result<Usd, String> {
    let usd = Usd::from_decimal(text).map_err(|error| error.to_string())?;
    if usd > Usd::ZERO { Ok(usd) } else { Err("it is to be above 0".to_owned()) }
}

fn family(text: &str) -> Result<FamilyName, String> {
    let name = serde_json::from_value(serde_json::Value::String(text.to_owned()));
    name.ok().filter(|name| *name != FamilyName::Pattern).ok_or_else(|| {
        "it is one of rsl_rl, rl_games, sb3, skrl, hugging_face, lightning, ultralytics".to_owned()
    })
}

impl WatchArgs {
    pub(super) fn plateau(&self) -> PlateauRule {
        PlateauRule {
            window: self.plateau_window,
            min_delta: self.plateau_min_delta,
            after: self.plateau_after,
            relative: self.plateau_relative,
            below: self.plateau_below,
        }
    }

    pub(super) fn form(&self) -> Result<LogForm, Failure> {
        Ok(match (&self.metrics_pattern, self.family) {
            (Some(pattern), _) => {
                LogForm::Pattern(Pattern::parse(pattern).map_err(Failure::bad_input)?)
            }
            (None, Some(family)) => LogForm::Family(family),
            (None, None) => LogForm::Any,
        })
    }
}

/// Runs it: 0 done, 2 usage, 3 plateau, 4 failure, 5 stall or lost contact; 128 and the signal's number when
/// somebody left it.
pub fn run(args: &WatchArgs) -> u8 {
    match open::block_on(watched(args)).and_then(|result| result) {
        Ok(Outcome::Watched(status)) => {
            if args.json {
                print::data(&serde_json::to_string(&status).unwrap_or_default());
            }
            print::note(&format!(
                "job {}: {}",
                status.job_id.as_deref().unwrap_or("none"),
                status.verdict.as_deref().unwrap_or("no verdict")
            ));
            if let Some(path) = &status.status_path {
                print::note(&status.unwritten.told("status", path));
            }
            if !matches!(status.resume.state.verdict(), Some(Verdict::PodOff { .. })) {
                print::note("the watch stopped nothing, and what runs bills: podtether audit");
            }
            status.process_exit_code.unwrap_or(5)
        }
        Ok(Outcome::Left(code)) => {
            print::note("left the watch; the job and the pod go on, and the pod bills");
            code
        }
        Err(failure) => {
            let code = open::failed_over_a_pod(&failure, args.json);
            // 1 is no exit code of a watch: what could not be reached is lost contact.
            if code == 1 && failure.kind != FailureKind::Internal { 5 } else { code }
        }
    }
}

/// How it ended.
enum Outcome {
    Watched(Box<WatchStatus>),
    Left(u8),
}

async fn watched(args: &WatchArgs) -> Result<Outcome, Failure> {
    let request = WatchRequest {
        vehicle: args.vehicle.clone(),
        job_id: args.job_id.clone(),
        interval: Duration::from_secs(args.interval),
        startup_grace: Duration::from_secs(args.startup_grace),
        stall: Duration::from_secs(args.stall_sec),
        plateau: args.plateau(),
        form: args.form()?,
        status_path: args.status_path.clone(),
    };
    let start = args.config.start()?;
    let log = logging::start(&start.env);
    let (tether, secrets) = ops::open(&start, open::clock()).await?;
    let notifier = Notifier::new(tether.config(), &start.env, &secrets);
    let vehicle = tether.vehicle(args.vehicle.as_deref())?.name.0;
    let mut teller = Teller { notifier: &notifier, vehicle: &vehicle, job: args.job_id.clone() };
    let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let is_live = is_terminal && !args.plain && !args.json && start.env.has_cursor();
    let leaving = is_live.then(Leaving::listen).and_then(Result::ok);
    let Some(mut leaving) = leaving else {
        let mut tell = |note| {
            teller.tell(&note);
            said(&note);
        };
        let watched = tether.watch(&request, &mut tell).await;
        settled(&notifier, SETTLE).await;
        return watched.map(|status| Outcome::Watched(Box::new(status)));
    };
    let model = Model::new(Fixed {
        vehicle: vehicle.clone(),
        is_local: tether.cloud_name() == CloudName::Local,
        interval: request.interval,
        stall: request.stall,
    });
    let mut last_words = Vec::new();
    let end = watch_view::show(&tether, &request, model, &log, &mut leaving, &mut |note, shown| {
        teller.tell(note);
        if !shown {
            return said(note);
        }
        match note {
            WatchNote::Round(status) => last_words = vec![format!("  {}", line(status))],
            WatchNote::Page(verdict) => last_words.push(format!("PAGE: {verdict}")),
            _ => {}
        }
    })
    .await;
    // What is to stay in the terminal when the view is gone.
    last_words.iter().for_each(|words| print::note(words));
    match end {
        End::Watched(watched) => {
            tokio::select! {
                () = settled(&notifier, SETTLE) => {}
                _ = leaving.signal() => {}
            }
            watched.map(|status| Outcome::Watched(Box::new(status)))
        }
        End::Left(code) => {
            settled(&notifier, SETTLE_IN_HASTE).await;
            Ok(Outcome::Left(code))
        }
    }
}

async fn settled(notifier: &Notifier, at_most: Duration) {
    for error in notifier.settle(at_most).await {
        print::note(&format!("podtether: a page did not get through: {error}"));
    }
}

/// Tells people who are not at this terminal.
struct Teller<'a> {
    notifier: &'a Notifier,
    vehicle: &'a str,
    job: Option<String>,
}

impl Teller<'_> {
    fn tell(&mut self, note: &WatchNote) {
        let id = self.job.as_deref().unwrap_or("not known");
        let (kind, text) = match note {
            WatchNote::Page(verdict) => {
                let text = format!("job {id}: {verdict}\nThe watch changes nothing on the pod.");
                (NoticeKind::Paged, text)
            }
            WatchNote::Ended => {
                let text = format!("job {id} succeeded\nThe watch changes nothing on the pod.");
                (NoticeKind::Ended, text)
            }
            WatchNote::Round(status) => {
                self.job = status.job_id.clone().or(self.job.take());
                return;
            }
            WatchNote::Said(_) | WatchNote::Saw(_) => return,
        };
        self.notifier.send(&Notice::of(kind, self.vehicle, text));
    }
}

/// A note as a line.
fn said(note: &WatchNote) {
    match note {
        WatchNote::Said(text) => print::note(&format!("  {text}")),
        WatchNote::Page(verdict) => print::note(&format!("PAGE: {verdict}")),
        WatchNote::Round(status) => print::note(&format!("  {}", line(status))),
        WatchNote::Saw(_) | WatchNote::Ended => {}
    }
}

/// One round in one line.
fn line(status: &WatchStatus) -> String {
    let mut parts = vec![status.updated_at.format("%H:%M:%S").to_string()];
    match (status.iteration, status.total_iterations) {
        (Some(at), Some(total)) => parts.push(format!("iteration {at}/{total}")),
        (Some(at), None) => parts.push(format!("iteration {at}")),
        (None, _) => parts.push("no numbers yet".to_owned()),
    }
    if let Some(reward) = status.mean_reward {
        parts.push(format!("reward {reward:.2}"));
    }
    if let Some(trend) = status.trend {
        parts.push(format!("{trend:+.2} over the window"));
    }
    if let Some(finding) = &status.failure_detected {
        parts.push(format!("suspicion ({}): {}", finding.cause, finding.evidence));
    }
    if status.quiet {
        parts.push("the log is silent, the GPU works".to_owned());
    }
    parts.join(" · ")
}
