//! A create that was announced and is neither found nor proven absent: it may be a pod on the bill
//! that no list shows yet. Whoever asks how things are, or for a stop, is told of it (A05, B04).

use super::Tether;
use crate::clock::Clock;
use crate::domain::{Pod, Vehicle};
use crate::ledger::{Book, Create, Ledger, Noted};
use crate::plan::{Created, NewPod, UnknownCreate};
use std::time::Duration;

/// The creates of this vehicle's pod that are younger than what proves an absence and whose pod is not
/// among `pods`, which are all that are listed: those that nobody answered, and those that were
/// answered a moment ago. A journal that cannot be read knows of none: it stands in the way of no look
/// and of no stop.
pub(super) fn unaccounted_creates(
    ledger: Option<&Ledger>,
    vehicle: &str,
    pods: &[Pod],
    clock: &dyn Clock,
    absent_after: Duration,
) -> Vec<Create> {
    let Some(ledger) = ledger else { return Vec::new() };
    let book = match ledger.book() {
        Ok(book) => book,
        Err(error) => {
            tracing::warn!(%error, "whether a create is open could not be read");
            return Vec::new();
        }
    };
    let now = Noted::now(clock);
    let is_young = |create: &Create| create.last_noted.age(&now) < absent_after;
    let is_shown = |create: &Create| {
        pods.iter().any(|pod| {
            create.pod.as_ref() == Some(&pod.id)
                || pod.env.get(NewPod::NONCE_ENV) == Some(&create.nonce)
        })
    };
    let creates = book.creates().iter().filter(|create| create.vehicle == vehicle);
    let unseen = creates.filter(|create| is_young(create) && !is_shown(create)).cloned();
    unseen.chain(forgotten(&book, vehicle).filter(is_young)).collect()
}

/// A journal that could not be read was set aside, and with it what it knew of creates: for as long as
/// a new pod may be hidden, each vehicle is taken to have one.
fn forgotten(book: &Book, vehicle: &str) -> Option<Create> {
    let since = book.began().filter(|_| book.set_aside().is_some())?.clone();
    Some(Create {
        id: 0,
        vehicle: vehicle.to_owned(),
        nonce: String::new(),
        pod: None,
        at: since.at,
        last_noted: since,
        rate: None,
    })
}

/// The first of [`unaccounted_creates`].
pub(super) fn unaccounted_create(
    ledger: Option<&Ledger>,
    vehicle: &str,
    pods: &[Pod],
    clock: &dyn Clock,
    absent_after: Duration,
) -> Option<UnknownCreate> {
    let creates = unaccounted_creates(ledger, vehicle, pods, clock, absent_after);
    creates.into_iter().next().map(unknown_create)
}

pub(super) fn unknown_create(create: Create) -> UnknownCreate {
    UnknownCreate {
        what: Created::Pod,
        vehicle: create.vehicle,
        since: create.at,
        rate: create.rate,
    }
}

impl Tether {
    /// [`unaccounted_create`] of this vehicle.
    pub(super) fn unaccounted(&self, vehicle: &Vehicle, pods: &[Pod]) -> Option<UnknownCreate> {
        let (ledger, absent_after) = (self.ledger.as_ref(), self.settings.absent_after);
        unaccounted_create(ledger, &vehicle.name.0, pods, &*self.clock, absent_after)
    }
}

/// The same in words.
pub(super) fn told(create: &UnknownCreate) -> String {
    let rate = create.rate.map_or_else(String::new, |rate| format!(" {rate}/h"));
    format!(
        "A create of this vehicle's pod was sent at {} and its outcome is not known; no list shows the pod, and it MAY BILL{rate} all the same. Ask again in two minutes: by then it is found or proven absent.",
        create.since.format("%Y-%m-%d %H:%M:%S UTC")
    )
}
