//! The last lines of a log for people: whole lines, without escape sequences and control characters. Pure.

use super::metrics::Lines;
use std::collections::VecDeque;

/// How many lines are kept; more than any screen shows beside a curve.
const KEPT: usize = 200;
/// Longer lines are cut for people, in characters.
const SHOWN: usize = 400;

/// Of a longer piece only this much is looked at, in bytes: a log of a gigabyte is read once already.
const PIECE: usize = 64 * 1024;

/// The end of a log that is read in pieces.
#[derive(Debug, Default)]
pub struct LogTail {
    lines: Lines,
    last: VecDeque<String>,
    /// Whether the beginning of the next line was skipped.
    is_cut: bool,
}

impl LogTail {
    /// Takes the next bytes. A line counts once its end is there: half a line may hold half a secret,
    /// which nothing blanks.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        if bytes.len() > PIECE {
            bytes = &bytes[bytes.len() - PIECE..];
            (self.lines, self.is_cut) = (Lines::default(), true);
        }
        if self.is_cut {
            let Some(end) = memchr::memchr(b'\n', bytes) else { return };
            bytes = &bytes[end + 1..];
            self.is_cut = false;
        }
        let Self { lines, last, .. } = self;
        lines.push(bytes, |line| {
            if line.text.trim().is_empty() {
                return;
            }
            if last.len() == KEPT {
                last.pop_front();
            }
            last.push_back(line.text.to_owned());
        });
    }

    /// The lines, oldest first, each after `blank` has taken the secrets out.
    #[must_use]
    pub fn lines(&self, blank: impl Fn(&str) -> String) -> Vec<String> {
        // Blanked before it is cut: a part of a key is a key still.
        self.last.iter().map(|line| plain(&blank(line))).collect()
    }
}

/// One line that can do nothing to a screen: no control characters, and none that turn the direction of
/// writing or have no width (Unicode Bidirectional Algorithm, UAX #9, section 2), so that what is shown is
/// what was said.
fn plain(line: &str) -> String {
    let is_trick = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    let shown = line.trim_end().chars().filter(|c| !is_trick(*c));
    let shown = shown.map(|c| if c.is_control() { ' ' } else { c });
    shown.take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_are_shown_and_nothing_in_them_moves_a_cursor() {
        let mut tail = LogTail::default();
        let log = "one\r\n\n\x1b[2J\x1b]0;title\x07two\tthree \u{202e}four\u{200b}\nhalf";
        for piece in log.as_bytes().chunks(3) {
            tail.push(piece);
        }
        assert_eq!(tail.lines(str::to_owned), ["one", "two three four"]);
        tail.push(b" a line\n");
        assert_eq!(tail.lines(str::to_owned).last().unwrap(), "half a line");
    }

    #[test]
    fn a_line_is_blanked_before_it_is_cut_and_only_the_last_are_kept() {
        let mut tail = LogTail::default();
        tail.push(format!("{}SECRET\n", "x".repeat(SHOWN - 3)).as_bytes());
        let lines = tail.lines(|line| line.replace("SECRET", "[secret]"));
        assert!(lines[0].ends_with("x[se"), "{lines:?}");
        (0..500).for_each(|at| tail.push(format!("{at}\n").as_bytes()));
        let lines = tail.lines(str::to_owned);
        assert_eq!((lines.len(), lines[KEPT - 1].as_str()), (KEPT, "499"));
    }

    /// Of a piece that is skipped in part, the line that was cut is not shown.
    #[test]
    fn a_long_piece_is_read_from_its_end_and_from_the_start_of_a_line() {
        let mut tail = LogTail::default();
        tail.push(b"begun ");
        let long: String = (0..20_000).map(|at| format!("line {at}\n")).collect();
        tail.push(long.as_bytes());
        let lines = tail.lines(str::to_owned);
        assert_eq!(lines.last().unwrap(), "line 19999");
        tail.push(&vec![b'x'; 2 * PIECE]);
        tail.push(b"y\nnext\n");
        let lines = tail.lines(str::to_owned);
        assert_eq!(lines[lines.len() - 2..], ["line 19999", "next"]);
    }
}
