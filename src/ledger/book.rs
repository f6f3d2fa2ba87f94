//! What the journal adds up to. Pure.

use super::entry::{Action, Entry, Event};
use crate::domain::{PodId, PodStatus, Usd};
use chrono::{DateTime, Utc};

/// A changing call whose end is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenIntent {
    /// Names it in the journal.
    pub id: u64,
    /// For which vehicle.
    pub vehicle: String,
    /// What it was.
    pub action: Action,
    /// When it was written.
    pub at: DateTime<Utc>,
    /// What it may have put on the bill for an hour.
    pub rate: Option<Usd>,
    /// Why its end is not known: the error that was seen, or nothing at all.
    pub error: Option<String>,
}

/// A stop of a pod that was read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Which pod.
    pub pod: PodId,
    /// When it was asked to stop.
    pub asked_at: DateTime<Utc>,
    /// When EXITED was read.
    pub read_at: DateTime<Utc>,
}

/// The journal, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book {
    open: Vec<OpenIntent>,
    known_pods: Vec<PodId>,
    exits: Vec<Exit>,
    last_id: u64,
    set_aside: Option<String>,
}

impl Book {
    /// Adds up entries in the order in which they were written.
    #[must_use]
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut book = Self::default();
        for entry in entries {
            book.add(entry);
        }
        book
    }

    /// Adds one entry.
    pub fn add(&mut self, entry: &Entry) {
        match &entry.event {
            Event::Opened { set_aside, .. } => {
                if set_aside.is_some() {
                    self.set_aside.clone_from(set_aside);
                }
            }
            Event::Intend { id, vehicle, action, .. } => {
                self.last_id = self.last_id.max(*id);
                self.open.push(OpenIntent {
                    id: *id,
                    vehicle: vehicle.clone(),
                    action: action.clone(),
                    at: entry.at,
                    rate: entry.event.rate(),
                    error: None,
                });
            }
            Event::Done { id, pod, observed } => {
                let asked = self.open.iter().find(|intent| intent.id == *id);
                if let (Some(intent), Some(pod)) = (asked, pod)
                    && matches!(intent.action, Action::StopPod { .. })
                    && observed == PodStatus::Exited.as_str()
                {
                    let exit = Exit { pod: pod.clone(), asked_at: intent.at, read_at: entry.at };
                    self.exits.retain(|exit| exit.pod != *pod);
                    self.exits.push(exit);
                }
                self.open.retain(|intent| intent.id != *id);
                if let Some(pod) = pod.as_ref().filter(|pod| !self.known_pods.contains(pod)) {
                    self.known_pods.push(pod.clone());
                }
            }
            Event::Failed { id, may_have_taken_effect: false, .. } => {
                self.open.retain(|intent| intent.id != *id);
            }
            Event::Failed { id, error, may_have_taken_effect: true } => {
                for intent in self.open.iter_mut().filter(|intent| intent.id == *id) {
                    intent.error = Some(error.clone());
                }
            }
        }
    }

    /// Calls whose end is not known, oldest first.
    #[must_use]
    pub fn open_intents(&self) -> &[OpenIntent] {
        &self.open
    }

    /// Every pod that podtether made or acted on.
    #[must_use]
    pub fn known_pods(&self) -> &[PodId] {
        &self.known_pods
    }

    /// The last stop of a pod that was read back here.
    #[must_use]
    pub fn last_exit(&self, pod: &PodId) -> Option<&Exit> {
        self.exits.iter().find(|exit| exit.pod == *pod)
    }

    /// An id that no intent has.
    #[must_use]
    pub const fn next_id(&self) -> u64 {
        self.last_id + 1
    }

    /// Where a journal that could not be read was set aside.
    #[must_use]
    pub fn set_aside(&self) -> Option<&str> {
        self.set_aside.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(event: Event) -> Entry {
        Entry { at: DateTime::UNIX_EPOCH, event }
    }

    fn create(id: u64) -> Entry {
        entry(Event::Intend {
            id,
            vehicle: "hippocampus".into(),
            action: Action::CreatePod { name: "pod".into(), nonce: format!("n{id}") },
            micros_per_hour: Some(690_000),
        })
    }

    /// B04: an intent is open until its end is known, and an end that settles nothing leaves it open.
    #[test]
    fn an_intent_is_open_until_its_end_is_known() {
        let failed = |id, may_have_taken_effect| {
            entry(Event::Failed { id, error: "cut".into(), may_have_taken_effect })
        };
        let done = |id| {
            let pod = Some(PodId("pod1".into()));
            entry(Event::Done { id, pod, observed: "created".into() })
        };
        let open = |entries: &[Entry]| {
            Book::of(entries).open_intents().iter().map(|intent| intent.id).collect::<Vec<_>>()
        };
        assert_eq!(open(&[create(1)]), [1]);
        assert_eq!(open(&[create(1), done(1)]), Vec::<u64>::new());
        assert_eq!(open(&[create(1), failed(1, false), create(2)]), [2]);
        assert_eq!(open(&[create(1), failed(1, true)]), [1]);
        assert_eq!(open(&[create(1), failed(1, true), done(1)]), Vec::<u64>::new());
        let book = Book::of(&[create(1), create(7), done(1)]);
        assert_eq!((book.next_id(), book.known_pods()), (8, &[PodId("pod1".into())][..]));
        assert_eq!(book.open_intents()[0].rate, Some(Usd::from_micros(690_000)));
    }

    /// Only a stop whose EXITED was read is one, and the last of a pod counts.
    #[test]
    fn the_last_stop_that_was_read_back_is_remembered() {
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        let pod = PodId("pod1".into());
        let stop = |id, seconds| {
            let action = Action::StopPod { pod: pod.clone() };
            let vehicle = "hippocampus".to_owned();
            let event = Event::Intend { id, vehicle, action, micros_per_hour: None };
            Entry { at: at(seconds), event }
        };
        let done = |id, seconds, observed: &str| {
            let event = Event::Done { id, pod: Some(pod.clone()), observed: observed.into() };
            Entry { at: at(seconds), event }
        };
        let exit = |entries: &[Entry]| {
            Book::of(entries).last_exit(&pod).map(|exit| (exit.asked_at, exit.read_at))
        };
        assert_eq!(exit(&[stop(1, 10), done(1, 12, "gone")]), None);
        let first = [stop(1, 10), done(1, 12, "EXITED")];
        assert_eq!(exit(&first), Some((at(10), at(12))));
        let both = [&first[..], &[stop(2, 20), done(2, 25, "EXITED")]].concat();
        assert_eq!(exit(&both), Some((at(20), at(25))));
        let start = Entry { at: at(30), event: create(3).event };
        assert_eq!(exit(&[start, done(3, 31, "EXITED")]), None, "no stop of podtether's");
    }
}
