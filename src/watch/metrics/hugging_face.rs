//! Hugging Face's Trainer: Python dictionaries such as `{'loss': 0.1, 'epoch': 2.0}` between the states
//! of a progress bar, which alone has the step.

use super::bar::Bar;
use super::number::number;
use super::{Block, Family, FamilyName};

#[derive(Debug, Default)]
pub(super) struct HuggingFace {
    bar: Option<Bar>,
    count: u64,
    over: bool,
}

impl Family for HuggingFace {
    fn name(&self) -> FamilyName {
        FamilyName::HuggingFace
    }

    fn line(&mut self, line: &str, bar: Option<&Bar>) -> Option<Block> {
        if let Some(bar) = bar.filter(|bar| bar.is_the_runs_own()) {
            self.bar = Some(bar.clone());
        }
        let numbers = dictionary(line)?;
        let has = |name: &str| numbers.iter().any(|(other, _)| *other == name);
        self.over = has("train_runtime");
        // Dictionaries of an evaluation and of the end have no loss of this name.
        if !(has("loss") && (has("epoch") || has("learning_rate"))) {
            return None;
        }
        self.count += 1;
        let mut block = match &self.bar {
            Some(bar) => Block {
                is_last: bar.at >= bar.total,
                elapsed: bar.elapsed,
                eta: bar.eta,
                iteration_time: bar.step_time,
                ..Block::at(bar.at, Some(bar.total))
            },
            None => Block::at(self.count, None),
        };
        for (name, value) in numbers {
            match name {
                // trl's trainers have one.
                "reward" => block.mean_reward = Some(value),
                name => block.note(name, value),
            }
        }
        Some(block)
    }

    fn said_the_end(&self) -> bool {
        self.over
    }
}

/// The numbers of a flat dictionary anywhere in the line. Version 5 prints them in quotes.
fn dictionary(line: &str) -> Option<Vec<(&str, f64)>> {
    let (_, inside) = line.split_once("{'")?;
    let (inside, _) = inside.split_once('}')?;
    let pairs = inside.split(", '").filter_map(|pair| {
        let (name, value) = pair.split_once("':")?;
        Some((name, number(value.trim().trim_matches('\''))?))
    });
    Some(pairs.collect())
}

#[cfg(test)]
mod tests {
    use super::super::MetricsParser;

    #[test]
    fn a_dictionary_has_the_step_of_the_bar_before_it() {
        let mut parser = MetricsParser::new();
        parser.push(
            "\r 50%|█████     | 10/20 [00:10<00:10,  1.00it/s]\r    \r{'loss': 0.5, 'grad_norm': nan, \
             'learning_rate': 5e-05, 'epoch': 1.0}\n\r 55%|█████▌    | 11/20 [00:11<00:09,  1.00it/s]\
             \r{'eval_loss': nan, 'epoch': 1.1}\n\r100%|██| 20/20 [00:20<00:00,  1.00it/s]\r\
             {'loss': '0.25', 'learning_rate': '0', 'reward': '3.5', 'epoch': '2'}\n\
             {'train_runtime': 20.5, 'train_loss': 0.3, 'epoch': 2.0}\n"
                .as_bytes(),
        );
        let [first, last] = parser.blocks() else { panic!("{:?}", parser.blocks()) };
        assert_eq!((first.iteration, first.total_iterations), (10, Some(20)));
        assert_eq!(first.losses, [("loss".to_owned(), 0.5)]);
        assert!(
            first.not_finite().is_empty(),
            "a gradient that overflows is skipped by the scaler"
        );
        assert_eq!((last.iteration, last.mean_reward, last.is_last), (20, Some(3.5), true));
        assert!(parser.is_finished());
    }

    #[test]
    fn a_dictionary_of_settings_is_no_block() {
        let mut parser = MetricsParser::new();
        parser.push(b"{'loss': 'mse', 'epochs': 4}\n{'action_space': Box(-1), 'epoch': 3}\n");
        assert_eq!(parser.blocks(), []);
    }
}
