//! Lists in pages: what one page holds and where the list goes on. Pure.

use super::wire::Pagination;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashSet;

/// More pages than any account has; a list that long is a loop.
const PAGES_MAX: usize = 1000;

/// Why a body is not a page of the list that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// It has no such list in it. Never read as an empty list.
    #[error("the answer has no list {key:?}")]
    NoList {
        /// The key that was looked for.
        key: &'static str,
    },
    /// Something in the list is not one of its things.
    #[error("entry {index} of {key:?} can not be read: {why}")]
    BadEntry {
        /// The list.
        key: &'static str,
        /// Which entry of the page, from 0.
        index: usize,
        /// Why.
        why: String,
    },
    /// It says that there is more, and not where.
    #[error("the list {key:?} says that it has another page but not where it begins")]
    NoCursor {
        /// The list.
        key: &'static str,
    },
    /// It points back to a page that was read, or never ends.
    #[error("the list {key:?} repeats the page at {cursor:?}")]
    Repeats {
        /// The list.
        key: &'static str,
        /// The cursor that came twice.
        cursor: String,
    },
}

/// A list as its pages come in.
#[derive(Debug)]
pub struct Pages<T> {
    key: &'static str,
    seen: HashSet<String>,
    /// Everything so far.
    pub items: Vec<T>,
}

impl<T: DeserializeOwned> Pages<T> {
    /// The list that stands under `key`.
    #[must_use]
    pub fn new(key: &'static str) -> Self {
        Self { key, seen: HashSet::new(), items: Vec::new() }
    }

    /// Takes one page in and says the cursor of the next, `None` after the last.
    ///
    /// # Errors
    /// [`PageError`]; then the whole list has failed, since a stranger may stand on the page that
    /// could not be read (B06).
    pub fn take(&mut self, body: Value) -> Result<Option<String>, PageError> {
        let key = self.key;
        let (entries, pagination) = match body {
            Value::Array(entries) => (entries, Pagination::default()),
            Value::Object(mut object) => {
                let Some(Value::Array(entries)) = object.remove(key) else {
                    return Err(PageError::NoList { key });
                };
                let pagination = object.remove("pagination").unwrap_or(Value::Null);
                (entries, serde_json::from_value(pagination).unwrap_or_default())
            }
            _ => return Err(PageError::NoList { key }),
        };
        for (index, entry) in entries.into_iter().enumerate() {
            let item = serde_json::from_value(entry).map_err(|error| PageError::BadEntry {
                key,
                index,
                why: error.to_string(),
            })?;
            self.items.push(item);
        }
        let cursor = pagination.next_cursor.filter(|cursor| !cursor.is_empty());
        match (pagination.has_next_page, cursor) {
            (Some(false), _) | (None, None) => Ok(None),
            (Some(true), None) => Err(PageError::NoCursor { key }),
            (_, Some(cursor)) => {
                if self.seen.len() >= PAGES_MAX || !self.seen.insert(cursor.clone()) {
                    return Err(PageError::Repeats { key, cursor });
                }
                Ok(Some(cursor))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn take(body: Value) -> Result<(usize, Option<String>), PageError> {
        let mut pages: Pages<Value> = Pages::new("pods");
        let next = pages.take(body)?;
        Ok((pages.items.len(), next))
    }

    /// B06, I04: a body that is not the list is never an empty list.
    #[test]
    fn only_the_list_that_was_asked_for_is_a_list() {
        for body in
            [json!({}), json!(null), json!("pods"), json!({ "pods": null }), json!({ "items": [] })]
        {
            assert_eq!(take(body.clone()), Err(PageError::NoList { key: "pods" }), "{body}");
        }
        assert_eq!(take(json!({ "pods": [] })), Ok((0, None)));
        assert_eq!(take(json!([{}, {}])), Ok((2, None)));
    }

    #[test]
    fn a_list_goes_on_where_it_says_and_only_there() {
        let body = |pagination: Value| json!({ "pods": [{}], "pagination": pagination });
        for (pagination, next) in [
            (json!(null), None),
            (json!({ "hasNextPage": false, "nextCursor": "" }), None),
            (json!({ "hasNextPage": false, "nextCursor": "c" }), None),
            (json!({ "hasNextPage": true, "nextCursor": "c" }), Some("c".to_owned())),
            (json!({ "nextCursor": "c" }), Some("c".to_owned())),
        ] {
            assert_eq!(take(body(pagination.clone())), Ok((1, next)), "{pagination}");
        }
        let lost = take(body(json!({ "hasNextPage": true, "nextCursor": null })));
        assert_eq!(lost, Err(PageError::NoCursor { key: "pods" }));
    }
}
