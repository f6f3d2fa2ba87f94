//! From the tree to checked values: unknown and repeated keys, values that will not do.

use super::error::{Problems, nearest};
use super::keys::{Key, Kind, Unit};
use super::node_text::{Wrong, shown, text_of};
use super::yaml::{self, Node};
use super::{FuseHours, composite, keys};
use crate::domain::Usd;
use std::collections::BTreeMap;
use std::time::Duration;

/// A value that passed its check.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Texts(Vec<String>),
    /// As written, not expanded.
    Path(String),
    Whole(u32),
    Money(Usd),
    FuseHours(FuseHours),
    Tolerated(Vec<String>),
    /// Lowest and highest, as written.
    Range(String, String),
    Items(Vec<Node>),
    Mapping(Node),
}

/// A checked value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub line: u64,
    /// The key's full path.
    pub path: String,
    pub value: Value,
}

/// The checked keys of one mapping, nested ones under their dotted names.
#[derive(Clone, Debug, Default)]
pub(super) struct Section {
    pub line: u64,
    entries: BTreeMap<&'static str, Entry>,
    /// Keys that were given but did not pass; they are not missing.
    failed: Vec<&'static str>,
}

impl Section {
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    pub fn was_given(&self, name: &str) -> bool {
        self.entries.contains_key(name) || self.failed.contains(&name)
    }
}

/// Reads a mapping with the given keys; `path` is its own key path, empty for the file.
pub(super) fn section(
    node: &Node,
    path: &str,
    known: &[&'static Key],
    problems: &mut Problems,
) -> Section {
    let mut section = Section { line: node.at.line, ..Section::default() };
    level(node, path, "", known, problems, &mut section);
    section
}

fn level(
    node: &Node,
    path: &str,
    prefix: &str,
    known: &[&'static Key],
    problems: &mut Problems,
    section: &mut Section,
) {
    let Some(pairs) = mapping(node, path, problems) else { return };
    for (name, value) in pairs {
        let here = join(path, &name.name);
        let dotted = format!("{prefix}{}", name.name);
        let inside = format!("{dotted}.");
        if let Some(key) = known.iter().find(|key| key.name == dotted) {
            match check(value, key) {
                Ok(checked) => {
                    let entry = Entry { line: name.at.line, path: here, value: checked };
                    section.entries.insert(key.name, entry);
                }
                Err(wrong) => {
                    section.failed.push(key.name);
                    for (suffix, line, what, fix) in wrong {
                        problems.add(line, format!("{here}{suffix}"), what, fix);
                    }
                }
            }
        } else if known.iter().any(|key| key.name.starts_with(&inside)) {
            level(value, &here, &inside, known, problems, section);
        } else {
            let fix = instead_of(&name.name, prefix, known);
            problems.add(name.at.line, here, "unknown key", fix);
        }
    }
}

/// The pairs of a mapping; a repeated key is a problem and only its first value counts.
pub(super) fn mapping<'a>(
    node: &'a Node,
    path: &str,
    problems: &mut Problems,
) -> Option<Vec<(&'a yaml::Key, &'a Node)>> {
    let yaml::Value::Map(pairs) = &node.value else {
        let what = match node.value {
            yaml::Value::Null => "has no value".to_owned(),
            _ => format!("{} is not a mapping", shown(node)),
        };
        let key = if path.is_empty() { "the file" } else { path };
        problems.add(node.at.line, key, what, "write `key: value` lines under it, or leave it out");
        return None;
    };
    let mut first: Vec<(&yaml::Key, &Node)> = Vec::new();
    for (key, value) in pairs {
        match first.iter().find(|(other, _)| other.name == key.name) {
            Some((other, _)) => problems.add(
                key.at.line,
                join(path, &key.name),
                format!("given twice, first on line {}", other.at.line),
                "keep one of them",
            ),
            None => first.push((key, value)),
        }
    }
    Some(first)
}

pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// What to write instead of an unknown key. Its value is never shown: it may be a key that
/// somebody put in the wrong place.
fn instead_of(name: &str, prefix: &str, known: &[&'static Key]) -> String {
    let folded = name.to_ascii_lowercase();
    if ["api_key", "apikey", "token", "secret", "password"].iter().any(|word| folded.contains(word))
    {
        return "secrets are never kept in this file; use the keychain or RUNPOD_API_KEY"
            .to_owned();
    }
    if prefix == "notify." && ["url", "address", "topic"].iter().any(|word| folded.contains(word)) {
        return super::notify::WHERE_THE_ADDRESS_GOES.to_owned();
    }
    let last = |key: &Key| key.name.rsplit('.').next().unwrap_or(key.name) == name;
    if let Some(key) = known.iter().find(|key| last(key)) {
        return match key.name.rsplit_once('.') {
            Some((group, _)) => format!("it belongs under {group}"),
            None => format!("it belongs one level up, beside {}", prefix.trim_end_matches('.')),
        };
    }
    if keys::OWN.iter().any(last) {
        return "it belongs inside each vehicle, under vehicles".to_owned();
    }
    if keys::TOP.iter().any(last) {
        return match keys::TOP
            .iter()
            .find(|key| last(key))
            .and_then(|key| key.name.rsplit_once('.'))
        {
            Some((group, _)) => {
                format!("it holds for all vehicles; put it under {group} at the top")
            }
            None => "it holds for all vehicles; put it at the top".to_owned(),
        };
    }
    let mut here: Vec<&str> = known
        .iter()
        .filter_map(|key| key.name.strip_prefix(prefix))
        .map(|rest| rest.split('.').next().unwrap_or(rest))
        .collect();
    here.dedup();
    nearest(name, here)
}

fn check(node: &Node, key: &Key) -> Result<Value, Wrong> {
    let wrong = |what: String, fix: String| vec![(String::new(), node.at.line, what, fix)];
    if node.value == yaml::Value::Null {
        return Err(wrong("has no value".to_owned(), would_do(key)));
    }
    let unfit = |why: &str| {
        Err(wrong(format!("{} {why}", shown(node)), format!("write for example {}", key.example)))
    };
    match key.kind {
        Kind::Text(check) => match text_of(node) {
            Some(text) => match check(text) {
                Ok(()) => Ok(Value::Text(text.to_owned())),
                Err(fault) => Err(wrong(format!("{} {}", shown(node), fault.why), fault.fix)),
            },
            None => unfit("is not a text"),
        },
        Kind::Path => match text_of(node) {
            Some(text) if !text.trim().is_empty() && !text.contains('\0') => {
                Ok(Value::Path(text.to_owned()))
            }
            _ => unfit("is not a path"),
        },
        Kind::Texts(check) => composite::texts(node, key, check).map(Value::Texts),
        Kind::Whole { unit, min, max } => whole(node, unit, min, max, key)
            .map_err(|(what, fix)| wrong(what, fix))
            .map(Value::Whole),
        Kind::Money => {
            let usd = match node.value {
                // The text goes to integer micro-dollars; no float ever holds it.
                yaml::Value::Number => Usd::from_decimal(&node.source).ok(),
                _ => None,
            };
            match usd {
                Some(usd) if usd > Usd::ZERO => Ok(Value::Money(usd)),
                _ => unfit("is not a positive number of US dollars"),
            }
        }
        Kind::FuseHours => fuse_hours(node).map(Value::FuseHours).ok_or_else(|| {
            let what = format!("{} is not a number of hours above 0 and up to 168", shown(node));
            wrong(what, format!("write hours such as {}, or off", key.example))
        }),
        Kind::Strangers => strangers(node),
        Kind::Words => composite::words(node, key).map(Value::Texts),
        Kind::Range => match composite::range(node) {
            Some((low, high)) => Ok(Value::Range(low, high)),
            None => unfit("is not two numbers, the lower one first"),
        },
        Kind::RangeOr(word) => match (composite::range(node), text_of(node)) {
            (Some((low, high)), _) => Ok(Value::Range(low, high)),
            (None, Some(text)) if text == word => Ok(Value::Text(text.to_owned())),
            _ => unfit(&format!("is neither two numbers, the lower one first, nor {word}")),
        },
        Kind::Items(_) => match &node.value {
            yaml::Value::List(items) => Ok(Value::Items(items.clone())),
            _ => unfit("is not a list"),
        },
        Kind::Named(_) | Kind::Mapping => match node.value {
            yaml::Value::Map(_) => Ok(Value::Mapping(node.clone())),
            _ => unfit("is not a mapping"),
        },
    }
}

/// An example, and the default where there is one.
fn would_do(key: &Key) -> String {
    let required = key.name == "vehicles"
        || key.name == "vehicle"
        || [keys::OWN, keys::EDIT, keys::CHECK]
            .into_iter()
            .flatten()
            .any(|own| own.name == key.name && !["pattern", "same_as"].contains(&own.name));
    let or_default = if required { "" } else { ", or leave the key out" };
    format!("write for example {}{or_default}", key.example)
}

fn whole(node: &Node, unit: Unit, min: u32, max: u32, key: &Key) -> Result<u32, (String, String)> {
    let of_unit = match unit {
        Unit::Count => "",
        Unit::Seconds => " of seconds",
        Unit::Minutes => " of minutes",
        Unit::Gigabytes => " of GB",
    };
    let what = format!("{} is not a whole number{of_unit} from {min} to {max}", shown(node));
    let inside = |number: u64| u32::try_from(number).ok().filter(|n| (min..=max).contains(n));
    let digits = !node.source.is_empty() && node.source.bytes().all(|b| b.is_ascii_digit());
    if node.value == yaml::Value::Number && digits {
        // A leading zero is octal to one YAML and decimal to the next.
        let plain = node.source == "0" || !node.source.starts_with('0');
        if let Some(number) = node.source.parse().ok().and_then(inside).filter(|_| plain) {
            return Ok(number);
        }
    }
    let meant = text_of(node).and_then(|text| converted(text, unit)).and_then(inside);
    let fix = match meant {
        Some(number) => format!("write {number}"),
        None => would_do(key),
    };
    Err((what, fix))
}

/// What somebody meant by `60min` where seconds are asked for. Only for the advice.
fn converted(text: &str, unit: Unit) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase().replace('_', "");
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split].parse().ok()?;
    let factor_sec = match text[split..].trim() {
        "" => return Some(number),
        "s" | "sec" | "secs" | "second" | "seconds" => 1,
        "m" | "min" | "mins" | "minute" | "minutes" => 60,
        "h" | "hr" | "hour" | "hours" => 3_600,
        "d" | "day" | "days" => 86_400,
        "g" | "gb" | "gib" if unit == Unit::Gigabytes => return Some(number),
        "t" | "tb" | "tib" if unit == Unit::Gigabytes => return number.checked_mul(1_000),
        _ => return None,
    };
    let seconds = number.checked_mul(factor_sec)?;
    match unit {
        Unit::Seconds => Some(seconds),
        Unit::Minutes => (seconds % 60 == 0).then_some(seconds / 60),
        Unit::Count | Unit::Gigabytes => None,
    }
}

fn fuse_hours(node: &Node) -> Option<FuseHours> {
    match &node.value {
        yaml::Value::Text(text) if text == "off" => Some(FuseHours::Off),
        yaml::Value::Number => {
            let hours: f64 = node.source.parse().ok()?;
            let sane = hours.is_finite() && hours > 0.0 && hours <= 168.0;
            // Rounded up to the millisecond, so that a tiny number is not "no time at all".
            let time =
                sane.then(|| Duration::from_secs_f64((hours * 3_600_000.0).ceil() / 1_000.0))?;
            Some(FuseHours::After(time))
        }
        _ => None,
    }
}

fn strangers(node: &Node) -> Result<Value, Wrong> {
    if text_of(node) == Some("refuse") {
        return Ok(Value::Tolerated(Vec::new()));
    }
    let fix = "write refuse, or {tolerate: [name of a pod]}".to_owned();
    if !matches!(node.value, yaml::Value::Map(_)) {
        let what = format!("{} is not a way to treat strangers", shown(node));
        return Err(vec![(String::new(), node.at.line, what, fix)]);
    }
    let known: Vec<&'static Key> = keys::STRANGERS.iter().collect();
    let mut problems = Problems::default();
    let section = section(node, "", &known, &mut problems);
    match (problems.into_vec(), section.get("tolerate").map(|entry| &entry.value)) {
        (problems, Some(Value::Texts(names))) if problems.is_empty() => {
            Ok(Value::Tolerated(names.clone()))
        }
        (problems, _) if problems.is_empty() => {
            Err(vec![(String::new(), node.at.line, "has no key tolerate".to_owned(), fix)])
        }
        (problems, _) => Err(problems
            .into_iter()
            .map(|problem| (format!(".{}", problem.key), problem.line, problem.what, problem.fix))
            .collect()),
    }
}
