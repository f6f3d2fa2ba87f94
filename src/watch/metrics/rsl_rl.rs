//! The console blocks of `rsl_rl` 1.0 to 5.4, read from the tags of leggedrobotics/rsl_rl: a title
//! between a rule of `#` and an empty line, right-aligned `label: value` lines, a rule of `-`, a
//! footer that ends with the ETA. Labels, their order and which of them exist differ by version.

use super::bar::Bar;
use super::number::{duration, number, without_rank};
use super::{Block, Family, FamilyName};

#[derive(Debug, Default)]
pub(super) struct RslRl {
    open: Option<Open>,
}

/// A block whose title was seen and whose ETA was not.
#[derive(Debug)]
struct Open {
    block: Block,
    /// A number has been read: a title alone is no block.
    has_numbers: bool,
    /// The rule before the footer was seen: the body is complete.
    ruled: bool,
}

impl Family for RslRl {
    fn name(&self) -> FamilyName {
        FamilyName::RslRl
    }

    fn line(&mut self, line: &str, _: Option<&Bar>) -> Option<Block> {
        let line = without_rank(line.trim()).trim_start();
        if let Some((iteration, total)) = title(line) {
            // The last title is (N-1)/N; runners derived from it print N/N.
            let is_last = iteration + 1 >= total;
            let block = Block { is_last, ..Block::at(iteration, Some(total)) };
            let before = self.open.replace(Open { block, has_numbers: false, ruled: false });
            return before.filter(|open| open.has_numbers).map(|open| open.block);
        }
        if rule(line, b'#') {
            return self.open.take_if(|open| open.has_numbers).map(|open| open.block);
        }
        let open = self.open.as_mut()?;
        if rule(line, b'-') {
            open.ruled = true;
            return None;
        }
        let (label, value) = line.split_once(':')?;
        let (label, value) = (label.trim_end(), value.trim_start());
        open.has_numbers |= read(&mut open.block, label, value);
        // The ETA is the last line of every version.
        if label == "ETA" && open.has_numbers {
            return self.open.take().map(|open| open.block);
        }
        None
    }

    fn is_open(&self) -> bool {
        self.open.is_some()
    }

    fn end(&mut self) -> Option<Block> {
        self.open.take().filter(|open| open.ruled && open.has_numbers).map(|open| open.block)
    }
}

/// `Learning iteration i/N` at the end of a line. Something may stand before it (the rest
/// of another process's line) and `[0m` after it, where a capture lost the ESC.
fn title(line: &str) -> Option<(u64, u64)> {
    let line = line.strip_suffix("[0m").unwrap_or(line).trim_end();
    let (_, numbers) = line.rsplit_once("Learning iteration ")?;
    let (iteration, total) = numbers.split_once('/')?;
    Some((iteration.trim().parse().ok()?, total.trim().parse().ok()?))
}

/// A line of one character, as wide as a block (80) or at least recognisably a rule.
fn rule(line: &str, character: u8) -> bool {
    line.len() >= 20 && line.bytes().all(|byte| byte == character)
}

/// Takes one `label: value` line; whether it held a number.
fn read(block: &mut Block, label: &str, value: &str) -> bool {
    match label {
        // 2.2.0 to 2.2.4 print "Mean total reward". "Mean extrinsic reward" is a part of it only.
        "Mean reward" | "Mean total reward" => set(&mut block.mean_reward, number(value)),
        "Mean episode length" => set(&mut block.episode_length, number(value)),
        // "Mean action std" from 5.0 on.
        "Mean action noise std" | "Mean action std" => set(&mut block.noise_std, number(value)),
        "Total timesteps" | "Total steps" => set(&mut block.total_steps, value.parse().ok()),
        // One line until 3.1: "18288 steps/s (collection: 1.018s, learning 0.326s)".
        "Computation" => {
            let speed = value.split_once(" steps/s").and_then(|(speed, _)| number(speed));
            set(&mut block.steps_per_second, speed)
        }
        "Steps per second" => set(&mut block.steps_per_second, number(value)),
        "Iteration time" => set(&mut block.iteration_time, duration(value)),
        "Total time" | "Time elapsed" => set(&mut block.elapsed, duration(value)),
        "ETA" => set(&mut block.eta, duration(value)),
        _ => match number(value) {
            Some(value) => {
                block.note(label, value);
                true
            }
            None => false,
        },
    }
}

fn set<T>(field: &mut Option<T>, value: Option<T>) -> bool {
    let there = value.is_some();
    if there {
        *field = value;
    }
    there
}

#[cfg(test)]
mod tests {
    use super::super::MetricsParser;
    use super::*;
    use std::time::Duration;

    /// A block in the layout of 2.3.1 to 3.1, written for this test.
    const BLOCK: &str = "\
################################################################################
                       \u{1b}[1m Learning iteration 7/60 \u{1b}[0m                       

                       Computation: 4849 steps/s (collection: 0.410s, learning 0.085s)
             Mean action noise std: 0.91
          Mean value_function loss: 0.0107
                       Mean reward: -0.81
               Mean episode length: 16.42
  Metrics/velocity/error_vel_xy: 0.0293
--------------------------------------------------------------------------------
                   Total timesteps: 223200
                    Iteration time: 0.49s
                      Time elapsed: 01:02:03
                               ETA: 00:00:59

";

    fn parse(text: &str) -> Vec<Block> {
        let mut parser = MetricsParser::new();
        parser.push(text.as_bytes());
        parser.drain()
    }

    #[test]
    fn every_line_of_a_block_is_read() {
        let mut whole = Block::at(7, Some(60));
        whole.mean_reward = Some(-0.81);
        whole.episode_length = Some(16.42);
        whole.noise_std = Some(0.91);
        whole.total_steps = Some(223_200);
        whole.steps_per_second = Some(4849.0);
        whole.iteration_time = Some(Duration::from_millis(490));
        whole.elapsed = Some(Duration::from_secs(3723));
        whole.eta = Some(Duration::from_secs(59));
        whole.losses = vec![("Mean value_function loss".to_owned(), 0.0107)];
        whole.extra = vec![("Metrics/velocity/error_vel_xy".to_owned(), 0.0293)];
        assert_eq!(parse(BLOCK), [whole]);
    }

    #[test]
    fn a_block_without_rewards_is_a_block() {
        let text = BLOCK.replace("Mean reward", "Mean extrinsic reward");
        let blocks = parse(&text);
        assert_eq!(blocks.len(), 1);
        assert_eq!(blocks[0].mean_reward, None);
    }

    #[test]
    fn a_block_cut_by_a_restart_keeps_what_it_had() {
        let cut = BLOCK.find("Mean episode length").unwrap();
        let text = format!("{}\n{BLOCK}", &BLOCK[..cut]);
        let blocks = parse(&text);
        assert_eq!(blocks.len(), 2);
        assert_eq!((blocks[0].mean_reward, blocks[0].eta), (Some(-0.81), None));
    }

    #[test]
    fn the_end_of_the_log_completes_a_body_and_never_a_cut_number() {
        for (end, blocks) in [("ETA: 00:0", 1), ("16.4", 0)] {
            let cut = BLOCK.find(end).unwrap() + end.len();
            let mut parser = MetricsParser::new();
            parser.push(&BLOCK.as_bytes()[..cut]);
            parser.finish();
            assert_eq!(parser.blocks().len(), blocks, "{end}");
            assert!(parser.blocks().iter().all(|block| block.eta.is_none()));
        }
    }

    #[test]
    fn losses_that_are_no_numbers_are_named() {
        let blocks = parse(&BLOCK.replace("0.0107", "nan"));
        assert_eq!(blocks[0].not_finite(), ["Mean value_function loss"]);
    }

    #[test]
    fn the_rank_before_every_line_hides_nothing() {
        let ranked: String = BLOCK.lines().map(|line| format!("[default0]:{line}\n")).collect();
        assert_eq!(parse(&ranked), parse(BLOCK));
    }

    #[test]
    fn titles_are_found_behind_prefixes_and_lost_escapes() {
        assert_eq!(title("[default0]: Learning iteration 3/9"), Some((3, 9)));
        assert_eq!(title("[1m Learning iteration 3/9 [0m"), Some((3, 9)));
        assert_eq!(title("saved at Learning iteration 3/9 to disk"), None);
        assert_eq!(title("Learning iteration 3"), None);
    }
}
