//! Bytes to lines: pieces are joined, escape sequences removed, endless lines cut.

use anstream::adapter::strip_bytes;

/// Longer lines are not read. No line of a metrics block comes near, and a program that prints
/// megabytes without a line end must not cost memory here.
const LONGEST_LINE: usize = 16 * 1024;

/// Joins pieces of a log to lines. A carriage return ends a line too: progress bars rewrite
/// theirs, and terminals send both.
#[derive(Debug, Default)]
pub(super) struct Lines {
    open: Vec<u8>,
    too_long: bool,
}

impl Lines {
    /// Calls `take` with every line that ends within `bytes`; empty lines are left out.
    pub(super) fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&str)) {
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (text, ended) = match piece.split_last() {
                Some((b'\n' | b'\r', text)) => (text, true),
                _ => (piece, false),
            };
            self.too_long |= self.open.len() + text.len() > LONGEST_LINE;
            if !self.too_long {
                self.open.extend_from_slice(text);
            }
            if ended {
                if !self.too_long && !self.open.is_empty() {
                    // Line by line, so that a sequence that never ends spoils one line and not
                    // the rest of the log.
                    let plain = strip_bytes(&self.open).into_vec();
                    take(&String::from_utf8_lossy(&plain));
                }
                self.open.clear();
                self.too_long = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::default();
        let mut read = Vec::new();
        for piece in pieces {
            lines.push(piece, |line| read.push(line.to_owned()));
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
            lines.push(&[b'x'; 4096], |line| read.push(line.to_owned()));
            assert!(lines.open.capacity() <= 2 * LONGEST_LINE);
        }
        lines.push(b"\nnext\n", |line| read.push(line.to_owned()));
        assert_eq!(read, ["next"]);
    }
}
