//! A create that was announced and is neither found nor proven absent: it may be a pod on the bill
//! that no list shows yet. Whoever asks how things are, or for a stop, is told of it (A05, B04).

use super::Tether;
use super::reconcile::settle;
use crate::clock::Clock;
use crate::domain::{Pod, Vehicle};
use crate::ledger::{Action, Ledger};
use crate::plan::UnknownCreate;
use std::time::Duration;

/// The create of this vehicle's pod whose outcome nobody knows, `pods` being all that are listed.
/// A journal that cannot be read knows of none: it stands in the way of no look and of no stop.
pub(super) fn unaccounted_create(
    ledger: Option<&Ledger>,
    vehicle: &str,
    pods: &[Pod],
    clock: &dyn Clock,
    absent_after: Duration,
) -> Option<UnknownCreate> {
    let book = match ledger?.book() {
        Ok(book) => book,
        Err(error) => {
            tracing::warn!(%error, "whether a create is open could not be read");
            return None;
        }
    };
    let now = clock.now();
    let is_open = |action: &Action| matches!(action, Action::CreatePod { .. });
    let intents = book.open_intents().iter().filter(|intent| is_open(&intent.action));
    let mut unknown = intents.filter(|intent| settle(intent, pods, now, absent_after).is_none());
    unknown.find(|intent| intent.vehicle == vehicle).map(|intent| UnknownCreate {
        vehicle: intent.vehicle.clone(),
        since: intent.at,
        rate: intent.rate,
    })
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
