//! `podtether demo`: the whole of it on the local cloud.

use super::open;
use super::print;
use super::progress::Progress;
use crate::demo::{self, DemoReport, Say};
use std::path::PathBuf;

/// Arguments of `podtether demo`.
#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    /// The demo's folder; made anew each time.
    #[arg(long, value_name = "DIR", default_value = "podtether-demo")]
    dir: PathBuf,
    /// Print one JSON object on stdout instead of the findings for people.
    #[arg(long)]
    json: bool,
}

/// Runs the demo; 0 only if everything that it shows is so.
pub fn run(args: &DemoArgs) -> u8 {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            print::note(&format!("podtether: podtether's own program cannot be told: {error}"));
            return 1;
        }
    };
    let mut progress = Progress::new();
    let mut steps = 0;
    let mut tell = |say: Say| match say {
        Say::Step(text) => {
            progress.end();
            steps += 1;
            print::note(&format!("{steps}. {text}"));
        }
        Say::Seen(text) => print::note(&format!("   {text}")),
        Say::Run(note) => progress.tell(&note),
    };
    match open::block_on(demo::run(&args.dir, program, open::clock(), &mut tell)) {
        Ok(Ok(report)) => {
            if args.json {
                print::data(&serde_json::to_string(&report).unwrap_or_default());
            } else {
                show(&report);
            }
            u8::from(!report.ok)
        }
        Ok(Err(failure)) | Err(failure) => open::failed(&failure, args.json),
    }
}

fn show(report: &DemoReport) {
    let number =
        |value: Option<f64>| value.map_or_else(|| "?".to_owned(), |value| format!("{value:.2}"));
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "?".to_owned());
    let spend = report.spend.total_usd.map_or_else(|| "?".to_owned(), |usd| usd.to_string());
    let lines = [
        String::new(),
        format!("job      {} {}", text(&report.job.id), report.job.state),
        format!(
            "reward   {} -> {} over {} iterations",
            number(report.job.first_reward),
            number(report.job.last_reward),
            report.job.iterations
        ),
        format!(
            "capture  {} files, {}",
            report.capture.files,
            if report.capture.complete { "complete: every SHA-256 matches" } else { "INCOMPLETE" }
        ),
        format!("spend    {spend} at list price, had this been RunPod; nothing was paid"),
        format!(
            "stop     {} read back after the request, {} in a read of its own",
            text(&report.stop.observed),
            text(&report.stop.read_again)
        ),
        format!("picture  {}", report.plot.display()),
        format!("{} in {:.1} s", if report.ok { "ok" } else { "NOT OK" }, report.elapsed_sec),
    ];
    for line in lines {
        print::data(&line);
    }
    for problem in &report.problems {
        print::data(&format!("  problem: {problem}"));
    }
}
