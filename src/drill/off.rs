//! Has the pod off and reads it back, whatever went before.

use crate::domain::{PodId, PodStatus, Vehicle};
use crate::ops::Tether;
use chrono::{DateTime, Utc};
use std::time::Duration;

/// How often an unconfirmed stop is asked again; each has a budget of its own. After that the net
/// goes on asking.
const TRIES: u32 = 3;
const AGAIN: Duration = Duration::from_secs(2);

/// Stops the vehicle's pod and reads it back.
///
/// # Errors
/// In words, what was said last: the pod may still bill.
pub(super) async fn make_off(
    tether: &Tether,
    vehicle: &Vehicle,
    pod: Option<&PodId>,
) -> Result<String, String> {
    let mut last = String::new();
    for attempt in 0..TRIES {
        if attempt > 0 {
            tokio::time::sleep(AGAIN).await;
        }
        match tether.stop_known_pod(&vehicle.name.0, pod).await {
            Ok(answer) if answer.is_off() => return Ok(answer.message),
            Ok(answer) => last = answer.message,
            Err(failure) => last = failure.message,
        }
    }
    Err(last)
}

/// Waits until the pod is read as off, at most until then; says when it was. `gone` tells that what is
/// waited for cannot come any more.
///
/// # Errors
/// In words, what was read last.
pub(super) async fn wait_off(
    tether: &Tether,
    pod: &PodId,
    until: DateTime<Utc>,
    poll: Duration,
    gone: impl Fn() -> Option<String>,
) -> Result<DateTime<Utc>, String> {
    loop {
        // A 404 is no proof that it is off (A05), and neither is an error.
        let last = match tether.pod_by_id(pod).await {
            Ok(Some(pod)) if pod.status == PodStatus::Exited => return Ok(tether.clock().now()),
            Ok(Some(pod)) => format!("it is still {}", pod.status),
            Ok(None) => "the provider does not show it".to_owned(),
            Err(failure) => failure.message,
        };
        if let Some(why) = gone() {
            return Err(format!("{why}; {last}"));
        }
        if tether.clock().now() >= until {
            return Err(last);
        }
        tokio::time::sleep(poll).await;
    }
}
