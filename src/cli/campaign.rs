//! `podtether supervise --chain`: a campaign, link by link.

use super::supervise::{SuperviseArgs, opened, shown};
use super::{logging, open, print, signals};
use crate::chain::{self, LinkPreview, Options, Preview, Record};
use crate::config;
use crate::domain::{Usd, join_quoted};
use crate::error::{Failure, FailureKind};
use std::path::Path;
use std::time::Duration;

/// What came of it.
enum Outcome {
    Previewed(Box<Preview>),
    Ran(Box<Record>),
}

/// Runs it: 0 done, or at a stop point as its link says · 1 a link failed and the pod is off · 2 refusal
/// or usage, nothing was changed · 6 the pod may still be running.
pub(super) fn run(args: &SuperviseArgs, file: &Path) -> u8 {
    match open::block_on(campaign(args, file)) {
        Ok(Ok(Outcome::Previewed(preview))) => {
            if args.json {
                print::data(&serde_json::to_string(&preview).unwrap_or_default());
            } else {
                lines_of(&preview).iter().for_each(|line| print::data(line));
            }
            if preview.refusals.is_empty() { 0 } else { 2 }
        }
        Ok(Ok(Outcome::Ran(record))) => {
            if args.json {
                print::data(&serde_json::to_string(&record).unwrap_or_default());
            }
            lines_of_end(&record, args, file).iter().for_each(|line| print::note(line));
            record.process_exit_code.unwrap_or(1)
        }
        Ok(Err(failure)) | Err(failure) => open::failed(&failure, args.json),
    }
}

async fn campaign(args: &SuperviseArgs, file: &Path) -> Result<Outcome, Failure> {
    let start = args.config.start()?;
    let _log = logging::start(&start.env);
    // From the first moment on, so that an early Ctrl-C is not a sudden death.
    let (leave, mut signals) = signals::for_supervise();
    let (tether, notifier) = signals::unless_ended(&mut signals, opened(args, &start)).await?;
    let campaign = config::load_campaign(&start.cwd.join(file), tether.config(), &start.env)
        .map_err(|error| {
            let hint = "mend the campaign's file; nothing was changed";
            Failure::new(FailureKind::BadInput, error, hint)
        })?;
    if args.dry_run {
        let preview = chain::preview(&tether, &campaign, &args.again).await?;
        return Ok(Outcome::Previewed(Box::new(preview)));
    }
    let options = Options {
        campaign,
        interval: Duration::from_secs(args.interval),
        pull_every: Duration::from_secs(args.pull_every_sec),
        rest: Some(Duration::from_secs(args.rest_sec)),
        again: args.again.clone(),
        notifier,
    };
    let run = shown(&leave, async |tell| chain::run(&tether, &options, &mut signals, tell).await);
    run.await.map(|record| Outcome::Ran(Box::new(record)))
}

fn amount(usd: Option<Usd>) -> String {
    usd.map_or_else(|| "not known".to_owned(), |usd| usd.to_string())
}

fn lines_of(preview: &Preview) -> Vec<String> {
    let pod = preview.pod_id.as_ref().map_or_else(
        || "no pod runs; counted at limits.max_usd_per_hour".to_owned(),
        |pod| format!("pod {pod}"),
    );
    let mut lines = vec![format!(
        "campaign {} on vehicle {} ({pod}, {} an hour). Nothing was changed.",
        preview.campaign,
        preview.vehicle,
        amount(preview.usd_per_hour)
    )];
    for (number, link) in preview.links.iter().enumerate() {
        lines.extend(lines_of_link(number + 1, link));
    }
    let expected = match preview.not_expected {
        0 => amount(preview.expected_usd),
        1 => format!("{} and 1 job whose time nobody knows", amount(preview.expected_usd)),
        n => format!("{} and {n} jobs whose time nobody knows", amount(preview.expected_usd)),
    };
    lines.push(format!(
        "to be run: worst case {}, expected {expected}",
        amount(preview.worst_case_usd)
    ));
    if !preview.counted.is_empty() {
        lines.push("against the budget:".to_owned());
        let counted = preview.counted.iter();
        lines.extend(counted.map(|line| format!("  ${} {}", line.usd.to_decimal(), line.what)));
    }
    if let Some(sum) = preview.counted_usd {
        let budget = preview.budget_usd.map_or_else(|| "not set".to_owned(), |usd| usd.to_string());
        lines.push(format!("  = {sum}; limits.budget_usd: {budget}"));
    }
    for refusal in &preview.refusals {
        lines.push(format!("REFUSED: {refusal}"));
    }
    lines
}

fn lines_of_link(number: usize, link: &LinkPreview) -> Vec<String> {
    let bill = &link.bill;
    let why = if link.why.is_empty() { String::new() } else { format!(", {}", link.why) };
    let mut lines =
        vec![format!("{number}. {}: {} [{}{why}]", bill.name, bill.work, link.standing)];
    if bill.worst_case_sec > 0 {
        let ceiling = bill.ceiling_sec.map(|sec| format!(", ceiling {sec} s")).unwrap_or_default();
        let expected = bill.expected_sec.map_or_else(
            || "expected: not known".to_owned(),
            |sec| format!("expected {} ({sec} s)", amount(bill.expected_usd)),
        );
        lines.push(format!(
            "   worst case {} ({} s{ceiling}), max_usd {}; {expected}",
            amount(bill.worst_case_usd),
            bill.worst_case_sec,
            bill.max_usd
        ));
    }
    for (word, all) in [("before", &link.before), ("after", &link.after)] {
        if !all.is_empty() {
            lines.push(format!("   {word}: {}", all.join(", ")));
        }
    }
    lines.push(format!("   then: {}", link.then));
    lines
}

fn lines_of_end(record: &Record, args: &SuperviseArgs, file: &Path) -> Vec<String> {
    let may_run = record.pod_may_still_be_running;
    let pod = match (&record.stop, may_run) {
        (_, true) if record.state == "paused" => "the pod was left running and bills".to_owned(),
        (_, true) => "THE POD MAY STILL BE RUNNING AND BILLING".to_owned(),
        (Some(stop), false) => stop.clone(),
        (None, false) => "the pod is off the bill".to_owned(),
    };
    let why = record.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let mut lines = vec![format!("campaign {}: {}{why}; {pod}", record.campaign, record.state)];
    lines.extend(record.errors.iter().map(|error| format!("  {error}")));
    lines.push(record.unwritten.told("record", &record.record_path));
    let config = args.config.config.as_ref().map(|path| path.display().to_string());
    let file = file.display().to_string();
    let shell = |words: &[&str]| {
        let config = config.iter().flat_map(|path| ["--config", path]);
        join_quoted(["podtether"].into_iter().chain(words.iter().copied()).chain(config))
    };
    if may_run {
        let stop = shell(&["stop", "--vehicle", &record.vehicle]);
        lines.push(format!("stop it:  {stop}"));
    }
    if record.state != "done" {
        let first = match may_run {
            true => String::new(),
            false => format!("ensure_pod with vehicle={} first, then ", record.vehicle),
        };
        lines.push(format!("go on:    {first}{}", shell(&["supervise", "--chain", &file])));
    }
    lines
}
