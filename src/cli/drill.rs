//! `podtether drill`: lets every fuse of a vehicle strike, on purpose.

use super::open::{self, ConfigArgs};
use super::{logging, print, signals};
use crate::apply::{OffSettings, Settings};
use crate::domain::{DrillFuse, Usd};
use crate::drill::{self, DrillReport, DrillRequest};
use crate::error::{Failure, FailureKind};
use crate::ops;
use std::time::Duration;

/// Arguments of `podtether drill`.
#[derive(Debug, clap::Args)]
pub struct DrillArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// The vehicle; its pod must be off, and is started and stopped once for each fuse.
    #[arg(long, value_name = "NAME")]
    vehicle: String,
    /// Which fuses, separated by commas: auto_stop, watchdog_idle, watchdog_deadline, lease, deadman,
    /// supervise; all six when left out.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = fuse)]
    fuses: Vec<DrillFuse>,
    /// What all of it may cost at most, in USD; refused before anything when the worst case is above.
    #[arg(long, value_name = "USD", default_value = "2.00", value_parser = dollars)]
    max_usd: Usd,
    /// Only show the plan and what it costs at most; changes nothing.
    #[arg(long)]
    dry_run: bool,
    /// How long one stop by the drill itself is waited for, in seconds; it is asked several times over.
    #[arg(long, value_name = "SEC", hide = true, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    stop_budget_sec: u64,
    /// Print one JSON object on stdout instead of lines for people.
    #[arg(long)]
    json: bool,
}

fn fuse(word: &str) -> Result<DrillFuse, String> {
    DrillFuse::parse(word.trim()).ok_or_else(|| {
        let all: Vec<&str> = DrillFuse::ALL.iter().map(|fuse| fuse.as_str()).collect();
        format!("one of {}", all.join(", "))
    })
}

fn dollars(text: &str) -> Result<Usd, String> {
    let usd = Usd::from_decimal(text).map_err(|error| error.to_string())?;
    if usd > Usd::ZERO { Ok(usd) } else { Err("it is to be above 0".to_owned()) }
}

/// Runs it: 0 every fuse is proven and the pod is off, 1 not every one or nothing begun, 2 refusal or usage, 6 the pod
/// may still be running.
pub fn run(args: &DrillArgs) -> u8 {
    match open::block_on(drilled(args)) {
        Ok(Ok(report)) => {
            if args.json {
                print::data(&serde_json::to_string(&report).unwrap_or_default());
            } else if !report.dry_run {
                report.told().iter().for_each(|line| print::data(line));
            }
            report.process_exit_code
        }
        Ok(Err(failure)) | Err(failure) => match open::failed(&failure, args.json) {
            // Another drill is under way: that is a refusal, nothing was begun.
            1 if failure.kind == FailureKind::Conflict => 2,
            code => code,
        },
    }
}

async fn drilled(args: &DrillArgs) -> Result<DrillReport, Failure> {
    let start = args.config.start()?;
    let _log = logging::start(&start.env);
    // From the first moment on, so that an early Ctrl-C is not a sudden death.
    let (_keep_open, mut signals) = signals::for_supervise();
    let off =
        OffSettings { budget: Duration::from_secs(args.stop_budget_sec), ..OffSettings::default() };
    let opened = async {
        let (tether, _) = ops::open(&start, open::clock()).await?;
        let tether = tether.with_settings(Settings { off, ..Settings::default() }).for_a_drill();
        tether.cheapest_first(&args.vehicle).await
    };
    let tether = signals::unless_ended(&mut signals, opened).await?;
    let fuses = if args.fuses.is_empty() { DrillFuse::ALL.to_vec() } else { args.fuses.clone() };
    let request = DrillRequest {
        vehicle: args.vehicle.clone(),
        fuses,
        max_usd: args.max_usd,
        dry_run: args.dry_run,
    };
    // The plan of a dry run is what was asked for; what goes on meanwhile is not.
    let to_stdout = args.dry_run && !args.json;
    let mut tell = |line: String| if to_stdout { print::data(&line) } else { print::note(&line) };
    drill::run(&tether, &request, &mut signals, &mut tell).await
}
