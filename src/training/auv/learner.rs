//! The learner: augmented random search (Mania, Guy and Recht, 2018). It tries pairs of opposite
//! changes to the weights and moves along those that made the most difference.

use super::policy::{ACTIONS, Policy};
use super::task::{Episode, Start, Task};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt as _, SeedableRng as _};
use std::collections::VecDeque;

/// The mean reward is taken over this many episodes, as `rsl_rl` does.
const REMEMBERED_EPISODES: usize = 100;

/// What the learner is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Fixes everything random. Systems whose `exp` and `sin` round differently still part ways.
    pub seed: u64,
    /// Vehicles per iteration; two per direction that is tried, so an odd one is left out.
    pub envs: usize,
    /// Decisions per episode, at 20 Hz.
    pub episode_steps: u32,
    /// Standard deviation of the change to each weight.
    pub noise: f64,
    /// Length of a step in units of the search.
    pub step_size: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { seed: 1, envs: 160, episode_steps: 120, noise: 0.3, step_size: 0.3 }
    }
}

/// One direction, swum both ways from the same start, so that the start's luck cancels.
#[derive(Clone, Debug)]
struct Pair {
    direction: Vec<f64>,
    ahead: Episode,
    back: Episode,
}

/// The episodes of one iteration.
#[derive(Clone, Debug)]
pub struct Batch {
    pairs: Vec<Pair>,
}

/// The numbers of one iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// Counted from 0.
    pub iteration: u64,
    /// Mean sum of rewards over the last 100 episodes.
    pub mean_reward: f64,
    /// Mean steps over the last 100 episodes.
    pub mean_length: f64,
    /// How far the tried changes move the commands: the standard deviation of the first command
    /// around that of the unchanged controller.
    pub action_noise_std: f64,
    /// Decisions in this iteration.
    pub steps: u64,
    /// Decisions since the start.
    pub total_steps: u64,
    /// Mean distance from the goal at the end of this iteration's episodes, m.
    pub position_error: f64,
    /// Mean angle from the goal's attitude at the end of this iteration's episodes, rad.
    pub attitude_error: f64,
}

/// A controller in training.
#[derive(Debug)]
pub struct Learner {
    settings: Settings,
    task: Task,
    policy: Policy,
    rng: Xoshiro256PlusPlus,
    remembered: VecDeque<(f64, u32)>,
    iteration: u64,
    total_steps: u64,
}

impl Learner {
    /// Starts from the controller that does nothing.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            task: Task::new(settings.episode_steps),
            policy: Policy::idle(),
            rng: Xoshiro256PlusPlus::seed_from_u64(settings.seed),
            remembered: VecDeque::new(),
            iteration: 0,
            total_steps: 0,
        }
    }

    /// The controller as it is now.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// First half of an iteration: every vehicle swims one episode.
    pub fn collect(&mut self) -> Batch {
        let Self { settings, task, policy, rng, .. } = self;
        let pair = |_| {
            let start = Start::sample(rng);
            let direction: Vec<f64> = (0..Policy::WEIGHTS).map(|_| normal(rng)).collect();
            let ahead = task.swim(&policy.moved(&direction, settings.noise), &start);
            let back = task.swim(&policy.moved(&direction, -settings.noise), &start);
            Pair { direction, ahead, back }
        };
        Batch { pairs: (0..(settings.envs / 2).max(1)).map(pair).collect() }
    }

    /// Second half: moves the weights and sums up.
    pub fn update(&mut self, batch: &Batch) -> Report {
        let mut pairs: Vec<&Pair> = batch.pairs.iter().collect();
        let best = |pair: &Pair| pair.ahead.reward.max(pair.back.reward);
        pairs.sort_by(|a, b| best(b).total_cmp(&best(a)));
        pairs.truncate(pairs.len().div_ceil(2));
        let rewards = pairs.iter().flat_map(|pair| [pair.ahead.reward, pair.back.reward]);
        let scale = self.settings.step_size / (pairs.len() as f64 * deviation(rewards).max(1e-6));
        for pair in pairs {
            let gain = pair.ahead.reward - pair.back.reward;
            self.policy = self.policy.moved(&pair.direction, scale * gain);
        }
        self.report(batch)
    }

    fn report(&mut self, batch: &Batch) -> Report {
        let episodes = || batch.pairs.iter().flat_map(|pair| [&pair.ahead, &pair.back]);
        let steps: u64 = episodes().map(|episode| u64::from(episode.length)).sum();
        self.total_steps += steps;
        for episode in episodes() {
            self.remembered.push_back((episode.reward, episode.length));
            if self.remembered.len() > REMEMBERED_EPISODES {
                self.remembered.pop_front();
            }
        }
        let report = Report {
            iteration: self.iteration,
            mean_reward: mean(self.remembered.iter().map(|(reward, _)| *reward)),
            mean_length: mean(self.remembered.iter().map(|(_, length)| f64::from(*length))),
            action_noise_std: mean(batch.pairs.iter().map(action_variance)).sqrt(),
            steps,
            total_steps: self.total_steps,
            position_error: mean(episodes().map(|episode| episode.position_error)),
            attitude_error: mean(episodes().map(|episode| episode.attitude_error)),
        };
        self.iteration += 1;
        report
    }

    /// Mean result of the unchanged controller over `starts` starts that training has not used.
    #[must_use]
    pub fn evaluate(&self, starts: usize) -> Episode {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(!self.settings.seed);
        let swum: Vec<Episode> =
            (0..starts).map(|_| self.task.swim(&self.policy, &Start::sample(&mut rng))).collect();
        Episode {
            reward: mean(swum.iter().map(|episode| episode.reward)),
            length: self.task.steps,
            position_error: mean(swum.iter().map(|episode| episode.position_error)),
            attitude_error: mean(swum.iter().map(|episode| episode.attitude_error)),
            first_action: [0.0; ACTIONS],
        }
    }
}

/// Opposite changes move a command to either side of the unchanged one by about the same.
fn action_variance(pair: &Pair) -> f64 {
    let (ahead, back) = (pair.ahead.first_action, pair.back.first_action);
    mean((0..ACTIONS).map(|i| ((ahead[i] - back[i]) / 2.0).powi(2)))
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

fn deviation(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let centre = mean(values.clone());
    mean(values.map(|value| (value - centre).powi(2))).sqrt()
}

/// A normally distributed number, after Box and Muller.
fn normal(rng: &mut impl Rng) -> f64 {
    // 1 − x lies in (0, 1], where the logarithm is finite.
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (2.0 * std::f64::consts::PI * rng.random::<f64>()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(settings: Settings, iterations: usize) -> (Vec<Report>, Learner) {
        let mut learner = Learner::new(settings);
        let mut improve = || {
            let batch = learner.collect();
            learner.update(&batch)
        };
        let reports = (0..iterations).map(|_| improve()).collect();
        (reports, learner)
    }

    #[test]
    fn the_same_seed_gives_the_same_curve_and_another_seed_another() {
        let settings = Settings { envs: 4, episode_steps: 20, ..Settings::default() };
        let (first, again) = (curve(settings, 4), curve(settings, 4));
        assert_eq!(first.0, again.0);
        assert_eq!(first.1.policy(), again.1.policy());
        assert_ne!(first.0, curve(Settings { seed: 2, ..settings }, 4).0);
    }

    #[test]
    fn training_learns_to_hold_the_pose_whatever_the_seed() {
        for seed in [1, 2, 3] {
            let (reports, learner) = curve(Settings { seed, envs: 32, ..Settings::default() }, 60);
            let untrained = Learner::new(Settings { seed, ..Settings::default() }).evaluate(20);
            let trained = learner.evaluate(20);
            assert!(trained.reward > 2.0 * untrained.reward, "{trained:?} {untrained:?}");
            assert!(trained.position_error < 0.25, "{trained:?}");
            assert!(trained.attitude_error < 0.25, "{trained:?}");
            assert!(reports[59].mean_reward > reports[0].mean_reward + 40.0, "{reports:?}");
        }
    }

    #[test]
    fn an_iteration_counts_its_steps() {
        let settings = Settings { envs: 6, episode_steps: 10, ..Settings::default() };
        let (reports, _) = curve(settings, 3);
        assert_eq!(reports.iter().map(|r| r.iteration).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((reports[2].steps, reports[2].total_steps), (60, 180));
        assert!((reports[2].mean_length - 10.0).abs() < 1e-12);
    }
}
