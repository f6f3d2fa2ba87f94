//! An intent without an end is looked up at the provider before anything new is started.

use super::Tether;
use crate::domain::{PodStatus, UsdPerHour};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::ledger::{Action, Event, LedgerError, OpenIntent};
use crate::plan::{Facts, Fuse, NewPod, UnknownCreate};
use std::fs::File;
use std::time::Duration;

impl Tether {
    /// Looks up every open intent in the facts that were just read. What is settled is noted; a
    /// create that is neither found nor proven absent is told to the guard.
    ///
    /// # Errors
    /// When the journal cannot be used: then nothing that spends is done.
    pub(super) fn reconcile(&self, facts: &mut Facts) -> Result<(), Failure> {
        let Some(ledger) = &self.ledger else { return Ok(()) };
        let book = ledger.book().map_err(|error| ledger_failure(&error))?;
        for intent in book.open_intents() {
            match self.settle(intent, facts) {
                Some(event) => ledger.append(event).map_err(|error| ledger_failure(&error))?,
                None => count(intent, facts),
            }
        }
        Ok(())
    }

    /// How an open intent turned out; `None` when nobody can say yet.
    fn settle(&self, intent: &OpenIntent, facts: &Facts) -> Option<Event> {
        let id = intent.id;
        match &intent.action {
            Action::CreatePod { name, nonce } => {
                let found = facts
                    .pods
                    .iter()
                    .find(|pod| pod.name == *name && pod.env.get(NewPod::NONCE_ENV) == Some(nonce));
                if let Some(pod) = found {
                    let observed = format!("found by its marker, {}", pod.status);
                    return Some(Event::Done { id, pod: Some(pod.id.clone()), observed });
                }
                // A05: a new pod can be hidden for a while, so absence takes time to prove.
                let age = (self.clock.now() - intent.last_noted).to_std().unwrap_or_default();
                (age >= self.settings.absent_after).then(|| Event::Failed {
                    id,
                    error: format!("no pod with its marker {} s later", age.as_secs()),
                    may_have_taken_effect: false,
                })
            }
            // Found by name in every plan, so it is no orphan; but one that comes late would be the
            // second of its name.
            Action::CreateVolume { name } => {
                let is_there = facts.volumes_named(name).next().is_some();
                let age = (self.clock.now() - intent.last_noted).to_std().unwrap_or_default();
                (is_there || age >= self.settings.absent_after).then(|| {
                    let observed = if is_there { "found by its name" } else { "not found" };
                    Event::Done { id, pod: None, observed: observed.to_owned() }
                })
            }
            Action::StartPod { pod } | Action::StopPod { pod } | Action::TerminatePod { pod } => {
                let listed = facts.pods.iter().find(|listed| listed.id == *pod);
                let status = listed.map_or(PodStatus::Terminated, |listed| listed.status.clone());
                Some(Event::Done { id, pod: Some(pod.clone()), observed: status.to_string() })
            }
        }
    }
}

/// A create whose outcome is unknown counts as spent for as long as a pod may be left to itself.
fn count(intent: &OpenIntent, facts: &mut Facts) {
    let (Fuse::Proven { within: time, .. } | Fuse::Unproven { allowance: time }) = facts.spend.fuse;
    if let Some(rate) = intent.rate {
        let label = format!("create of {} sent at {}, outcome unknown", intent.vehicle, intent.at);
        facts.spend.committed.push((label, UsdPerHour::new(rate).cost_of(time)));
    }
    facts.unknown_creates.push(UnknownCreate {
        vehicle: intent.vehicle.clone(),
        since: intent.at,
        rate: intent.rate,
    });
}

impl Tether {
    /// B05: two sessions that both see no pod must not both create one. The lock is held from the
    /// look to the create, over every process.
    pub(super) async fn turn(&self, wait: Duration) -> Result<Option<File>, Failure> {
        match &self.ledger {
            Some(ledger) => {
                ledger.lock(wait).await.map(Some).map_err(|error| ledger_failure(&error))
            }
            None => Ok(None),
        }
    }
}

/// A journal that cannot be used. Nothing was changed by the call; what ran before may bill.
pub(super) fn ledger_failure(error: &LedgerError) -> Failure {
    let (kind, hint) = match error {
        LedgerError::Busy { .. } => (
            FailureKind::Conflict,
            "nothing was changed by this call; call again in a minute, or ask pod_status",
        ),
        _ => (
            FailureKind::Config,
            "nothing is started without a journal; stop_pod works all the same",
        ),
    };
    let failure = Failure::new(kind, error, hint).billing(StillBilling::Unknown);
    if kind == FailureKind::Conflict { failure.retryable() } else { failure }
}
