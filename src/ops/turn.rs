//! One create or start of a vehicle's pod at a time, over every process of this machine.

use crate::clock::Clock;
use crate::domain::Vehicle;
use crate::error::{Failure, FailureKind, StillBilling};
use std::fs::{File, TryLockError};
use std::time::Duration;

/// The file below the vehicle's log folder that is locked.
const LOCK: &str = ".ensure.lock";
/// How often a taken lock is tried again.
const AGAIN: Duration = Duration::from_millis(200);

/// B05: two sessions that both see no pod must not both create one. The lock is held from the look to
/// the create, and the system lets go of it when the process ends, however that comes.
///
/// # Errors
/// When the file cannot be locked, or another process holds it for longer than `wait`.
pub(super) async fn take(
    vehicle: &Vehicle,
    clock: &dyn Clock,
    wait: Duration,
) -> Result<File, Failure> {
    let path = vehicle.local_log_dir.join(LOCK);
    let broken = |error: std::io::Error| {
        Failure::new(
            FailureKind::Config,
            format!("{} cannot be locked: {error}", path.display()),
            "make local_log_dir a folder that can be written; nothing was changed",
        )
        .billing(StillBilling::Unknown)
    };
    std::fs::create_dir_all(&vehicle.local_log_dir).map_err(broken)?;
    let file = File::options().create(true).append(true).open(&path).map_err(broken)?;
    let start = clock.monotonic();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(broken(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        if clock.monotonic().saturating_sub(start) >= wait {
            return Err(Failure::new(
                FailureKind::Conflict,
                format!("another ensure_pod of vehicle {} is under way", vehicle.name),
                "nothing was changed by this call; call again in a minute, or ask pod_status",
            )
            .billing(StillBilling::Unknown)
            .retryable());
        }
        tokio::time::sleep(AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::domain::sample;

    /// B05: the second waits for the first, and says so when that takes too long.
    #[tokio::test]
    async fn only_one_at_a_time_may_create() {
        let folder = tempfile::tempdir().unwrap();
        let vehicle = Vehicle { local_log_dir: folder.path().join("logs"), ..sample::vehicle() };
        let clock = SystemClock::new();
        let first = take(&vehicle, &clock, Duration::ZERO).await.unwrap();
        let second = take(&vehicle, &clock, Duration::ZERO).await.unwrap_err();
        assert_eq!((second.kind, second.retryable), (FailureKind::Conflict, true));
        let waiting = take(&vehicle, &clock, Duration::from_secs(60));
        let (third, ()) = tokio::join!(waiting, async {
            tokio::time::sleep(AGAIN).await;
            drop(first);
        });
        assert!(third.is_ok());
    }
}
