//! The raw layer: a YAML text as a tree that keeps every key, every line and the text of every
//! scalar. Numbers stay text here, so that money never passes through a float and an error can
//! show exactly what was written.

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use serde_saphyr::{Location, NonFiniteFloatPolicy, Spanned};
use std::fmt;

/// A place in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Line, counted from 1; 0 when it is not known.
    pub line: u64,
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub at: Place,
    pub value: Value,
    /// The text as it stands in the file, without an anchor; of a list or mapping in brackets all of
    /// it, of one in block form only its beginning.
    pub source: String,
}

/// What a node holds. `Number` and `Bool` are what YAML takes them for; their text is the node's
/// `source`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool,
    Number,
    Text(String),
    List(Vec<Node>),
    /// In the file's order, duplicates included: the reader reports them with both lines.
    Map(Vec<(Key, Node)>),
}

/// A mapping's key.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    pub at: Place,
    pub name: String,
}

/// A text that is not YAML.
#[derive(Debug)]
pub(super) struct NotYaml {
    pub line: u64,
    pub column: u64,
    pub detail: String,
}

/// Reads one YAML document.
pub(super) fn parse(text: &str) -> Result<Node, NotYaml> {
    let options = serde_saphyr::options! {
        // Only `true` and `false` are booleans: `off` is a word of ours.
        strict_booleans: true,
        // An unquoted key twice is reported by the reader, with both lines.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        // `<<` is then an unknown key: the shared keys are the one way to share.
        merge_keys: MergeKeyPolicy::AsOrdinary,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    };
    let raw: Spanned<Raw> =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| {
            let (line, column) = error.location().map_or((0, 0), |at| (at.line(), at.column()));
            NotYaml { line, column, detail: in_words(&error.without_snippet().to_string()) }
        })?;
    Ok(to_node(raw, text))
}

/// The parser's words where they say what is wrong; where they are for programmers, what they mean.
fn in_words(detail: &str) -> String {
    let known = [
        ("recursive references", "an alias (*name) leads back into its own anchor (&name)"),
        ("budget breached", "its aliases (*name) make it far larger than any settings are"),
        ("tabs disallowed", "a tab, where only spaces may indent"),
    ];
    let words = known.iter().find(|(theirs, _)| detail.contains(theirs));
    words.map_or_else(|| detail.to_owned(), |(_, ours)| (*ours).to_owned())
}

/// What the deserializer tells, before the source text is put beside it.
enum Raw {
    Null,
    Bool,
    Number,
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

fn to_node(raw: Spanned<Raw>, text: &str) -> Node {
    let at = Place { line: raw.referenced.line() };
    let source = match slice(text, raw.defined).trim_end() {
        // The parser tells only where it opens.
        open @ ("[" | "{") => in_brackets(text, raw.defined).unwrap_or(open),
        whole => whole,
    };
    let source = source.to_owned();
    let value = match raw.value {
        Raw::Null => Value::Null,
        Raw::Bool => Value::Bool,
        Raw::Number => Value::Number,
        Raw::Text(word) => Value::Text(word),
        Raw::List(items) => {
            Value::List(items.into_iter().map(|item| to_node(item, text)).collect())
        }
        Raw::Map(pairs) => Value::Map(
            pairs
                .into_iter()
                .map(|(key, value)| {
                    let at = Place { line: key.referenced.line() };
                    (Key { at, name: key.value }, to_node(value, text))
                })
                .collect(),
        ),
    };
    Node { at, value, source }
}

fn slice(text: &str, at: Location) -> &str {
    let range = || {
        let start = usize::try_from(at.span().byte_offset()?).ok()?;
        let length = usize::try_from(at.span().byte_len()?).ok()?;
        text.get(start..start.checked_add(length)?)
    };
    range().unwrap_or("")
}

/// A list or mapping in brackets, to its closing one. What was parsed is well formed; a comment inside
/// of it may hold anything, and then the text is of several lines, which no setting takes.
fn in_brackets(text: &str, at: Location) -> Option<&str> {
    let start = usize::try_from(at.span().byte_offset()?).ok()?;
    let from = text.get(start..)?;
    let (mut depth, mut quote, mut is_escaped) = (0_usize, None, false);
    for (at, c) in from.char_indices() {
        match (quote, c) {
            _ if is_escaped => is_escaped = false,
            (Some('"'), '\\') => is_escaped = true,
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return from.get(..=at);
                }
            }
            _ => {}
        }
    }
    None
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }
    fn visit_unit<E: de::Error>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }
    fn visit_none<E: de::Error>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }
    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Raw, E> {
        Ok(Raw::Bool)
    }
    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Raw, E> {
        Ok(Raw::Number)
    }
    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Raw, E> {
        Ok(Raw::Number)
    }
    fn visit_i128<E: de::Error>(self, _: i128) -> Result<Raw, E> {
        Ok(Raw::Number)
    }
    fn visit_u128<E: de::Error>(self, _: u128) -> Result<Raw, E> {
        Ok(Raw::Number)
    }
    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Raw, E> {
        Ok(Raw::Number)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(pair) = pairs.next_entry()? {
            map.push(pair);
        }
        Ok(Raw::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(node: &Node) -> String {
        match &node.value {
            Value::Map(pairs) => pairs
                .iter()
                .map(|(key, value)| format!("{}@{}{{{}}}", key.name, key.at.line, show(value)))
                .collect(),
            Value::List(items) => items.iter().map(|item| format!("[{}]", show(item))).collect(),
            Value::Null => "null".to_owned(),
            Value::Bool => format!("bool {}", node.source),
            Value::Number => format!("number {}", node.source),
            Value::Text(text) => format!("text {text:?} {}", node.source),
        }
    }

    /// The kind of fault: a price that went through a float is not the price that was written.
    #[test]
    fn every_scalar_keeps_its_text_and_line() {
        for (yaml, shown) in [
            (
                "a: 0.80 # why\nb: 0.1000000000000000001",
                "a@1{number 0.80}b@2{number 0.1000000000000000001}",
            ),
            ("a: &x 0.8\nb: *x", "a@1{number 0.8}b@2{number 0.8}"),
            ("a: \"60\"", "a@1{text \"60\" \"60\"}"),
            ("a: off\nb: yes\nc: true", "a@1{text \"off\" off}b@2{text \"yes\" yes}c@3{bool true}"),
            (
                "a: .inf\nb: .nan\nc: NaN",
                "a@1{text \".inf\" .inf}b@2{text \".nan\" .nan}c@3{text \"NaN\" NaN}",
            ),
            ("a:\nb: ~\nc: null", "a@1{null}b@2{null}c@3{null}"),
            ("a: [1, x]\nb:\n  - 12.10", "a@1{[number 1][text \"x\" x]}b@2{[number 12.10]}"),
            ("a: 1\na: 2", "a@1{number 1}a@2{number 2}"),
            ("a:\n  b:\n    c: -1", "a@1{b@2{c@3{number -1}}}"),
            ("1: 2", "1@1{number 2}"),
            ("<<: {a: 1}", "<<@1{a@1{number 1}}"),
            (
                "é: ü # x\nb: 99999999999999999999999999999999999999999999",
                "é@1{text \"ü\" ü}b@2{number 99999999999999999999999999999999999999999999}",
            ),
        ] {
            assert_eq!(show(&parse(yaml).unwrap()), shown, "{yaml}");
        }
    }

    /// The value of a level: a list that was parsed and written again is another text.
    #[test]
    fn a_list_in_brackets_keeps_its_text() {
        for list in [
            "[0.0125164, 0.0142836]",
            "[1,2 ,  3.10]",
            "[]",
            "[[1, 2], {a: ']'}, \"]\\\"\", 'it''s]']",
        ] {
            let tree = parse(&format!("a: {list} # ] why\nb: 1\n")).unwrap();
            let Value::Map(pairs) = &tree.value else { panic!() };
            assert_eq!(pairs[0].1.source, list);
        }
    }

    #[test]
    fn what_is_no_yaml_is_told_with_its_line() {
        let error = parse("a: 1\nb: [1, 2\nc: 3\n").unwrap_err();
        assert!(error.line >= 2, "{error:?}");
        assert!(parse("a: 1\n---\nb: 2\n").is_err());
    }
}
