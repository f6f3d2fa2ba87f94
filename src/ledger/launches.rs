//! The launches that the journal tells of, each with what became of it. Pure.

use super::entry::{Action, Entry, Event};
use super::runs::is_off;
use crate::domain::{PodId, Usd};
use chrono::{DateTime, Utc};
use serde_json::Value;
use std::collections::BTreeMap;

/// How a launch went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchOutcome {
    /// Nothing was noted after its intent: its process died, or is still at it.
    Open,
    /// It was made.
    Done,
    /// Its answer was lost, or it failed in its last step: the job may run.
    Uncertain(String),
    /// It failed before anything started.
    Failed(String),
}

/// One launch of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    id: u64,
    /// Which vehicle's.
    pub vehicle: String,
    /// On which pod.
    pub pod: PodId,
    /// The job's id.
    pub job: String,
    /// When it was announced.
    pub at: DateTime<Utc>,
    /// The longest that the job may run, in seconds.
    pub ceiling_sec: u32,
    /// What the pod billed for an hour, when that was known.
    pub rate: Option<Usd>,
    /// Where the job comes from.
    pub provenance: BTreeMap<String, Value>,
    /// How the launch went.
    pub outcome: LaunchOutcome,
    /// When the job was seen to have ended, and how, in the words of job_status.
    pub ended: Option<(DateTime<Utc>, String)>,
    /// When the pod was first known to be off the bill after the launch.
    pub pod_off: Option<DateTime<Utc>>,
    /// SHA-256 of the job's record, as it was last written by this project.
    pub record: Option<String>,
}

/// Every launch, in the order in which they were announced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launches {
    all: Vec<Launch>,
    /// Stops and terminations on their way: intent and pod.
    stops: Vec<(u64, PodId)>,
    /// Journals that could not be read and were set aside before this one.
    set_aside: Vec<String>,
}

impl Launches {
    /// Takes the next entry.
    pub fn add(&mut self, entry: &Entry) {
        match &entry.event {
            Event::Opened { set_aside, .. } => self.set_aside.extend(set_aside.clone()),
            Event::Intend { id, vehicle, action, .. } => {
                self.intended(*id, vehicle, action, entry.event.rate(), entry.at);
            }
            Event::Done { id, observed, .. } => {
                if let Some((_, pod)) = self.stops.iter().find(|(stop, _)| stop == id).cloned()
                    && is_off(observed)
                {
                    self.pod_is_off(&pod, entry.at);
                }
                self.ended_as(*id, LaunchOutcome::Done);
            }
            Event::Failed { id, error, may_have_taken_effect } => {
                let outcome = match may_have_taken_effect {
                    true => LaunchOutcome::Uncertain(error.clone()),
                    false => LaunchOutcome::Failed(error.clone()),
                };
                self.ended_as(*id, outcome);
            }
            Event::JobEnded { pod, job, state, .. } => {
                for launch in self.all.iter_mut().filter(|it| it.job == *job && it.pod == *pod) {
                    launch.ended = Some((entry.at, state.clone()));
                }
            }
            Event::PodSeen { pod, status, .. } if is_off(status) => {
                self.pod_is_off(pod, entry.at);
            }
            Event::RunRecorded { job, sha256, .. } => {
                for launch in self.all.iter_mut().filter(|launch| launch.job == *job) {
                    launch.record = Some(sha256.clone());
                }
            }
            Event::PodSeen { .. } | Event::BootFailed { .. } => {}
        }
    }

    fn intended(
        &mut self,
        id: u64,
        vehicle: &str,
        action: &Action,
        rate: Option<Usd>,
        at: DateTime<Utc>,
    ) {
        match action {
            Action::LaunchJob { pod, job, ceiling_sec, provenance, .. } => self.all.push(Launch {
                id,
                vehicle: vehicle.to_owned(),
                pod: pod.clone(),
                job: job.clone(),
                at,
                ceiling_sec: *ceiling_sec,
                rate,
                provenance: provenance.clone(),
                outcome: LaunchOutcome::Open,
                ended: None,
                pod_off: None,
                record: None,
            }),
            Action::StopPod { pod } | Action::TerminatePod { pod } => {
                self.stops.push((id, pod.clone()));
            }
            _ => {}
        }
    }

    fn ended_as(&mut self, id: u64, outcome: LaunchOutcome) {
        for launch in self.all.iter_mut().filter(|launch| launch.id == id) {
            launch.outcome = outcome.clone();
        }
    }

    fn pod_is_off(&mut self, pod: &PodId, at: DateTime<Utc>) {
        for launch in self.all.iter_mut().filter(|launch| launch.pod == *pod) {
            launch.pod_off.get_or_insert(at);
        }
    }

    /// The launches, oldest first.
    #[must_use]
    pub fn all(&self) -> &[Launch] {
        &self.all
    }

    /// Journals before this one that could not be read: what they held is not in it.
    #[must_use]
    pub fn set_aside(&self) -> &[String] {
        &self.set_aside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    fn launch(id: u64, job: &str) -> Event {
        Event::Intend {
            id,
            vehicle: "rover".into(),
            action: Action::LaunchJob {
                pod: PodId("p".into()),
                job: job.into(),
                ceiling_sec: 60,
                tail_sec: 0,
                until: at(100),
                provenance: BTreeMap::new(),
            },
            micros_per_hour: Some(690_000),
        }
    }

    #[test]
    fn each_launch_is_told_with_what_became_of_it() {
        let done = |id| Event::Done { id, pod: None, observed: "launched".into() };
        let failed = |id, may| Event::Failed { id, error: "no".into(), may_have_taken_effect: may };
        let stop = Event::Intend {
            id: 9,
            vehicle: "rover".into(),
            action: Action::StopPod { pod: PodId("p".into()) },
            micros_per_hour: None,
        };
        let events = [
            launch(1, "a"),
            done(1),
            launch(2, "b"),
            failed(2, false),
            launch(3, "c"),
            failed(3, true),
            Event::JobEnded {
                vehicle: "rover".into(),
                pod: PodId("p".into()),
                job: "a".into(),
                state: "succeeded".into(),
            },
            Event::RunRecorded { vehicle: "rover".into(), job: "a".into(), sha256: "5".into() },
            stop,
            Event::Done { id: 9, pod: Some(PodId("p".into())), observed: "EXITED".into() },
            launch(10, "d"),
        ];
        let mut launches = Launches::default();
        for (second, event) in events.into_iter().enumerate() {
            launches.add(&Entry { at: at(second as i64), up: None, event });
        }
        let [a, b, c, d] = launches.all() else { panic!("{launches:?}") };
        assert_eq!(a.ended, Some((at(6), "succeeded".into())));
        assert_eq!((a.record.as_deref(), a.pod_off), (Some("5"), Some(at(9))));
        assert_eq!(b.outcome, LaunchOutcome::Failed("no".into()));
        assert_eq!(c.outcome, LaunchOutcome::Uncertain("no".into()));
        assert_eq!((&d.outcome, d.pod_off), (&LaunchOutcome::Open, None));
    }
}
