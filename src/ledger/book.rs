//! What the journal adds up to. Pure.

use super::creates::{Create, Creates};
use super::entry::{Action, Entry, Event};
use super::noted::Noted;
use super::promises::{Promise, Promises};
use super::runs::{Run, Runs, is_off};
use crate::domain::{PodId, PodStatus, Usd};
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
    /// When something was last noted of it. A laptop that slept in the call makes it hours more.
    pub last_noted: Noted,
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
    began: Option<Noted>,
    open: Vec<OpenIntent>,
    creates: Creates,
    known_pods: Vec<PodId>,
    known_volumes: Vec<String>,
    runs: Runs,
    promises: Promises,
    boots: Vec<BootAttempt>,
    failed_boots: Vec<FailedBoot>,
    exits: Vec<Exit>,
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
        self.began.get_or_insert_with(|| entry.noted());
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
                    last_noted: entry.noted(),
                    rate: entry.event.rate(),
                    error: None,
                };
                self.creates.intended(*id, vehicle, action, intent.rate, &entry.noted());
                self.intended(&intent);
                self.open.push(intent);
            }
            Event::Done { id, pod, observed } => {
                let at = self.open.iter().position(|intent| intent.id == *id);
                if let Some(intent) = at.map(|at| self.open.remove(at)) {
                    if let Some(pod) = pod
                        && matches!(intent.action, Action::StopPod { .. })
                        && observed == PodStatus::Exited.as_str()
                    {
                        let exit =
                            Exit { pod: pod.clone(), asked_at: intent.at, read_at: entry.at };
                        self.exits.retain(|exit| exit.pod != *pod);
                        self.exits.push(exit);
                    }
                    self.creates.done(*id, &intent.action, pod.as_ref(), &entry.noted());
                    self.done(&intent, pod.as_ref(), observed, entry.at);
                }
                if let Some(pod) = pod {
                    self.know(pod);
                }
            }
            Event::Failed { id, may_have_taken_effect: false, .. } => {
                self.open.retain(|intent| intent.id != *id);
                self.boots.retain(|boot| boot.id != *id);
                self.creates.had_no_effect(*id);
                self.promises.launch_failed(*id);
            }
            Event::Failed { id, error, may_have_taken_effect: true } => {
                for intent in self.open.iter_mut().filter(|intent| intent.id == *id) {
                    intent.error = Some(error.clone());
                    intent.last_noted = entry.noted();
                }
                self.creates.noted(*id, &entry.noted());
                self.promises.launched(*id, entry.at);
            }
            Event::JobEnded { pod, job, .. } => {
                self.promises.job_ended(pod, job, entry.at);
                let ended = job;
                self.open.retain(|intent| {
                    !matches!(&intent.action, Action::LaunchJob { job, .. } if job == ended)
                });
            }
            // It is read by who lists runs; nothing of it bills.
            Event::RunRecorded { .. } => {}
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
                // A pod bills once: an earlier start whose outcome is not known is this run.
                self.open.retain(
                    |open| !matches!(&open.action, Action::StartPod { pod: same } if same == pod),
                );
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
    pub const fn began(&self) -> Option<&Noted> {
        self.began.as_ref()
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
        &self.creates.0
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
        Entry { at: DateTime::UNIX_EPOCH, up: None, event }
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

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
    }

    fn on(minute: i64, event: Event) -> Entry {
        Entry { at: at(minute), up: None, event }
    }

    fn pod() -> PodId {
        PodId("pod1".into())
    }

    fn intend(minute: i64, id: u64, action: Action) -> Entry {
        let vehicle = "hippocampus".into();
        on(minute, Event::Intend { id, vehicle, action, micros_per_hour: Some(690_000) })
    }

    fn done(minute: i64, id: u64, observed: &str) -> Entry {
        on(minute, Event::Done { id, pod: Some(pod()), observed: observed.into() })
    }

    fn failed(minute: i64, id: u64, may_have_taken_effect: bool) -> Entry {
        on(minute, Event::Failed { id, error: "cut".into(), may_have_taken_effect })
    }

    fn launch(minute: i64, id: u64, until: i64) -> Entry {
        let job = format!("job{id}");
        let until = at(until);
        let action = Action::LaunchJob {
            pod: pod(),
            job,
            ceiling_sec: 3600,
            tail_sec: 600,
            until,
            provenance: [("seed".to_owned(), 1.into())].into(),
        };
        intend(minute, id, action)
    }

    fn seen(minute: i64, status: &str) -> Entry {
        let (vehicle, status) = ("hippocampus".into(), status.into());
        let started_at = Some(at(minute - 3));
        on(
            minute,
            Event::PodSeen { vehicle, pod: pod(), status, micros_per_hour: None, started_at },
        )
    }

    fn untils(entries: &[Entry]) -> Vec<i64> {
        let book = Book::of(entries);
        book.promises().iter().map(|promise| (promise.until - at(0)).num_minutes()).collect()
    }

    /// A launch holds its worst case until its pod is off the bill, or it surely did not start.
    #[test]
    fn a_launch_is_reserved_until_its_pod_is_off_the_bill() {
        let launched = [launch(0, 1, 70)];
        assert_eq!(untils(&launched), [70]);
        let and = |more: Vec<Entry>| -> Vec<i64> { untils(&[&launched[..], &more].concat()) };
        // Its time counts from when it was launched; a lost answer changes nothing else.
        assert_eq!(and(vec![done(2, 1, "job job1 launched")]), [72]);
        assert_eq!(and(vec![failed(2, 1, true)]), [72]);
        assert_eq!(and(vec![failed(2, 1, false)]), [0_i64; 0]);
        // After the job only the time after it is held.
        let ended = |minute, job: &str| {
            let (vehicle, job) = ("hippocampus".into(), job.into());
            on(minute, Event::JobEnded { vehicle, pod: pod(), job, state: "failed".into() })
        };
        assert_eq!(and(vec![ended(20, "job1")]), [30]);
        assert_eq!(and(vec![ended(65, "job1")]), [70]);
        assert_eq!(and(vec![ended(20, "other")]), [70]);
        assert_eq!(and(vec![failed(2, 1, true), ended(20, "job1")]), [30]);
        let settled = [launch(0, 1, 70), failed(2, 1, true), ended(20, "job1")];
        assert_eq!(Book::of(&settled).open_intents(), []);
        // Seen off, by whoever stopped it; seen on, nothing changes.
        for off in ["EXITED", "TERMINATED", "gone"] {
            assert_eq!(and(vec![seen(5, off)]), [0_i64; 0], "{off}");
        }
        assert_eq!(and(vec![seen(5, "RUNNING")]), [70]);
        let stop = intend(5, 2, Action::StopPod { pod: pod() });
        assert_eq!(and(vec![stop.clone(), failed(6, 2, true)]), [70]);
        assert_eq!(and(vec![stop.clone(), done(6, 2, "RUNNING")]), [70]);
        assert_eq!(and(vec![stop, done(6, 2, "EXITED")]), [0_i64; 0]);
        // Each job has its own.
        assert_eq!(and(vec![launch(1, 2, 90), ended(20, "job1")]), [30, 90]);
    }

    fn runs(entries: &[Entry]) -> Vec<(i64, i64, Option<i64>, bool)> {
        let minute = |time: DateTime<Utc>| (time - at(0)).num_minutes();
        let book = Book::of(entries);
        let all = book.runs().iter();
        all.map(|run| (minute(run.from), minute(run.seen), run.off.map(minute), run.is_ours))
            .collect()
    }

    /// I02: start, stop, start are two times on the bill, each as far as it was seen.
    #[test]
    fn a_run_lasts_from_its_start_to_where_it_was_seen_off() {
        let start = |minute, id| intend(minute, id, Action::StartPod { pod: pod() });
        let stop = |minute, id| intend(minute, id, Action::StopPod { pod: pod() });
        let once = vec![start(10, 1), done(11, 1, "start accepted")];
        assert_eq!(runs(&once), [(10, 10, None, true)]);
        let and = |more: Vec<Entry>| runs(&[&once[..], &more].concat());
        assert_eq!(and(vec![seen(20, "RUNNING")]), [(10, 20, None, true)]);
        // A stop of ours was asked for on the bill; an end that was found came some time before.
        let stopped = vec![stop(30, 2), done(32, 2, "EXITED")];
        assert_eq!(and(stopped.clone()), [(10, 30, Some(32), true)]);
        let found = vec![seen(20, "RUNNING"), seen(90, "EXITED")];
        assert_eq!(and(found), [(10, 20, Some(90), true)]);
        // Somebody else started it: since its container's start, but not since before it was off.
        let again = [stopped.clone(), vec![seen(60, "RUNNING")]].concat();
        assert_eq!(and(again), [(10, 30, Some(32), true), (57, 60, None, false)]);
        let at_once = [stopped, vec![seen(33, "RUNNING")]].concat();
        assert_eq!(and(at_once), [(10, 30, Some(32), true), (32, 33, None, false)]);
        // An end that nobody saw was before the next start.
        let unseen = vec![seen(20, "RUNNING"), start(50, 2), done(51, 2, "start accepted")];
        assert_eq!(and(unseen), [(10, 20, Some(50), true), (50, 50, None, true)]);
        // A create is found by its marker, and is stopped by then.
        let exited = [create(1), done(4, 1, "found by its marker, EXITED")];
        assert_eq!(runs(&exited), [(0, 0, Some(4), true)]);
    }

    /// I05: what may have put a pod on the bill is a boot, and nothing else is.
    #[test]
    fn boots_are_what_may_have_put_a_pod_on_the_bill() {
        let boots = |entries: &[Entry]| Book::of(entries).boots().len();
        assert_eq!(boots(&[create(1)]), 1);
        assert_eq!(boots(&[create(1), failed(1, 1, true)]), 1);
        assert_eq!(boots(&[create(1), failed(1, 1, false), create(2), done(2, 2, "created")]), 1);
        let stop = intend(1, 1, Action::StopPod { pod: pod() });
        assert_eq!(boots(&[stop, launch(2, 2, 70), seen(3, "RUNNING")]), 0);
        let given_up = |minute, seconds| {
            let (vehicle, micros) = ("hippocampus".into(), Some(1));
            let asked_at = at(0);
            on(minute, Event::BootFailed { vehicle, pod: pod(), asked_at, seconds, micros })
        };
        // The same boot again is one boot.
        let book = Book::of(&[given_up(16, 960), given_up(20, 1200)]);
        assert_eq!(book.failed_boots().iter().map(|b| b.seconds).collect::<Vec<_>>(), [1200]);
    }

    /// What was told is told again by the next version.
    #[test]
    fn new_entries_are_read_back_as_they_were_written() {
        let entries = [
            launch(0, 1, 70),
            seen(5, "RUNNING"),
            on(
                6,
                Event::BootFailed {
                    vehicle: "v".into(),
                    pod: pod(),
                    asked_at: at(0),
                    seconds: 1,
                    micros: None,
                },
            ),
        ];
        for entry in entries {
            let text = serde_json::to_string(&entry).unwrap();
            assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry, "{text}");
        }
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
            Entry { at: at(seconds), up: None, event }
        };
        let done = |id, seconds, observed: &str| {
            let event = Event::Done { id, pod: Some(pod.clone()), observed: observed.into() };
            Entry { at: at(seconds), up: None, event }
        };
        let exit = |entries: &[Entry]| {
            Book::of(entries).last_exit(&pod).map(|exit| (exit.asked_at, exit.read_at))
        };
        assert_eq!(exit(&[stop(1, 10), done(1, 12, "gone")]), None);
        let first = [stop(1, 10), done(1, 12, "EXITED")];
        assert_eq!(exit(&first), Some((at(10), at(12))));
        let both = [&first[..], &[stop(2, 20), done(2, 25, "EXITED")]].concat();
        assert_eq!(exit(&both), Some((at(20), at(25))));
        let start = Entry { at: at(30), up: None, event: create(3).event };
        assert_eq!(exit(&[start, done(3, 31, "EXITED")]), None, "no stop of podtether's");
    }

    /// A05: a create that was answered stays in mind, since its pod may be hidden for a while; its time
    /// counts from what was last noted, since a laptop that sleeps in the call is hours late.
    #[test]
    fn a_create_is_kept_in_mind_after_its_answer_and_its_time_counts_from_the_last_word() {
        let nonce = "n".to_owned();
        let create =
            || intend(0, 1, Action::CreatePod { name: "pod".into(), nonce: nonce.clone() });
        let failed = |may_have_taken_effect| {
            on(480, Event::Failed { id: 1, error: "cut".into(), may_have_taken_effect })
        };
        let book = Book::of(&[create(), done(1, 1, "created, PROVISIONING")]);
        assert_eq!((book.open_intents().len(), book.creates().len()), (0, 1));
        assert_eq!(book.creates()[0].pod, Some(pod()));
        let book = Book::of(&[create(), failed(true)]);
        let create_of = &book.creates()[0];
        assert_eq!((create_of.at, create_of.last_noted.at), (at(0), at(480)));
        assert_eq!(book.open_intents()[0].last_noted.at, at(480));
        assert!(Book::of(&[create(), failed(false)]).creates().is_empty());
        let terminate = intend(2, 2, Action::TerminatePod { pod: pod() });
        let gone = [create(), done(1, 1, "created, PROVISIONING"), terminate, done(3, 2, "gone")];
        assert!(Book::of(&gone).creates().is_empty());
    }
}
