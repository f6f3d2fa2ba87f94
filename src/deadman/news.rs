//! What of a fuse is worth telling people who are not there: that it fires, that it asks in vain, and how it
//! ended. Pure. Whoever is told gets it beside the stop, never before it.

use super::record::Record;
use super::state::{Outcome, Phase, State};
use crate::domain::Usd;
use std::time::Duration;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewsKind {
    /// Its time has come: it asks for the stop.
    Fires,
    /// It has asked in vain for a while and goes on; the pod may bill.
    InVain,
    /// The pod was read back as off the bill.
    Stopped,
    /// It has given up, or the pod is not the vehicle's any more: something may bill.
    MayBill,
}

/// One thing to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// What happened.
    pub kind: NewsKind,
    /// Of which vehicle.
    pub vehicle: String,
    /// In words.
    pub text: String,
}

/// A fuse that has asked for so long without a stop is no good news any more.
const IN_VAIN: Duration = Duration::from_secs(180);

/// What was told already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// Since when it fires, in time since it was armed.
    since: Option<Duration>,
    in_vain: bool,
}

impl Told {
    /// What is new after a step, each once.
    pub fn step(&mut self, before: &State, after: &State) -> Option<NewsKind> {
        match (before.phase, after.phase) {
            (Phase::Armed, Phase::Firing(_)) => {
                self.since = Some(after.elapsed);
                Some(NewsKind::Fires)
            }
            (Phase::Firing(_), Phase::Firing(firing)) if !self.in_vain => {
                let asked_for = after.elapsed.saturating_sub(self.since.unwrap_or(after.elapsed));
                self.in_vain = firing.failed > 0 || asked_for >= IN_VAIN;
                self.in_vain.then_some(NewsKind::InVain)
            }
            (Phase::Firing(_), Phase::Over(Outcome::Stopped)) => Some(NewsKind::Stopped),
            (Phase::Firing(_), Phase::Over(Outcome::StopFailed | Outcome::Refused)) => {
                Some(NewsKind::MayBill)
            }
            // Whoever calls it off knows.
            _ => None,
        }
    }
}

impl News {
    /// The news in words. `said` is the last word of the provider, or of the end.
    pub(super) fn of(kind: NewsKind, record: &Record, said: &str) -> Self {
        let pod = record.pod_id.as_ref().map_or_else(
            || format!("the pod named {:?}", record.pod_name),
            |id| format!("pod {id} ({:?})", record.pod_name),
        );
        let rate = record.micros_per_hour.map(Usd::from_micros);
        let rate = rate
            .map_or_else(|| "at a price that is not known".to_owned(), |rate| format!("{rate}/h"));
        let due = record.fire_at.format("%Y-%m-%d %H:%M:%S UTC");
        let text = match kind {
            NewsKind::Fires => format!(
                "the laptop's fuse fires: it was armed until {due}; it asks now for the stop of {pod}, which bills {rate}"
            ),
            NewsKind::InVain => format!(
                "the laptop's fuse asks for the stop of {pod} in vain and goes on asking; IT MAY BILL {rate}. The last word: {said}"
            ),
            NewsKind::Stopped => format!("the laptop's fuse, due {due}: {said}"),
            NewsKind::MayBill => format!("the laptop's fuse, due {due}, for {pod}, {rate}: {said}"),
        };
        Self { kind, vehicle: record.vehicle.clone(), text }
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::{Asked, Event, Now, Terms, next};
    use super::*;
    use chrono::{DateTime, TimeDelta};

    const TERMS: Terms = Terms { retries: 1, spacing: Duration::from_secs(300) };

    fn now(sec: u64) -> Now {
        let monotonic = Duration::from_secs(sec);
        let wall = DateTime::UNIX_EPOCH + TimeDelta::from_std(monotonic).unwrap();
        Now { wall, monotonic, since_boot: monotonic }
    }

    /// What a fuse that is due at 10 s tells over these events.
    fn told(events: &[(u64, Event)]) -> Vec<NewsKind> {
        let (mut told, mut state) =
            (Told::default(), State::armed(DateTime::UNIX_EPOCH + TimeDelta::seconds(10), now(0)));
        let mut news = Vec::new();
        for (at, event) in events {
            let after = next(&state, *event, now(*at), TERMS).state;
            news.extend(told.step(&state, &after));
            state = after;
        }
        news
    }

    #[test]
    fn a_fuse_that_stops_its_pod_tells_that_it_fires_and_that_it_stopped() {
        let off = Event::Asked(Asked::Off);
        let news = told(&[(5, Event::Tick), (10, Event::Tick), (11, Event::Tick), (20, off)]);
        assert_eq!(news, [NewsKind::Fires, NewsKind::Stopped]);
    }

    #[test]
    fn one_that_asks_in_vain_tells_it_once_while_it_goes_on_and_once_at_the_end() {
        let vain = Event::Asked(Asked::NoEffect);
        let asks = [
            (10, Event::Tick),
            (20, vain),
            (30, vain),
            (330, Event::Tick),
            (340, vain),
            (350, vain),
        ];
        assert_eq!(told(&asks), [NewsKind::Fires, NewsKind::InVain, NewsKind::MayBill]);
    }

    /// C02: a network that is away after waking uses up no try, and is told when it stays away.
    #[test]
    fn nobody_who_answers_is_told_after_three_minutes_and_not_when_it_wakes_late() {
        let away = Event::Asked(Asked::Unreachable { wait: None });
        // It slept through its time by an hour.
        let asks = [(3610, Event::Tick), (3620, away), (3640, away), (3800, away), (3900, away)];
        assert_eq!(told(&asks), [NewsKind::Fires, NewsKind::InVain]);
    }

    #[test]
    fn one_that_is_called_off_tells_nothing_and_a_stranger_is_told() {
        assert_eq!(told(&[(5, Event::Cancel)]), []);
        assert_eq!(told(&[(10, Event::Tick), (11, Event::Cancel)]), [NewsKind::Fires]);
        let stranger = [(10, Event::Tick), (11, Event::Asked(Asked::NotOurs))];
        assert_eq!(told(&stranger), [NewsKind::Fires, NewsKind::MayBill]);
    }
}
