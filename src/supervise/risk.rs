//! What it would cost if this laptop slept now, said at the start and whenever it changes.

use crate::domain::{FuseReport, FuseState, UnattendedBill, Usd};
use chrono::{DateTime, TimeDelta, Utc};

/// A bound that moves by less says nothing new: leases are renewed at every look.
const MOVES: TimeDelta = TimeDelta::minutes(15);

/// What was told last.
#[derive(Debug, Default)]
pub(super) struct Risk {
    told: Option<Told>,
    armed: Vec<&'static str>,
}

#[derive(Clone, Debug, PartialEq)]
struct Told {
    armed: Vec<&'static str>,
    by: Option<DateTime<Utc>>,
    usd: Option<Usd>,
}

impl Risk {
    /// What is proven to stop the pod by itself, as it was last seen.
    pub(super) fn armed(&self) -> Vec<&'static str> {
        self.armed.clone()
    }

    /// What to tell, when it is news.
    pub(super) fn look(
        &mut self,
        fuses: &[FuseReport],
        asleep: &UnattendedBill,
        now: DateTime<Utc>,
    ) -> Option<String> {
        let armed = fuses.iter().filter(|fuse| fuse.state == FuseState::Armed);
        self.armed = armed.map(|fuse| fuse.name.as_str()).collect();
        self.armed.dedup();
        let within = asleep.seconds.and_then(|sec| i64::try_from(sec).ok());
        let by = within.and_then(TimeDelta::try_seconds).and_then(|by| now.checked_add_signed(by));
        let seen = Told { armed: self.armed.clone(), by, usd: asleep.usd };
        if self.told.as_ref().is_some_and(|told| !told.is_outdated_by(&seen)) {
            return None;
        }
        let is_first = self.told.replace(seen).is_none();
        // C03: nothing that a program holds keeps a closed laptop awake.
        let lid = if is_first { "; a closed lid is sleep, whatever holds sleep off" } else { "" };
        let armed = if self.armed.is_empty() { "nothing".into() } else { self.armed.join(", ") };
        Some(format!("{}; armed: {armed}{lid}", asleep.text))
    }
}

impl Told {
    fn is_outdated_by(&self, seen: &Self) -> bool {
        let moves = match (self.by, seen.by) {
            (Some(told), Some(now)) => (now - told).abs() >= MOVES,
            (told, now) => told.is_some() != now.is_some(),
        };
        moves || self.armed != seen.armed || self.usd.is_some() != seen.usd.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::FuseName;

    fn fuse(state: FuseState) -> FuseReport {
        FuseReport::without_proof(FuseName::Watchdog, state, String::new())
    }

    fn bill(seconds: Option<u64>) -> UnattendedBill {
        UnattendedBill { text: "if this laptop sleeps: …".into(), seconds, usd: None }
    }

    #[test]
    fn what_sleep_would_cost_is_told_at_the_start_and_when_it_changes() {
        let mut risk = Risk::default();
        let mut look = |state, seconds, minute| {
            let now = DateTime::UNIX_EPOCH + TimeDelta::minutes(minute);
            risk.look(&[fuse(state)], &bill(seconds), now)
        };
        let first = look(FuseState::Armed, Some(3_600), 0);
        assert_eq!(
            first.as_deref(),
            Some(
                "if this laptop sleeps: …; armed: watchdog; a closed lid is sleep, whatever holds sleep off"
            )
        );
        assert_eq!(look(FuseState::Armed, Some(3_000), 10), None, "the same hour of the day");
        assert_eq!(look(FuseState::Armed, Some(3_600), 14), None, "a lease was renewed");
        assert!(look(FuseState::Armed, Some(7_200), 15).is_some());
        let gone = look(FuseState::Dead, None, 16);
        assert_eq!(gone.as_deref(), Some("if this laptop sleeps: …; armed: nothing"));
        assert_eq!(look(FuseState::Dead, None, 60), None);
    }
}
