//! What a training log says in numbers. One parser per log family; whichever finds its own marks
//! in the log first owns the rest of it. Parsers take what a block has: a missing line is a
//! missing number, never a missing block, because a block that is thrown away looks like a stall.

mod block;
mod lines;
mod rsl_rl;

pub use block::Block;

use lines::Lines;

/// One family of logs. Fed line by line, without line ends and escape sequences.
trait Family: std::fmt::Debug + Send {
    /// Reads one line; a block when this line completed one.
    fn line(&mut self, line: &str) -> Option<Block>;
    /// The log has ended; the block that was still open, if enough of it was there.
    fn end(&mut self) -> Option<Block>;
}

/// Reads a log in pieces of any size and collects the blocks in it.
#[derive(Debug)]
pub struct MetricsParser {
    lines: Lines,
    families: Vec<Box<dyn Family>>,
    blocks: Vec<Block>,
}

impl MetricsParser {
    /// A parser that knows every family.
    #[must_use]
    pub fn new() -> Self {
        let families: Vec<Box<dyn Family>> = vec![Box::new(rsl_rl::RslRl::default())];
        Self { lines: Lines::default(), families, blocks: Vec::new() }
    }

    /// Takes the next bytes of the log. They may be cut anywhere, also inside a character, an
    /// escape sequence or a number.
    pub fn push(&mut self, bytes: &[u8]) {
        let Self { lines, families, blocks } = self;
        lines.push(bytes, |line| {
            let found = families
                .iter_mut()
                .enumerate()
                .find_map(|(index, family)| family.line(line).map(|block| (index, block)));
            if let Some((index, block)) = found {
                blocks.push(block);
                // Evidence: from here on the log belongs to this family.
                families.swap(0, index);
                families.truncate(1);
            }
        });
    }

    /// Says that nothing more will come. A block whose last lines are missing is kept when its
    /// body was complete. An unterminated last line is not read: its number may be cut.
    pub fn finish(&mut self) {
        if let Some(block) = self.families.iter_mut().find_map(|family| family.end()) {
            self.blocks.push(block);
        }
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
}

impl Default for MetricsParser {
    fn default() -> Self {
        Self::new()
    }
}
