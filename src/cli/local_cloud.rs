//! `podtether local-cloud`.

use super::print;
use crate::clock::SystemClock;
use crate::cloud::local::{FAULTS, Fault, FaultValue, LocalCloud, On, Options, Timing, scenario};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_long_help = faults_help())]
pub struct LocalCloudArgs {
    /// State folder: pods, volumes, address and key; created when missing.
    #[arg(long, value_name = "DIR")]
    state: PathBuf,
    /// Port on loopback; 0 takes the one of last time, else any.
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// A fault to switch on; may be given more than once. An unknown name prints the list.
    #[arg(long = "fault", value_name = "NAME[=VALUE][@LIMIT]")]
    faults: Vec<Fault>,
    /// A file of faults to switch on: one a line, `#` begins a comment.
    #[arg(long = "faults", value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Leave the caller's session.
    #[arg(long, hide = true)]
    detach: bool,
    /// How far billing is behind, in seconds.
    #[arg(long, hide = true, default_value_t = 3600)]
    billing_lag_sec: u64,
}

fn faults_help() -> String {
    let lines = FAULTS.iter().map(|kind| {
        let value = match kind.value {
            FaultValue::Times(Some(times)) => format!("[=TIMES], {times} unless given"),
            FaultValue::Times(None) => "[=TIMES], every time unless given".to_owned(),
            FaultValue::Seconds(seconds) => format!("[=SECONDS], {seconds} unless given"),
        };
        format!("  {}{value}\n      {}\n", kind.name, kind.meaning)
    });
    let requests = On::ALL.map(On::word).join("|");
    format!(
        "Faults:\n{}\nLimits:\n  @after:SEC, @for:SEC  when it begins and how long it goes on\n  @on:{requests}\n      which requests it meets, for a fault that meets requests\n",
        lines.collect::<String>()
    )
}

/// The faults of the command line and of its scenario.
fn faults(args: &LocalCloudArgs) -> Result<Vec<Fault>, String> {
    let mut faults = args.faults.clone();
    if let Some(path) = &args.scenario {
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| told(&error))?;
        faults.extend(scenario(&text).map_err(|error| told(&error))?);
    }
    Ok(faults)
}

/// Runs it and returns the exit code.
pub fn run(args: &LocalCloudArgs) -> u8 {
    let faults = match faults(args) {
        Ok(faults) => faults,
        Err(why) => {
            print::note(&why);
            return 2;
        }
    };
    if args.detach
        && let Err(error) = rustix::process::setsid()
    {
        print::note(&format!("could not leave the session: {error}"));
        return 1;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(serve(args, faults)),
        Err(error) => {
            print::note(&format!("could not start: {error}"));
            1
        }
    }
}

async fn serve(args: &LocalCloudArgs, faults: Vec<Fault>) -> u8 {
    let _ = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_env_filter("podtether=info,warn")
        .try_init();
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            print::note(&format!("could not find this program's own file: {error}"));
            return 1;
        }
    };
    // Before anything is started: a signal that comes early must not leave pods behind.
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        print::note("could not listen for signals");
        return 1;
    };
    let options = Options {
        state: args.state.clone(),
        port: args.port,
        faults,
        program,
        timing: Timing {
            billing_lag: Duration::from_secs(args.billing_lag_sec),
            ..Timing::default()
        },
    };
    let cloud = match LocalCloud::start(options, SystemClock::shared()).await {
        Ok(cloud) => cloud,
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            print::note(&format!("{error}{}", cause.unwrap_or_default()));
            return 1;
        }
    };
    let ready = json!({"url": cloud.url(), "pid": std::process::id(), "local": true});
    print::data(&ready.to_string());
    let end = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    match cloud.serve(end).await {
        Ok(()) => 0,
        Err(error) => {
            print::note(&format!("the local cloud ended: {error}"));
            1
        }
    }
}
