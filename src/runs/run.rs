//! One run, put together from what is known of it: its record, the journal, the summary that a
//! supervise left, and the exit code that came home.

use super::record::{Numbers, RunRecord, is_end};
use crate::domain::{Usd, UsdPerHour};
use crate::ledger::{Launch, LaunchOutcome};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A run as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// The job.
    pub job_id: String,
    /// The vehicle.
    pub vehicle: String,
    /// Of a training: its name.
    pub training: Option<String>,
    /// Its level.
    pub level: Option<String>,
    /// Its seed.
    pub seed: Option<u64>,
    /// What it belongs together with.
    pub group: Option<String>,
    /// Who launched it.
    pub agent: Option<String>,
    /// In the words of job_status; `not_started` when the launch failed, `unknown` when no end was seen
    /// and nobody follows it now.
    pub state: String,
    /// How that is known.
    pub state_told: String,
    /// The last iteration as the log prints it.
    pub iteration: Option<u64>,
    /// How many there were to be.
    pub total_iterations: Option<u64>,
    /// The last mean reward.
    pub reward: Option<f64>,
    /// Whether that is what the recipe expects.
    pub reward_reached: Option<bool>,
    /// What the job cost.
    pub usd: Option<Usd>,
    /// That over the iterations that it has done.
    pub usd_per_iteration: Option<Usd>,
    /// The GPUs, such as `1 x NVIDIA GeForce RTX 4090`.
    pub gpu: Option<String>,
    /// When it was launched.
    pub launched_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// SHA-256 of its record as this project wrote it last; null when it never did.
    #[serde(skip)]
    pub noted_sha256: Option<String>,
    /// Where it comes from.
    #[serde(skip)]
    pub provenance: BTreeMap<String, Value>,
    /// Its record; none when only the journal tells of it.
    #[serde(skip)]
    pub record: Option<RunRecord>,
}

/// What a supervise's summary tells of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SummarySeen {
    /// The job's last known state.
    pub state: Option<String>,
    /// The last numbers in its log.
    pub metrics: Option<Numbers>,
    /// When the summary was written last.
    pub at: Option<DateTime<Utc>>,
    /// Whether the process that wrote it lives; `None` when nobody can tell.
    pub lives: Option<bool>,
}

/// What lies around a run beside its record and the journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Around {
    /// The summary of the supervise that followed it.
    pub summary: Option<SummarySeen>,
    /// The exit code that came home with the job's folder.
    pub exit: Option<ExitSeen>,
}

/// An exit code that came home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitSeen {
    /// The code.
    pub code: i32,
    /// Whether the ceiling struck: a job's own 124 is its own.
    pub ceiling_struck: bool,
    /// When the pod wrote it.
    pub at: Option<DateTime<Utc>>,
}

impl ExitSeen {
    /// The word of job_status for it.
    #[must_use]
    pub const fn state(&self) -> &'static str {
        match (self.code, self.ceiling_struck) {
            (0, _) => "succeeded",
            (124, true) => "timed_out",
            _ => "failed",
        }
    }
}

/// One run; `None` when neither record nor journal knows it.
#[must_use]
pub fn merge(record: Option<RunRecord>, launch: Option<&Launch>, around: &Around) -> Option<Run> {
    let provenance = match (&record, launch) {
        (Some(record), _) => record.provenance.clone(),
        (None, Some(launch)) => launch.provenance.clone(),
        (None, None) => return None,
    };
    let known = |of_record: Option<String>, of_launch: Option<String>| of_record.or(of_launch);
    let text = |value: &Value, key: &str| value[key].as_str().map(str::to_owned);
    let job_id =
        known(record.as_ref().map(|it| it.job_id.clone()), launch.map(|it| it.job.clone()))?;
    let launched_at = record.as_ref().map(|it| it.launched_at).or(launch.map(|it| it.at))?;
    let (state, state_told) = state(record.as_ref(), launch, around);
    let ended_at = match &state[..] {
        "unknown" | "not_started" | "starting" | "running" => None,
        _ => ended_at(record.as_ref(), launch, around),
    };
    let metrics = record.as_ref().and_then(|it| it.metrics.clone());
    let metrics = metrics.or_else(|| around.summary.as_ref()?.metrics.clone());
    let rate = launch.and_then(|it| it.rate);
    let usd = record.as_ref().and_then(|it| Some(it.cost.as_ref()?.usd())).or_else(|| {
        let rate = record.as_ref().and_then(|it| it.micros_per_hour.map(Usd::from_micros)).or(rate);
        let time = (ended_at? - launched_at).to_std().unwrap_or_default();
        Some(UsdPerHour::new(rate?).cost_of(time))
    });
    let done = record.as_ref().and_then(|it| it.iterations_done);
    let done = done.or_else(|| metrics.as_ref().map(iterations_done));
    let training = &provenance.get("training").cloned().unwrap_or_default();
    let label = |key: &str| provenance.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(Run {
        vehicle: known(
            record.as_ref().map(|it| it.vehicle.clone()),
            launch.map(|it| it.vehicle.clone()),
        )?,
        job_id,
        training: text(training, "name"),
        level: text(training, "level"),
        seed: training["seed"].as_u64(),
        group: label("group"),
        agent: label("agent"),
        gpu: label("gpu"),
        state,
        state_told,
        iteration: metrics.as_ref().map(|it| it.iteration),
        total_iterations: metrics.as_ref().and_then(|it| it.total_iterations),
        reward: metrics.as_ref().and_then(|it| it.mean_reward),
        reward_reached: record
            .as_ref()
            .and_then(|it| it.results.as_ref()?.reward.as_ref()?.reached),
        usd,
        usd_per_iteration: usd.zip(done).and_then(|(usd, done)| each(usd, done)),
        launched_at,
        ended_at,
        noted_sha256: launch.and_then(|it| it.record.clone()),
        provenance,
        record,
    })
}

/// How many iterations are done by the last numbers: most logs count from 0, and none has more than
/// there were to be.
#[must_use]
pub fn iterations_done(numbers: &Numbers) -> u64 {
    let done = numbers.iteration.saturating_add(1);
    numbers.total_iterations.map_or(done, |total| done.min(total.max(1)))
}

/// A part of an amount, rounded up to the micro-dollar.
fn each(usd: Usd, parts: u64) -> Option<Usd> {
    let parts = i64::try_from(parts).ok().filter(|parts| *parts > 0)?;
    let micros = usd.micros();
    Some(Usd::from_micros(micros / parts + i64::from(micros % parts > 0)))
}

fn clock(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M UTC").to_string()
}

fn state(record: Option<&RunRecord>, launch: Option<&Launch>, around: &Around) -> (String, String) {
    let seen = record.and_then(|it| it.seen.as_ref());
    if let Some(seen) = seen.filter(|seen| is_end(&seen.state)) {
        return (seen.state.clone(), format!("seen at {}", clock(seen.at)));
    }
    if let Some((at, state)) = launch.and_then(|it| it.ended.as_ref()) {
        return (state.clone(), format!("by the journal, seen at {}", clock(*at)));
    }
    if let Some(exit) = around.exit {
        let told = format!("by its exit code {}, which is home", exit.code);
        return (exit.state().to_owned(), told);
    }
    let summary = around.summary.as_ref();
    let of_summary = summary.and_then(|it| it.state.clone());
    if let Some(state) = of_summary.clone().filter(|state| is_end(state)) {
        return (state, "by the summary of the supervise that followed it".to_owned());
    }
    if let Some(LaunchOutcome::Failed(error)) = launch.map(|it| &it.outcome) {
        let first = error.lines().next().unwrap_or_default();
        return ("not_started".to_owned(), format!("the launch failed: {first}"));
    }
    let last = match (of_summary, seen) {
        (Some(state), _) => {
            let at = summary.and_then(|it| it.at).map(clock);
            format!("last seen {state} at {}", at.unwrap_or_else(|| "a time not known".to_owned()))
        }
        (None, Some(seen)) => format!("last seen {} at {}", seen.state, clock(seen.at)),
        (None, None) => "nobody has looked since its launch".to_owned(),
    };
    if let Some(off) = launch.and_then(|it| it.pod_off) {
        let told =
            format!("{last}; its pod was off the bill by {} and no end was seen", clock(off));
        return ("unknown".to_owned(), told);
    }
    match summary.and_then(|it| it.lives) {
        Some(true) => {
            let state =
                summary.and_then(|it| it.state.clone()).unwrap_or_else(|| "starting".into());
            (state, format!("a supervise follows it now; {last}"))
        }
        Some(false) => {
            ("unknown".to_owned(), format!("{last}; the supervise that followed it is gone"))
        }
        None => ("unknown".to_owned(), format!("{last}; job_status tells more while its pod runs")),
    }
}

fn ended_at(
    record: Option<&RunRecord>,
    launch: Option<&Launch>,
    around: &Around,
) -> Option<DateTime<Utc>> {
    record
        .and_then(|it| it.ended_at)
        .or_else(|| around.exit.and_then(|exit| exit.at))
        .or_else(|| launch.and_then(|it| it.ended.as_ref()).map(|(at, _)| *at))
}

#[cfg(test)]
mod tests {
    use super::super::record::Seen;
    use super::super::sample;
    use super::*;

    fn around(state: Option<&str>, lives: Option<bool>) -> Around {
        let summary = SummarySeen {
            state: state.map(str::to_owned),
            lives,
            at: Some(DateTime::UNIX_EPOCH),
            metrics: None,
        };
        Around { summary: Some(summary), exit: None }
    }

    #[test]
    fn a_run_whose_supervisor_died_is_unknown_and_as_last_seen() {
        let record = || Some(sample::record("20260703-132525_train_00ab"));
        let of = |around: &Around| merge(record(), None, around).unwrap();
        let dead = of(&around(Some("running"), Some(false)));
        assert_eq!(dead.state, "unknown");
        assert!(dead.state_told.contains("last seen running") && dead.state_told.contains("gone"));
        assert_eq!(of(&around(Some("running"), Some(true))).state, "running");
        assert_eq!(of(&around(Some("failed"), Some(false))).state, "failed");
        assert!(of(&Around::default()).state_told.contains("nobody has looked"));
        // What came home knows better than who died.
        let exit = ExitSeen { code: 124, ceiling_struck: true, at: None };
        let home = Around { exit: Some(exit), ..around(Some("running"), Some(false)) };
        assert_eq!(of(&home).state, "timed_out");
        let own = ExitSeen { ceiling_struck: false, ..exit };
        assert_eq!(of(&Around { exit: Some(own), ..home }).state, "failed");
        assert_eq!(merge(None, None, &Around::default()), None);
    }

    #[test]
    fn money_is_shared_over_the_iterations_that_were_done_and_rounded_up() {
        let mut record = sample::record("20260703-132525_train_00ab");
        record.seen =
            Some(Seen { state: "succeeded".into(), exit_code: Some(0), at: record.launched_at });
        record.ended_at = Some(record.launched_at + chrono::TimeDelta::seconds(3600));
        record.metrics =
            Some(Numbers { iteration: 399, total_iterations: Some(400), mean_reward: Some(97.0) });
        let run = merge(Some(record.clone()), None, &Around::default()).unwrap();
        assert_eq!(run.usd, Some(Usd::from_micros(690_000)));
        assert_eq!(run.usd_per_iteration, Some(Usd::from_micros(1_725)));
        assert_eq!((run.training.as_deref(), run.seed), (Some("curee"), Some(1)));
        // Of a log that counts from 1.
        let last = Numbers { iteration: 400, total_iterations: Some(400), mean_reward: None };
        assert_eq!(iterations_done(&last), 400);
    }

    #[test]
    fn the_journal_alone_tells_of_a_run_without_a_record() {
        let mut launch = sample::launch("20260703-132525_train_00ab");
        let of = |launch: &Launch| merge(None, Some(launch), &Around::default()).unwrap();
        assert_eq!((of(&launch).state.as_str(), of(&launch).usd), ("unknown", None));
        launch.pod_off = Some(launch.at);
        assert!(of(&launch).state_told.contains("off the bill"));
        launch.outcome = LaunchOutcome::Failed("no folder\nmore".into());
        assert_eq!(of(&launch).state, "not_started");
        let end = launch.at + chrono::TimeDelta::seconds(1800);
        launch.ended = Some((end, "succeeded".into()));
        let run = of(&launch);
        assert_eq!((run.state.as_str(), run.ended_at), ("succeeded", Some(end)));
        assert_eq!(run.usd, Some(Usd::from_micros(345_000)));
    }
}
