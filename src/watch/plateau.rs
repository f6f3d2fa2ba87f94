//! The plateau rule (contract, section 7): over the points with an iteration of at least the newest minus
//! the window, which must span the window, the reward moved by less than a delta. Pure.

use std::collections::VecDeque;

/// When a flat reward is worth a page.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct PlateauRule {
    /// How many iterations are looked at.
    pub window: u64,
    /// How much less than this the mean reward moved over them.
    pub min_delta: f64,
    /// No plateau before this iteration: early on, many runs are flat before they learn.
    pub after: Option<u64>,
    /// The reward must also have moved by less than this share of its level. The level is the mean's size,
    /// and at least `min_delta`, because a share of a level near zero means nothing.
    pub relative: Option<f64>,
    /// No plateau at or above this mean reward: the run has learnt what it was to learn, and may rest.
    pub below: Option<f64>,
}

impl Default for PlateauRule {
    fn default() -> Self {
        Self { window: 50, min_delta: 3.0, after: None, relative: None, below: None }
    }
}

/// A plateau that was found.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Flat {
    /// The first iteration of the window.
    pub from: u64,
    /// The last.
    pub to: u64,
    /// The lowest mean reward in it.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

/// More points than any window that is looked at needs; a log with many blocks of one iteration must
/// not cost memory.
const MOST_POINTS: usize = 100_000;

/// The rewards within the window.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Curve {
    points: VecDeque<(u64, f64)>,
}

impl Curve {
    /// Takes a point. A run that was resumed repeats iterations: what it replaces is forgotten. A reward
    /// that is no number is no point.
    pub fn push(&mut self, iteration: u64, reward: f64, window: u64) {
        if !reward.is_finite() {
            return;
        }
        while self.points.back().is_some_and(|(last, _)| *last >= iteration) {
            self.points.pop_back();
        }
        self.points.push_back((iteration, reward));
        let oldest = iteration.saturating_sub(window);
        while self.points.len() > MOST_POINTS
            || self.points.front().is_some_and(|(first, _)| *first < oldest)
        {
            self.points.pop_front();
        }
    }

    /// The plateau, if the curve stands on one.
    #[must_use]
    pub fn flat(&self, rule: &PlateauRule) -> Option<Flat> {
        let ((from, _), (to, _)) = (self.points.front()?, self.points.back()?);
        if to - from < rule.window || rule.after.is_some_and(|after| *to < after) {
            return None;
        }
        let low = self.points.iter().map(|(_, reward)| *reward).fold(f64::INFINITY, f64::min);
        let high = self.points.iter().map(|(_, reward)| *reward).fold(f64::NEG_INFINITY, f64::max);
        let mean = self.points.iter().map(|(_, reward)| *reward).sum::<f64>()
            / f64::from(u32::try_from(self.points.len()).unwrap_or(u32::MAX));
        let limit = match rule.relative {
            Some(share) => rule.min_delta.min(share * mean.abs().max(rule.min_delta)),
            None => rule.min_delta,
        };
        let learnt = rule.below.is_some_and(|below| mean >= below);
        (high - low < limit && !learnt).then_some(Flat { from: *from, to: *to, low, high })
    }

    /// How much the reward moved from the window's first point to its last.
    #[must_use]
    pub fn trend(&self) -> Option<f64> {
        let ((_, first), (_, last)) = (self.points.front()?, self.points.back()?);
        (self.points.len() > 1).then_some(last - first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: impl IntoIterator<Item = (u64, f64)>, rule: &PlateauRule) -> Option<Flat> {
        let mut curve = Curve::default();
        points.into_iter().for_each(|(at, reward)| curve.push(at, reward, rule.window));
        curve.flat(rule)
    }

    #[test]
    fn a_reward_that_moves_less_than_the_delta_over_the_window_is_flat() {
        let rule = PlateauRule::default();
        let flat = (0..=50).map(|at| (at, if at % 2 == 0 { 10.0 } else { 12.99 }));
        let found = curve(flat, &rule).unwrap();
        assert_eq!((found.from, found.to, found.low, found.high), (0, 50, 10.0, 12.99));
        let moves = (0..=50).map(|at| (at, if at == 7 { 13.0 } else { 10.0 }));
        assert_eq!(curve(moves, &rule), None);
    }

    #[test]
    fn a_window_that_is_not_spanned_is_no_plateau() {
        let rule = PlateauRule::default();
        assert_eq!(curve((0..50).map(|at| (at, 1.0)), &rule), None);
        assert_eq!(curve((0..2).map(|at| (at * 60, 1.0)), &rule), None, "one point in the window");
        assert!(curve((0..2).map(|at| (at * 50, 1.0)), &rule).is_some());
    }

    #[test]
    fn a_resumed_run_does_not_make_a_plateau_of_its_past() {
        let rule = PlateauRule::default();
        let twice = (0..49).chain(30..49).map(|at| (at, 1.0));
        assert_eq!(curve(twice, &rule), None);
    }

    #[test]
    fn a_reward_that_is_no_number_is_no_point() {
        let rule = PlateauRule::default();
        let points = (0..=60).map(|at| (at, if at > 40 { f64::NAN } else { 1.0 }));
        assert_eq!(curve(points, &rule), None);
    }

    #[test]
    fn every_option_only_makes_fewer_pages() {
        let flat = || (0..=100).map(|at| (at, 100.0 + f64::from(u32::try_from(at % 2).unwrap())));
        let base = PlateauRule::default();
        assert!(curve(flat(), &base).is_some());
        assert_eq!(curve(flat(), &PlateauRule { after: Some(101), ..base }), None);
        assert!(curve(flat(), &PlateauRule { after: Some(100), ..base }).is_some());
        assert_eq!(curve(flat(), &PlateauRule { relative: Some(0.005), ..base }), None);
        assert!(curve(flat(), &PlateauRule { relative: Some(0.05), ..base }).is_some());
        assert_eq!(curve(flat(), &PlateauRule { below: Some(95.0), ..base }), None);
        assert!(curve(flat(), &PlateauRule { below: Some(120.0), ..base }).is_some());
        // A share of more than the delta loosens nothing.
        let moves =
            || (0..=50).map(|at| (at, 100.0 + 4.0 * f64::from(u32::try_from(at % 2).unwrap())));
        assert_eq!(curve(moves(), &PlateauRule { relative: Some(0.5), ..base }), None);
    }
}
