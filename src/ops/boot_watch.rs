//! How long a pod has been booting. The provider's `startedAt` is that of the last container that
//! ran, so until a new one runs it tells nothing about the boot that goes on.

use crate::clock::Clock;
use crate::domain::{Pod, PodId, PodStatus};
use chrono::{DateTime, Utc};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// When each boot that goes on was first seen. A process that has just begun has seen none, which
/// errs on the side of waiting: a start is not undone because the pod ran yesterday.
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
        match (&pod.status, pod.started_at, pod.created_at) {
            (PodStatus::Running, Some(started), _) => since(started),
            // It has never run: this is its first boot, and it has billed since it was created.
            (PodStatus::Provisioning | PodStatus::Starting, None, Some(created)) => since(created),
            (PodStatus::Running | PodStatus::Provisioning | PodStatus::Starting, ..) => {
                let now = clock.monotonic();
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                let boot = seen
                    .entry(pod.id.clone())
                    .or_insert_with(|| Seen { last_container: pod.started_at, first_seen: now });
                if boot.last_container != pod.started_at {
                    *boot = Seen { last_container: pod.started_at, first_seen: now };
                }
                Some(now.saturating_sub(boot.first_seen))
            }
            _ => None,
        }
    }

    /// Forgets the pod's boot: it was stopped, or is about to be started anew.
    pub(super) fn forget(&self, pod: &PodId) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).remove(pod);
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
        watch.forget(&sample::pod().id);
        clock.set(90);
        assert_eq!(watch.age(&pod("PROVISIONING", now), &clock), Some(Duration::ZERO));
        // A first boot is as old as the pod, and nothing boots that is off.
        let first = watch.age(&pod("PROVISIONING", None), &clock);
        assert_eq!(first, Some(day + Duration::from_secs(90)));
        assert_eq!(watch.age(&pod("EXITED", yesterday), &clock), None);
    }
}
