//! Values that are made of several: lists of texts, commands, ranges.

use super::keys::Key;
use super::node_text::{Wrong, shown, text_of};
use super::value::Check;
use super::yaml::{self, Node};

/// At least one text, each of which passes the check, none twice.
pub(super) fn texts(node: &Node, key: &Key, check: Check) -> Result<Vec<String>, Wrong> {
    let one = |what: String, fix: String| vec![(String::new(), node.at.line, what, fix)];
    let items = match &node.value {
        yaml::Value::List(items) if !items.is_empty() => items,
        yaml::Value::List(_) => {
            return Err(one("is empty".to_owned(), format!("write for example {}", key.example)));
        }
        _ => {
            let fix = match text_of(node) {
                Some(text) if check(text).is_ok() => format!("write [{}]", node.source),
                _ => format!("write for example {}", key.example),
            };
            return Err(one(format!("{} is not a list", shown(node)), fix));
        }
    };
    let mut list: Vec<String> = Vec::new();
    let mut wrong = Wrong::new();
    for (i, item) in items.iter().enumerate() {
        let verdict = match text_of(item) {
            None => Err(("is not a text".to_owned(), format!("write for example {}", key.example))),
            Some(text) => check(text).map_err(|fault| (fault.why, fault.fix)).map(|()| text),
        };
        match verdict {
            Err((why, fix)) => {
                wrong.push((format!("[{i}]"), item.at.line, format!("{} {why}", shown(item)), fix));
            }
            Ok(text) if list.iter().any(|other| other == text) => wrong.push((
                format!("[{i}]"),
                item.at.line,
                format!("{} is listed twice", shown(item)),
                "keep one of them".to_owned(),
            )),
            Ok(text) => list.push(text.to_owned()),
        }
    }
    if wrong.is_empty() { Ok(list) } else { Err(wrong) }
}

/// A command. As a list its words may hold anything; as a text it is split as a shell would.
pub(super) fn words(node: &Node, key: &Key) -> Result<Vec<String>, Wrong> {
    let wrong =
        |what: String, fix: &str| Err(vec![(String::new(), node.at.line, what, fix.to_owned())]);
    let words: Vec<String> = match (&node.value, text_of(node)) {
        (yaml::Value::List(items), _) => {
            match items.iter().map(|item| text_of(item).map(str::to_owned)).collect() {
                Some(words) => words,
                None => return wrong("has a word that is no text".to_owned(), "quote every word"),
            }
        }
        (_, Some(text)) => match crate::domain::split_words(text) {
            Some(words) => words,
            None => {
                return wrong(format!("{} has an open quote", shown(node)), "close the quote");
            }
        },
        _ => return wrong(format!("{} is not a command", shown(node)), key.example),
    };
    if words.iter().any(|word| word.contains('\0')) {
        return wrong("contains a NUL byte".to_owned(), "leave it out");
    }
    match words.first() {
        Some(program) if !program.is_empty() => Ok(words),
        _ => wrong("is empty".to_owned(), key.example),
    }
}

/// Two numbers, the lower one first.
pub(super) fn range(node: &Node) -> Option<(String, String)> {
    let yaml::Value::List(items) = &node.value else { return None };
    let [low, high] = &items[..] else { return None };
    let number = |node: &Node| -> Option<f64> {
        (node.value == yaml::Value::Number).then(|| node.source.parse().ok()).flatten()
    };
    let in_order = number(low)? <= number(high)?;
    in_order.then(|| (low.source.clone(), high.source.clone()))
}
