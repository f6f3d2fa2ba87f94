//! `podtether watch --replay FILE`: the verdicts over a finished log, for people or as JSON.

use super::watch::WatchArgs;
use super::{open, print};
use crate::domain::UsdPerHour;
use crate::error::Failure;
use crate::watch::replay::{Replay, ReplayOptions, Replaying, WouldPage};
use chrono::TimeDelta;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Judges the log: 0 when it was read, 2 when it could not be.
pub fn run(args: &WatchArgs) -> u8 {
    let Some(path) = &args.replay else { return 2 };
    match replay(args, path) {
        Ok(replay) if args.json => {
            print::data(&serde_json::to_string(&replay).unwrap_or_default());
            0
        }
        Ok(replay) => {
            lines(&replay).iter().for_each(|line| print::data(line));
            0
        }
        Err(failure) => open::failed(&failure, args.json),
    }
}

fn replay(args: &WatchArgs, path: &Path) -> Result<Replay, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::bad_input(format!("the log {} cannot be read: {error}", path.display()))
    };
    let options = ReplayOptions {
        plateau: args.plateau(),
        stall: TimeDelta::seconds(i64::try_from(args.stall_sec).unwrap_or(i64::MAX / 1000)),
        rate: args.usd_per_hour.map(UsdPerHour::new),
    };
    let mut replaying = Replaying::new(args.form()?.reading(), options);
    let mut file = File::open(path).map_err(unreadable)?;
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece).map_err(unreadable)? {
            0 => return Ok(replaying.end()),
            length => replaying.push(&piece[..length]),
        }
    }
}

fn lines(replay: &Replay) -> Vec<String> {
    let family = serde_json::to_value(replay.family).unwrap_or_default();
    let mut head = vec![
        family.as_str().map_or("no family known".to_owned(), |family| format!("family {family}")),
        format!("{} blocks", replay.blocks),
    ];
    if let Some(at) = replay.position {
        let total = at.total.map_or_else(String::new, |total| format!("/{total}"));
        head.push(format!("iteration {}{total}", at.iteration));
    }
    head.extend(replay.mean_reward.map(|reward| format!("reward {reward}")));
    head.extend(replay.took_sec.map(|sec| format!("{sec} s")));
    head.push(if replay.finished { "finished" } else { "not finished" }.to_owned());
    let mut lines = vec![head.join(", ")];
    if replay.blocks == 0 {
        lines.push(
            "nothing in it was read as numbers, so neither a plateau nor divergence would be seen: --family or --metrics-pattern names its form"
                .to_owned(),
        );
    }
    if replay.pages.is_empty() {
        lines.push("no page would have gone out".to_owned());
    }
    for (index, page) in replay.pages.iter().enumerate() {
        let word = if index == 0 { "would have paged" } else { "later" };
        lines.push(format!("{word}{}: {}", position(page), page.says));
        lines.push(format!("  a stop then would have saved {}", saved(page)));
    }
    lines
}

fn position(page: &WouldPage) -> String {
    let iteration = page.iteration.map_or_else(String::new, |at| format!(" at iteration {at}"));
    let time = page.at_sec.map_or_else(String::new, |sec| format!(" ({sec} s)"));
    format!("{iteration}{time}")
}

fn saved(page: &WouldPage) -> String {
    let saved = &page.saved;
    let mut parts: Vec<String> = Vec::new();
    parts.extend(saved.iterations.map(|count| format!("{count} iterations")));
    parts.extend(saved.sec.map(|sec| format!("{sec} s")));
    parts.extend(saved.usd.map(|usd| usd.to_string()));
    if parts.is_empty() {
        parts.push("nothing that the log shows".to_owned());
    }
    let to_come = saved.iterations_to_come.filter(|count| *count > 0);
    let to_come = to_come.map_or_else(String::new, |count| {
        format!(", and the {count} iterations that were still to come")
    });
    format!("{}{to_come}", parts.join(", "))
}
