//! What the journal adds up to. Pure.

use super::entry::{Action, Entry, Event};
use crate::domain::{PodId, Usd};
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

/// The journal, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book {
    open: Vec<OpenIntent>,
    known_pods: Vec<PodId>,
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
            Event::Done { id, pod, .. } => {
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
}
