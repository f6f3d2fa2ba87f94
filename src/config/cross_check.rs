//! A value of a recipe against the same value in another YAML file on this machine.

use super::yaml::{self, Node};
use crate::domain::nearest;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The longest file that is looked into, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Why a value does not pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The file cannot be read, or is no YAML.
    #[error("{}: {reason}; mend the file, or the check", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// There is no such value.
    #[error("{}:{line}: there is no {key}; {fix}", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
        /// The line of the mapping that should have it.
        line: u64,
        /// The path to the value as far as it is missing.
        key: String,
        /// The nearest name.
        fix: String,
    },
    /// The two differ.
    #[error(
        "{}:{line}: {key} is {found}, the recipe says {expected}; make the two the same", path.display()
    )]
    Differs {
        /// The file.
        path: PathBuf,
        /// The value's line.
        line: u64,
        /// The path to the value.
        key: String,
        /// Its text in the file.
        found: String,
        /// The recipe's text.
        expected: String,
    },
}

/// Compares the value under `key` (names joined by dots) in the YAML file `path` with a recipe's text.
/// A single number in the file stands for a list in which every number is this one: a volume without
/// randomisation is a range from it to itself. Numbers are equal when they are the same double, which is
/// what both programs compute with.
///
/// # Errors
/// [`CheckError`] with file and line.
pub fn cross_check(path: &Path, key: &str, expected: &str) -> Result<(), CheckError> {
    let unreadable = |reason: String| CheckError::Unreadable { path: path.to_owned(), reason };
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| unreadable(error.to_string()))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(unreadable("it is larger than 1 MiB".to_owned()));
    }
    let tree = yaml::parse(&text)
        .map_err(|error| unreadable(format!("line {}: not YAML: {}", error.line, error.detail)))?;
    let node = key.split('.').try_fold(&tree, |node, name| child(node, name, path))?;
    let found = match &node.value {
        yaml::Value::Text(text) => text.clone(),
        _ => node.source.clone(),
    };
    if is_same(&found, expected) {
        return Ok(());
    }
    let short = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    Err(CheckError::Differs {
        path: path.to_owned(),
        line: node.at.line,
        key: key.to_owned(),
        found: short(&found).chars().take(200).collect(),
        expected: expected.to_owned(),
    })
}

fn child<'a>(node: &'a Node, name: &str, path: &Path) -> Result<&'a Node, CheckError> {
    let pairs: &[_] = match &node.value {
        yaml::Value::Map(pairs) => pairs,
        _ => &[],
    };
    let mut found = pairs.iter().filter(|(key, _)| key.name == name);
    match (found.next(), found.next()) {
        (Some((_, value)), None) => Ok(value),
        (Some((first, _)), Some((second, _))) => Err(CheckError::Unreadable {
            path: path.to_owned(),
            reason: format!(
                "{name} is given twice, on lines {} and {}",
                first.at.line, second.at.line
            ),
        }),
        (None, _) => Err(CheckError::NoKey {
            path: path.to_owned(),
            line: node.at.line,
            key: name.to_owned(),
            fix: nearest(name, pairs.iter().map(|(key, _)| key.name.as_str())),
        }),
    }
}

fn is_same(found: &str, expected: &str) -> bool {
    if found == expected {
        return true;
    }
    let (Some(found), Some(expected)) = (numbers(found), numbers(expected)) else { return false };
    match found[..] {
        [one] => expected.iter().all(|number| *number == one),
        _ => found == expected,
    }
}

/// The numbers of a list, or one alone.
fn numbers(text: &str) -> Option<Vec<f64>> {
    let inner = text.trim().strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let numbers: Option<Vec<f64>> =
        inner.unwrap_or(text).split(',').map(|part| part.trim().parse().ok()).collect();
    numbers.filter(|numbers| numbers.iter().all(|number| number.is_finite()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, key: &str, expected: &str) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.yaml");
        std::fs::write(&path, text).unwrap();
        let folder = format!("{}/", folder.path().display());
        cross_check(&path, key, expected).map_err(|error| error.to_string().replace(&folder, ""))
    }

    #[test]
    fn values_that_differ_are_told_with_file_line_and_both() {
        let text = "vehicle: {volume: 0.0134}\nr:\n  small: {v: [0.0125164, 0.0142836], r: 1e-3}\n";
        assert_eq!(told(text, "r.small.v", "[0.0125164, 0.0142836]"), Ok(()));
        assert_eq!(told(text, "r.small.v", "[0.0125164,0.01428360]"), Ok(()));
        assert_eq!(told(text, "vehicle.volume", "[0.0134, 0.0134]"), Ok(()));
        assert_eq!(told(text, "r.small.r", "0.001"), Ok(()));
        let wrong = told(text, "r.small.v", "[0.0125164, 0.0142837]").unwrap_err();
        assert_eq!(
            wrong,
            "v.yaml:3: r.small.v is [0.0125164, 0.0142836], the recipe says [0.0125164, 0.0142837]; make the two the same"
        );
        assert!(told(text, "vehicle.volume", "[0.0134, 0.0135]").is_err());
        assert!(told(text, "r.small.v", "0.0125164").is_err());
        // Texts of one number are the same, those of its neighbour are not.
        let long = "v: 0.021247843530591770";
        assert!(told(long, "v", "0.021247843530591776").is_err());
        let near = "v: 0.021247843530591774";
        assert_eq!(told(near, "v", "0.021247843530591776"), Ok(()));
        let missing = told(text, "r.smal.v", "1").unwrap_err();
        assert_eq!(missing, "v.yaml:3: there is no smal; did you mean small?");
    }

    /// Bad input: tabs, duplicate keys, merge keys, loops.
    #[test]
    fn a_file_that_is_no_plain_yaml_is_refused_by_name() {
        for (text, says) in [
            ("a:\n\tb: 1\n", "not YAML"),
            ("a: {b: 1, b: 2}\n", "b is given twice, on lines 1 and 1"),
            ("a: &x {<<: *x, c: 1}\n", ""),
            ("base: &x {b: 1}\na:\n  <<: *x\n", "there is no b"),
            ("a: [1, 2\n", "not YAML"),
            ("", "there is no a"),
        ] {
            let error = told(text, "a.b", "1").unwrap_err();
            assert!(error.starts_with("v.yaml") && error.contains(says), "{text:?}: {error}");
        }
        let gone = cross_check(Path::new("/nowhere/v.yaml"), "a", "1").unwrap_err();
        assert!(gone.to_string().starts_with("/nowhere/v.yaml: "), "{gone}");
    }
}
