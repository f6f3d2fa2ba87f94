//! A line of the journal: `<16 hex> <json>`, where the hex digits are the start of the SHA-256 over
//! the digits of the line before and the JSON. A line that was changed, lost or cut is noticed.

use super::entry::Entry;
use crate::digest::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The version that is written. A reader refuses a higher one and reads every lower one.
pub const VERSION: u32 = 1;

/// The sum before the first line.
pub const FIRST: &str = "0000000000000000";

#[derive(Serialize, Deserialize)]
struct Body {
    v: u32,
    #[serde(flatten)]
    entry: Entry,
}

/// Why a line cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineFault {
    /// Its sum does not fit, or it is no line at all.
    Broken,
    /// A later version wrote it.
    Newer(u32),
}

/// Writes one line, without its end, and its sum.
///
/// # Errors
/// When the entry cannot be put into JSON.
pub fn write(before: &str, entry: &Entry) -> Result<(String, String), serde_json::Error> {
    let json = serde_json::to_string(&Body { v: VERSION, entry: entry.clone() })?;
    let sum = sum(before, &json);
    Ok((format!("{sum} {json}"), sum))
}

/// Reads one line; also returns its sum, for the line after it.
///
/// # Errors
/// [`LineFault`].
pub fn read(before: &str, line: &str) -> Result<(Entry, String), LineFault> {
    let (given, json) = line.split_once(' ').ok_or(LineFault::Broken)?;
    let value: serde_json::Value = serde_json::from_str(json).map_err(|_| LineFault::Broken)?;
    // Before the sum, which a newer version may make in another way.
    match value.get("v").and_then(serde_json::Value::as_u64).map(u32::try_from) {
        Some(Ok(version)) if version > VERSION => return Err(LineFault::Newer(version)),
        Some(Ok(_)) => {}
        Some(Err(_)) | None => return Err(LineFault::Broken),
    }
    let sum = sum(before, json);
    if given != sum {
        return Err(LineFault::Broken);
    }
    let body: Body = serde_json::from_value(value).map_err(|_| LineFault::Broken)?;
    Ok((body.entry, sum))
}

fn sum(before: &str, json: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(before.as_bytes());
    digest.update(json.as_bytes());
    hex(&digest.finalize()[..8])
}
