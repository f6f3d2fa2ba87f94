//! Runs that still print numbers and will not come back: a reward that falls and falls far below its best,
//! and a policy that does not change any more. Pure; needs several blocks, so that one bad one is none.

use super::failure::{FailureCause, Finding};
use super::metrics::Block;
use std::collections::VecDeque;

/// How many rewards in a row are looked at.
const RECENT: usize = 10;
/// How far below the best they must lie, in sizes of the best or of one. A reward that sums penalties
/// over episodes that become longer falls too, by much less, and then learns.
const FAR: f64 = 50.0;
/// How many blocks in a row without entropy and without a surrogate loss are a policy that stands still.
const STILL: u32 = 5;

/// Watches the blocks of one run.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(in crate::watch) struct Divergence {
    best: Option<f64>,
    recent: VecDeque<f64>,
    last_iteration: u64,
    still: u32,
}

impl Divergence {
    /// Takes a block and says whether the run has diverged by now.
    pub(in crate::watch) fn push(&mut self, block: &Block) -> Option<Finding> {
        if block.iteration < self.last_iteration {
            // Another run, or this one resumed from before.
            *self = Self::default();
        }
        self.last_iteration = block.iteration;
        self.still = if stands_still(block) { self.still + 1 } else { 0 };
        if let Some(reward) = block.mean_reward.filter(|reward| reward.is_finite()) {
            self.best = Some(self.best.map_or(reward, |best| best.max(reward)));
            self.recent.push_back(reward);
            if self.recent.len() > RECENT {
                self.recent.pop_front();
            }
        }
        let evidence = self.falls().or_else(|| {
            let still = self.still;
            (still >= STILL).then(|| {
                format!("the policy does not change: no entropy and no surrogate loss for {still} iterations")
            })
        });
        evidence.map(|evidence| Finding { cause: FailureCause::Diverged, evidence })
    }

    fn falls(&self) -> Option<String> {
        let best = self.best?;
        let far = best - FAR * best.abs().max(1.0);
        let (earlier, later) =
            (self.recent.iter().take(RECENT / 2), self.recent.iter().skip(RECENT / 2));
        if self.recent.len() < RECENT
            || self.recent.iter().any(|reward| *reward > far)
            || later.sum::<f64>() >= earlier.sum::<f64>()
        {
            return None;
        }
        let last = self.recent.back()?;
        Some(format!("the mean reward fell from {best:.2} to {last:.2} and goes on falling"))
    }
}

fn stands_still(block: &Block) -> bool {
    let loss = |name: &str| {
        block.losses.iter().find(|(label, _)| label.contains(name)).map(|(_, value)| value.abs())
    };
    // Four decimals are printed: nothing is left of either.
    loss("entropy").is_some_and(|value| value < 1e-4)
        && loss("surrogate").is_some_and(|value| value < 1e-4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diverges(rewards: impl IntoIterator<Item = f64>) -> bool {
        let mut divergence = Divergence::default();
        let mut found = false;
        for (at, reward) in rewards.into_iter().enumerate() {
            let mut block = Block::at(at as u64, None);
            block.mean_reward = Some(reward);
            found |= divergence.push(&block).is_some();
        }
        found
    }

    #[test]
    fn a_reward_that_runs_away_diverges() {
        assert!(diverges((0..30).map(|at| -f64::exp(f64::from(at) / 2.0))));
        assert!(diverges((0..200).map(|at| 2.0 - 10.0 * f64::from(at))));
    }

    /// Episodes become longer and collect more penalties before the run learns.
    #[test]
    fn a_reward_that_falls_early_and_a_bad_moment_do_not_diverge() {
        assert!(!diverges((0..60).map(|at| -0.85 - f64::from(at) / 3.0)));
        assert!(!diverges((0..60).map(|at| if at == 30 { -1e6 } else { 20.0 })));
        assert!(
            !diverges((0..60).map(|at| if at < 5 { 1.0 } else { -500.0 + f64::from(at) })),
            "it recovers"
        );
        assert!(!diverges([f64::NAN; 30]));
    }

    #[test]
    fn a_policy_without_entropy_and_without_steps_stands_still() {
        let mut divergence = Divergence::default();
        let block = |at, entropy| {
            let mut block = Block::at(at, None);
            block.losses =
                vec![("Mean entropy loss".into(), entropy), ("Mean surrogate loss".into(), -0.0)];
            block
        };
        let found: Vec<_> = (0..5).map(|at| divergence.push(&block(at, 0.0)).is_some()).collect();
        assert_eq!(found, [false, false, false, false, true]);
        assert_eq!(divergence.push(&block(5, 0.3)), None);
    }
}
