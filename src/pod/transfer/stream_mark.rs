//! A mark in front of a program's output. Whatever start-up files of the pod's shell write comes before
//! it and is dropped; rsync and tar would break at it.

use crate::domain::{RemoteCommand, Script};
use bytes::Bytes;

/// The script that writes the mark and becomes the program.
pub(super) const CLEAN_STREAM: Script = Script {
    name: "clean_stream.sh",
    parts: &["clean_stream.sh"],
    text: include_str!("../../../remote/clean_stream.sh"),
};

/// Of characters that no shell cares about, and that no greeting has.
const MARK: &str = "podtether-5d1c4f0e93b7-stream.";

/// More than this in front of the mark is no greeting.
const MOST: usize = 64 << 10;

/// A program behind the mark, as a line for the pod's shell. `line` are its quoted words.
pub(super) fn behind_mark(line: &[u8]) -> Vec<u8> {
    let mut wire = RemoteCommand::script(CLEAN_STREAM, [MARK]).to_wire().into_bytes();
    wire.push(b' ');
    wire.extend_from_slice(line);
    wire
}

/// Drops what comes before the mark.
#[derive(Default)]
pub(super) struct AfterMark {
    before: Vec<u8>,
    seen: bool,
}

impl AfterMark {
    /// What of `data` is the program's.
    ///
    /// # Errors
    /// In words, when far more than a greeting came and no mark.
    pub(super) fn take(&mut self, data: Bytes) -> Result<Bytes, String> {
        if self.seen {
            return Ok(data);
        }
        self.before.extend_from_slice(&data);
        let found = self.before.windows(MARK.len()).position(|window| window == MARK.as_bytes());
        if let Some(at) = found {
            self.seen = true;
            return Ok(Bytes::from(self.before.split_off(at + MARK.len())));
        }
        if self.before.len() > MOST {
            let said = String::from_utf8_lossy(&self.before);
            let said: String = said.chars().take(80).collect();
            return Err(format!(
                "the pod's shell writes without end before any program runs ({said:?}); see its ~/.bashrc"
            ));
        }
        Ok(Bytes::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_comes_after_the_mark_is_the_programs() {
        let whole = format!("Welcome!\npodtether-5d1c {MARK}\0\x1f{MARK}");
        for size in [1, 7, whole.len()] {
            let mut mark = AfterMark::default();
            let taken: Vec<u8> = whole
                .as_bytes()
                .chunks(size)
                .flat_map(|part| mark.take(Bytes::copy_from_slice(part)).unwrap())
                .collect();
            assert_eq!(taken, format!("\0\x1f{MARK}").into_bytes(), "in parts of {size}");
        }
        let mut mark = AfterMark::default();
        assert!(mark.take(Bytes::from(vec![b'x'; MOST])).unwrap().is_empty());
        assert!(mark.take(Bytes::from_static(b"x")).is_err());
    }
}
