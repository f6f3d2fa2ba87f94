//! From values to places: the span of each axis, its ticks, and how its numbers are written.

use super::{BOTTOM, LEFT, RIGHT, TOP};

/// About how many ticks an axis gets.
const TICKS: f64 = 7.0;

/// One axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    /// Distance of two ticks: 1, 2 or 5 times a power of ten.
    pub(super) step: f64,
}

impl Axis {
    fn new(low: f64, high: f64) -> Self {
        // Divided before it is subtracted: the span of two huge values may be infinite.
        let rough = (high / TICKS - low / TICKS).max(f64::MIN_POSITIVE);
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0].map(|factor| factor * power).into_iter();
        Self {
            low,
            high,
            step: step.into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power),
        }
    }

    /// The values that get a label.
    pub(super) fn ticks(&self) -> impl Iterator<Item = f64> + use<> {
        let Self { low, high, step } = *self;
        let first = (low / step).ceil();
        // Counted and bounded: adding a step to a huge value may not change it.
        (0..=20)
            .map(move |index| (first + f64::from(index)) * step)
            .take_while(move |at| *at <= high)
    }

    /// Where a value lies, 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let span = self.high / 2.0 - self.low / 2.0;
        ((value / 2.0 - self.low / 2.0) / span).clamp(0.0, 1.0)
    }
}

/// Both axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Frame {
    pub(super) across: Axis,
    pub(super) up: Axis,
}

impl Frame {
    /// Room for every point, and never a span of 0.
    pub(super) fn around(points: &[(f64, f64)]) -> Self {
        let bounds = |pick: fn(&(f64, f64)) -> f64| {
            points.iter().map(pick).fold(None, |bounds: Option<(f64, f64)>, value| {
                Some(bounds.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
            })
        };
        let (left, right) = bounds(|point| point.0).unwrap_or((0.0, 10.0));
        // Ten iterations at least, so that ticks are whole numbers; a share of the value too, or
        // the ten would round to nothing beside a huge one.
        let across = Axis::new(left, right.max(left + f64::max(10.0, left * 1e-6)));
        let (low, high) = bounds(|point| point.1).unwrap_or((0.0, 1.0));
        let magnitude = low.abs().max(high.abs());
        let air = ((high / 2.0 - low / 2.0) * 0.16).max(magnitude * 1e-3).max(1e-3);
        // Rewards that start low and stay positive are shown from 0.
        let floor = if low >= 0.0 && low <= high / 2.0 { 0.0 } else { low - air };
        let up = Axis::new(floor.max(f64::MIN), (high + air).min(f64::MAX));
        Self { across, up }
    }

    /// Pixels of the finished picture.
    pub(super) fn place(&self, (iteration, reward): (f64, f64)) -> (f64, f64) {
        (
            LEFT + self.across.share(iteration) * (RIGHT - LEFT),
            BOTTOM - self.up.share(reward) * (BOTTOM - TOP),
        )
    }
}

/// A value with the decimals that `step` needs.
pub(super) fn number(value: f64, step: f64) -> String {
    if value.abs() >= 1e6 {
        return format!("{value:.2e}");
    }
    let decimals = (-step.log10()).ceil().clamp(0.0, 6.0) as usize;
    // A step of 1e-20 below zero is a zero to the reader.
    let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(low: f64, high: f64) -> Vec<String> {
        let axis = Axis::new(low, high);
        axis.ticks().map(|value| number(value, axis.step)).collect()
    }

    #[test]
    fn ticks_are_round_numbers_inside_the_span() {
        assert_eq!(ticks(0.0, 59.0), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(ticks(-0.86, -0.7), ["-0.85", "-0.80", "-0.75", "-0.70"]);
        assert_eq!(ticks(5.0, 15.0), ["6", "8", "10", "12", "14"]);
        assert!(ticks(-1.0, 1.0).contains(&"0.0".to_owned()), "{:?}", ticks(-1.0, 1.0));
    }

    #[test]
    fn every_point_lies_in_the_frame_however_odd_the_values() {
        let odd: [&[(f64, f64)]; 6] = [
            &[(5.0, -17_000.0)],
            &[(0.0, 0.0), (1.0, 0.0)],
            &[(0.0, f64::MAX), (1.0, f64::MIN)],
            &[(0.0, 1e-300), (1.0, 2e-300)],
            &[(0.0, 1e15), (1.0, 1e15 + 1.0)],
            &[(u64::MAX as f64, 1.0)],
        ];
        for points in odd {
            let frame = Frame::around(points);
            for point in points {
                let (x, y) = frame.place(*point);
                assert!((LEFT..=RIGHT).contains(&x) && (TOP..=BOTTOM).contains(&y), "{points:?}");
            }
            assert!(frame.up.ticks().count() <= 21);
        }
    }

    #[test]
    fn rewards_that_start_low_are_shown_from_zero() {
        assert_eq!(Frame::around(&[(0.0, 18.0), (1.0, 90.0)]).up.low, 0.0);
        assert!(Frame::around(&[(0.0, 80.0), (1.0, 90.0)]).up.low > 70.0);
    }
}
