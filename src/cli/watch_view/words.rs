//! The lines of the view of a watch: one thing each, the most important words first, because what does not
//! fit is cut at the right.

use super::model::Model;
use crate::domain::{FuseReport, FuseState, JobState};
use chrono::{DateTime, TimeDelta, Utc};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use std::time::Duration;

/// What the keys do.
pub(super) const KEYS: &str = "q leaves the watch; the job and the pod go on";

const fn good() -> Style {
    Style::new().fg(Color::Green)
}

const fn bad() -> Style {
    Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)
}

const fn doubtful() -> Style {
    Style::new().fg(Color::Yellow)
}

/// Whose watch it is.
pub(super) fn title(model: &Model) -> String {
    let cloud = if model.fixed.is_local { " · local cloud, $0" } else { "" };
    format!("podtether watch · {}{cloud}", model.fixed.vehicle)
}

/// The job and its state.
pub(super) fn job(model: &Model) -> Line<'static> {
    let id = model.status.as_ref().and_then(|status| status.job_id.clone());
    let state = model.sight.as_ref().map(|sight| sight.job);
    let style = match state {
        Some(JobState::Running | JobState::Succeeded) => good(),
        Some(JobState::Starting) => Style::new(),
        Some(JobState::Unknown) | None => doubtful(),
        Some(_) => bad(),
    };
    let word = state.map_or("not looked at yet", JobState::as_str);
    let code = model.status.as_ref().and_then(|status| status.exit_code_artifact);
    let code = code.map_or_else(String::new, |code| format!(", exit code {code}"));
    let id = id.unwrap_or_else(|| "looking for a live job".to_owned());
    Line::from(vec![
        Span::styled(format!("{word}{code}"), style),
        Span::raw(format!(" · job {id}")),
    ])
}

/// How far the run is, with a bar of `bar` cells, and what is left of it.
pub(super) fn progress(model: &Model, now: DateTime<Utc>, bar: usize) -> Line<'static> {
    let status = model.status.as_ref();
    let Some(at) = status.and_then(|status| status.iteration) else {
        return Line::styled("no numbers yet", faint());
    };
    let mut text = format!("iteration {at}");
    let total = status.and_then(|status| status.total_iterations).filter(|total| *total > 0);
    if let Some(total) = total {
        // Most families count from 0.
        let done = at.saturating_add(1).min(total);
        text.push_str(&format!("/{total} · {} %", done.saturating_mul(100) / total));
        let cells = u64::try_from(bar).unwrap_or(0).saturating_mul(done) / total;
        let cells = usize::try_from(cells).unwrap_or(bar).min(bar);
        if bar > 0 {
            text.push_str(&format!(" {}{}", "█".repeat(cells), "░".repeat(bar - cells)));
        }
    }
    if let Some((left, is_reckoned)) = model.left(now) {
        let about = if is_reckoned { "about " } else { "" };
        text.push_str(&format!(" · {about}{} left", clock(left)));
    }
    text.into()
}

/// The reward and which way it goes.
pub(super) fn reward(model: &Model) -> Line<'static> {
    let status = model.status.as_ref();
    let Some(reward) = status.and_then(|status| status.mean_reward) else {
        return "mean reward".into();
    };
    let trend = status.and_then(|status| Some((status.trend?, status.spec.plateau.window)));
    let trend = trend.map_or_else(String::new, |(trend, window)| {
        format!(" ({}{} over {window})", if trend < 0.0 { "" } else { "+" }, number(trend))
    });
    format!("mean reward {}{trend} ", number(reward)).into()
}

/// GPU and log, the two witnesses of a stall.
pub(super) fn witness(model: &Model, now: DateTime<Utc>) -> Line<'static> {
    let Some(pod) = model.pod() else { return "".into() };
    let gpu = match (pod.gpu_percent, pod.gpu_memory_mib) {
        (Some(percent), Some(mib)) => format!("GPU {percent} %, {} GB", gigabytes(mib)),
        (Some(percent), None) => format!("GPU {percent} %"),
        (None, _) => "GPU does not answer".to_owned(),
    };
    let stall = model.fixed.stall;
    let silent = model.silent(now);
    let (log, style) = match silent {
        None => ("no log yet".to_owned(), faint()),
        Some(silent) if silent >= stall => (format!("log SILENT for {}", clock(silent)), bad()),
        Some(silent) if silent >= stall / 2 => {
            (format!("log silent for {}", clock(silent)), doubtful())
        }
        Some(silent) => (format!("log {} old", clock(silent)), Style::new()),
    };
    let is_quiet = model.status.as_ref().is_some_and(|status| status.quiet);
    let quiet = if is_quiet { ", the GPU works: quiet, no stall" } else { "" };
    Line::from(vec![
        Span::raw(format!("{gpu} · ")),
        Span::styled(log, style),
        Span::styled(format!("{quiet} (stall at {})", clock(stall)), faint()),
    ])
}

/// What was spent, and what runs up.
pub(super) fn money(model: &Model, now: DateTime<Utc>) -> Line<'static> {
    let Some(pod) = model.pod() else { return "".into() };
    let rate = pod.rate.map_or_else(|| "price not known".to_owned(), |rate| rate.to_string());
    let text = match pod.cost(now) {
        Some(cost) => format!("{cost} since its start · {rate} · pod {}", pod.id),
        None => format!("{rate} · pod {}", pod.id),
    };
    text.into()
}

/// What stops the pod and by when, the soonest first; then what does not.
pub(super) fn fuses(model: &Model, now: DateTime<Utc>) -> Vec<Line<'static>> {
    let Some(sight) = &model.sight else { return vec![Line::default()] };
    let pod = &sight.pod;
    let mut bounded: Vec<(&FuseReport, DateTime<Utc>)> = Vec::new();
    for fuse in &pod.fuses {
        let within = fuse.stops_within_sec.and_then(|sec| i64::try_from(sec).ok());
        let by = within.and_then(TimeDelta::try_seconds);
        let by = by.and_then(|within| sight.at.checked_add_signed(within));
        if let Some(by) =
            by.filter(|_| matches!(fuse.state, FuseState::Armed | FuseState::Unproven))
        {
            bounded.push((fuse, by));
        }
    }
    bounded.sort_by_key(|(fuse, by)| (fuse.state != FuseState::Armed, *by));
    let mut lines: Vec<Line<'static>> = bounded
        .iter()
        .map(|(fuse, by)| {
            let left = (*by - now).to_std().unwrap_or_default();
            let cost =
                pod.rate.map_or_else(String::new, |rate| format!(", {}", rate.cost_of(left)));
            let (word, style) = match fuse.state {
                FuseState::Armed => ("armed", good()),
                _ => ("UNPROVEN", doubtful()),
            };
            Line::from(vec![
                Span::raw(format!("{} ", fuse.name.as_str())),
                Span::styled(word, style),
                Span::raw(format!(": off within {}{cost}, {}", clock(left), hour(*by))),
            ])
        })
        .collect();
    if !bounded.iter().any(|(fuse, _)| fuse.state == FuseState::Armed) {
        lines.insert(0, Line::styled("NO PROVEN FUSE STOPS THIS POD BY ITSELF", bad()));
    }
    let dead = pod.fuses.iter().filter(|fuse| fuse.state == FuseState::Dead);
    lines.extend(
        dead.map(|fuse| {
            Line::styled(format!("{} is DEAD: {}", fuse.name.as_str(), fuse.why), bad())
        }),
    );
    lines
}

/// The page, a suspicion, or what was said last.
pub(super) fn said(model: &Model) -> Line<'static> {
    if let Some(page) = &model.page {
        return Line::styled(format!("PAGE: {page}"), bad());
    }
    let finding = model.status.as_ref().and_then(|status| status.failure_detected.as_ref());
    if let Some(finding) = finding {
        let text = format!("suspicion ({}): {}", finding.cause, finding.evidence);
        return Line::styled(plain(&text), doubtful());
    }
    match &model.said {
        Some((at, text)) => {
            Line::styled(plain(&format!("{} {text}", at.format("%H:%M:%S"))), faint())
        }
        None => Line::default(),
    }
}

/// When the next look is due.
pub(super) fn next_look(model: &Model, now: DateTime<Utc>) -> String {
    match model.next_look(now) {
        Some(left) if left.is_zero() => "looking".to_owned(),
        Some(left) => format!("next look in {} s", left.as_secs()),
        None => "looking".to_owned(),
    }
}

/// Words of others, on one line and without what moves a cursor.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A number with as many places as tell something.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 0.095 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.2e}"),
    }
}

fn gigabytes(mib: u64) -> String {
    let tenths = mib.saturating_mul(10) / 1024;
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn hour(at: DateTime<Utc>) -> String {
    at.format("%H:%M:%S UTC").to_string()
}

/// `3 s`, `4:05`, `2:03:04`.
fn clock(time: Duration) -> String {
    let sec = time.as_secs();
    match (sec / 3600, sec / 60 % 60, sec % 60) {
        (0, 0, sec) => format!("{sec} s"),
        (0, min, sec) => format!("{min}:{sec:02}"),
        (hours, min, sec) => format!("{hours}:{min:02}:{sec:02}"),
    }
}

/// What matters less.
pub(super) const fn faint() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}
