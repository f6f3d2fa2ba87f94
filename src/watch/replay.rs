//! The verdicts over a log that is finished: when each would have paged, and what a stop at that moment would
//! have saved. Calibration before trust. Pure.

use super::failure::{FailureCause, Finding};
use super::metrics::{Block, FamilyName, Position};
use super::plateau::{Curve, PlateauRule};
use super::reading::LogReading;
use super::verdict::Verdict;
use crate::domain::{Usd, UsdPerHour};
use chrono::TimeDelta;
use serde::Serialize;
use std::time::Duration;

/// What is asked of a replay.
#[derive(Clone, Copy, Debug)]
pub struct ReplayOptions {
    /// When a flat reward is a plateau.
    pub plateau: PlateauRule,
    /// How long a log may be silent.
    pub stall: TimeDelta,
    /// What the pod costs, for what a stop would have saved.
    pub rate: Option<UsdPerHour>,
}

/// One page that would have gone out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WouldPage {
    /// plateau, failure or stall.
    pub kind: &'static str,
    /// What it would have said.
    pub says: String,
    /// The exit code that `watch` would have ended with.
    pub exit_code: u8,
    /// The iteration it stood at; null when the log had none yet.
    pub iteration: Option<u64>,
    /// The time of the run, in seconds, by the log's own times; null when it has none.
    pub at_sec: Option<u64>,
    /// What a stop at that moment would have saved.
    pub saved: Saved,
}

/// What a stop would have saved.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Saved {
    /// Iterations that the log shows after it.
    pub iterations: Option<u64>,
    /// Time that the log shows after it, in seconds.
    pub sec: Option<u64>,
    /// What that time cost.
    pub usd: Option<Usd>,
    /// Iterations that would have come after the end of the log.
    pub iterations_to_come: Option<u64>,
}

/// What a replay found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replay {
    /// The log's family; null when no numbers were found.
    pub family: Option<FamilyName>,
    /// Complete blocks.
    pub blocks: u64,
    /// How far the run came.
    pub position: Option<Position>,
    /// The last mean reward.
    pub mean_reward: Option<f64>,
    /// How long the run took by the log's own times, in seconds.
    pub took_sec: Option<u64>,
    /// Whether the log says that the training came to its end.
    pub finished: bool,
    /// What the log says went wrong.
    pub failure: Option<Finding>,
    /// Every page, in the order of the log. `watch` would have ended at the first.
    pub pages: Vec<WouldPage>,
}

/// A replay that is fed a log in pieces.
#[derive(Debug)]
pub struct Replaying {
    options: ReplayOptions,
    reading: LogReading,
    curve: Curve,
    time: RunTime,
    blocks: u64,
    mean_reward: Option<f64>,
    /// What was paged, as long as its cause lasts.
    on_plateau: bool,
    failing: Option<FailureCause>,
    pages: Vec<WouldPage>,
}

impl Replaying {
    /// Begins with a reading that has not read anything.
    #[must_use]
    pub fn new(reading: LogReading, options: ReplayOptions) -> Self {
        Self {
            options,
            reading,
            curve: Curve::default(),
            time: RunTime::default(),
            blocks: 0,
            mean_reward: None,
            on_plateau: false,
            failing: None,
            pages: Vec::new(),
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        // Line by line: what the log has said is judged as of each block, not as of the end of a piece.
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            for block in self.reading.push(line) {
                self.block(&block);
            }
        }
    }

    fn block(&mut self, block: &Block) {
        self.blocks += 1;
        let silent = self.time.advance(block);
        if let Some(silent) = silent.filter(|silent| *silent >= self.options.stall.as_seconds_f64())
        {
            let verdict =
                Verdict::Stalled { silent_sec: whole(silent).cast_signed(), gpu_percent: None };
            self.page("stall", &verdict, block.iteration);
        }
        if let Some(reward) = block.mean_reward {
            self.mean_reward = Some(reward);
            self.curve.push(block.iteration, reward, self.options.plateau.window);
        }
        let finding = self.reading.failure();
        let cause = finding.as_ref().map(|finding| finding.cause);
        if let Some(finding) = finding.filter(|_| cause != self.failing) {
            self.page("failure", &Verdict::Failed(finding), block.iteration);
        }
        self.failing = cause;
        let flat = self.curve.flat(&self.options.plateau).filter(|_| !block.is_last);
        if let Some(flat) = flat.filter(|_| !self.on_plateau) {
            self.page("plateau", &Verdict::Plateau(flat), block.iteration);
        }
        self.on_plateau = flat.is_some();
    }

    fn page(&mut self, kind: &'static str, verdict: &Verdict, iteration: u64) {
        self.pages.push(WouldPage {
            kind,
            says: verdict.to_string(),
            exit_code: verdict.exit_code(),
            iteration: Some(iteration),
            at_sec: self.time.sec.map(whole),
            saved: Saved::default(),
        });
    }

    /// The log is over: what was found.
    #[must_use]
    pub fn end(mut self) -> Replay {
        if let Some(block) = self.reading.finish() {
            self.block(&block);
        }
        let position = self.reading.position();
        // What progress bars say counts where blocks have no times.
        let elapsed = position.and_then(|position| position.elapsed).map(|time| time.as_secs());
        let took = self.time.sec.map(whole).max(elapsed);
        let failure = self.reading.failure();
        if let Some(finding) = failure.clone().filter(|finding| Some(finding.cause) != self.failing)
        {
            self.page("failure", &Verdict::Failed(finding), 0);
            if let Some(page) = self.pages.last_mut() {
                page.iteration = position.map(|position| position.iteration);
                page.at_sec = took;
            }
        }
        let left = position.and_then(|position| {
            let done = position.iteration + u64::from(!position.is_last);
            (!position.is_last).then_some(position.total?.saturating_sub(done))
        });
        for page in &mut self.pages {
            let last = position.map(|position| position.iteration);
            let sec = took.zip(page.at_sec).map(|(took, at)| took.saturating_sub(at));
            page.saved = Saved {
                iterations: last.zip(page.iteration).map(|(last, at)| last.saturating_sub(at)),
                sec,
                usd: self
                    .options
                    .rate
                    .zip(sec)
                    .map(|(rate, sec)| rate.cost_of(Duration::from_secs(sec))),
                iterations_to_come: left,
            };
        }
        Replay {
            family: self.reading.family(),
            blocks: self.blocks,
            position,
            mean_reward: self.mean_reward,
            took_sec: took,
            finished: self.reading.is_finished(),
            failure,
            pages: self.pages,
        }
    }
}

/// The time of a run by its log: what it says has passed, else the sum of its iterations.
#[derive(Debug, Default)]
struct RunTime {
    sec: Option<f64>,
    last_elapsed: Option<f64>,
}

impl RunTime {
    /// Goes on to a block; how long it took since the one before, when both are of the same run.
    fn advance(&mut self, block: &Block) -> Option<f64> {
        let Some(elapsed) = block.elapsed.map(|elapsed| elapsed.as_secs_f64()) else {
            let iteration = block.iteration_time.map(|time| time.as_secs_f64());
            let before = self.sec;
            self.sec = match (before, iteration) {
                (Some(sec), Some(iteration)) => Some(sec + iteration),
                (sec, iteration) => sec.or(iteration),
            };
            return before.and(iteration);
        };
        // It starts again at 0 after a day (gmtime), and when a run is resumed.
        let (passed, same_run) = match self.last_elapsed {
            Some(last) if elapsed >= last => (elapsed - last, true),
            Some(last) if last > 82_800.0 => (elapsed + 86_400.0 - last, true),
            // The time before the first block that is seen is time of the run too.
            Some(_) | None => (elapsed, false),
        };
        self.last_elapsed = Some(elapsed);
        self.sec = Some(self.sec.unwrap_or(0.0) + passed);
        same_run.then_some(passed)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn whole(seconds: f64) -> u64 {
    seconds.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(rewards: impl IntoIterator<Item = f64>) -> String {
        let block = |(at, reward): (usize, f64)| {
            format!(
                "{}\nLearning iteration {at}/200\n\nMean reward: {reward}\n{}\nIteration time: 36.00s\nTotal time: {}s\nETA: 1s\n\n",
                "#".repeat(80),
                "-".repeat(80),
                (at + 1) * 36
            )
        };
        rewards.into_iter().enumerate().map(block).collect()
    }

    fn replay(log: &str) -> Replay {
        let options = ReplayOptions {
            plateau: PlateauRule::default(),
            stall: TimeDelta::seconds(600),
            rate: Some(UsdPerHour::new(Usd::from_micros(1_000_000))),
        };
        let mut replaying = Replaying::new(LogReading::new(), options);
        log.as_bytes().chunks(100).for_each(|piece| replaying.push(piece));
        replaying.end()
    }

    #[test]
    fn a_plateau_says_when_and_what_a_stop_would_have_saved() {
        let found =
            replay(&log((0..=110).map(|at| if at < 10 { f64::from(at) * 5.0 } else { 50.0 })));
        let [page] = &found.pages[..] else { panic!("{:?}", found.pages) };
        assert_eq!((page.kind, page.exit_code, page.iteration), ("plateau", 3, Some(60)));
        assert_eq!(page.at_sec, Some(61 * 36));
        assert_eq!((page.saved.iterations, page.saved.sec), (Some(50), Some(1800)));
        assert_eq!(page.saved.usd.unwrap().to_string(), "$0.50");
        assert_eq!(page.saved.iterations_to_come, Some(89));
        assert_eq!((found.blocks, found.finished), (111, false));
    }

    #[test]
    fn each_cause_is_paged_once_while_it_lasts() {
        let found =
            replay(&log((0..20).map(|at| if at > 4 { f64::NAN } else { f64::from(at) * 9.0 })));
        let kinds: Vec<_> = found.pages.iter().map(|page| (page.kind, page.iteration)).collect();
        assert_eq!(kinds, [("failure", Some(5))]);
        assert_eq!(found.failure.unwrap().cause, FailureCause::Nan);
    }

    #[test]
    fn a_crash_at_the_end_is_a_page_that_saves_nothing() {
        let text = log([1.0, 9.0]) + "Traceback (most recent call last):\n  File\nValueError: x";
        let found = replay(&text);
        let [page] = &found.pages[..] else { panic!("{:?}", found.pages) };
        assert_eq!(
            (page.kind, page.saved.iterations, page.saved.sec),
            ("failure", Some(0), Some(0))
        );
    }

    #[test]
    fn a_healthy_log_pages_nothing_and_time_goes_on_after_a_day() {
        assert_eq!(replay(&log((0..100).map(|at| f64::from(at) * 2.0))).pages, []);
        let mut time = RunTime::default();
        for elapsed in [80_000, 86_300, 100] {
            time.advance(&Block {
                elapsed: Some(Duration::from_secs(elapsed)),
                ..Block::at(1, None)
            });
        }
        assert_eq!(time.sec, Some(86_500.0));
    }
}
