//! One report of a training: the numbers of one iteration.

use std::time::Duration;

/// More labels than any block has.
const MOST_LABELS: usize = 1024;

/// Whether a label names a loss of the training itself. The meter of a test may be NaN because
/// nothing was ever put into it.
fn is_training_loss(label: &str) -> bool {
    let label = label.to_ascii_lowercase();
    let name = label.trim_end_matches("_step").trim_end_matches("_epoch");
    let is_test = ["val", "test", "eval"].iter().any(|word| label.contains(word));
    name.ends_with("loss") && (!is_test || label.contains("value"))
}

/// What a training said about one iteration. Everything but the iteration may be missing, and
/// every number may be NaN or infinite, because that is what a failing training prints.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The iteration's number as printed; most families count from 0.
    pub iteration: u64,
    /// How many iterations the run is to have, when the log says so.
    pub total_iterations: Option<u64>,
    /// Whether this is the run's last iteration, by the family's own way of counting.
    pub is_last: bool,
    /// The mean return of recent episodes. Missing as long as no episode has ended.
    pub mean_reward: Option<f64>,
    /// The mean length of recent episodes, in steps.
    pub episode_length: Option<f64>,
    /// The standard deviation of the exploration noise.
    pub noise_std: Option<f64>,
    /// Environment steps so far. Some versions start again from 0 when a run is resumed.
    pub total_steps: Option<u64>,
    /// Environment steps per second of this iteration.
    pub steps_per_second: Option<f64>,
    /// What this iteration took.
    pub iteration_time: Option<Duration>,
    /// Time since the start. `rsl_rl` 2.3.1 to 5.3 prints it through `gmtime`, so that it starts
    /// again at 0 after 24 h.
    pub elapsed: Option<Duration>,
    /// Time to the end, as the training estimates it.
    pub eta: Option<Duration>,
    /// Losses by their label.
    pub losses: Vec<(String, f64)>,
    /// Every other number of the block by its label: parts of the reward, and meters of tests and
    /// validations, of which a NaN means nothing for the training.
    pub extra: Vec<(String, f64)>,
}

impl Block {
    /// A block of which only the position is known.
    #[must_use]
    pub fn at(iteration: u64, total_iterations: Option<u64>) -> Self {
        Self {
            iteration,
            total_iterations,
            is_last: false,
            mean_reward: None,
            episode_length: None,
            noise_std: None,
            total_steps: None,
            steps_per_second: None,
            iteration_time: None,
            elapsed: None,
            eta: None,
            losses: Vec::new(),
            extra: Vec::new(),
        }
    }

    /// Files a number under its label: a loss of the training, or something else.
    pub(super) fn note(&mut self, label: &str, value: f64) {
        let list = if is_training_loss(label) { &mut self.losses } else { &mut self.extra };
        // Bounds a block that never ends because its process died.
        if list.len() < MOST_LABELS {
            list.push((label.to_owned(), value));
        }
    }

    /// Labels of the reward and the losses that are not finite. The reward often stays a number
    /// long after the losses have stopped being one.
    #[must_use]
    pub fn not_finite(&self) -> Vec<&str> {
        let reward = self.mean_reward.map(|value| ("Mean reward", value));
        let losses = self.losses.iter().map(|(label, value)| (label.as_str(), *value));
        reward
            .into_iter()
            .chain(losses)
            .filter(|(_, value)| !value.is_finite())
            .map(|(label, _)| label)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nan_in_a_test_meter_is_no_nan_of_the_training() {
        let mut block = Block::at(3, None);
        for label in ["test_loss", "val_loss", "eval/loss", "valid_loss", "grad_norm"] {
            block.note(label, f64::NAN);
        }
        assert_eq!(block.not_finite(), Vec::<&str>::new());
        for label in ["loss", "box_loss", "Mean value loss", "Mean value_function loss"] {
            block.note(label, f64::NAN);
        }
        assert_eq!(block.not_finite().len(), 4);
    }
}
