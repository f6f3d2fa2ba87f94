//! What a look at the account adds to the journal: pods of ours that are newly on the bill or off it.
//! Without it nobody could say later what a pod should have cost, or give a reservation back.

use super::Tether;
use crate::domain::{JobId, JobState, Pod, PodStatus, Usd, UsdPerHour, Vehicle};
use crate::ledger::{Book, Event, Ledger, LedgerError, Run};
use chrono::{DateTime, TimeDelta, Utc};

/// How old the last note that a pod bills may be. Between the last note and the first look that
/// shows it off the bill, its cost is not sure.
const AGAIN: TimeDelta = TimeDelta::minutes(10);

impl Tether {
    /// Notes what a list of all pods shows. What is missing from it is asked for once more by its id:
    /// one list is no proof that a pod is gone (A05).
    pub(super) async fn note_seen(&self, ledger: &Ledger, pods: &[Pod]) -> Result<(), LedgerError> {
        let book = ledger.book()?;
        let now = self.clock.now();
        for pod in pods {
            if let Some(event) = self.news(&book, pod, now) {
                ledger.append(event)?;
            }
        }
        let absent_after = TimeDelta::from_std(self.settings.absent_after).unwrap_or(AGAIN);
        let missing = book.runs().iter().filter(|run| {
            run.off.is_none()
                && now - run.seen >= absent_after
                && pods.iter().all(|pod| pod.id != run.pod)
        });
        for run in missing {
            if matches!(self.cloud.pod(&run.pod).await, Ok(None)) {
                ledger.append(Event::PodSeen {
                    vehicle: run.vehicle.clone(),
                    pod: run.pod.clone(),
                    status: "gone".to_owned(),
                    micros_per_hour: None,
                    started_at: None,
                })?;
            }
        }
        Ok(())
    }

    /// Notes which of these pods are off the bill. It stands in nobody's way: what is not noted now
    /// is seen again by the next look.
    pub(super) fn note_off(&self, pods: &[Pod]) {
        let Some(ledger) = &self.ledger else { return };
        let mut off = pods.iter().filter(|pod| !pod.status.bills_compute()).peekable();
        if off.peek().is_none() {
            return;
        }
        let note = || -> Result<(), LedgerError> {
            let book = ledger.book()?;
            for event in off.filter_map(|pod| self.news(&book, pod, self.clock.now())) {
                ledger.append(event)?;
            }
            Ok(())
        };
        if let Err(error) = note() {
            tracing::warn!(%error, "a pod that is off the bill could not be noted");
        }
    }

    /// Notes that a job has ended, so that only the time after it stays reserved.
    pub(super) fn note_job_end(&self, vehicle: &Vehicle, pod: &Pod, id: &JobId, state: JobState) {
        let Some(ledger) = &self.ledger else { return };
        let note = || -> Result<(), LedgerError> {
            let book = ledger.book()?;
            let mut promises = book.promises().iter();
            let is_news = promises.any(|promise| {
                promise.pod == pod.id && promise.job == id.as_str() && !promise.has_ended
            });
            if !is_news {
                return Ok(());
            }
            ledger.append(Event::JobEnded {
                vehicle: vehicle.name.0.clone(),
                pod: pod.id.clone(),
                job: id.to_string(),
                state: state.to_string(),
            })
        };
        if let Err(error) = note() {
            tracing::warn!(%error, job = %id, "the end of a job could not be noted");
        }
    }

    /// What this look at a pod adds to the journal, if it is ours.
    fn news(&self, book: &Book, pod: &Pod, now: DateTime<Utc>) -> Option<Event> {
        let mut vehicles = self.config.vehicles.iter();
        let declared = vehicles.find(|vehicle| vehicle.pod_name == pod.name);
        let open = book.open_run(&pod.id);
        let vehicle = match (declared, open) {
            (Some(vehicle), _) => vehicle.name.0.clone(),
            // Its vehicle was renamed or removed; the pod is ours all the same.
            (None, Some(run)) => run.vehicle.clone(),
            (None, None) => book.runs().iter().find(|run| run.pod == pod.id)?.vehicle.clone(),
        };
        let rate = pod.price.known().map(UsdPerHour::per_hour).filter(|rate| *rate > Usd::ZERO);
        let is_news = match pod.status.bills_compute() {
            true => open.is_none_or(|run| {
                !run.was_listed || now - run.seen >= AGAIN || (rate.is_some() && rate != run.rate)
            }),
            false => match open {
                Some(run) => self.is_believed(run, &pod.status, now),
                None => book.promises().iter().any(|promise| promise.pod == pod.id),
            },
        };
        is_news.then(|| Event::PodSeen {
            vehicle,
            pod: pod.id.clone(),
            status: pod.status.to_string(),
            micros_per_hour: rate.map(Usd::micros),
            started_at: pod.started_at.filter(|_| pod.status.bills_compute()),
        })
    }

    /// A list may still show what was before a start that has just been accepted.
    fn is_believed(&self, run: &Run, status: &PodStatus, now: DateTime<Utc>) -> bool {
        let is_settled =
            (now - run.from).to_std().is_ok_and(|age| age >= self.settings.absent_after);
        run.was_listed || is_settled || *status != PodStatus::Exited
    }
}
