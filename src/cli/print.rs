//! The one place that writes to the terminal. stdout carries data or the MCP protocol, everything
//! else goes to stderr; a closed pipe is no error.

use std::io::Write as _;

/// Writes one line of data to stdout.
pub fn data(line: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Writes one line for people to stderr.
pub fn note(line: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = writeln!(stderr, "{line}");
}

/// The same, for who has to know when nobody can read it any more.
///
/// # Errors
/// When stderr is gone: a closed pipe, or a terminal that was closed.
pub fn note_to_somebody(line: &str) -> std::io::Result<()> {
    let mut stderr = std::io::stderr().lock();
    writeln!(stderr, "{line}")
}
