//! What the provider billed and nothing that is known here explains, line by line. Pure.

use super::reckoning::Reckoning;
use crate::cloud::BilledSpan;
use crate::domain::{Pod, Usd, Volume};
use crate::ledger::Book;
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::collections::BTreeMap;

/// One line of the bill that nothing explains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unexplained {
    /// Of which pod or network volume.
    pub id: String,
    /// How much of it.
    pub usd: Usd,
    /// What is known about it.
    pub why: String,
}

/// What is known about the account when its bill is explained.
pub(super) struct Known<'a> {
    pub book: &'a Book,
    pub pods: &'a [Pod],
    /// The name of every vehicle with those of its pod and its volume.
    pub declared: Vec<(&'a str, &'a str, &'a str)>,
    pub tolerated: &'a [String],
    /// From when on the bill must be explained.
    pub since: DateTime<Utc>,
}

/// Sums by id of what was billed from `since` on.
fn sums(billed: &[BilledSpan], since: DateTime<Utc>) -> BTreeMap<&str, Usd> {
    let mut sums = BTreeMap::new();
    for span in billed.iter().filter(|span| span.start >= since) {
        let sum = sums.entry(span.id.as_str()).or_insert(Usd::ZERO);
        *sum = *sum + span.total.unwrap_or(Usd::ZERO);
    }
    sums.retain(|_, usd| *usd > Usd::ZERO);
    sums
}

/// The pods on the bill, by their times as far as those are known.
pub(super) fn pods(
    known: &Known<'_>,
    billed: &[BilledSpan],
    reckonings: &BTreeMap<String, Reckoning>,
) -> Vec<Unexplained> {
    let mut lines = Vec::new();
    for (id, usd) in sums(billed, known.since) {
        let line = |usd, why| Unexplained { id: id.to_owned(), usd, why };
        let listed = known.pods.iter().find(|pod| pod.id.0 == id);
        let vehicle = listed.and_then(|pod| known.declared.iter().find(|of| of.1 == pod.name));
        let is_ours = known.book.known_pods().iter().any(|pod| pod.0 == id);
        if let Some(reckoning) = reckonings.get(id).filter(|_| is_ours || vehicle.is_some()) {
            lines.extend(reckoning.excess.map(|(billed, explained)| {
                let why = format!(
                    "billed ${}, but it was up for no more than ${}",
                    billed.to_decimal(),
                    explained.to_decimal()
                );
                line(billed.saturating_sub(explained), why)
            }));
            continue;
        }
        let why = match (listed, vehicle) {
            (_, Some((vehicle, ..))) => {
                format!("the pod of vehicle {vehicle}, but the journal does not know when it ran")
            }
            (Some(pod), None) if known.tolerated.contains(&pod.name) => {
                format!("pod {:?}, a stranger that strangers.tolerate puts up with", pod.name)
            }
            (Some(pod), None) => {
                format!("pod {:?} ({}), which no vehicle declares", pod.name, pod.status)
            }
            (None, None) if is_ours => {
                "a pod of ours that is gone, but the journal does not know when it ran".to_owned()
            }
            (None, None) => "a pod that is gone and that the journal does not know".to_owned(),
        };
        lines.push(line(usd, why));
    }
    lines
}

/// The network volumes on the bill: whose they are, not how much they cost.
pub(super) fn volumes(
    known: &Known<'_>,
    billed: &[BilledSpan],
    listed: &[Volume],
) -> Vec<Unexplained> {
    let mut lines = Vec::new();
    for (id, usd) in sums(billed, known.since) {
        let volume = listed.iter().find(|volume| volume.id.0 == id);
        let is_declared =
            volume.is_some_and(|volume| known.declared.iter().any(|of| of.2 == volume.name));
        if is_declared || known.book.known_volumes().iter().any(|known| known == id) {
            continue;
        }
        let why = match volume {
            Some(volume) => {
                format!("network volume {:?}, which no vehicle declares", volume.name)
            }
            None => "a network volume that is gone and that the journal does not know".to_owned(),
        };
        lines.push(Unexplained { id: id.to_owned(), usd, why });
    }
    lines
}
