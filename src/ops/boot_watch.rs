//! How long a pod has been booting. The provider's `startedAt` is that of the last container that
//! ran, so until a new one runs it tells nothing about the boot that goes on.

use crate::clock::Clock;
use crate::domain::{Pod, PodId, PodStatus};
use chrono::{DateTime, Utc};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// When each boot that goes on was begun or first seen here. A process that has just begun has seen
/// none and counts from its first look: a start is not undone because the pod ran yesterday.
#[derive(Debug, Default)]
pub(super) struct BootWatch {
    seen: Mutex<HashMap<PodId, Seen>>,
}

/// A boot, told apart by the container that ran before it.
#[derive(Debug)]
struct Seen {
    last_container: Option<DateTime<Utc>>,
    /// On the clock that cannot be set back.
    first_seen: Duration,
}

impl BootWatch {
    /// How long the pod's present boot has taken; `None` when it is not booting or running.
    pub(super) fn age(&self, pod: &Pod, clock: &dyn Clock) -> Option<Duration> {
        let since = |at: DateTime<Utc>| Some((clock.now() - at).to_std().unwrap_or_default());
        if let (PodStatus::Running, Some(started)) = (&pod.status, pod.started_at) {
            return since(started);
        }
        let boots = [PodStatus::Running, PodStatus::Provisioning, PodStatus::Starting];
        if !boots.contains(&pod.status) {
            return None;
        }
        let now = clock.monotonic();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let known = seen.get(&pod.id).filter(|boot| boot.last_container == pod.started_at);
        if let Some(boot) = known {
            return Some(now.saturating_sub(boot.first_seen));
        }
        // It has never run and was not started here: it boots and bills since it was created.
        if let (None, Some(created)) = (pod.started_at, pod.created_at) {
            return since(created);
        }
        seen.insert(pod.id.clone(), Seen { last_container: pod.started_at, first_seen: now });
        Some(Duration::ZERO)
    }

    /// The stopped pod is about to be started: its boot begins now.
    pub(super) fn begin(&self, pod: &Pod, clock: &dyn Clock) {
        let boot = Seen { last_container: pod.started_at, first_seen: clock.monotonic() };
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(pod.id.clone(), boot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::sample;
    use chrono::TimeDelta;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Seconds since both clocks began.
    #[derive(Default)]
    struct Hand(AtomicU64);

    impl Clock for Hand {
        fn now(&self) -> DateTime<Utc> {
            DateTime::UNIX_EPOCH + TimeDelta::days(1) + TimeDelta::seconds(self.seconds())
        }

        fn monotonic(&self) -> Duration {
            Duration::from_secs(self.0.load(Ordering::Relaxed))
        }
    }

    impl Hand {
        fn seconds(&self) -> i64 {
            self.0.load(Ordering::Relaxed).try_into().unwrap()
        }

        fn set(&self, seconds: u64) {
            self.0.store(seconds, Ordering::Relaxed);
        }
    }

    fn pod(status: &str, started_at: Option<DateTime<Utc>>) -> Pod {
        let created_at = Some(DateTime::UNIX_EPOCH);
        Pod { status: status.into(), started_at, created_at, ..sample::pod() }
    }

    /// I05: a start is not given up on because the pod was created, or last ran, long ago.
    #[test]
    fn a_start_is_not_as_old_as_the_boot_before_it() {
        let (watch, clock) = (BootWatch::default(), Hand::default());
        let yesterday = Some(DateTime::UNIX_EPOCH);
        let day = Duration::from_secs(24 * 3600);
        assert_eq!(watch.age(&pod("STARTING", yesterday), &clock), Some(Duration::ZERO));
        clock.set(7);
        assert_eq!(watch.age(&pod("STARTING", yesterday), &clock), Some(Duration::from_secs(7)));
        let now = Some(clock.now());
        assert_eq!(watch.age(&pod("RUNNING", now), &clock), Some(Duration::ZERO));
        // The next start of the same pod is another boot.
        clock.set(60);
        assert_eq!(watch.age(&pod("PROVISIONING", now), &clock), Some(Duration::ZERO));
        clock.set(90);
        // A first boot is as old as the pod, unless it was given up on and is tried again.
        let first = watch.age(&pod("PROVISIONING", None), &clock);
        assert_eq!(first, Some(day + Duration::from_secs(90)));
        watch.begin(&pod("EXITED", None), &clock);
        clock.set(95);
        let again = watch.age(&pod("PROVISIONING", None), &clock);
        assert_eq!(again, Some(Duration::from_secs(5)));
        assert_eq!(watch.age(&pod("EXITED", yesterday), &clock), None);
    }
}
