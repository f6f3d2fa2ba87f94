//! `podtether why`: what a call would come to, rule by rule, and what would pass.

use super::open::{self, ConfigArgs};
use super::{logging, print};
use crate::error::Failure;
use crate::ops::{
    self, JobKind, RunJobRequest, TrainingChoice, TrainingTold, Verdict, WhyAnswer, WhyRequest,
};
use serde_json::Value;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Arguments of `podtether why`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct WhyArgs {
    /// A saved answer of a dry run of ensure_pod, run_job or launch_training, or a tool call as
    /// `{"name": …, "arguments": {…}}`; `-` reads it from stdin.
    #[arg(required = true)]
    plan: Option<PathBuf>,
    #[command(flatten)]
    how: How,
    #[command(subcommand)]
    call: Option<Call>,
}

#[derive(Clone, Debug, clap::Args)]
struct How {
    #[command(flatten)]
    config: ConfigArgs,
    /// Print one JSON object on stdout instead of lines for people.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Call {
    /// What ensure_pod would come to.
    Ensure {
        #[command(flatten)]
        how: How,
        /// The vehicle; the config's default when left out.
        #[arg(long)]
        vehicle: Option<String>,
    },
    /// What run_job would come to.
    Run {
        #[command(flatten)]
        how: How,
        #[command(flatten)]
        job: Job,
    },
}

#[derive(Debug, clap::Args)]
struct Job {
    /// The vehicle; the config's default when left out.
    #[arg(long)]
    vehicle: Option<String>,
    /// The job's name.
    #[arg(long)]
    name: String,
    /// The command that the job would run.
    #[arg(long)]
    command: String,
    /// The folder to run in.
    #[arg(long)]
    workdir: Option<String>,
    /// The job's ceiling in seconds; the config's timeouts.job_sec when left out.
    #[arg(long, value_name = "SEC", allow_negative_numbers = true)]
    max_runtime_sec: Option<i64>,
    /// Stop the pod when the job ends.
    #[arg(long)]
    auto_stop: bool,
    /// Run beside a job that is still live.
    #[arg(long)]
    force: bool,
}

/// Runs it: 0 it would pass, 2 it would be refused, or wrong usage; 1 nothing is known.
pub fn run(args: &WhyArgs) -> u8 {
    let how = match &args.call {
        Some(Call::Ensure { how, .. } | Call::Run { how, .. }) => how,
        None => &args.how,
    };
    match open::block_on(explained(args, how)) {
        Ok(Ok(answer)) => {
            if how.json {
                print::data(&serde_json::to_string(&answer).unwrap_or_default());
            } else {
                show(&answer);
            }
            if answer.would_pass { 0 } else { 2 }
        }
        Ok(Err(failure)) | Err(failure) => open::failed(&failure, how.json),
    }
}

async fn explained(args: &WhyArgs, how: &How) -> Result<WhyAnswer, Failure> {
    let request = match (&args.call, &args.plan) {
        (Some(Call::Ensure { vehicle, .. }), _) => WhyRequest::Ensure { vehicle: vehicle.clone() },
        (Some(Call::Run { job, .. }), _) => of_job(RunJobRequest {
            name: job.name.clone(),
            command: job.command.clone(),
            workdir: job.workdir.clone(),
            auto_stop: job.auto_stop,
            force: job.force,
            max_runtime_sec: job.max_runtime_sec,
            vehicle: job.vehicle.clone(),
            dry_run: true,
            ..RunJobRequest::default()
        }),
        (None, Some(path)) => saved(&read(path)?)?,
        (None, None) => return Err(Failure::bad_input("why needs a plan or a call")),
    };
    let start = how.config.start()?;
    let _log = logging::start(&start.env);
    let (tether, _) = ops::open(&start, open::clock()).await?;
    tether.why(&request).await
}

fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    read.map_err(|error| Failure::bad_input(format!("{}: {error}", path.display())))
}

/// Reads a saved plan or a tool call.
fn saved(text: &str) -> Result<WhyRequest, Failure> {
    let odd = |why: &str| {
        Failure::bad_input(format!(
            "the plan is no answer of a dry run and no call of ensure_pod, run_job or launch_training: {why}"
        ))
    };
    let value: Value = serde_json::from_str(text).map_err(|error| odd(&error.to_string()))?;
    let words = |value: &Value, key: &str| value[key].as_str().map(str::to_owned);
    if let (Some(name), Value::Object(_)) = (value["name"].as_str(), &value["arguments"]) {
        let given = &value["arguments"];
        return match name {
            "ensure_pod" => Ok(WhyRequest::Ensure { vehicle: words(given, "vehicle") }),
            "run_job" => Ok(of_job(RunJobRequest {
                name: words(given, "name").unwrap_or_default(),
                command: words(given, "command").unwrap_or_default(),
                workdir: words(given, "workdir"),
                auto_stop: given["auto_stop"].as_bool().unwrap_or(false),
                force: given["force"].as_bool().unwrap_or(false),
                max_runtime_sec: given["max_runtime_sec"].as_i64(),
                vehicle: words(given, "vehicle"),
                dry_run: true,
                ..RunJobRequest::default()
            })),
            "launch_training" => Ok(of_job(RunJobRequest {
                kind: training(given, "dr_level"),
                auto_stop: given["auto_stop"].as_bool().unwrap_or(false),
                force: given["force"].as_bool().unwrap_or(false),
                dry_run: true,
                ..RunJobRequest::default()
            })),
            other => Err(odd(&format!("it calls {other}"))),
        };
    }
    // As a client got it, with the answer inside.
    let value = value.get("structuredContent").unwrap_or(&value);
    let vehicle = words(value, "vehicle");
    if vehicle.is_none() || !value["plan"].is_array() {
        return Err(odd("it has no vehicle or no plan; of a refused call give the call itself"));
    }
    match words(value, "job_id") {
        None => Ok(WhyRequest::Ensure { vehicle }),
        // By its recipe, which has its own name, command and gates.
        Some(_) if value["training"].is_string() => Ok(of_job(RunJobRequest {
            kind: training(value, "level"),
            auto_stop: value["auto_stop"].as_bool().unwrap_or(false),
            max_runtime_sec: value["ceiling_sec"].as_i64(),
            vehicle,
            ..RunJobRequest::default()
        })),
        Some(id) => {
            // <stamp>_<name>_<4 hex>; the rules look at the vehicle, the ceiling and the end alone.
            let name = id.split_once('_').and_then(|(_, rest)| rest.rsplit_once('_'));
            Ok(of_job(RunJobRequest {
                name: name.map(|(name, _)| name.to_owned()).unwrap_or_default(),
                command: "true".to_owned(),
                auto_stop: value["auto_stop"].as_bool().unwrap_or(false),
                max_runtime_sec: value["ceiling_sec"].as_i64(),
                vehicle,
                ..RunJobRequest::default()
            }))
        }
    }
}

fn of_job(request: RunJobRequest) -> WhyRequest {
    WhyRequest::Run(Box::new(request))
}

/// A training as a call or a plan names it; `level` is the key of its level.
fn training(value: &Value, level: &str) -> JobKind {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    JobKind::Training(TrainingChoice {
        training: text("training").unwrap_or_default(),
        dr_level: text(level),
        // As JSON has it, so that what is no seed is told by the same words as anywhere.
        seed: value.get("seed").filter(|seed| !seed.is_null()).map(|seed| match seed.as_str() {
            Some(text) => text.to_owned(),
            None => seed.to_string(),
        }),
        extra_args: text("extra_args").unwrap_or_default(),
    })
}

fn show(answer: &WhyAnswer) {
    let word = if answer.would_pass { "would pass" } else { "WOULD BE REFUSED" };
    print::data(&format!("{} for vehicle {}: {word}", answer.call, answer.vehicle));
    if let Some(training) = &answer.training {
        show_training(training);
    }
    for line in &answer.not_met {
        print::data(&format!("  missing {line}"));
    }
    for rule in &answer.rules {
        let verdict = match rule.verdict {
            Verdict::Pass => "pass   ",
            Verdict::Refuse => "REFUSE ",
        };
        print::data(&format!("  {verdict} {}: {}", rule.name, rule.looked_at));
        if let (Some(refusal), Some(way_out)) = (&rule.refusal, &rule.way_out) {
            // Its first line; the sum follows below.
            print::data(&format!("          {}", refusal.lines().next().unwrap_or_default()));
            print::data(&format!("          to pass: {way_out}"));
        }
    }
    if !answer.sum.is_empty() {
        print::data("what counts against the budget:");
    }
    for line in &answer.sum {
        print::data(&format!("  ${} {}", line.usd.to_decimal(), line.what));
    }
    if let Some(total) = answer.total_usd {
        let budget = answer.budget_usd.map_or_else(
            || "no limits.budget_usd".to_owned(),
            |usd| format!("limits.budget_usd = {}", usd.to_decimal()),
        );
        print::data(&format!("  = ${}; {budget}", total.to_decimal()));
    }
    match &answer.to_pass[..] {
        [] => {}
        [one] => print::data(&format!("the one change that would pass: {one}")),
        all => print::data(&format!("to pass, all of these: {}", all.join("; "))),
    }
    for line in most(answer) {
        print::data(&format!("at most now: {line}"));
    }
}

fn show_training(told: &TrainingTold) {
    let TrainingTold { training, level, seed, command, workdir, .. } = told;
    let level = level.as_ref().map_or_else(String::new, |level| format!(", level {level}"));
    print::data(&format!("  training {training}{level}, seed {seed}: {command} (in {workdir})"));
    for gate in &told.gates {
        let word = match gate.holds {
            Some(true) => "holds  ",
            Some(false) => "FAILS  ",
            None => "unknown",
        };
        print::data(&format!("  {word} {}", gate.what));
    }
    for edit in &told.edits {
        let (file, from, lines) = (&edit.file, &edit.from_level, edit.lines);
        print::data(&format!("  edits   {file}: {lines} lines, from level {from}"));
    }
    if let Some(estimate) = &told.estimate {
        print::data(&format!("  expected {}", estimate.told()));
    }
    if let Some(why) = &told.not_known {
        print::data(&format!("  not known: {why}"));
    }
}

fn most(answer: &WhyAnswer) -> Vec<String> {
    let most = &answer.most;
    let left = most.budget_left_usd.map(|usd| format!("{usd} of the budget are left"));
    let own = most.max_runtime_sec.map(|sec| format!("max_runtime_sec={sec} as asked"));
    let stopped = most.max_runtime_sec_with_auto_stop;
    let stopped = stopped.map(|sec| format!("max_runtime_sec={sec} with auto_stop=true"));
    let none = (answer.call != "ensure_pod" && own.is_none() && stopped.is_none())
        .then(|| "not one second of a job".to_owned());
    let gpu = most.cheapest_gpu.as_ref().zip(most.cheapest_usd_per_hour).map(|(gpu, usd)| {
        let fits = if most.cheapest_passes == Some(true) { "" } else { ", above max_usd_per_hour" };
        format!("the cheapest GPU allowed is {gpu}, {usd}/h{fits}")
    });
    [left, own, stopped, none, gpu].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_and_a_call_are_read_back_to_what_was_asked() {
        let plan = r#"{"vehicle": "rover", "job_id": "20260703-132525_train_a_00ab",
            "ceiling_sec": 60, "auto_stop": true, "plan": []}"#;
        let WhyRequest::Run(job) = saved(plan).unwrap() else { panic!() };
        assert_eq!(
            (job.name.as_str(), job.max_runtime_sec, job.auto_stop),
            ("train_a", Some(60), true)
        );
        let wrapped = format!(r#"{{"structuredContent": {plan}}}"#);
        assert!(matches!(saved(&wrapped), Ok(WhyRequest::Run(_))));
        let ensure = r#"{"vehicle": "rover", "plan": []}"#;
        assert!(
            matches!(saved(ensure), Ok(WhyRequest::Ensure { vehicle: Some(name) }) if name == "rover")
        );
        let call =
            r#"{"name": "run_job", "arguments": {"name": "x", "command": "c", "force": true}}"#;
        let WhyRequest::Run(job) = saved(call).unwrap() else { panic!() };
        assert!(job.force && job.command == "c" && job.vehicle.is_none());
    }

    #[test]
    fn a_plan_and_a_call_of_a_training_stay_one() {
        let plan = r#"{"vehicle": "rover", "job_id": "20260703-132525_train-a-s9_00ab", "training": "a",
            "level": "DR_1", "seed": 9, "extra_args": "--x 1", "ceiling_sec": 60, "plan": []}"#;
        let call = r#"{"name": "launch_training",
            "arguments": {"training": "a", "dr_level": "DR_1", "seed": 9, "extra_args": "--x 1"}}"#;
        for (text, ceiling) in [(plan, Some(60)), (call, None)] {
            let WhyRequest::Run(job) = saved(text).unwrap() else { panic!() };
            let JobKind::Training(choice) = &job.kind else { panic!("{job:?}") };
            let told = (choice.training.as_str(), choice.dr_level.as_deref());
            assert_eq!(told, ("a", Some("DR_1")));
            assert_eq!((choice.seed.as_deref(), choice.extra_args.as_str()), (Some("9"), "--x 1"));
            assert_eq!(job.max_runtime_sec, ceiling);
        }
    }

    #[test]
    fn what_is_no_plan_is_said_to_be_none() {
        for (text, words) in [
            ("", "EOF"),
            ("[]", "no vehicle"),
            (r#"{"vehicle": "rover"}"#, "no plan"),
            (r#"{"ok": false, "failure": {"kind": "refused"}}"#, "give the call itself"),
            (r#"{"name": "stop_pod", "arguments": {}}"#, "it calls stop_pod"),
        ] {
            let failure = saved(text).unwrap_err();
            assert!(failure.message.contains(words), "{text}: {failure}");
        }
    }
}
