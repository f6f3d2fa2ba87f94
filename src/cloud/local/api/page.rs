//! Pages of a list: `limit` and `cursor`. The live API has had them since September 2026, its
//! published schema of August has not.

use super::super::faults::{REPEATED_CURSOR, SECOND_PAGE};
use super::super::problem::Problem;
use super::super::twin::Twin;
use super::call::Call;
use crate::digest::hex;
use serde_json::{Value, json};

/// A list longer than this comes in pages even when nobody asked for them.
const LARGEST_PAGE: usize = 100;

/// The page of `items` (each with its id) that `call` asks for, wrapped as `{name: […]}`.
pub fn page(
    twin: &Twin,
    call: &Call,
    name: &str,
    items: Vec<(String, Value)>,
) -> Result<Value, Problem> {
    if twin.faults().happens(REPEATED_CURSOR) {
        // B06: it goes round and round, wherever it is asked to go on.
        let all: Vec<Value> = items.into_iter().map(|(_, item)| item).collect();
        return Ok(json!({
            name: all,
            "pagination": {"hasNextPage": true, "nextCursor": "the same again"},
        }));
    }
    // B06: a list of one entry is whole; there is nothing to leave for a second page.
    let is_split = items.len() > 1 && twin.faults().happens(SECOND_PAGE);
    cut(call, name, items, if is_split { 1 } else { LARGEST_PAGE })
}

fn cut(
    call: &Call,
    name: &str,
    items: Vec<(String, Value)>,
    largest: usize,
) -> Result<Value, Problem> {
    let limit = match call.query("limit") {
        None => None,
        Some(text) => match text.parse::<usize>() {
            Ok(limit @ 1..=LARGEST_PAGE) => Some(limit),
            _ => {
                return Err(Problem::bad_request(format!("limit must be 1 to {LARGEST_PAGE}")));
            }
        },
    };
    let start = match call.query("cursor") {
        None => 0,
        // What the last item was is told by its id, so that a page does not shift when an earlier
        // item goes; one that went itself ends the walk with an error instead of a gap.
        Some(cursor) => items
            .iter()
            .position(|(id, _)| cursor_after(id) == cursor)
            .map(|position| position + 1)
            .ok_or_else(|| Problem::bad_request("cursor is not valid"))?,
    };
    if limit.is_none() && start == 0 && items.len() <= largest {
        let all: Vec<Value> = items.into_iter().map(|(_, item)| item).collect();
        return Ok(json!({ name: all }));
    }
    let rest = items.len() - start;
    let taken = rest.min(limit.unwrap_or(largest)).min(largest);
    let has_next = rest > taken;
    let shown: Vec<(String, Value)> = items.into_iter().skip(start).take(taken).collect();
    let mut pagination = json!({"hasNextPage": has_next});
    if let (true, Some((last, _)), Some(fields)) =
        (has_next, shown.last(), pagination.as_object_mut())
    {
        fields.insert("nextCursor".to_owned(), Value::String(cursor_after(last)));
    }
    let all: Vec<Value> = shown.into_iter().map(|(_, item)| item).collect();
    Ok(json!({ name: all, "pagination": pagination }))
}

fn cursor_after(id: &str) -> String {
    hex(id.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn call(query: &[(&str, &str)]) -> Call {
        let query: HashMap<String, String> =
            query.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Call {
            method: "GET".to_owned(),
            path: "/v2/pods".to_owned(),
            query,
            body: axum::body::Bytes::new(),
            bearer: None,
        }
    }

    /// B06: more than a hundred come in pages even when nobody asked.
    #[test]
    fn a_long_list_is_never_whole() {
        let items = || (0..150).map(|n| (format!("local{n}"), json!(n))).collect::<Vec<_>>();
        let first = cut(&call(&[]), "pods", items(), LARGEST_PAGE).unwrap();
        assert_eq!(first["pods"].as_array().unwrap().len(), 100);
        let cursor = first["pagination"]["nextCursor"].as_str().unwrap();
        let second = cut(&call(&[("cursor", cursor)]), "pods", items(), LARGEST_PAGE).unwrap();
        assert_eq!(second["pods"].as_array().unwrap().first(), Some(&json!(100)));
        assert_eq!(second["pods"].as_array().unwrap().len(), 50);
        assert_eq!(second["pagination"], json!({"hasNextPage": false}));
        assert!(cut(&call(&[("limit", "0")]), "pods", items(), LARGEST_PAGE).is_err());
    }
}
