//! When a budget is nearly used up: at 80 and at 95 percent, each told once.

use crate::domain::Usd;

/// The marks, in percent, highest first.
const MARKS: [u8; 2] = [95, 80];

/// Which marks were told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threshold {
    told: u8,
}

impl Threshold {
    /// The highest mark that `spent` has reached of `budget` and that was not told before. A budget
    /// of nothing has no marks.
    pub fn reached(&mut self, spent: Usd, budget: Usd) -> Option<u8> {
        if budget <= Usd::ZERO {
            return None;
        }
        let is_reached = |mark: &u8| {
            spent.saturating_mul(100) >= budget.saturating_mul(i64::from(*mark))
                && *mark > self.told
        };
        let mark = MARKS.into_iter().find(is_reached)?;
        self.told = mark;
        Some(mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_is_told_once_and_a_lower_one_not_after_a_higher() {
        let usd = Usd::from_micros;
        let budget = usd(5_000_000);
        let mut threshold = Threshold::default();
        let told: Vec<Option<u8>> = [3_999_999, 4_000_000, 4_500_000, 4_750_000, 6_000_000]
            .map(|spent| threshold.reached(usd(spent), budget))
            .to_vec();
        assert_eq!(told, [None, Some(80), None, Some(95), None]);
        let mut late = Threshold::default();
        assert_eq!(late.reached(usd(4_900_000), budget), Some(95));
        assert_eq!(late.reached(usd(4_100_000), budget), None);
        assert_eq!(Threshold::default().reached(usd(1), Usd::ZERO), None);
    }
}
