//! From a log's bytes to text for people: whatever a job printed, the result is short and plain.

/// Text of at most `max_bytes` bytes from the end of `bytes`. Of every line only what stands after
/// its last carriage return is kept, as a terminal would show a progress bar (G08); terminal
/// sequences and control characters go; what is no UTF-8 is replaced (G09).
#[must_use]
pub fn clean(bytes: &[u8], max_bytes: usize) -> String {
    // A piece may begin inside a character: continuation bytes at its start belong to the part before.
    let start = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    let text = String::from_utf8_lossy(bytes.get(start..).unwrap_or_default());
    let mut out = String::with_capacity(text.len().min(max_bytes.saturating_mul(2)));
    for line in text.split_inclusive('\n') {
        let (body, end) = line.strip_suffix('\n').map_or((line, ""), |body| (body, "\n"));
        let body = body.trim_end_matches('\r');
        let shown = body.rsplit_once('\r').map_or(body, |(_, last)| last);
        push_plain(&mut out, shown);
        out.push_str(end);
    }
    let mut cut = out.len().saturating_sub(max_bytes);
    while !out.is_char_boundary(cut) {
        cut += 1;
    }
    out.split_off(cut)
}

/// Appends `line` without terminal sequences (ECMA-48: CSI, OSC and other strings, two-character
/// escapes) and control characters other than tab.
fn push_plain(out: &mut String, line: &str) {
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => match chars.next() {
                Some('[') => {
                    chars.by_ref().find(|c| matches!(c, '\x40'..='\x7e'));
                }
                Some(']' | 'P' | 'X' | '^' | '_') => {
                    while let Some(c) = chars.next() {
                        if c == '\x07' || (c == '\x1b' && chars.next_if_eq(&'\\').is_some()) {
                            break;
                        }
                    }
                }
                // A character-set escape has one more character.
                Some('(' | ')' | '*' | '+' | '#' | ' ' | '%') => {
                    chars.next();
                }
                _ => {}
            },
            '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G08: a progress bar of megabytes comes out as its last state.
    #[test]
    fn of_a_line_only_what_a_terminal_would_still_show_is_kept() {
        assert_eq!(clean(b"a\r\n10%\r20%\r\nb\r\r\n", 100), "a\n20%\nb\n");
        assert_eq!(clean(b"1%\r2%\r", 100), "2%");
        let bar = "\x1b[32m####\x1b[0m 50%\0\r".repeat(300_000);
        assert!(bar.len() > 5_000_000);
        assert_eq!(clean(bar.as_bytes(), 8_000), "#### 50%");
    }

    #[test]
    fn terminal_sequences_and_control_characters_go() {
        let log = b"\x1b[1;31mred\x1b[m \x1b]0;title\x07x\x1b]8;;u\x1b\\y \x1b(Bz\ta\0b\x08c\x1b";
        assert_eq!(clean(log, 100), "red xy z\tabc");
    }

    /// G09: a piece cut inside a character, Latin-1 and broken bytes are read, never an error.
    #[test]
    fn broken_utf8_is_replaced_and_a_cut_character_dropped() {
        let e = "é".as_bytes();
        assert_eq!(clean(&e[1..], 10), "");
        assert_eq!(clean(b"\x80\x80x\xffy\xe9", 20), "x\u{fffd}y\u{fffd}");
        assert_eq!(clean(b"", 10), "");
    }

    #[test]
    fn the_end_is_kept_and_no_character_is_cut() {
        assert_eq!(clean("aéé".as_bytes(), 3), "é");
        assert_eq!(clean(b"one\ntwo\n", 4), "two\n");
        assert_eq!(clean(b"abc", 0), "");
    }
}
