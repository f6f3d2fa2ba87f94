//! A provider for unit tests that plays a script: each list of pods in turn, the last one for ever.

use super::{
    Balance, BilledSpan, Changed, Cloud, CloudError, CloudErrorKind, DataCenter, RequestView,
};
use crate::domain::{GpuOffer, Pod, PodId, Volume, VolumeId, sample};
use crate::guard::ApprovedChange;
use crate::plan::Change;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// What one look at the account shows.
pub type Look = Result<Vec<Pod>, CloudErrorKind>;

/// The script, and what was sent.
pub struct Scripted {
    lists: Mutex<VecDeque<Look>>,
    pods: Mutex<VecDeque<Look>>,
    answers: Mutex<VecDeque<Result<Changed, CloudErrorKind>>>,
    bill: Result<Vec<BilledSpan>, CloudErrorKind>,
    /// Network volumes.
    pub volumes: Vec<Volume>,
    /// The account's credit.
    pub balance: Balance,
    /// Every change that was sent.
    pub sent: Mutex<Vec<Change>>,
}

impl Scripted {
    /// `lists` answer the list of all pods, `pods` the look at one.
    pub fn new(lists: Vec<Look>, pods: Vec<Look>) -> Self {
        Self {
            lists: Mutex::new(lists.into()),
            pods: Mutex::new(pods.into()),
            answers: Mutex::default(),
            bill: Ok(Vec::new()),
            volumes: vec![sample::volume()],
            balance: Balance::Unknown("not scripted".to_owned()),
            sent: Mutex::default(),
        }
    }

    /// The same with answers to changes; without any, each is accepted.
    pub fn answering(self, answers: Vec<Result<Changed, CloudErrorKind>>) -> Self {
        Self { answers: Mutex::new(answers.into()), ..self }
    }

    /// The same with this bill for pods.
    pub fn billing(self, bill: Result<Vec<BilledSpan>, CloudErrorKind>) -> Self {
        Self { bill, ..self }
    }

    /// The same account without a network volume.
    pub fn without_volumes(self) -> Self {
        Self { volumes: Vec::new(), ..self }
    }

    /// The same with that much credit.
    pub fn with_balance(self, balance: Balance) -> Self {
        Self { balance, ..self }
    }

    /// How many changes were sent.
    pub fn sent(&self) -> usize {
        locked(&self.sent).len()
    }
}

/// An error of that kind.
pub fn error(kind: CloudErrorKind) -> CloudError {
    let detail = format!("scripted {kind:?}");
    CloudError { kind, tried: "a scripted call".to_owned(), status: None, detail, request_id: None }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next of a script; its last entry stands for all that follow.
fn turn<T: Clone>(script: &Mutex<VecDeque<T>>) -> Option<T> {
    let mut script = locked(script);
    if script.len() > 1 { script.pop_front() } else { script.front().cloned() }
}

#[async_trait]
impl Cloud for Scripted {
    fn is_local(&self) -> bool {
        true
    }
    fn preview(&self, change: &Change) -> RequestView {
        RequestView { method: "POST".to_owned(), path: format!("{change:?}"), body: None }
    }
    async fn pods(&self) -> Result<Vec<Pod>, CloudError> {
        turn(&self.lists).unwrap_or_else(|| Ok(Vec::new())).map_err(error)
    }
    async fn pod(&self, id: &PodId) -> Result<Option<Pod>, CloudError> {
        let shown = turn(&self.pods).unwrap_or_else(|| Ok(Vec::new())).map_err(error)?;
        Ok(shown.into_iter().find(|pod| &pod.id == id))
    }
    async fn volumes(&self) -> Result<Vec<Volume>, CloudError> {
        Ok(self.volumes.clone())
    }
    async fn gpu_offers(&self, _: u32) -> Result<Vec<GpuOffer>, CloudError> {
        Ok(sample::offers())
    }
    async fn data_centers(&self) -> Result<Vec<DataCenter>, CloudError> {
        Ok(Vec::new())
    }
    async fn pod_billing(&self, _: DateTime<Utc>) -> Result<Vec<BilledSpan>, CloudError> {
        self.bill.clone().map_err(error)
    }
    async fn volume_billing(&self, _: DateTime<Utc>) -> Result<Vec<BilledSpan>, CloudError> {
        Ok(Vec::new())
    }
    async fn balance(&self) -> Balance {
        self.balance.clone()
    }
    async fn change(
        &self,
        change: ApprovedChange<'_>,
        _: Option<&VolumeId>,
    ) -> Result<Changed, CloudError> {
        locked(&self.sent).push(change.get().clone());
        turn(&self.answers).unwrap_or(Ok(Changed::Accepted)).map_err(error)
    }
}
