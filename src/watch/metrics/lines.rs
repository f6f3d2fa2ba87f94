//! Bytes to lines: pieces are joined, escape sequences removed, endless lines cut.

use anstream::adapter::strip_bytes;
use std::borrow::Cow;

/// Longer lines are cut here. No line of a metrics block comes near, and a program that prints
/// megabytes without a line end must not cost memory (G08).
const LONGEST_LINE: usize = 16 * 1024;

/// One line of a log, without its end and without escape sequences.
#[derive(Clone, Copy, Debug)]
pub(in crate::watch) struct Line<'a> {
    /// Its text.
    pub(in crate::watch) text: &'a str,
    /// Where it begins in the log, in bytes.
    pub(in crate::watch) begin: u64,
    /// Where the next one begins.
    pub(in crate::watch) end: u64,
}

/// Joins pieces of a log to lines. A carriage return ends a line too: progress bars rewrite
/// theirs, and terminals send both.
#[derive(Debug, Default)]
pub(in crate::watch) struct Lines {
    open: Vec<u8>,
    /// Where the open line begins.
    begin: u64,
    /// How much of the log was taken.
    taken: u64,
    too_long: bool,
}

impl Lines {
    /// Lines of a log that is read from `offset` on.
    pub(in crate::watch) fn from_offset(offset: u64) -> Self {
        Self { begin: offset, taken: offset, ..Self::default() }
    }

    /// Calls `take` with every line that ends within `bytes`; empty lines are left out. A line that is
    /// too long is left out as well.
    pub(in crate::watch) fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Line<'_>)) {
        let mut at = 0;
        for end in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            let piece = &bytes[at..end];
            at = end + 1;
            self.taken += piece.len() as u64 + 1;
            let whole = if self.open.is_empty() && !self.too_long {
                piece
            } else {
                self.keep(piece);
                &self.open
            };
            if !self.too_long && !whole.is_empty() && whole.len() <= LONGEST_LINE {
                take(Line { text: &text(whole), begin: self.begin, end: self.taken });
            }
            self.open.clear();
            self.too_long = false;
            self.begin = self.taken;
        }
        let rest = &bytes[at..];
        self.taken += rest.len() as u64;
        self.keep(rest);
    }

    /// The last line, which has no end yet: its text may be cut.
    pub(in crate::watch) fn unfinished(&self) -> Option<String> {
        (!self.open.is_empty()).then(|| text(&self.open).into_owned())
    }

    fn keep(&mut self, piece: &[u8]) {
        self.too_long |= self.open.len() + piece.len() > LONGEST_LINE;
        if !self.too_long {
            self.open.extend_from_slice(piece);
        }
    }
}

/// The line's text without escape sequences; bytes that are no UTF-8 become marks (G09). Line by
/// line, so that a sequence that never ends spoils one line and not the rest of the log.
fn text(line: &[u8]) -> Cow<'_, str> {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t');
    if line.iter().all(is_plain)
        && let Ok(text) = std::str::from_utf8(line)
    {
        return Cow::Borrowed(text);
    }
    Cow::Owned(String::from_utf8_lossy(&strip_bytes(line).into_vec()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::default();
        let mut read = Vec::new();
        for piece in pieces {
            lines.push(piece, |line| read.push(line.text.to_owned()));
        }
        read
    }

    #[test]
    fn pieces_may_be_cut_inside_an_escape_sequence_and_inside_a_character() {
        assert_eq!(
            read(&[b"\x1b[", b"1m \xc3", b"\xa9t\xc3\xa9 \x1b", b"[0m\r", b"\n"]),
            [" été "]
        );
    }

    #[test]
    fn a_line_without_its_end_is_not_read() {
        assert_eq!(read(&[b"one\ntwo"]), ["one"]);
    }

    #[test]
    fn a_sequence_that_never_ends_spoils_one_line_only() {
        assert_eq!(read(&[b"\x1b]0;title\n\x1b[3gnext\n"]), ["", "next"]);
    }

    #[test]
    fn an_endless_line_costs_no_memory_and_hides_nothing_after_it() {
        let mut lines = Lines::default();
        let mut read = Vec::new();
        for _ in 0..100 {
            lines.push(&[b'x'; 4096], |line| read.push(line.text.to_owned()));
            assert!(lines.open.capacity() <= 2 * LONGEST_LINE);
        }
        lines.push(b"\nnext\n", |line| read.push(line.text.to_owned()));
        assert_eq!(read, ["next"]);
    }

    /// G09.
    #[test]
    fn bytes_that_are_no_text_cost_no_line() {
        assert_eq!(read(&[b"a\xffb\n\0c\n\xe9\n"]), ["ab", "c", "\u{fffd}"]);
    }

    #[test]
    fn every_line_knows_where_it_begins_and_ends() {
        let log = b"one\r\n\x1b[1mtwo\n\nthree\nfour";
        for size in [1, 3, 100] {
            let mut lines = Lines::from_offset(100);
            let mut read = Vec::new();
            for piece in log.chunks(size) {
                lines.push(piece, |line| read.push((line.text.to_owned(), line.begin, line.end)));
            }
            let expected = [("one", 100, 104), ("two", 105, 113), ("three", 114, 120)];
            assert_eq!(read, expected.map(|(text, begin, end)| (text.to_owned(), begin, end)));
            assert_eq!(lines.unfinished().as_deref(), Some("four"));
        }
    }
}
