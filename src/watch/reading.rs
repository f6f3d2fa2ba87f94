//! One log, read once: its numbers and its failures, line by line in the same order, because progress after a
//! traceback takes the traceback back.

use super::divergence::Divergence;
use super::failure::{FailureCause, FailureReader, Finding};
use super::metrics::{Block, Families, FamilyName, Lines, Pattern, Position};

/// Reads a log in pieces of any size.
#[derive(Debug)]
pub struct LogReading {
    lines: Lines,
    families: Families,
    words: FailureReader,
    numbers: Judged,
    /// Where reading can begin again without losing or repeating a block.
    resume_at: u64,
}

/// What the numbers alone say.
#[derive(Debug, Default)]
struct Judged {
    divergence: Divergence,
    finding: Option<Finding>,
}

impl Judged {
    fn take(&mut self, block: &Block) {
        let diverged = self.divergence.push(block);
        let not_finite = block.not_finite();
        self.finding = if not_finite.is_empty() {
            diverged
        } else {
            let evidence =
                format!("iteration {}: not a number: {}", block.iteration, not_finite.join(", "));
            Some(Finding { cause: FailureCause::Nan, evidence })
        };
    }
}

/// What is to be kept of a reading to go on with it in another process.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ReadingState {
    /// Where to go on, in bytes: after the last block that was complete.
    pub offset: u64,
    /// The family that owns the log.
    pub family: Option<FamilyName>,
    /// How far the run was.
    pub position: Option<Position>,
    divergence: Divergence,
}

impl LogReading {
    /// A reading that knows every family.
    #[must_use]
    pub fn new() -> Self {
        Self::over(Families::all())
    }

    /// A reading of one family.
    #[must_use]
    pub fn of(family: FamilyName) -> Self {
        Self::over(Families::of(family))
    }

    /// A reading of lines of a form that the user gives.
    #[must_use]
    pub fn of_pattern(pattern: Pattern) -> Self {
        Self::over(Families::of_pattern(pattern))
    }

    fn over(families: Families) -> Self {
        Self {
            lines: Lines::default(),
            families,
            words: FailureReader::default(),
            numbers: Judged::default(),
            resume_at: 0,
        }
    }

    /// Goes on where another process was. A family that the user names anew wins over the kept one.
    #[must_use]
    pub fn resume(self, state: &ReadingState) -> Self {
        let fresh = self.families.owner().is_none();
        let families = state.family.filter(|family| fresh && *family != FamilyName::Pattern);
        let mut families = families.map_or(self.families, Families::of);
        families.resume(state.position);
        Self {
            lines: Lines::from_offset(state.offset),
            families,
            words: FailureReader::default(),
            numbers: Judged { divergence: state.divergence.clone(), finding: None },
            resume_at: state.offset,
        }
    }

    /// What is to be kept to go on later.
    #[must_use]
    pub fn state(&self) -> ReadingState {
        ReadingState {
            offset: self.resume_at,
            family: self.families.owner(),
            position: self.families.position(),
            divergence: self.numbers.divergence.clone(),
        }
    }

    /// Takes the next bytes; the blocks that they completed.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Block> {
        let mut blocks = Vec::new();
        let Self { lines, families, words, numbers, resume_at } = self;
        lines.push(bytes, |line| {
            let taken = families.line(line.text);
            if taken.progress {
                words.progress();
                // A line that ended one block may have begun the next.
                *resume_at = if families.is_open() { line.begin } else { line.end };
            }
            words.line(line.text);
            if let Some(block) = taken.block {
                numbers.take(&block);
                blocks.push(block);
            }
        });
        blocks
    }

    /// Says that nothing more will come. The last line may lack its end: it is read for words, and not for
    /// numbers, which may be cut.
    pub fn finish(&mut self) -> Option<Block> {
        if let Some(line) = self.lines.unfinished() {
            self.words.line(&line);
        }
        let block = self.families.end()?;
        self.numbers.take(&block);
        Some(block)
    }

    /// What the log says went wrong, as far as it was read and no progress has come after it.
    #[must_use]
    pub fn failure(&self) -> Option<Finding> {
        match (self.words.found(), &self.numbers.finding) {
            // An exception that follows a NaN is its consequence.
            (Some(words), Some(numbers)) if words.cause == FailureCause::Exception => Some(numbers),
            (Some(words), _) => Some(words),
            (None, numbers) => numbers.as_ref(),
        }
        .cloned()
    }

    /// Whether the log says that the training has come to its end.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.families.is_finished()
    }

    /// How far the run is.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.families.position()
    }

    /// The family that owns the log, once there is evidence.
    #[must_use]
    pub fn family(&self) -> Option<FamilyName> {
        self.families.owner()
    }
}

impl Default for LogReading {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(at: u64, reward: &str) -> String {
        format!(
            "{}\nLearning iteration {at}/9\n\nMean reward: {reward}\nETA: 1.0s\n\n",
            "#".repeat(80)
        )
    }

    const TRACEBACK: &str = "Traceback (most recent call last):\n  File \"a\"\nValueError: x\n";

    #[test]
    fn progress_after_a_traceback_takes_it_back_and_none_does_not() {
        let mut reading = LogReading::new();
        reading.push(format!("{}{TRACEBACK}", block(1, "1.0")).as_bytes());
        assert_eq!(reading.failure().unwrap().cause, FailureCause::Exception);
        reading.push(block(2, "1.0").as_bytes());
        assert_eq!(reading.failure(), None);
    }

    #[test]
    fn a_nan_is_a_failure_while_the_run_goes_on_and_the_cause_of_the_crash_after_it() {
        let mut reading = LogReading::new();
        reading.push(block(1, "nan").as_bytes());
        assert_eq!(reading.failure().unwrap().cause, FailureCause::Nan);
        reading.push(TRACEBACK.as_bytes());
        assert_eq!(reading.failure().unwrap().cause, FailureCause::Nan);
    }

    #[test]
    fn the_last_line_needs_no_end_to_be_read_for_words() {
        let mut reading = LogReading::new();
        reading.push(format!("{}{}", block(1, "1.0"), TRACEBACK.trim_end()).as_bytes());
        assert_eq!(reading.failure(), None);
        reading.finish();
        assert_eq!(reading.failure().unwrap().evidence, "ValueError: x");
    }

    /// E08: whatever moment a watch dies at, the next one reads every block once.
    #[test]
    fn a_reading_resumed_anywhere_has_every_block_once_and_the_same_failure() {
        let yolo = "Epoch GPU_mem box_loss cls_loss dfl_loss Instances\n 1/3 1G 0.5 2 3 9\n 1/3 1G 0.4 2 3 9\n \
             2/3 1G 0.3 2 3 9\n 3/3 1G 0.2 2 3 9\n";
        let rsl: String = (0..4).map(|at| block(at, "2.5")).collect();
        for log in [format!("boot\n{rsl}{TRACEBACK}"), format!("{yolo}{TRACEBACK}")] {
            let read = |mut reading: LogReading, from: usize| {
                let mut blocks = reading.push(&log.as_bytes()[from..]);
                blocks.extend(reading.finish());
                (blocks, reading.failure())
            };
            let (whole, failure) = read(LogReading::new(), 0);
            assert!(whole.len() >= 3 && failure.is_some());
            for cut in 0..log.len() {
                let mut first = LogReading::new();
                let mut blocks = first.push(&log.as_bytes()[..cut]);
                let kept = serde_json::to_string(&first.state()).unwrap();
                let state: ReadingState = serde_json::from_str(&kept).unwrap();
                let at = usize::try_from(state.offset).unwrap();
                let (rest, found) = read(LogReading::new().resume(&state), at);
                blocks.extend(rest);
                assert_eq!(format!("{blocks:?}"), format!("{whole:?}"), "cut at {cut}");
                assert_eq!(found, failure, "cut at {cut}");
            }
        }
    }
}
