//! What a training log says in numbers. One parser per log family; whichever finds its own marks
//! in the log first owns the rest of it. Parsers take what a block has: a missing line is a
//! missing number, never a missing block, because a block that is thrown away looks like a stall.

mod bar;
mod block;
mod families;
mod hugging_face;
mod lightning;
mod lines;
mod number;
mod pattern;
mod rl_games;
mod rsl_rl;
mod sb3;
mod ultralytics;

pub use block::Block;
pub use families::{FamilyName, Position};
pub use pattern::{Pattern, PatternError};

pub(in crate::watch) use families::Families;
pub(in crate::watch) use lines::Lines;
pub(in crate::watch) use number::without_rank;

use bar::Bar;

/// One family of logs. Fed line by line, without line ends and escape sequences.
trait Family: std::fmt::Debug + Send {
    /// Which one it is.
    fn name(&self) -> FamilyName;
    /// Reads one line, and the progress bar in it if it has one; a block when this line completed one.
    fn line(&mut self, line: &str, bar: Option<&Bar>) -> Option<Block>;
    /// Whether a block has begun and is not complete.
    fn is_open(&self) -> bool {
        false
    }
    /// Whether the log has said in words that the training is over.
    fn said_the_end(&self) -> bool {
        false
    }
    /// The log has ended; the block that was still open, if enough of it was there.
    fn end(&mut self) -> Option<Block> {
        None
    }
}

/// Reads a log in pieces of any size and collects the blocks in it.
#[derive(Debug)]
pub struct MetricsParser {
    lines: Lines,
    families: Families,
    blocks: Vec<Block>,
}

impl MetricsParser {
    /// A parser that knows every family.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Families::all())
    }

    /// A parser that knows one family only.
    #[must_use]
    pub fn of(family: FamilyName) -> Self {
        Self::with(Families::of(family))
    }

    /// A parser for lines of a form that the user gives.
    #[must_use]
    pub fn of_pattern(pattern: Pattern) -> Self {
        Self::with(Families::of_pattern(pattern))
    }

    fn with(families: Families) -> Self {
        Self { lines: Lines::default(), families, blocks: Vec::new() }
    }

    /// Takes the next bytes of the log. They may be cut anywhere, also inside a character, an
    /// escape sequence or a number.
    pub fn push(&mut self, bytes: &[u8]) {
        let Self { lines, families, blocks } = self;
        lines.push(bytes, |line| blocks.extend(families.line(line.text).block));
    }

    /// Says that nothing more will come. A block whose last lines are missing is kept when its
    /// body was complete. An unterminated last line is not read: its number may be cut.
    pub fn finish(&mut self) {
        self.blocks.extend(self.families.end());
    }

    /// The blocks so far, in the order of the log. A resumed run repeats iteration numbers.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Hands out the blocks so far and forgets them.
    pub fn drain(&mut self) -> Vec<Block> {
        std::mem::take(&mut self.blocks)
    }

    /// How far the run is: the newest block or progress bar.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.families.position()
    }

    /// Whether the log says that the training has come to its end.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.families.is_finished()
    }

    /// The family that owns the log, once there is evidence.
    #[must_use]
    pub fn family(&self) -> Option<FamilyName> {
        self.families.owner()
    }

    /// The newest numbers: the last block, or what a progress bar has said since.
    #[must_use]
    pub fn latest(&self) -> Option<Block> {
        let last = self.blocks.last();
        let Some(at) = self.position() else { return last.cloned() };
        let mut latest = last.cloned().unwrap_or_else(|| Block::at(at.iteration, at.total));
        (latest.iteration, latest.total_iterations) = (at.iteration, at.total);
        // A table of an evaluation has no reward of the training.
        if latest.mean_reward.is_none() {
            latest.mean_reward =
                self.blocks.iter().rev().take(2).find_map(|block| block.mean_reward);
        }
        Some(latest)
    }
}

impl Default for MetricsParser {
    fn default() -> Self {
        Self::new()
    }
}
