//! An intent without an end is looked up at the provider before anything new is started.

use super::Tether;
use super::boot::{self, Boot};
use super::committed::{committed, recent_boots};
use crate::cloud::CloudError;
use crate::domain::{Pod, PodStatus};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::held::Held;
use crate::ledger::{Action, Book, Event, LedgerError, Noted, OpenIntent};
use crate::plan::{Committed, Created, Facts, Fuse, NewPod, UnknownCreate};
use std::time::Duration;

impl Tether {
    /// Looks up every open intent in the facts that were just read. What is settled is noted; a
    /// create that is neither found nor proven absent is told to the guard, and so is everything
    /// that is promised already: for every vehicle, since there is one budget.
    ///
    /// # Errors
    /// When the journal cannot be used: then nothing that spends is done.
    pub(super) async fn reconcile(&self, facts: &mut Facts) -> Result<(), Failure> {
        let Some(ledger) = &self.ledger else { return Ok(()) };
        let failure = |error| ledger_failure(&error);
        let book = ledger.book().map_err(failure)?;
        for intent in book.open_intents() {
            let Ok(status) = self.status_of(intent, &facts.pods).await else { continue };
            let (now, absent_after) = (Noted::now(&*self.clock), self.settings.absent_after);
            let is_on = status.bills_compute();
            if let Some(event) = settle(intent, facts, status, &now, absent_after) {
                self.note_found_boot(intent, &event, &facts.pods, is_on);
                ledger.append(event).map_err(failure)?;
            }
        }
        self.note_seen(ledger, &facts.pods).await.map_err(failure)?;
        let book = ledger.book().map_err(failure)?;
        let unknown = |intent: &&OpenIntent| {
            matches!(intent.action, Action::CreatePod { .. } | Action::CreateVolume { .. })
        };
        let open = book.open_intents().iter().filter(unknown).map(unknown_create);
        let seen = std::mem::take(&mut facts.unknown_creates);
        facts.unknown_creates = open.collect();
        for create in seen {
            if !facts.unknown_creates.contains(&create) {
                facts.unknown_creates.push(create);
            }
        }
        facts.spend.committed = self.committed(&book);
        facts.spend.boots = recent_boots(&book, self.clock.now());
        Ok(())
    }

    /// I05: a boot whose answer was lost is one that may be given up, too. Counted from its request, or from
    /// now when that is longer ago than a boot takes: what ran unseen for so long may be in use.
    fn note_found_boot(&self, intent: &OpenIntent, event: &Event, pods: &[Pod], is_on: bool) {
        let Event::Done { pod: Some(pod), .. } = event else { return };
        let is_on = match &intent.action {
            Action::CreatePod { .. } => {
                pods.iter().any(|listed| listed.id == *pod && listed.status.bills_compute())
            }
            Action::StartPod { .. } => is_on,
            _ => false,
        };
        let vehicle = self.config.vehicles.iter().find(|its| its.name.0 == intent.vehicle);
        let Some(vehicle) = vehicle.filter(|_| is_on) else { return };
        let now = self.clock.now();
        let is_young = (now - intent.at).to_std().is_ok_and(|age| age < vehicle.boot_max);
        let asked_at = if is_young { intent.at } else { now };
        boot::note(vehicle, &Boot { pod: pod.clone(), asked_at });
    }

    /// How the pod of an intent is; of a create's nobody knows which it is. A list can be older than a
    /// start, so "off" is believed only from the pod's own page (A05); an error is no answer.
    async fn status_of(&self, intent: &OpenIntent, pods: &[Pod]) -> Result<PodStatus, CloudError> {
        let pod = match &intent.action {
            Action::StartPod { pod }
            | Action::StopPod { pod }
            | Action::TerminatePod { pod }
            | Action::LaunchJob { pod, .. } => pod,
            Action::CreatePod { .. } | Action::CreateVolume { .. } => {
                return Ok(PodStatus::Terminated);
            }
        };
        let listed = pods.iter().find(|listed| listed.id == *pod);
        match listed.filter(|listed| listed.status.bills_compute()) {
            Some(listed) => Ok(listed.status.clone()),
            None => {
                let page = self.cloud.pod(pod).await?;
                Ok(page.map_or(PodStatus::Terminated, |page| page.status))
            }
        }
    }

    /// What the journal says is promised. A pod that nobody watches counts for its boot and for as
    /// long as it may be left to itself.
    pub(super) fn committed(&self, book: &Book) -> Vec<Committed> {
        let (Fuse::Proven { within: alone, .. } | Fuse::Unproven { allowance: alone }) =
            self.fuse();
        let declared =
            |name: &str| self.config.vehicles.iter().find(|vehicle| vehicle.name.0 == name);
        let boot_max = |name: &str| declared(name).map_or(LONGEST_BOOT, |vehicle| vehicle.boot_max);
        committed(
            book,
            self.clock.now(),
            |name| alone.saturating_add(boot_max(name)),
            |name| declared(name).and_then(|vehicle| self.fuse_until(vehicle)),
        )
    }
}

/// How an open intent turned out, by all pods that are listed; `None` when nobody can say yet.
fn settle(
    intent: &OpenIntent,
    facts: &Facts,
    status: PodStatus,
    now: &Noted,
    absent_after: Duration,
) -> Option<Event> {
    let (id, pods) = (intent.id, &facts.pods);
    let age = intent.last_noted.age(now);
    match &intent.action {
        Action::CreatePod { name, nonce } => {
            let found = pods
                .iter()
                .find(|pod| pod.name == *name && pod.env.get(NewPod::NONCE_ENV) == Some(nonce));
            if let Some(pod) = found {
                let observed = format!("found by its marker, {}", pod.status);
                return Some(Event::Done { id, pod: Some(pod.id.clone()), observed });
            }
            // A05: a new pod can be hidden for a while, so absence takes time to prove.
            (age >= absent_after).then(|| Event::Failed {
                id,
                error: format!("no pod with its marker {} s later", age.as_secs()),
                may_have_taken_effect: false,
            })
        }
        // Found by name in every plan, so it is no orphan; but one whose answer was lost, or whose
        // session died while it was asked for, may come late and be the second of its name.
        Action::CreateVolume { name } => {
            let is_there = facts.volumes_named(name).next().is_some();
            (is_there || age >= absent_after).then(|| {
                let observed = if is_there { "found by its name" } else { "not found" };
                Event::Done { id, pod: None, observed: observed.to_owned() }
            })
        }
        // A05: its request may be on its way still, or at work at the provider. Until then it counts.
        Action::StartPod { .. } if !status.bills_compute() && age < absent_after => None,
        Action::StartPod { pod } | Action::StopPod { pod } | Action::TerminatePod { pod } => {
            Some(Event::Done { id, pod: Some(pod.clone()), observed: status.to_string() })
        }
        // Nobody knows whether it started, so it holds its reservation until it must be over.
        Action::LaunchJob { pod, until, .. } => {
            let done = |observed| Some(Event::Done { id, pod: Some(pod.clone()), observed });
            match status {
                PodStatus::Exited => done(PodStatus::Exited.to_string()),
                _ if now.at >= *until => done("past its latest end".to_owned()),
                _ => None,
            }
        }
    }
}

/// A vehicle that the config does not declare any more is taken to have had the default.
const LONGEST_BOOT: Duration = Duration::from_secs(900);

fn unknown_create(intent: &OpenIntent) -> UnknownCreate {
    let what = match intent.action {
        Action::CreateVolume { .. } => Created::Volume,
        _ => Created::Pod,
    };
    UnknownCreate { what, vehicle: intent.vehicle.clone(), since: intent.at, rate: intent.rate }
}

impl Tether {
    /// B05: two sessions that both see no pod must not both create one. The lock is held from the
    /// look to the create, over every process.
    pub(super) async fn turn(&self, wait: Duration) -> Result<Option<Held>, Failure> {
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
