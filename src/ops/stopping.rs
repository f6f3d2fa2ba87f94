//! A stop that is under way is seen by whoever wants to start the same pod: a start in its midst would
//! be stopped again, or would undo it (A22). A stop itself waits for nobody.

use super::Tether;
use crate::domain::Vehicle;
use crate::error::{Failure, FailureKind, StillBilling};
use crate::held::Held;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

/// How often it is looked whether a stop has ended.
const AGAIN: Duration = Duration::from_millis(100);

impl Tether {
    fn stopping_file(&self, vehicle: &Vehicle) -> Option<PathBuf> {
        let folder = self.ledger.as_ref()?.path().parent()?.to_owned();
        Some(folder.join(format!("stopping-{}.lock", vehicle.name)))
    }

    /// Marks a stop of this vehicle's pod as under way for as long as the file is held, over every
    /// process. What goes wrong with it holds up no stop.
    pub(super) fn stop_under_way(&self, vehicle: &Vehicle) -> Option<Held> {
        let path = self.stopping_file(vehicle)?;
        let _ = std::fs::create_dir_all(path.parent()?);
        let file = File::options().create(true).append(true).open(path).ok()?;
        Held::beside_others(&file).ok().flatten()
    }

    /// Waits until no stop of this vehicle's pod is under way.
    ///
    /// # Errors
    /// Conflict when one goes on for longer than `wait`: nothing was changed.
    pub(super) async fn until_no_stop_is_under_way(
        &self,
        vehicle: &Vehicle,
        wait: Duration,
    ) -> Result<(), Failure> {
        let Some(path) = self.stopping_file(vehicle) else { return Ok(()) };
        // Without the file there was never a stop to wait for.
        let Ok(file) = File::open(path) else { return Ok(()) };
        let started = self.clock.monotonic();
        // Taken for an instant only: what is taken is let go at once.
        while matches!(Held::alone(&file), Ok(None)) {
            if self.clock.monotonic().saturating_sub(started) >= wait {
                return Err(Failure::new(
                    FailureKind::Conflict,
                    format!("a stop of vehicle {}'s pod is under way, so it is not started", vehicle.name),
                    "nothing was changed; wait for the stop, look with pod_status, then call ensure_pod again",
                )
                .billing(StillBilling::Unknown)
                .retryable());
            }
            tokio::time::sleep(AGAIN).await;
        }
        Ok(())
    }
}
