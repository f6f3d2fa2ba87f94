//! How long runs of a training took, from those that are over.

use super::run::Run;
use std::time::Duration;

/// What earlier runs took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// How many there are.
    pub runs: usize,
    /// In the middle: as many took longer as shorter.
    pub median: Duration,
    /// The shortest.
    pub shortest: Duration,
    /// The longest.
    pub longest: Duration,
}

/// Earlier runs of the same training that succeeded on the same GPUs with as many iterations, whatever
/// their level and seed; `None` when there is none.
#[must_use]
pub fn past<'a>(
    runs: impl Iterator<Item = &'a Run>,
    training: &str,
    gpu: &str,
    iterations: Option<u32>,
) -> Option<Past> {
    let planned = |run: &Run| run.provenance.get("training")?.get("iterations")?.as_u64();
    let mut times: Vec<Duration> = runs
        .filter(|run| {
            run.state == "succeeded"
                && run.training.as_deref() == Some(training)
                && run.gpu.as_deref() == Some(gpu)
                && planned(run) == iterations.map(u64::from)
        })
        .filter_map(|run| (run.ended_at? - run.launched_at).to_std().ok())
        .collect();
    times.sort();
    let (shortest, longest) = (*times.first()?, *times.last()?);
    let middle = times.len() / 2;
    let (upper, lower) = (times.get(middle)?, times.get(middle.saturating_sub(1))?);
    let median = if times.len() % 2 == 1 { *upper } else { (*upper + *lower) / 2 };
    Some(Past { runs: times.len(), median, shortest, longest })
}

#[cfg(test)]
mod tests {
    use super::super::run::{Around, merge};
    use super::super::sample;
    use super::*;

    fn run(seconds: i64, change: impl FnOnce(&mut Run)) -> Run {
        let record = sample::record("20260703-132525_train_00ab");
        let mut run = merge(Some(record), None, &Around::default()).unwrap();
        run.state = "succeeded".to_owned();
        run.ended_at = Some(run.launched_at + chrono::TimeDelta::seconds(seconds));
        change(&mut run);
        run
    }

    const GPU: &str = "1 x NVIDIA GeForce RTX 4090";

    #[test]
    fn the_median_is_over_what_succeeded_of_the_same_training_gpu_and_length() {
        let runs = [
            run(100, |_| ()),
            run(120, |run| run.level = Some("DR_0".into())),
            run(400, |run| run.seed = Some(9)),
            run(1, |run| run.state = "failed".into()),
            run(1, |run| run.gpu = Some("1 x NVIDIA A40".into())),
            run(1, |run| run.training = Some("bluerov2".into())),
            run(1, |run| run.ended_at = None),
            run(-5, |_| ()),
        ];
        let sec = Duration::from_secs;
        let found = past(runs.iter(), "curee", GPU, Some(400)).unwrap();
        let expected = Past { runs: 3, median: sec(120), shortest: sec(100), longest: sec(400) };
        assert_eq!(found, expected);
        let two = past(runs[..2].iter(), "curee", GPU, Some(400)).unwrap();
        assert_eq!((two.runs, two.median), (2, sec(110)));
        assert_eq!(past(runs.iter(), "curee", GPU, Some(2500)), None);
        assert_eq!(past([].iter(), "curee", GPU, Some(400)), None);
    }
}
