//! Creates of pods that may have had an effect. Pure.

use super::entry::Action;
use super::noted::Noted;
use crate::domain::{PodId, Usd};
use chrono::{DateTime, Utc};

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
    pub last_noted: Noted,
    /// What it may have put on the bill for an hour.
    pub rate: Option<Usd>,
}

/// All of them, oldest first, but for those whose pod was terminated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Creates(pub(super) Vec<Create>);

impl Creates {
    pub(super) fn intended(
        &mut self,
        id: u64,
        vehicle: &str,
        action: &Action,
        rate: Option<Usd>,
        noted: &Noted,
    ) {
        if let Action::CreatePod { nonce, .. } = action {
            let (vehicle, nonce) = (vehicle.to_owned(), nonce.clone());
            let (at, last_noted) = (noted.at, noted.clone());
            self.0.push(Create { id, vehicle, nonce, pod: None, at, last_noted, rate });
        }
    }

    /// The pod of a create was named, or a pod was terminated.
    pub(super) fn done(&mut self, id: u64, action: &Action, pod: Option<&PodId>, noted: &Noted) {
        if let Action::TerminatePod { pod } = action {
            self.0.retain(|create| create.pod.as_ref() != Some(pod));
        }
        for create in self.0.iter_mut().filter(|create| create.id == id) {
            create.pod = pod.cloned();
            create.last_noted = noted.clone();
        }
    }

    pub(super) fn had_no_effect(&mut self, id: u64) {
        self.0.retain(|create| create.id != id);
    }

    pub(super) fn noted(&mut self, id: u64, noted: &Noted) {
        for create in self.0.iter_mut().filter(|create| create.id == id) {
            create.last_noted = noted.clone();
        }
    }
}
