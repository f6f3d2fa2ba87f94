//! The words that rsync hands to its remote shell, made one command line for the pod's shell.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

/// What the rsync at hand does to the words for a remote shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Words {
    /// rsync 3 with `-s`: paths travel inside the protocol, only plain words may be left.
    Plain,
    /// openrsync and rsync 2: raw words. Joined as ssh does it, `$(…)` in a path would run on the
    /// pod and a space would split it (measured), so each is quoted here (H03, D09).
    Raw,
}

/// Reads `[-l USER] [--] HOST WORD…` into the user and the command line.
///
/// # Errors
/// What is wrong with the words.
pub fn command_line(words: &[OsString], mode: Words) -> Result<(Option<String>, Vec<u8>), String> {
    let mut rest = words.iter();
    let mut user = None;
    let host = loop {
        let word = rest.next().ok_or("rsync named no host")?;
        match word.as_bytes() {
            b"-l" => {
                let name = rest.next().and_then(|name| name.to_str()).ok_or("-l names no user")?;
                user = Some(name.to_owned());
            }
            b"--" => break rest.next().ok_or("rsync named no host")?,
            option if option.starts_with(b"-") => {
                return Err(format!("the option {} is not accepted", word.to_string_lossy()));
            }
            _ => break word,
        }
    };
    let _ = host;
    let mut line = Vec::new();
    for word in rest {
        if !line.is_empty() {
            line.push(b' ');
        }
        let is_plain = !word.is_empty()
            && word
                .as_bytes()
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_./=,:@%+".contains(byte));
        match mode {
            _ if is_plain => line.extend_from_slice(word.as_bytes()),
            Words::Plain => {
                return Err(format!(
                    "rsync was to send only plain words, but sends {:?}",
                    word.to_string_lossy()
                ));
            }
            Words::Raw => {
                // As domain::join_quoted, for words that need not be UTF-8.
                line.push(b'\'');
                for byte in word.as_bytes() {
                    if *byte == b'\'' {
                        line.extend_from_slice(br"'\''");
                    } else {
                        line.push(*byte);
                    }
                }
                line.push(b'\'');
            }
        }
    }
    if line.is_empty() { Err("rsync named no command".to_owned()) } else { Ok((user, line)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str], mode: Words) -> Result<(Option<String>, String), String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        command_line(&words, mode).map(|(user, line)| (user, String::from_utf8(line).unwrap()))
    }

    /// H03, D09: nothing in a path reaches the pod's shell, whichever rsync is at hand.
    #[test]
    fn raw_words_are_quoted_and_anything_but_plain_words_is_refused_otherwise() {
        let hostile = ["pod", "rsync", "--server", ".", "/x/$(touch PWN) it's"];
        let (_, line) = read(&hostile, Words::Raw).unwrap();
        assert_eq!(line, r"rsync --server . '/x/$(touch PWN) it'\''s'");
        assert!(read(&hostile, Words::Plain).is_err());
        let (user, line) =
            read(&["-l", "root", "pod", "rsync", "--server", "-se.LsfxCIvu"], Words::Plain)
                .unwrap();
        assert_eq!((user.as_deref(), line.as_str()), (Some("root"), "rsync --server -se.LsfxCIvu"));
    }

    #[test]
    fn options_of_ssh_are_not_taken() {
        for words in [&["-o", "ProxyCommand=x", "pod", "rsync"][..], &["-l"], &["pod"], &[]] {
            assert!(read(words, Words::Raw).is_err(), "{words:?}");
        }
    }
}
