//! `podtether stop`: off the bill, with a proof for every pod.

use super::open::{self, ConfigArgs};
use super::{logging, print};
use crate::apply::{OffSettings, Settings};
use crate::error::{Failure, FailureKind};
use crate::notify::{Notice, NoticeKind, Notifier};
use crate::ops::{self, Confirmation, StopAllAnswer};
use std::time::Duration;

/// Arguments of `podtether stop`.
#[derive(Debug, clap::Args)]
pub struct StopArgs {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    which: Which,
    /// How long a stop is waited for, in seconds; it is asked several times over.
    #[arg(long, value_name = "SEC", hide = true, default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=3600))]
    stop_budget_sec: u64,
    /// Print one JSON object on stdout instead of lines for people.
    #[arg(long)]
    json: bool,
}

/// A stop names what it stops; there is no default.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// Stop the pod of this vehicle.
    #[arg(long, value_name = "NAME")]
    vehicle: Option<String>,
    /// Stop the pods of every vehicle; without a readable config, every pod that podtether created.
    #[arg(long)]
    all: bool,
}

/// Runs it: 0 everything is off, 1 nothing could be asked, 2 wrong usage, 6 something may still bill.
pub fn run(args: &StopArgs) -> u8 {
    match open::block_on(stopped(args)) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) | Err(failure) => failed(&failure, args),
    }
}

fn failed(failure: &Failure, args: &StopArgs) -> u8 {
    let code = open::failed(failure, args.json);
    if failure.kind == FailureKind::BadInput { code } else { 1 }
}

async fn stopped(args: &StopArgs) -> Result<u8, Failure> {
    let start = args.config.start()?;
    let _log = logging::start(&start.env);
    let budget = Duration::from_secs(args.stop_budget_sec);
    let settings =
        Settings { off: OffSettings { budget, ..OffSettings::default() }, ..Settings::default() };
    let stopped = async {
        let stop = ops::open_for_stop(&start, open::clock()).await?.with_settings(settings);
        match &args.which.vehicle {
            Some(vehicle) => stop.run_one(vehicle).await,
            None => stop.run().await,
        }
    };
    let stopped = stopped.await;
    let code = match &stopped {
        Ok(answer) => {
            if args.json {
                print::data(&serde_json::to_string(answer).unwrap_or_default());
            } else {
                show(answer);
            }
            if answer.may_still_bill { 6 } else { 0 }
        }
        Err(failure) => failed(failure, args),
    };
    if let Some(notice) = failed_stop(args, &stopped) {
        // Last of all: a keychain or a webhook that hangs holds up neither the stop nor its answer.
        let notifier = Notifier::find(start.config.as_deref(), &start.env, &start.cwd);
        for error in notifier.tell(&notice).await {
            print::note(&format!("podtether: a notice did not get through: {error}"));
        }
    }
    Ok(code)
}

/// What people are told when something may still bill. A mistake in the arguments is told to who made it.
fn failed_stop(args: &StopArgs, stopped: &Result<StopAllAnswer, Failure>) -> Option<Notice> {
    let text = match stopped {
        Ok(answer) if answer.may_still_bill => {
            let ours = answer.pods.iter().filter(|pod| !pod.off).map(line);
            let others = answer.left_alone.iter().flatten().filter(|pod| pod.bills);
            let others = others.map(|pod| format!("left alone: {:?} ({})", pod.name, pod.pod));
            let why = answer.not_listed.clone().into_iter().chain(answer.unaccounted.clone());
            let lines: Vec<String> = ours.chain(others).chain(why).collect();
            format!("SOMETHING MAY STILL BILL after `podtether stop`\n{}", lines.join("\n"))
        }
        Err(failure) if failure.kind != FailureKind::BadInput => {
            format!("`podtether stop` could not ask: {failure}")
        }
        _ => return None,
    };
    Some(match &args.which.vehicle {
        Some(vehicle) => Notice::of(NoticeKind::StopFailed, vehicle, text),
        None => Notice::general(NoticeKind::StopFailed, text),
    })
}

fn show(answer: &StopAllAnswer) {
    if let Some(error) = &answer.without_config {
        print::note(&format!("podtether: {error}"));
        print::note("podtether: without a config, only pods with podtether's marker are stopped");
    }
    if let Some(error) = &answer.not_listed {
        print::note(&format!("podtether: {error}"));
        print::note("podtether: without a list, only pods that the journal knows are stopped");
    }
    for pod in &answer.pods {
        print::data(&line(pod));
    }
    for vehicle in &answer.no_pod {
        print::data(&format!("{vehicle}: the account has no pod of it"));
    }
    for create in &answer.unaccounted {
        print::data(create);
    }
    for pod in answer.left_alone.iter().flatten() {
        let bills = if pod.bills { ", BILLS" } else { "" };
        print::data(&format!(
            "left alone: {:?} ({}, {}{bills}): {}",
            pod.name, pod.pod, pod.status, pod.why
        ));
    }
    print::note(if answer.may_still_bill {
        "SOMETHING MAY STILL BILL: run it again, and look in the RunPod console"
    } else {
        "no compute of ours is on the bill; network volumes go on billing (podtether audit)"
    });
}

fn line(pod: &Confirmation) -> String {
    let whose = pod.vehicle.clone().unwrap_or_else(|| format!("{:?}", pod.name));
    let read = match (&pod.status, pod.read_at) {
        (Some(status), Some(at)) => format!("{status} read at {}", at.format("%H:%M:%S UTC")),
        (None, Some(at)) => format!("not listed at {}", at.format("%H:%M:%S UTC")),
        (_, None) => "never read back".to_owned(),
    };
    format!("{whose}: pod {}: {read}: {}", pod.pod, pod.message)
}
