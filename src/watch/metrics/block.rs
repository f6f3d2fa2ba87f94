//! One report of a training: the numbers of one iteration.

use std::time::Duration;

/// What a training said about one iteration. Everything but the iteration may be missing, and
/// every number may be NaN or infinite, because that is what a failing training prints.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The iteration's number as printed; most families count from 0.
    pub iteration: u64,
    /// How many iterations the run is to have, when the log says so.
    pub total_iterations: Option<u64>,
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
    /// Every other number of the block by its label.
    pub extra: Vec<(String, f64)>,
}

impl Block {
    /// A block of which only the position is known.
    #[must_use]
    pub fn at(iteration: u64, total_iterations: Option<u64>) -> Self {
        Self {
            iteration,
            total_iterations,
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
