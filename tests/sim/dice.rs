//! The dice of a campaign: everything that happens by chance comes from one seed. Written out here, so
//! that a seed means the same campaign whatever a crate of random numbers does in its next version.

use std::time::Duration;

/// SplitMix64 (Steele, Lea and Flood, 2014): one addition and three mixes for each number.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice for a campaign. Neighbouring seeds give unrelated numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Dice of their own for a part of the campaign, so that what one part throws does not shift
    /// what another one gets.
    pub fn split(&mut self) -> Self {
        Self(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// Whether a thing of so many percent happens.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.between(0, 99) < chance
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.between(0, of.len() as u64 - 1)).unwrap()]
    }

    /// A time from `low` to `high` milliseconds, each doubling as likely as every other: a second and
    /// an hour are both worth a try.
    pub fn time(&mut self, low: u64, high: u64) -> Duration {
        let doublings = (high / low).max(1).ilog2();
        let from = low << self.between(0, u64::from(doublings));
        Duration::from_millis(self.between(from, (from * 2).min(high).max(from)))
    }
}
