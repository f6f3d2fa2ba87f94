//! `podtether runs`: the runs that were launched from here, by journal and records alone.

use super::open::{self, ConfigArgs};
use super::{logging, print, runs_view};
use crate::error::Failure;
use crate::ops::{self, KnownRuns};
use crate::runs::{self, Filter, Run, compare, since};
use chrono::{DateTime, Utc};

/// Arguments of `podtether runs`.
#[derive(Debug, clap::Args)]
pub struct RunsArgs {
    #[command(subcommand)]
    what: What,
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
enum What {
    /// List runs, the newest first.
    List {
        #[command(flatten)]
        how: How,
        #[command(flatten)]
        only: Only,
    },
    /// Show everything that is known of one run.
    Show {
        #[command(flatten)]
        how: How,
        /// The job's id, or enough of its beginning.
        id: String,
    },
    /// Show what differs between runs.
    Compare {
        #[command(flatten)]
        how: How,
        /// The jobs' ids, or enough of their beginnings.
        #[arg(required = true, num_args = 2..)]
        ids: Vec<String>,
    },
}

/// Which runs; of several, those that are all of it.
#[derive(Clone, Debug, clap::Args)]
struct Only {
    /// What they belong together with.
    #[arg(long)]
    group: Option<String>,
    /// Who launched them.
    #[arg(long)]
    agent: Option<String>,
    /// Their state, such as succeeded, failed, timed_out, not_started or unknown.
    #[arg(long)]
    state: Option<String>,
    /// Their vehicle.
    #[arg(long)]
    vehicle: Option<String>,
    /// Their training.
    #[arg(long)]
    training: Option<String>,
    /// Launched within that time (7d, 12h, 30m), or since a day (2026-07-01, UTC) or moment (RFC 3339).
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

/// Runs it: 0 shown, 2 wrong usage or no such run, 1 nothing could be read.
pub fn run(args: &RunsArgs) -> u8 {
    let how = match &args.what {
        What::List { how, .. } | What::Show { how, .. } | What::Compare { how, .. } => how,
    };
    match told(args, how) {
        Ok(()) => 0,
        Err(failure) => open::failed(&failure, how.json),
    }
}

fn told(args: &RunsArgs, how: &How) -> Result<(), Failure> {
    let start = how.config.start()?;
    let _log = logging::start(&start.env);
    let clock = open::clock();
    let now = clock.now();
    let filter = match &args.what {
        What::List { only, .. } => Some((filter(only, now)?, only.limit)),
        _ => None,
    };
    let known = ops::known_runs(&start, clock)?;
    match &args.what {
        What::List { .. } => {
            let (filter, limit) = filter.unwrap_or_default();
            list(&known, &filter, limit as usize, how.json);
        }
        What::Show { id, .. } => {
            let shown = known.shown(known.pick(id)?);
            if how.json {
                print::data(&serde_json::to_string(&shown).unwrap_or_default());
            } else {
                runs_view::show(&shown).iter().for_each(|line| print::data(line));
            }
        }
        What::Compare { ids, .. } => {
            let runs = ids.iter().map(|id| known.pick(id)).collect::<Result<Vec<&Run>, _>>()?;
            let twice = runs
                .iter()
                .enumerate()
                .find(|(at, run)| runs.iter().take(*at).any(|other| other.job_id == run.job_id));
            if let Some((_, run)) = twice {
                return Err(Failure::bad_input(format!(
                    "{} is named twice; name two runs or more",
                    run.job_id
                )));
            }
            let comparison = compare(&runs);
            if how.json {
                print::data(&serde_json::to_string(&comparison).unwrap_or_default());
            } else {
                runs_view::comparison(&comparison).iter().for_each(|line| print::data(line));
            }
        }
    }
    if !how.json {
        known.troubles.iter().for_each(|trouble| print::note(&format!("note: {trouble}")));
    }
    Ok(())
}

fn filter(only: &Only, now: DateTime<Utc>) -> Result<Filter, Failure> {
    let from = match &only.since {
        None => None,
        Some(text) => Some(since(text, now).ok_or_else(|| {
            let shown: String = text.chars().take(80).collect();
            Failure::bad_input(format!(
                "--since {shown:?} is no time; give 7d, 12h or 30m, a day such as 2026-07-01, or RFC 3339"
            ))
        })?),
    };
    if let Some(word) = &only.state
        && let Err(fix) = runs::known_state(word)
    {
        let shown: String = word.chars().take(80).collect();
        return Err(Failure::bad_input(format!("--state {shown:?} is no state of a run; {fix}")));
    }
    Ok(Filter {
        group: only.group.clone(),
        agent: only.agent.clone(),
        state: only.state.clone(),
        vehicle: only.vehicle.clone(),
        training: only.training.clone(),
        since: from,
    })
}

fn list(known: &KnownRuns, filter: &Filter, limit: usize, json: bool) {
    let all: Vec<&Run> = known.runs.iter().filter(|run| filter.takes(run)).collect();
    let shown = &all[..all.len().min(limit)];
    let unheard_of = filter.unheard_of(&known.runs);
    if json {
        let value = serde_json::json!({
            "runs": shown,
            "more": all.len() - shown.len(),
            "known": known.runs.len(),
            "of_other_cloud": known.of_other_cloud,
            "unheard_of": unheard_of,
            "troubles": known.troubles,
        });
        print::data(&value.to_string());
        return;
    }
    runs_view::list(shown).iter().for_each(|line| print::data(line));
    if all.len() > shown.len() {
        print::note(&format!("{} more; --limit shows them", all.len() - shown.len()));
    }
    if known.runs.is_empty() {
        print::note("no run is known here yet");
    }
    if all.is_empty() && !known.runs.is_empty() {
        print::note(&format!("none of the {} runs that are known is that", known.runs.len()));
    }
    unheard_of.iter().for_each(|told| print::note(told));
    if known.of_other_cloud > 0 {
        let count = known.of_other_cloud;
        print::note(&format!("{count} records are of the other cloud and not shown"));
    }
}
