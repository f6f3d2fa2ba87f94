//! PyTorch Lightning: `Epoch 3, global step 356: 'val_loss' reached 0.1 (best 0.1), …` of its
//! checkpoints and the progress bar of an epoch with the numbers behind it. Both may be there.

use super::bar::Bar;
use super::number::number;
use super::{Block, Family, FamilyName};

#[derive(Debug, Default)]
pub(super) struct Lightning {
    open: Option<Block>,
    over: bool,
}

impl Family for Lightning {
    fn name(&self) -> FamilyName {
        FamilyName::Lightning
    }

    fn line(&mut self, line: &str, bar: Option<&Bar>) -> Option<Block> {
        if let Some(bar) = bar {
            // An epoch counts from its end; its bar is written over as validation adds numbers.
            let epoch: u64 = bar.label.strip_prefix("Epoch ")?.parse().ok()?;
            if bar.at < bar.total || bar.numbers.is_empty() {
                return None;
            }
            let before = self.turn_to(epoch);
            let block = self.open.as_mut()?;
            block.iteration_time = bar.elapsed;
            for (name, value) in bar.numbers.iter().filter(|(name, _)| name != "v_num") {
                block.losses.retain(|(other, _)| other != name);
                block.extra.retain(|(other, _)| other != name);
                match name.as_str() {
                    "reward" | "mean_reward" | "train_reward" => block.mean_reward = Some(*value),
                    name => block.note(name, *value),
                }
            }
            return before;
        }
        if line.contains("`Trainer.fit` stopped:") {
            self.over = self.open.is_some();
            return None;
        }
        let (epoch, rest) = line.strip_prefix("Epoch ")?.split_once(", global step ")?;
        let (step, rest) = rest.split_once(": '")?;
        let (epoch, step) = (epoch.parse().ok()?, step.parse().ok()?);
        let before = self.turn_to(epoch);
        let block = self.open.as_mut()?;
        block.total_steps = Some(step);
        let reached = rest.split_once("' reached ");
        let value = reached.and_then(|(_, value)| number(value.split_once(" (best")?.0));
        if let (Some((name, _)), Some(value)) = (reached, value) {
            block.note(name, value);
        }
        before
    }

    fn is_open(&self) -> bool {
        self.open.is_some()
    }

    fn said_the_end(&self) -> bool {
        self.over
    }

    fn end(&mut self) -> Option<Block> {
        self.open.take()
    }
}

impl Lightning {
    /// Opens the block of an epoch; the one before it, which is complete now.
    fn turn_to(&mut self, epoch: u64) -> Option<Block> {
        if self.open.as_ref().is_some_and(|open| open.iteration == epoch) {
            return None;
        }
        self.over = false;
        self.open.replace(Block::at(epoch, None))
    }
}

#[cfg(test)]
mod tests {
    use super::super::MetricsParser;

    #[test]
    fn the_bar_and_the_checkpoint_of_an_epoch_are_one_block() {
        let mut parser = MetricsParser::new();
        parser.push(
            "Epoch 0:  50%|██ | 4/8 [00:01<00:01, 4.0it/s, v_num=3, train_loss=0.9]\r\
             Epoch 0: 100%|███| 8/8 [00:02<00:00, 4.0it/s, v_num=3, train_loss=0.5]\r\
             Epoch 0: 100%|███| 8/8 [00:03<00:00, 4.0it/s, v_num=3, train_loss=0.5, val_loss=nan]\n\
             Epoch 0, global step 8: 'val_loss' reached 0.40 (best 0.40), saving model to 'a' as top 1\n\
             Epoch 1, global step 16: 'val_loss' was not in top 1\n\
             `Trainer.fit` stopped: `max_epochs=2` reached.\n"
                .as_bytes(),
        );
        parser.finish();
        let [first, last] = parser.blocks() else { panic!("{:?}", parser.blocks()) };
        assert_eq!((first.iteration, first.total_steps), (0, Some(8)));
        assert_eq!(first.losses, [("train_loss".to_owned(), 0.5)]);
        assert!(first.not_finite().is_empty());
        assert_eq!((last.iteration, last.total_steps), (1, Some(16)));
        assert!(parser.is_finished());
    }
}
