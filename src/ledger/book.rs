//! What the journal adds up to. Pure.

use super::entry::{Action, Entry, Event};
use super::promises::{Promise, Promises};
use super::runs::{Run, Runs, is_off};
use crate::domain::{PodId, Usd};
use chrono::{DateTime, TimeDelta, Utc};

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

/// A start of a pod that may have put it on the bill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootAttempt {
    id: u64,
    /// For which vehicle.
    pub vehicle: String,
    /// When it was announced.
    pub at: DateTime<Utc>,
}

/// A boot that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedBoot {
    /// Which vehicle's.
    pub vehicle: String,
    /// Which pod.
    pub pod: PodId,
    /// When it was asked to start.
    pub at: DateTime<Utc>,
    /// How long it was waited for, in seconds.
    pub seconds: u64,
    /// What that cost, when the price was known.
    pub usd: Option<Usd>,
}

/// The journal, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book {
    began: Option<DateTime<Utc>>,
    open: Vec<OpenIntent>,
    known_pods: Vec<PodId>,
    known_volumes: Vec<String>,
    runs: Runs,
    promises: Promises,
    boots: Vec<BootAttempt>,
    failed_boots: Vec<FailedBoot>,
    last_id: u64,
    set_aside: Option<String>,
}

/// How a created volume is noted; its id follows.
const CREATED: &str = "created ";

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
        self.began.get_or_insert(entry.at);
        match &entry.event {
            Event::Opened { set_aside, .. } => {
                if set_aside.is_some() {
                    self.set_aside.clone_from(set_aside);
                }
            }
            Event::Intend { id, vehicle, action, .. } => {
                self.last_id = self.last_id.max(*id);
                let intent = OpenIntent {
                    id: *id,
                    vehicle: vehicle.clone(),
                    action: action.clone(),
                    at: entry.at,
                    rate: entry.event.rate(),
                    error: None,
                };
                self.intended(&intent);
                self.open.push(intent);
            }
            Event::Done { id, pod, observed } => {
                let at = self.open.iter().position(|intent| intent.id == *id);
                if let Some(intent) = at.map(|at| self.open.remove(at)) {
                    self.done(&intent, pod.as_ref(), observed, entry.at);
                }
                if let Some(pod) = pod {
                    self.know(pod);
                }
            }
            Event::Failed { id, may_have_taken_effect: false, .. } => {
                self.open.retain(|intent| intent.id != *id);
                self.boots.retain(|boot| boot.id != *id);
                self.promises.launch_failed(*id);
            }
            Event::Failed { id, error, may_have_taken_effect: true } => {
                for intent in self.open.iter_mut().filter(|intent| intent.id == *id) {
                    intent.error = Some(error.clone());
                }
                self.promises.launched(*id, entry.at);
            }
            Event::JobEnded { pod, job, .. } => {
                self.promises.job_ended(pod, job, entry.at);
                let ended = job;
                self.open.retain(|intent| {
                    !matches!(&intent.action, Action::LaunchJob { job, .. } if job == ended)
                });
            }
            Event::PodSeen { vehicle, pod, status, micros_per_hour, started_at } => {
                self.know(pod);
                if is_off(status) {
                    self.is_off(pod, None, entry.at);
                } else {
                    let rate = micros_per_hour.map(Usd::from_micros);
                    self.runs.listed(vehicle, pod, rate, *started_at, entry.at);
                }
            }
            Event::BootFailed { vehicle, pod, asked_at, seconds, micros } => {
                // A stop that was not confirmed lets the same boot be given up again, later.
                self.failed_boots.retain(|boot| (&boot.pod, &boot.at) != (pod, asked_at));
                self.failed_boots.push(FailedBoot {
                    vehicle: vehicle.clone(),
                    pod: pod.clone(),
                    at: *asked_at,
                    seconds: *seconds,
                    usd: micros.map(Usd::from_micros),
                });
            }
        }
    }

    fn intended(&mut self, intent: &OpenIntent) {
        if intent.action.can_start_a_bill() {
            let (id, vehicle, at) = (intent.id, intent.vehicle.clone(), intent.at);
            self.boots.push(BootAttempt { id, vehicle, at });
        }
        if let Action::LaunchJob { pod, job, tail_sec, until, .. } = &intent.action {
            self.promises.0.push(Promise {
                id: intent.id,
                vehicle: intent.vehicle.clone(),
                pod: pod.clone(),
                job: job.clone(),
                rate: intent.rate.unwrap_or(Usd::ZERO),
                at: intent.at,
                until: *until,
                tail: i64::try_from(*tail_sec)
                    .ok()
                    .and_then(TimeDelta::try_seconds)
                    .unwrap_or(TimeDelta::MAX),
                has_ended: false,
            });
        }
    }

    fn done(
        &mut self,
        intent: &OpenIntent,
        pod: Option<&PodId>,
        observed: &str,
        at: DateTime<Utc>,
    ) {
        match (&intent.action, pod) {
            (Action::CreatePod { .. } | Action::StartPod { .. }, Some(pod)) => {
                self.runs.start(&intent.vehicle, pod, intent.rate, intent.at);
                if is_off(observed) {
                    self.is_off(pod, None, at);
                }
            }
            // It was on the bill when the stop was asked, else none would have been.
            (Action::StopPod { pod } | Action::TerminatePod { pod }, _) if is_off(observed) => {
                let is_stop = matches!(intent.action, Action::StopPod { .. });
                self.is_off(pod, is_stop.then_some(intent.at), at);
            }
            (Action::LaunchJob { .. }, _) if !is_off(observed) => {
                self.promises.launched(intent.id, at);
            }
            (Action::CreateVolume { .. }, _) => {
                self.known_volumes.extend(observed.strip_prefix(CREATED).map(str::to_owned));
            }
            _ => {}
        }
    }

    fn is_off(&mut self, pod: &PodId, sure: Option<DateTime<Utc>>, at: DateTime<Utc>) {
        self.runs.end(pod, sure, at);
        self.promises.pod_is_off(pod);
    }

    fn know(&mut self, pod: &PodId) {
        if !self.known_pods.contains(pod) {
            self.known_pods.push(pod.clone());
        }
    }

    /// When its first line was written: of the time before it knows nothing.
    #[must_use]
    pub const fn began(&self) -> Option<DateTime<Utc>> {
        self.began
    }

    /// Calls whose end is not known, oldest first.
    #[must_use]
    pub fn open_intents(&self) -> &[OpenIntent] {
        &self.open
    }

    /// Every pod that podtether made, acted on or saw under a vehicle's name.
    #[must_use]
    pub fn known_pods(&self) -> &[PodId] {
        &self.known_pods
    }

    /// The ids of every network volume that podtether created.
    #[must_use]
    pub fn known_volumes(&self) -> &[String] {
        &self.known_volumes
    }

    /// Every stretch of time for which a pod of ours was on the bill.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs.0
    }

    /// The run of a pod that was not seen to end.
    #[must_use]
    pub fn open_run(&self, pod: &PodId) -> Option<&Run> {
        self.runs.0.iter().rev().find(|run| run.pod == *pod && run.off.is_none())
    }

    /// Reservations of launches that were not given back; some may be past their end.
    #[must_use]
    pub fn promises(&self) -> &[Promise] {
        &self.promises.0
    }

    /// Every start that may have put a pod on the bill, oldest first. A pod that ran already and was
    /// taken over is none.
    #[must_use]
    pub fn boots(&self) -> &[BootAttempt] {
        &self.boots
    }

    /// Every boot that was given up.
    #[must_use]
    pub fn failed_boots(&self) -> &[FailedBoot] {
        &self.failed_boots
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
