//! Console blocks in the layout of `rsl_rl` 2.3.1 to 3.1, the version that Isaac Lab 2.2 installs,
//! so that what follows a real training follows this one unchanged. Only numbers that this
//! training has: there are no losses, so none are printed.

use super::learner::Report;
use std::time::Duration;

const WIDTH: usize = 80;
/// Labels end at this column.
const PAD: usize = 35;

/// What the iteration took, measured by the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Swimming.
    pub collection: Duration,
    /// Moving the weights.
    pub learning: Duration,
    /// Since the start of the training.
    pub elapsed: Duration,
}

/// The block of one iteration of `iterations`, with the empty line that follows it.
#[must_use]
pub fn block(report: &Report, iterations: u64, timing: &Timing) -> String {
    // The centring counts the invisible escape sequences, as the original does.
    let title = format!("\u{1b}[1m Learning iteration {}/{iterations} \u{1b}[0m", report.iteration);
    let spent = timing.collection + timing.learning;
    let speed = report.steps as f64 / spent.as_secs_f64().max(1e-9);
    let done = report.iteration + 1;
    let left = timing.elapsed.as_secs_f64() / done as f64 * iterations.saturating_sub(done) as f64;
    let body = [
        (
            "Computation:",
            format!(
                "{speed:.0} steps/s (collection: {:.3}s, learning {:.3}s)",
                timing.collection.as_secs_f64(),
                timing.learning.as_secs_f64()
            ),
        ),
        ("Mean action noise std:", format!("{:.2}", report.action_noise_std)),
        ("Mean reward:", format!("{:.2}", report.mean_reward)),
        ("Mean episode length:", format!("{:.2}", report.mean_length)),
        ("Mean episode position_error:", format!("{:.4}", report.position_error)),
        ("Mean episode attitude_error:", format!("{:.4}", report.attitude_error)),
    ];
    let footer = [
        ("Total timesteps:", report.total_steps.to_string()),
        ("Iteration time:", format!("{:.2}s", spent.as_secs_f64())),
        ("Time elapsed:", hours(timing.elapsed.as_secs())),
        ("ETA:", hours(left as u64)),
    ];
    let lines = |rows: &[(&str, String)]| {
        rows.iter().map(|(label, value)| format!("{label:>PAD$} {value}\n")).collect::<String>()
    };
    format!(
        "{}\n{title:^WIDTH$}\n\n{}{}\n{}",
        "#".repeat(WIDTH),
        lines(&body),
        "-".repeat(WIDTH),
        lines(&footer)
    )
}

fn hours(seconds: u64) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::metrics::MetricsParser;

    const REPORT: Report = Report {
        iteration: 7,
        mean_reward: -3.456,
        mean_length: 119.5,
        action_noise_std: 0.31,
        steps: 11_520,
        total_steps: 92_160,
        position_error: 0.51,
        attitude_error: 0.2,
    };

    #[test]
    fn the_parser_of_real_logs_reads_the_block_back() {
        let timing = Timing {
            collection: Duration::from_millis(500),
            learning: Duration::from_millis(76),
            elapsed: Duration::from_secs(4000),
        };
        let mut parser = MetricsParser::new();
        parser.push(block(&REPORT, 60, &timing).as_bytes());
        let [block] = parser.blocks() else { panic!("one block, not {:?}", parser.blocks()) };
        assert_eq!((block.iteration, block.total_iterations), (7, Some(60)));
        assert_eq!((block.mean_reward, block.episode_length), (Some(-3.46), Some(119.5)));
        assert_eq!((block.total_steps, block.noise_std), (Some(92_160), Some(0.31)));
        assert_eq!(block.steps_per_second, Some(20_000.0));
        assert_eq!(block.elapsed, Some(Duration::from_secs(4000)));
        assert_eq!(block.eta, Some(Duration::from_secs(26_000)), "8 done in 4000 s, 52 to go");
        assert!(block.losses.is_empty());
        assert_eq!(block.extra.len(), 2);
    }

    #[test]
    fn the_title_is_centred_as_the_original_centres_it() {
        let text = block(&Report { iteration: 92, ..REPORT }, 300, &Timing::default());
        // A real log of 2.3 has 22 spaces before this title and 23 after it.
        let title = text.lines().nth(1).unwrap();
        assert_eq!(title.find('\u{1b}'), Some(22));
        assert_eq!(title.len() - title.trim_end().len(), 23);
    }
}
