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
    /// When something was last noted of it. A laptop that slept in the call makes it hours more.
    pub last_noted: DateTime<Utc>,
    /// What it may have put on the bill for an hour.
    pub rate: Option<Usd>,
    /// Why its end is not known: the error that was seen, or nothing at all.
    pub error: Option<String>,
}

/// A create of a pod that was sent and has not been proven to be without effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Create {
    /// Its intent.
    pub id: u64,
    /// For which vehicle.
    pub vehicle: String,
    /// The marker that its pod carries.
    pub nonce: String,
    /// The pod, once it was named.
    pub pod: Option<PodId>,
    /// When its intent was written.
    pub at: DateTime<Utc>,
    /// When something was last noted of it: until then its request may have been on its way.
    pub last_noted: DateTime<Utc>,
    /// What it may have put on the bill for an hour.
    pub rate: Option<Usd>,
}

/// The journal, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book {
    open: Vec<OpenIntent>,
    creates: Vec<Create>,
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
                if let Action::CreatePod { nonce, .. } = action {
                    self.creates.push(Create {
                        id: *id,
                        vehicle: vehicle.clone(),
                        nonce: nonce.clone(),
                        pod: None,
                        at: entry.at,
                        last_noted: entry.at,
                        rate: entry.event.rate(),
                    });
                }
                self.open.push(OpenIntent {
                    id: *id,
                    vehicle: vehicle.clone(),
                    action: action.clone(),
                    at: entry.at,
                    last_noted: entry.at,
                    rate: entry.event.rate(),
                    error: None,
                });
            }
            Event::Done { id, pod, .. } => {
                let ended = self.open.iter().find(|intent| intent.id == *id);
                if let Some(Action::TerminatePod { pod }) = ended.map(|intent| &intent.action) {
                    self.creates.retain(|create| create.pod.as_ref() != Some(pod));
                }
                self.open.retain(|intent| intent.id != *id);
                for create in self.creates.iter_mut().filter(|create| create.id == *id) {
                    create.pod.clone_from(pod);
                    create.last_noted = entry.at;
                }
                if let Some(pod) = pod.as_ref().filter(|pod| !self.known_pods.contains(pod)) {
                    self.known_pods.push(pod.clone());
                }
            }
            Event::Failed { id, may_have_taken_effect: false, .. } => {
                self.open.retain(|intent| intent.id != *id);
                self.creates.retain(|create| create.id != *id);
            }
            Event::Failed { id, error, may_have_taken_effect: true } => {
                for intent in self.open.iter_mut().filter(|intent| intent.id == *id) {
                    intent.error = Some(error.clone());
                    intent.last_noted = entry.at;
                }
                for create in self.creates.iter_mut().filter(|create| create.id == *id) {
                    create.last_noted = entry.at;
                }
            }
        }
    }

    /// Calls whose end is not known, oldest first.
    #[must_use]
    pub fn open_intents(&self) -> &[OpenIntent] {
        &self.open
    }

    /// Creates of pods, oldest first, but for those that were proven to be without effect and those
    /// whose pod was terminated.
    #[must_use]
    pub fn creates(&self) -> &[Create] {
        &self.creates
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

    /// A05: a create that was answered stays in mind, since its pod may be hidden for a while; its time
    /// counts from what was last noted, since a laptop that sleeps in the call is hours late.
    #[test]
    fn a_create_is_kept_in_mind_after_its_answer_and_its_time_counts_from_the_last_word() {
        let later = |event| Entry { at: DateTime::UNIX_EPOCH + chrono::TimeDelta::hours(8), event };
        let pod = Some(PodId("pod1".into()));
        let done = |id, pod| Event::Done { id, pod, observed: "x".into() };
        let failed = |id, may_have_taken_effect| Event::Failed {
            id,
            error: "cut".into(),
            may_have_taken_effect,
        };
        let book = Book::of(&[create(1), later(done(1, pod.clone()))]);
        assert_eq!((book.open_intents().len(), book.creates().len()), (0, 1));
        assert_eq!(book.creates()[0].pod, pod);
        let book = Book::of(&[create(1), later(failed(1, true))]);
        assert_eq!(book.creates()[0].at, DateTime::UNIX_EPOCH);
        for noted in [book.creates()[0].last_noted, book.open_intents()[0].last_noted] {
            assert_eq!(noted, later(failed(1, true)).at);
        }
        assert!(Book::of(&[create(1), later(failed(1, false))]).creates().is_empty());
        let terminate = entry(Event::Intend {
            id: 2,
            vehicle: "hippocampus".into(),
            action: Action::TerminatePod { pod: PodId("pod1".into()) },
            micros_per_hour: None,
        });
        let gone = [create(1), entry(done(1, pod.clone())), terminate, entry(done(2, pod))];
        assert!(Book::of(&gone).creates().is_empty());
    }
}
