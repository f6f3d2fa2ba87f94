//! tqdm's progress bars, `42%|####    | 21/50 [00:14<00:19, 1.50it/s, loss=0.1]`: skrl and Hugging
//! Face's Trainer say in them how far they are. Format read from tqdm's `format_meter`.

use super::number::{duration, number};
use std::time::Duration;

/// One state of a progress bar.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bar {
    /// What stands before the percent sign, such as `Epoch 3`; most trainings' own bar has nothing.
    pub(super) label: String,
    /// How far it is.
    pub(super) at: u64,
    /// Out of how many.
    pub(super) total: u64,
    /// Since its start.
    pub(super) elapsed: Option<Duration>,
    /// To its end.
    pub(super) eta: Option<Duration>,
    /// Of one step.
    pub(super) step_time: Option<Duration>,
    /// `name=number` pairs behind the speed.
    pub(super) numbers: Vec<(String, f64)>,
}

/// Bars of fewer steps are those of files being loaded.
const FEWEST_STEPS: u64 = 10;

impl Bar {
    /// Whether it may be the bar of a training: those with a label are of downloads, tokenizers and
    /// evaluations.
    pub(super) fn is_the_runs_own(&self) -> bool {
        self.label.is_empty() && self.total >= FEWEST_STEPS
    }

    /// The bar in a line; what another process wrote behind it is left out.
    pub(super) fn read(line: &str) -> Option<Self> {
        let (percent, rest) = line.split_once("%|")?;
        let digits = percent.trim_end().rfind(|c: char| !c.is_ascii_digit());
        let (label, percent) = percent.split_at(
            digits
                .map_or(0, |last| last + percent[last..].chars().next().map_or(1, char::len_utf8)),
        );
        percent.trim().parse::<u8>().ok()?;
        let (_, rest) = rest.split_once("| ")?;
        let (at, rest) = rest.split_once('/')?;
        let (total, rest) = rest.split_once(" [")?;
        let mut bar = Self {
            label: label.trim().trim_end_matches(':').to_owned(),
            at: at.trim().parse().ok()?,
            total: total.trim().parse().ok()?,
            elapsed: None,
            eta: None,
            step_time: None,
            numbers: Vec::new(),
        };
        let inside = rest.split_once(']').map_or(rest, |(inside, _)| inside);
        let (elapsed, rest) = inside.split_once('<').unwrap_or((inside, ""));
        // Longer than a day: "1 day, 2:03:04" has a comma of its own.
        let eta_end = rest.find(", ").map(|comma| match rest[..comma].ends_with("day") {
            true => rest[comma + 2..].find(", ").map_or(rest.len(), |next| comma + 2 + next),
            false => comma,
        });
        let (eta, rest) = rest.split_at(eta_end.unwrap_or(rest.len()));
        bar.elapsed = duration(elapsed.trim());
        bar.eta = duration(eta.trim());
        let mut words = rest.split(',').map(str::trim).filter(|word| !word.is_empty());
        if let Some(speed) = words.next() {
            bar.step_time = speed_of(speed);
        }
        bar.numbers = words
            .filter_map(|word| {
                let (name, value) = word.split_once('=')?;
                Some((name.trim().to_owned(), number(value.trim())?))
            })
            .collect();
        Some(bar)
    }
}

/// `15.61it/s` or `1.06s/it`.
fn speed_of(text: &str) -> Option<Duration> {
    let seconds = match text.split_once("s/") {
        Some((seconds, _)) => seconds.parse().ok()?,
        None => {
            let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            1.0 / text[..digits].parse::<f64>().ok()?
        }
    };
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_read_with_its_times_and_numbers() {
        let bar = Bar::read(
            "Epoch 3:  42%|████▏     | 21/50 [1:00:14<1 day, 2:00:00, 1.06s/it, v_num=0, loss=nan]tail",
        );
        let bar = bar.unwrap();
        assert_eq!((bar.label.as_str(), bar.at, bar.total), ("Epoch 3", 21, 50));
        assert_eq!(bar.elapsed, Some(Duration::from_secs(3614)));
        assert_eq!(bar.eta, Some(Duration::from_secs(93_600)));
        assert_eq!(bar.step_time, Some(Duration::from_millis(1060)));
        assert_eq!(bar.numbers[0], ("v_num".to_owned(), 0.0));
        assert!(bar.numbers[1].1.is_nan());
        let plain = Bar::read("  0%|▏   | 186/24000 [00:14<25:25, 15.61it/s]").unwrap();
        assert_eq!((plain.label.as_str(), plain.at, plain.total), ("", 186, 24_000));
        assert!(plain.step_time.unwrap() < Duration::from_millis(65));
        let first = Bar::read("  0%|          | 0/157 [00:00<?, ?it/s]").unwrap();
        assert_eq!((first.at, first.eta, first.step_time), (0, None, None));
    }

    #[test]
    fn what_only_looks_like_a_bar_is_none() {
        for line in [
            "Accuracy: 12%| of all",
            "[running kmeans]: 1it [00:00,  9.01it/s]",
            "%| 1/2 [",
            "é%|x| 1/2 [00:01<00:01, 1.0it/s]",
            "100%|####| 1.2k/3.4k [00:01<00:01, 1.0it/s]",
            "300%|x| 1/2 [00:01<00:01, 1.0it/s]",
        ] {
            assert_eq!(Bar::read(line), None, "{line}");
        }
    }
}
