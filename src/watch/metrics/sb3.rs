//! The tables of Stable-Baselines3's logger: a rule of `-`, rows `| name | value |` below rows
//! `| section/ | |`, a rule. A table of an evaluation has no iteration of its own.

use super::bar::Bar;
use super::number::number;
use super::{Block, Family, FamilyName};
use std::time::Duration;

#[derive(Debug, Default)]
pub(super) struct Sb3 {
    section: String,
    rows: Vec<(String, f64)>,
    iteration: u64,
}

/// More rows than any table has.
const MOST_ROWS: usize = 1024;

impl Family for Sb3 {
    fn name(&self) -> FamilyName {
        FamilyName::Sb3
    }

    fn line(&mut self, line: &str, _: Option<&Bar>) -> Option<Block> {
        let line = line.trim();
        if let Some(row) = line.strip_prefix('|').and_then(|row| row.strip_suffix('|')) {
            let (name, value) = row.split_once('|')?;
            let (name, value) = (name.trim(), value.trim());
            if let Some(section) = name.strip_suffix('/').filter(|_| value.is_empty()) {
                section.clone_into(&mut self.section);
            } else if let Some(value) = number(value).filter(|_| self.rows.len() < MOST_ROWS) {
                self.rows.push((format!("{}/{name}", self.section), value));
            }
            return None;
        }
        let rows = std::mem::take(&mut self.rows);
        let is_rule = line.len() >= 10 && line.bytes().all(|byte| byte == b'-');
        let block = if is_rule { self.table(rows) } else { None };
        self.section.clear();
        block
    }

    fn is_open(&self) -> bool {
        !self.rows.is_empty()
    }
}

impl Sb3 {
    fn table(&mut self, rows: Vec<(String, f64)>) -> Option<Block> {
        let of = |name: &str| rows.iter().find(|(other, _)| other == name).map(|(_, value)| *value);
        let steps = of("time/total_timesteps");
        // On-policy learners count iterations, off-policy ones episodes.
        let count = of("time/iterations").or_else(|| of("time/episodes"));
        if steps.is_none() && count.is_none() {
            return None;
        }
        self.iteration = count.map_or(self.iteration, whole);
        let mut block = Block::at(self.iteration, None);
        block.total_steps = steps.map(whole);
        for (name, value) in rows {
            match name.as_str() {
                "rollout/ep_rew_mean" => block.mean_reward = Some(value),
                "rollout/ep_len_mean" => block.episode_length = Some(value),
                "time/fps" => block.steps_per_second = Some(value),
                "time/time_elapsed" => block.elapsed = Duration::try_from_secs_f64(value).ok(),
                "train/std" => block.noise_std = Some(value),
                "time/total_timesteps" | "time/iterations" | "time/episodes" => {}
                name => block.note(name, value),
            }
        }
        Some(block)
    }
}

/// A count, which the logger may print as `1.23e+06`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::super::MetricsParser;
    use super::*;

    const TABLES: &str = "\
----------------------------------
| rollout/           |           |
|    ep_len_mean     | 22.3      |
|    ep_rew_mean     | 31.3      |
| time/              |           |
|    fps             | 1917      |
|    iterations      | 2         |
|    time_elapsed    | 6         |
|    total_timesteps | 1.23e+06  |
| train/             |           |
|    value_loss      | nan       |
|    std             | 0.9       |
----------------------------------
Eval num_timesteps=1230010, episode_reward=8.00 +/- 1.00
----------------------------------
| eval/              |           |
|    mean_reward     | 8         |
| time/              |           |
|    total_timesteps | 1230010   |
----------------------------------
";

    #[test]
    fn a_table_is_a_block_and_an_evaluation_has_no_training_reward() {
        let mut parser = MetricsParser::new();
        parser.push(TABLES.as_bytes());
        let [rollout, eval] = parser.blocks() else { panic!("{:?}", parser.blocks()) };
        assert_eq!((rollout.iteration, rollout.total_steps), (2, Some(1_230_000)));
        assert_eq!((rollout.mean_reward, rollout.noise_std), (Some(31.3), Some(0.9)));
        assert_eq!(rollout.elapsed, Some(Duration::from_secs(6)));
        assert_eq!(rollout.not_finite(), ["train/value_loss"]);
        assert_eq!(
            (eval.iteration, eval.mean_reward, eval.total_steps),
            (2, None, Some(1_230_010))
        );
        assert_eq!(eval.extra, [("eval/mean_reward".to_owned(), 8.0)]);
        assert_eq!(parser.latest().unwrap().mean_reward, Some(31.3));
    }

    #[test]
    fn other_tables_are_no_blocks() {
        let mut parser = MetricsParser::new();
        parser.push(
            b"|---------------------------------|\n| GPU | Name | Memory |\n| 0 | 24 |\n-----------------\n\
              | Name  | 3 |\n-------------\n",
        );
        assert_eq!(parser.blocks(), []);
    }
}
