//! The speed lines of `rl_games` 1.1 to 1.6: `fps step: … fps total: … [epoch: 3/500 frames: …]`. The
//! reward is printed only when it is the best so far, so it is carried on until the next one.

use super::bar::Bar;
use super::number::{after, number};
use super::{Block, Family, FamilyName};

#[derive(Debug, Default)]
pub(super) struct RlGames {
    lines: u64,
    best: Option<f64>,
    over: bool,
}

impl Family for RlGames {
    fn name(&self) -> FamilyName {
        FamilyName::RlGames
    }

    fn line(&mut self, line: &str, _: Option<&Bar>) -> Option<Block> {
        if let Some((_, best)) = line.split_once("saving next best rewards:") {
            let digits = best.trim().trim_start_matches('[').trim_end_matches(']');
            self.best = number(digits.trim()).or(self.best);
            return None;
        }
        if self.lines > 0 && matches!(line.trim(), "MAX EPOCHS NUM!" | "MAX FRAMES NUM!") {
            self.over = true;
        }
        if !line.contains("fps step:") || !line.contains("fps total:") {
            return None;
        }
        let count = self.lines;
        self.lines += 1;
        let epoch = after(line, "epoch:");
        let (at, total) = match epoch.map(|epoch| epoch.split_once('/').unwrap_or((epoch, ""))) {
            Some((at, total)) => (at.parse().ok()?, total.parse().ok()),
            // 1.1 has no epoch: the lines are counted.
            None => (count, None),
        };
        let mut block = Block::at(at, total);
        block.is_last = epoch.is_some() && total.is_some_and(|total| at >= total);
        block.mean_reward = self.best;
        block.steps_per_second = after(line, "fps total:").and_then(number);
        block.total_steps = after(line, "frames:")
            .and_then(|frames| frames.split('/').next().and_then(|frames| frames.parse().ok()));
        Some(block)
    }

    fn said_the_end(&self) -> bool {
        self.over
    }
}

#[cfg(test)]
mod tests {
    use super::super::MetricsParser;
    use super::*;

    #[test]
    fn lines_with_epochs_carry_the_best_reward_on() {
        let mut parser = MetricsParser::new();
        parser.push(
            b"fps step: 9 fps step and policy inference: 8 fps total: 7 epoch: 1/3 frames: 0\n\
              saving next best rewards:  [4.5]\n\
              fps step: 9 fps step and policy inference: 8 fps total: 7 epoch: 2/3 frames: 64\n\
              fps step: 9 fps step and policy inference: 8 fps total: 7.5 epoch: 3/3 frames: 128\n\
              MAX EPOCHS NUM!\n",
        );
        let rewards: Vec<_> = parser.blocks().iter().map(|block| block.mean_reward).collect();
        assert_eq!(rewards, [None, Some(4.5), Some(4.5)]);
        let last = parser.blocks().last().unwrap();
        assert_eq!((last.iteration, last.total_iterations), (3, Some(3)));
        assert_eq!((last.total_steps, last.steps_per_second), (Some(128), Some(7.5)));
        assert!(parser.is_finished());
        assert_eq!(parser.family(), Some(FamilyName::RlGames));
    }
}
