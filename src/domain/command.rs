//! Commands for a pod's shell: argument arrays until the one quoting function here.

use std::fmt;

/// A script of `remote/`, copied whole and called with arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script {
    /// File name in `remote/`, such as `job_wrapper.sh`.
    pub name: &'static str,
    /// The files below `remote/` that [`Self::text`] is made of, in order; the last one is the script.
    pub parts: &'static [&'static str],
    /// The whole text.
    pub text: &'static str,
}

/// A command with its arguments, and what it reads on stdin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCommand {
    argv: Vec<String>,
    script: Option<Script>,
    /// Everything the command reads on stdin; empty means an immediate end of file.
    pub stdin: Vec<u8>,
}

impl RemoteCommand {
    /// A program with its arguments.
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Self { argv: argv.into_iter().map(Into::into).collect(), script: None, stdin: Vec::new() }
    }

    /// `script` run by bash with `args` as `$1`, `$2`, …; nothing needs to be installed first.
    pub fn script<S: Into<String>>(script: Script, args: impl IntoIterator<Item = S>) -> Self {
        let head = ["bash", "-c", script.text, script.name].map(str::to_owned);
        let argv = head.into_iter().chain(args.into_iter().map(Into::into)).collect();
        Self { argv, script: Some(script), stdin: Vec::new() }
    }

    /// A command line that somebody else wrote, run by `bash -c` as it is.
    #[must_use]
    pub fn shell_line(line: &str) -> Self {
        Self::new(["bash", "-c", line])
    }

    /// The same command with `stdin`.
    #[must_use]
    pub fn with_stdin(mut self, stdin: Vec<u8>) -> Self {
        self.stdin = stdin;
        self
    }

    /// The words.
    #[must_use]
    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    /// The exact text that goes to the pod's shell.
    #[must_use]
    pub fn to_wire(&self) -> String {
        join_quoted(self.argv.iter().map(String::as_str))
    }
}

impl fmt::Display for RemoteCommand {
    /// The command for people: as [`Self::to_wire`], with a script's text written as
    /// `"$(cat remote/NAME)"` with the parts before it, which a shell beside `remote/` expands to the very same command.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(script) = self.script else { return f.write_str(&self.to_wire()) };
        let files: String = script.parts.iter().map(|part| format!(" remote/{part}")).collect();
        write!(
            f,
            "bash -c \"$(cat{files})\" {}",
            join_quoted(self.argv[3..].iter().map(String::as_str))
        )
    }
}

/// Words joined to one line that a POSIX shell splits into exactly these words again.
#[must_use]
pub fn join_quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// The words that a POSIX shell would split a line into, quotes and backslashes resolved. Nothing is
/// expanded: `$x`, `*`, `;` and `#` are what they are. `None` when a quote is open.
#[must_use]
pub fn split_words(line: &str) -> Option<Vec<String>> {
    // shlex drops what follows a `#`; a word of a command line must not get lost.
    const HASH: char = '\u{e000}';
    if line.contains(HASH) {
        return None;
    }
    let words = shlex::split(&line.replace('#', "\u{e000}"))?;
    Some(words.into_iter().map(|word| word.replace(HASH, "#")).collect())
}

fn quote(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=,:@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H03: words survive a real shell byte for byte.
    #[test]
    fn a_shell_gives_back_exactly_the_words_that_were_quoted() {
        let hostile = [
            "plain",
            "",
            " ",
            "it's",
            "$(touch PWN)",
            "`id`",
            "a b",
            "-n",
            "\"",
            "\\",
            "a\nb",
            "*",
            "~",
            "é",
            "!x",
            "a;b|c&d",
            "${HOME}",
            "'",
            "#x",
            "{a,b}",
        ];
        let line = format!("printf '%s\\0' {}", join_quoted(hostile));
        #[expect(clippy::disallowed_methods, reason = "the test asks a real shell")]
        let output = std::process::Command::new("bash").arg("-c").arg(&line).output().unwrap();
        let words: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
        let expected: Vec<&[u8]> =
            hostile.iter().map(|word| word.as_bytes()).chain([&b""[..]]).collect();
        assert_eq!(words, expected);
    }

    /// H03: what a shell would do with a word is not done, and what was quoted comes back.
    #[test]
    fn words_are_split_and_nothing_is_expanded() {
        for (line, words) in [
            ("", &[][..]),
            ("a  b\tc\nd", &["a", "b", "c", "d"]),
            ("--x='a b' \"c'd\" e\\ f", &["--x=a b", "c'd", "e f"]),
            ("$(id) `id` ; | > * #x y#z", &["$(id)", "`id`", ";", "|", ">", "*", "#x", "y#z"]),
            ("''", &[""]),
        ] {
            assert_eq!(split_words(line).unwrap(), words, "{line}");
            assert_eq!(split_words(&join_quoted(words.iter().copied())).unwrap(), words);
        }
        assert_eq!(split_words("it's"), None);
    }

    #[test]
    fn a_script_is_shown_by_name_and_sent_whole() {
        const SCRIPT: Script =
            Script { name: "x.sh", parts: &["shared/y.sh", "x.sh"], text: "echo \"$1\"\n" };
        let command = RemoteCommand::script(SCRIPT, ["a b"]);
        assert_eq!(
            command.to_string(),
            "bash -c \"$(cat remote/shared/y.sh remote/x.sh)\" x.sh 'a b'"
        );
        assert_eq!(command.to_wire(), "bash -c 'echo \"$1\"\n' x.sh 'a b'");
    }
}
