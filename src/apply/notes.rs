//! Intent before act: what is about to be changed is in the journal before the call, and its end
//! after it. What can start a bill is not done when it cannot be noted; a stop is done all the same.

use super::{StepError, StepOutcome};
use crate::domain::Usd;
use crate::ledger::{Action, Event, Ledger, LedgerError};
use crate::plan::Change;

/// Where changes are noted.
#[derive(Clone, Copy)]
pub struct Notes<'a> {
    /// The journal.
    pub ledger: &'a Ledger,
    /// For which vehicle.
    pub vehicle: &'a str,
    /// What a create or start puts on the bill for an hour, when known.
    pub rate: Option<Usd>,
}

impl Notes<'_> {
    /// Notes that `change` is about to be made; returns what its end is noted under.
    pub(super) fn begin(&self, change: &Change) -> Result<Option<u64>, LedgerError> {
        let action = action(change);
        let can_start_a_bill = action.can_start_a_bill();
        let rate = self.rate.filter(|_| can_start_a_bill);
        let make = |id| Event::Intend {
            id,
            vehicle: self.vehicle.to_owned(),
            action,
            micros_per_hour: rate.map(Usd::micros),
        };
        match self.ledger.intend(make) {
            Ok(id) => Ok(Some(id)),
            Err(error) if can_start_a_bill || matches!(change, Change::CreateVolume(_)) => {
                Err(error)
            }
            Err(error) => {
                tracing::error!(%error, "a stop could not be noted and is made all the same");
                Ok(None)
            }
        }
    }

    /// Notes how it ended. An end that cannot be noted leaves the intent open, which is the safe
    /// side: it is looked up before the next create.
    pub(super) fn end(&self, id: Option<u64>, outcome: &Result<StepOutcome, StepError>) {
        let Some(id) = id else { return };
        if let Err(error) = self.ledger.append(ending(id, outcome)) {
            tracing::error!(%error, "the end of a change could not be noted");
        }
    }
}

fn action(change: &Change) -> Action {
    match change {
        Change::CreateVolume(volume) => Action::CreateVolume { name: volume.name.clone() },
        Change::CreatePod(pod) => Action::CreatePod {
            name: pod.name.clone(),
            nonce: pod.nonce().unwrap_or_default().to_owned(),
        },
        Change::StartPod(pod) => Action::StartPod { pod: pod.clone() },
        Change::StopPod(pod) => Action::StopPod { pod: pod.clone() },
        Change::TerminatePod(pod) => Action::TerminatePod { pod: pod.clone() },
    }
}

fn ending(id: u64, outcome: &Result<StepOutcome, StepError>) -> Event {
    let done = |pod, observed: String| Event::Done { id, pod, observed };
    match outcome {
        Ok(StepOutcome::VolumeCreated(volume)) => done(None, format!("created {}", volume.id)),
        Ok(StepOutcome::PodCreated { pod, adopted }) => {
            let how = if *adopted { "found by its marker" } else { "created" };
            done(Some(pod.id.clone()), format!("{how}, {}", pod.status))
        }
        Ok(StepOutcome::Started(pod)) => done(Some(pod.clone()), "start accepted".to_owned()),
        Ok(StepOutcome::Off(off)) if off.confirmed => {
            let observed =
                off.observed.as_ref().map_or_else(|| "gone".to_owned(), ToString::to_string);
            done(Some(off.pod.clone()), observed)
        }
        Ok(StepOutcome::Off(off)) => {
            let last =
                off.observed.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
            let error = format!("asked {} times, last read {last}", off.asked);
            Event::Failed { id, error, may_have_taken_effect: true }
        }
        Ok(StepOutcome::Ran(_)) => done(None, "ran".to_owned()),
        Err(error) => Event::Failed {
            id,
            error: error.to_string(),
            may_have_taken_effect: match error {
                StepError::Cloud(error) => error.may_have_taken_effect(),
                StepError::CreateLost { .. } | StepError::CreatedTwice(_) => true,
                _ => false,
            },
        },
    }
}
