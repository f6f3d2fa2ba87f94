//! Writes a level's values into a source file: only the values on the active lines change, every other
//! byte stays as it was, whatever its line ends, indentation and comments.

use crate::digest::sha256_hex;
use crate::domain::{Level, Recipe, SourceEdit};

/// One line that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineChange {
    /// Its number, from 1.
    pub line: usize,
    /// The field.
    pub field: String,
    /// The line before, without its end.
    pub before: String,
    /// The line after.
    pub after: String,
}

/// A file with a level's values in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The whole file.
    pub text: String,
    /// The lines that differ; none when the level was there already.
    pub changes: Vec<LineChange>,
    /// The level that was found.
    pub found: String,
    /// SHA-256 of the file before.
    pub sha256_before: String,
    /// SHA-256 of the file after.
    pub sha256_after: String,
}

/// Why a file is not edited. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// It is no text.
    #[error("{file} is not UTF-8 text; restore it from the repository")]
    NotText {
        /// The file.
        file: String,
    },
    /// Not exactly one active line has a field.
    #[error(
        "{file} has {count} active lines with {field}{lines}, and exactly one is expected; restore the file from the repository, or mend edits in the recipe"
    )]
    NotOne {
        /// The file.
        file: String,
        /// The field.
        field: String,
        /// How many there are.
        count: usize,
        /// Where.
        lines: String,
    },
    /// What stands there is no level of this training.
    #[error(
        "{file} holds {found}, which is no level of training {training} (known: {known}); somebody edited it, or it belongs to another vehicle: restore the file, or add the level to the recipe"
    )]
    UnknownValues {
        /// The file.
        file: String,
        /// What was found, field by field with its line.
        found: String,
        /// The training.
        training: String,
        /// Its levels.
        known: String,
    },
}

/// Writes `level` into the bytes of `edit`'s file.
///
/// # Errors
/// [`EditError`], with what was found instead.
pub fn edited(
    bytes: &[u8],
    recipe: &Recipe,
    edit: &SourceEdit,
    level: &Level,
) -> Result<Edited, EditError> {
    let file = || edit.file.clone();
    let text = std::str::from_utf8(bytes).map_err(|_| EditError::NotText { file: file() })?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut places = Vec::new();
    for field in &edit.fields {
        let known: Vec<&str> = recipe
            .levels
            .iter()
            .filter_map(|level| level.values.get(field))
            .map(String::as_str)
            .collect();
        let found: Vec<Place<'_>> = lines
            .iter()
            .enumerate()
            .filter_map(|(at, line)| Place::of(at, line, edit, field, &known))
            .collect();
        match <[Place<'_>; 1]>::try_from(found) {
            Ok([place]) => places.push(place),
            Err(found) => {
                let at: Vec<String> =
                    found.iter().map(|place| (place.at + 1).to_string()).collect();
                let lines = if at.is_empty() {
                    String::new()
                } else {
                    format!(" (lines {})", at.join(", "))
                };
                let (field, count) = (field.clone(), found.len());
                return Err(EditError::NotOne { file: file(), field, count, lines });
            }
        }
    }
    let stands = |level: &&Level| {
        places.iter().all(|place| {
            place.is_known && level.values.get(place.field).is_some_and(|v| *v == place.value)
        })
    };
    let Some(found) = recipe.levels.iter().find(stands) else {
        let told = |place: &Place<'_>| {
            let value: String = place.value.chars().take(120).collect();
            format!("{} = {value} (line {})", place.field, place.at + 1)
        };
        return Err(EditError::UnknownValues {
            file: file(),
            found: places.iter().map(told).collect::<Vec<_>>().join(" and "),
            training: recipe.name.clone(),
            known: recipe.levels.iter().map(|l| l.name.as_str()).collect::<Vec<_>>().join(", "),
        });
    };
    let mut new: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    let mut changes = Vec::new();
    for place in &places {
        let Some(value) = level.values.get(place.field).filter(|value| **value != place.value)
        else {
            continue;
        };
        let line = lines[place.at];
        let after = place.start + place.value.len();
        let written = format!("{}{value}{}", &line[..place.start], &line[after..]);
        let shown = |line: &str| line.trim_end_matches(['\n', '\r']).to_owned();
        changes.push(LineChange {
            line: place.at + 1,
            field: place.field.to_owned(),
            before: shown(line),
            after: shown(&written),
        });
        new[place.at] = written;
    }
    changes.sort_by_key(|change| change.line);
    let text = new.concat();
    Ok(Edited {
        sha256_before: sha256_hex(bytes),
        sha256_after: sha256_hex(text.as_bytes()),
        text,
        changes,
        found: found.name.clone(),
    })
}

/// The change as a diff without context.
#[must_use]
pub fn diff(file: &str, changes: &[LineChange]) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let mut text = format!("--- {file}\n+++ {file}\n");
    for LineChange { line, before, after, .. } in changes {
        text.push_str(&format!("@@ -{line} +{line} @@\n-{before}\n+{after}\n"));
    }
    text
}

/// Where a field's value stands.
struct Place<'a> {
    /// The line, from 0.
    at: usize,
    field: &'a str,
    /// Where the value begins in its line, in bytes.
    start: usize,
    value: &'a str,
    /// Whether it is a value of a level.
    is_known: bool,
}

impl<'a> Place<'a> {
    /// The field's value, when this is an active line with it. A commented line begins with something
    /// else than the name.
    fn of(
        at: usize,
        line: &'a str,
        edit: &SourceEdit,
        field: &'a str,
        known: &[&str],
    ) -> Option<Self> {
        let pattern = &edit.pattern;
        let content = line.trim_end_matches(['\n', '\r']);
        let rest = content.trim_start().strip_prefix(pattern.before.as_str())?.trim_start();
        let rest = rest.strip_prefix(field)?;
        let rest = match pattern.between.as_str() {
            " " => rest.strip_prefix([' ', '\t'])?,
            between => {
                let rest = rest.trim_start().strip_prefix(between)?;
                // `==` compares, and `::` is something else again.
                let last = between.chars().next_back()?;
                if rest.starts_with(last) {
                    return None;
                }
                rest
            }
        };
        let region = rest.trim_start();
        let start = content.len() - region.len();
        let longest = known
            .iter()
            .filter(|value| {
                region.strip_prefix(**value).is_some_and(|tail| ends(tail, &pattern.after))
            })
            .max_by_key(|value| value.len());
        let value = match longest {
            Some(value) => &region[..value.len()],
            None => unknown_value(region, &pattern.after),
        };
        Some(Self { at, field, start, value, is_known: longest.is_some() })
    }
}

/// What may follow a value: the pattern's own text, then nothing or a comment.
fn ends(tail: &str, after: &str) -> bool {
    let Some(tail) = tail.trim_start().strip_prefix(after) else { return false };
    let tail = tail.trim_start();
    tail.is_empty() || ["#", "//", ";"].iter().any(|mark| tail.starts_with(mark))
}

/// A value that is no level's, as far as it can be told from a comment.
fn unknown_value<'a>(region: &'a str, after: &str) -> &'a str {
    let end = [" #", "\t#", " //"].iter().filter_map(|mark| region.find(mark)).min();
    let value = region[..end.unwrap_or(region.len())].trim_end();
    value.strip_suffix(after).unwrap_or(value).trim_end()
}

#[cfg(test)]
mod tests;
