//! A look at the files that a training's launch depends on. The command, and the reading of its answer.

use super::jobs::{Answer, AnswerError};
use super::shell::ExecOutput;
use crate::domain::{RemoteCommand, scripts};
use base64::Engine as _;
use std::time::Duration;

/// The longest source file that is read, in bytes. The largest that a recipe was written for has 27 KB.
pub const FILE_MAX: usize = 256 * 1024;

/// One question; answers come in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Whether there is such a file.
    Marker(String),
    /// Its content.
    File(String),
    /// The SHA-256 of its content.
    Sha256(String),
    /// Whether both lead to one file.
    Same(String, String),
    /// How many folders are in a folder, and the last of their names.
    Runs(String),
    /// How many folders are in a folder, and those whose names come after this one.
    Since(String, String),
}

/// What one question brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// Of a marker.
    Marker(bool),
    /// Of a file: its bytes, or why there are none.
    File(Result<Vec<u8>, &'static str>),
    /// Of a file: its SHA-256 in hexadecimal digits, or why there is none.
    Sha256(Result<String, &'static str>),
    /// Of two paths: whether they lead to one file; `None` when one of them leads nowhere.
    Same(Option<bool>),
    /// Of a folder: how many folders, and the last name in the order of names.
    Runs(u64, Option<String>),
    /// Of a folder: how many folders, and at most 16 of those that come after the name.
    Since(u64, Vec<String>),
}

/// The command. The volume is waited for as long as `patience`, in whole seconds.
#[must_use]
pub fn recipe_look_command(patience: Duration, asks: &[Ask]) -> RemoteCommand {
    let mut words = vec![patience.as_secs().max(1).to_string(), FILE_MAX.to_string()];
    for ask in asks {
        let (word, paths): (&str, Vec<&String>) = match ask {
            Ask::Marker(path) => ("marker", vec![path]),
            Ask::File(path) => ("file", vec![path]),
            Ask::Sha256(path) => ("sha256", vec![path]),
            Ask::Same(one, other) => ("same", vec![one, other]),
            Ask::Runs(path) => ("runs", vec![path]),
            Ask::Since(path, name) => ("since", vec![path, name]),
        };
        words.push(word.to_owned());
        words.extend(paths.into_iter().cloned());
    }
    RemoteCommand::script(scripts::RECIPE_LOOK, words)
}

/// The longest answer in bytes, to be kept whole.
#[must_use]
pub fn recipe_answer_bytes(asks: &[Ask]) -> usize {
    let files = asks.iter().filter(|ask| matches!(ask, Ask::File(_))).count();
    // A name has at most 255 bytes.
    let names = asks.iter().filter(|ask| matches!(ask, Ask::Since(..))).count() * 16;
    files * FILE_MAX.div_ceil(3) * 4 + names * 512 + asks.len() * 1024 + 1024
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Reads the answer to [`recipe_look_command`]; `None` when the volume did not answer in time.
///
/// # Errors
/// [`AnswerError`] when it is not whole or makes no sense.
pub fn parse_recipe_look(
    output: &ExecOutput,
    asks: &[Ask],
) -> Result<Option<Vec<Told>>, AnswerError> {
    let answer = Answer::read(scripts::RECIPE_LOOK.name, output)?;
    match answer.get("state") {
        Some("whole") => {}
        Some("unresponsive") => return Ok(None),
        _ => return Err(answer.senseless("state")),
    }
    let (mut markers, mut files) = (answer.all("marker"), answer.all("file"));
    let (mut same, mut counts, mut last) =
        (answer.all("same"), answer.all("runs"), answer.all("run"));
    let mut hashes = answer.all("sha256");
    let (mut since, mut new) = (answer.all("since"), answer.all("new"));
    let decode = |text: &str| base64::engine::general_purpose::STANDARD.decode(text);
    let one = |ask: &Ask| match ask {
        Ask::Marker(_) => match markers.next() {
            Some("yes") => Ok(Told::Marker(true)),
            Some("no") => Ok(Told::Marker(false)),
            _ => Err(answer.senseless("marker")),
        },
        Ask::File(_) => match files.next() {
            Some("absent") => Ok(Told::File(Err("is not there"))),
            Some("unreadable") => Ok(Told::File(Err("cannot be read"))),
            Some("large") => Ok(Told::File(Err("is larger than 256 KiB"))),
            Some(text) => match text.strip_prefix("b64:").map(decode) {
                Some(Ok(bytes)) => Ok(Told::File(Ok(bytes))),
                _ => Err(answer.senseless("file")),
            },
            None => Err(answer.senseless("file")),
        },
        Ask::Sha256(_) => match hashes.next() {
            Some("absent") => Ok(Told::Sha256(Err("is not there"))),
            Some("unreadable") => Ok(Told::Sha256(Err("cannot be read"))),
            Some(hash) if is_sha256(hash) => Ok(Told::Sha256(Ok(hash.to_owned()))),
            _ => Err(answer.senseless("sha256")),
        },
        Ask::Same(..) => match same.next() {
            Some("yes") => Ok(Told::Same(Some(true))),
            Some("other") => Ok(Told::Same(Some(false))),
            Some("absent") => Ok(Told::Same(None)),
            _ => Err(answer.senseless("same")),
        },
        Ask::Runs(_) => {
            let count = counts.next().and_then(|text| text.parse().ok());
            let name = last.next().and_then(|text| decode(text).ok());
            let name = name.and_then(|bytes| String::from_utf8(bytes).ok());
            match count {
                Some(count) => Ok(Told::Runs(count, name.filter(|name| !name.is_empty()))),
                None => Err(answer.senseless("runs")),
            }
        }
        Ask::Since(..) => {
            let told = since.next().and_then(|text| text.split_once(' '));
            let told = told.and_then(|(count, n)| Some((count.parse().ok()?, n.parse().ok()?)));
            let (count, n): (u64, usize) = told.ok_or_else(|| answer.senseless("since"))?;
            let names: Vec<&str> = new.by_ref().take(n).collect();
            if names.len() < n {
                return Err(answer.senseless("new"));
            }
            let text = |name: &&str| String::from_utf8(decode(name).ok()?).ok();
            // A name that is no text is counted all the same.
            Ok(Told::Since(count, names.iter().filter_map(text).collect()))
        }
    };
    asks.iter().map(one).collect::<Result<Vec<_>, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::{Captured, ExecStatus};

    fn output(text: &str) -> ExecOutput {
        let bytes = text.as_bytes().to_vec();
        let total = bytes.len() as u64;
        let stdout = Captured { bytes, total };
        ExecOutput { status: ExecStatus::Code(0), stdout, stderr: Captured::default() }
    }

    /// The real script in a real folder, whose name has a space and a quote.
    #[test]
    fn what_the_script_tells_is_read_in_the_order_in_which_it_was_asked() {
        let folder = tempfile::Builder::new().prefix("it's a ").tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::create_dir_all(path("runs/2026-01-01_a b")).unwrap();
        std::fs::create_dir_all(path("runs/2025-01-01")).unwrap();
        std::fs::write(path("f"), b"x = 1\r\n\xff").unwrap();
        std::fs::write(path("g"), vec![b'x'; FILE_MAX + 1]).unwrap();
        std::os::unix::fs::symlink(path("f"), path("link")).unwrap();
        let asks = [
            Ask::Marker(path("f")),
            Ask::File(path("f")),
            Ask::Marker(path("no")),
            Ask::File(path("g")),
            Ask::File(path("no")),
            Ask::File(path("runs")),
            Ask::Same(path("f"), path("link")),
            Ask::Same(path("f"), path("g")),
            Ask::Same(path("f"), path("no")),
            Ask::Runs(path("runs")),
            Ask::Runs(path("no")),
            Ask::Since(path("runs"), "2025-01-01".to_owned()),
            Ask::Since(path("runs"), String::new()),
            Ask::Since(path("no"), "x".to_owned()),
            Ask::Marker(path("f")),
        ];
        let command = recipe_look_command(Duration::from_secs(5), &asks);
        #[expect(clippy::disallowed_methods, reason = "the test runs the real script")]
        let ran = std::process::Command::new("bash").args(&command.argv()[1..]).output().unwrap();
        let text = String::from_utf8(ran.stdout).unwrap();
        let told = parse_recipe_look(&output(&text), &asks).unwrap().unwrap();
        assert_eq!(
            told,
            [
                Told::Marker(true),
                Told::File(Ok(b"x = 1\r\n\xff".to_vec())),
                Told::Marker(false),
                Told::File(Err("is larger than 256 KiB")),
                Told::File(Err("is not there")),
                Told::File(Err("cannot be read")),
                Told::Same(Some(true)),
                Told::Same(Some(false)),
                Told::Same(None),
                Told::Runs(2, Some("2026-01-01_a b".to_owned())),
                Told::Runs(0, None),
                Told::Since(2, vec!["2026-01-01_a b".to_owned()]),
                Told::Since(2, vec!["2025-01-01".to_owned(), "2026-01-01_a b".to_owned()]),
                Told::Since(0, vec![]),
                Told::Marker(true),
            ]
        );
        assert!(text.len() < recipe_answer_bytes(&asks));
    }

    /// Never taken for "no".
    #[test]
    fn an_answer_that_is_not_whole_says_nothing() {
        let asks = [Ask::Marker("a".to_owned())];
        let read = |text: &str| parse_recipe_look(&output(text), &asks);
        let hangs = "state=unresponsive\nend=recipe_look.sh\n";
        assert_eq!(read(hangs), Ok(None));
        assert!(read("marker=no\nstate=whole\n").is_err());
        assert!(read("state=whole\nend=recipe_look.sh\n").is_err());
        assert!(read("marker=no\nend=recipe_look.sh\n").is_err());
        assert!(read("marker=no\nstate=whole\nend=recipe_look.sh\n").is_ok());
    }
}
