//! Runs as lines for people. Names and numbers come from files that a pod may have written, so nothing of
//! them reaches a terminal but what can be seen.

use crate::domain::Usd;
use crate::ops::RunShown;
use crate::runs::{Comparison, Difference, Results, Run, RunRecord};
use serde_json::Value;

/// A text on one line that can do nothing to a terminal: control characters, and those that turn the
/// direction of writing or have no width (Unicode Bidirectional Algorithm, UAX #9, section 2), go.
fn plain(text: &str) -> String {
    let is_trick = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    let shown = text.chars().filter(|c| !is_trick(*c));
    shown.map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn dollars(usd: Option<Usd>) -> String {
    or_dash(usd.map(|usd| format!("${}", usd.to_decimal())))
}

fn what(run: &Run) -> String {
    match &run.training {
        None => "-".to_owned(),
        Some(training) => {
            let level = run.level.as_deref().unwrap_or("none");
            format!("{training}/{level}/s{}", or_dash(run.seed))
        }
    }
}

fn iteration(run: &Run) -> String {
    match (run.iteration, run.total_iterations) {
        (Some(at), Some(total)) => format!("{at}/{total}"),
        (at, _) => or_dash(at),
    }
}

/// A table: every column as wide as its widest word.
fn table(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let words = rows.iter().filter_map(|row| row.get(column));
        words.map(|word| word.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let words = row.iter().zip(&widths).map(|(word, width)| format!("{word:<width$}"));
        words.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// The list.
pub(super) fn list(runs: &[&Run]) -> Vec<String> {
    let head = ["JOB", "RUN", "STATE", "ITERATION", "REWARD", "DOLLARS", "$/ITERATION", "LAUNCHED"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(runs.iter().map(|run| {
        [
            run.job_id.clone(),
            what(run),
            run.state.clone(),
            iteration(run),
            or_dash(run.reward.map(|reward| format!("{reward:.2}"))),
            dollars(run.usd),
            dollars(run.usd_per_iteration),
            run.launched_at.format("%Y-%m-%d %H:%M UTC").to_string(),
        ]
        .iter()
        .map(|word| plain(word))
        .collect()
    }));
    table(&rows)
}

/// Everything about one run.
pub(super) fn show(shown: &RunShown) -> Vec<String> {
    let RunShown { run, provenance, record, record_is_as_written } = shown;
    let mut lines = vec![
        format!("{}  {}", run.job_id, what(run)),
        format!("state      {}: {}", run.state, run.state_told),
        format!("vehicle    {}", run.vehicle),
        format!("launched   {}", run.launched_at.format("%Y-%m-%d %H:%M:%S UTC")),
    ];
    if let Some(end) = run.ended_at {
        let time = (end - run.launched_at).num_seconds();
        lines.push(format!("ended      {} ({time} s)", end.format("%Y-%m-%d %H:%M:%S UTC")));
    }
    for (word, label) in [("group", &run.group), ("agent", &run.agent)] {
        lines.extend(label.as_ref().map(|label| format!("{word:<10} {label}")));
    }
    let reward = or_dash(run.reward.map(|reward| format!("{reward:.2}")));
    lines.push(format!("numbers    iteration {}, reward {reward}", iteration(run)));
    lines.push(format!(
        "dollars    {}, {} an iteration",
        dollars(run.usd),
        dollars(run.usd_per_iteration)
    ));
    match record {
        Some(record) => of_record(record, &mut lines),
        None => lines.push("record     none here; the journal alone tells of it".to_owned()),
    }
    if *record_is_as_written == Some(false) {
        lines.push("note       the record is not as the journal noted it: somebody changed the file, or a write was cut off".to_owned());
    }
    lines.push("origin".to_owned());
    for (key, value) in provenance {
        origin(key, value, &mut lines);
    }
    lines.iter().map(|line| plain(line)).collect()
}

fn of_record(record: &RunRecord, lines: &mut Vec<String>) {
    if let Some(cost) = &record.cost {
        lines.push(format!("           {}", cost.covers));
    }
    lines.push(format!("command    {} (in {})", record.command, record.workdir));
    if let Some(seen) = &record.seen {
        lines.extend(seen.exit_code.map(|code| format!("exit code  {code}")));
    }
    if let Some(supervised) = &record.supervised {
        let stop = supervised.stop.as_deref().unwrap_or("no stop was read back");
        lines.push(format!("supervise  exit code {}; {stop}", supervised.exit_code));
        lines.extend(supervised.summary.iter().map(|path| format!("summary    {path}")));
    }
    for home in &record.home {
        let whole = if home.complete { "complete" } else { "INCOMPLETE" };
        lines.push(format!("home       {} from {}, {whole}", home.to, home.from));
    }
    if record.home.is_empty() {
        lines.push("home       nothing yet; sync_logs brings it".to_owned());
    }
    if let Some(results) = &record.results {
        of_results(results, lines);
    }
}

fn of_results(results: &Results, lines: &mut Vec<String>) {
    lines.extend(results.told.iter().map(|told| format!("run        {told}")));
    for file in &results.files {
        let hash = file.sha256.as_deref().unwrap_or("not compared by a pull yet");
        lines.push(format!("file       {} {} bytes {hash}", file.name, file.bytes));
    }
}

fn origin(path: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (key, value) in fields {
                origin(&format!("{path}.{key}"), value, lines);
            }
        }
        Value::String(text) => lines.push(format!("  {path} = {text}")),
        other => lines.push(format!("  {path} = {other}")),
    }
}

/// The longest value that a comparison shows in full, in characters.
const SHOWN: usize = 48;

/// What differs.
pub(super) fn comparison(found: &Comparison) -> Vec<String> {
    let mut head = vec![String::new()];
    head.extend(found.runs.iter().cloned());
    let mut lines = Vec::new();
    for (title, differences) in [("origin", &found.origin), ("outcome", &found.outcome)] {
        if differences.is_empty() {
            lines.push(format!("{title}: nothing that is known differs"));
            continue;
        }
        let mut rows = vec![head.clone()];
        rows[0][0] = title.to_owned();
        rows.extend(differences.iter().map(row));
        lines.extend(table(&rows));
    }
    lines.extend(files(&found.files));
    lines.push(format!("the same in all of them: {} of what is known", found.equal));
    lines
}

/// How many names stand in the line of files that differ.
const FILES: usize = 5;

/// Files of one name that are not the same, by their names alone: whoever wants the hashes asks for JSON.
fn files(differences: &[Difference]) -> Option<String> {
    let names: Vec<String> = differences.iter().take(FILES).map(|it| plain(&it.what)).collect();
    let more = match differences.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!names.is_empty()).then(|| {
        format!("files that differ: {}{more} (--json shows their SHA-256)", names.join(", "))
    })
}

fn row(difference: &Difference) -> Vec<String> {
    let cut = |text: &str| {
        let text = plain(text);
        if text.chars().count() <= SHOWN {
            return text;
        }
        let begin: String = text.chars().take(SHOWN - 1).collect();
        format!("{begin}…")
    };
    let values = difference.values.iter().map(|value| value.as_deref().map_or("-".to_owned(), cut));
    std::iter::once(plain(&difference.what)).chain(values).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_moves_a_cursor_and_columns_stay_in_line() {
        assert_eq!(plain("a\u{1b}[2J\nb\u{202e}c"), "a [2J bc");
        let rows = [["a", "bb"], ["ccc", "d"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), ["a    bb", "ccc  d"]);
        let long = Difference { what: "x".into(), values: vec![Some("y".repeat(60)), None] };
        assert_eq!(row(&long)[1].chars().count(), SHOWN);
        assert_eq!(row(&long)[2], "-");
        let six: Vec<Difference> =
            (0..6).map(|n| Difference { what: format!("model_{n}.pt"), values: vec![] }).collect();
        assert!(
            files(&six).unwrap().ends_with("model_4.pt and 1 more (--json shows their SHA-256)")
        );
        assert_eq!(files(&[]), None);
    }
}
