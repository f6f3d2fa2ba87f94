//! The faults that are switched on, and whether one of them happens now.

use super::{Fault, On};
use crate::clock::SharedClock;
use std::time::Duration;

/// The faults that are switched on.
pub struct Faults {
    active: Vec<Fault>,
    clock: SharedClock,
    /// When they were switched on.
    since: Duration,
}

impl Faults {
    /// Switches them on now.
    pub fn new(active: Vec<Fault>, clock: SharedClock) -> Self {
        let since = clock.monotonic();
        Self { active, clock, since }
    }

    /// Switches others on instead, from now.
    pub fn replace(&mut self, active: Vec<Fault>) {
        self.active = active;
        self.since = self.clock.monotonic();
    }

    pub fn list(&self) -> Vec<String> {
        self.active.iter().map(ToString::to_string).collect()
    }

    fn position(&self, name: &str, request: Option<&[On]>) -> Option<usize> {
        let elapsed = self.clock.monotonic().saturating_sub(self.since);
        let seconds = |number: u32| Duration::from_secs(number.into());
        self.active.iter().position(|fault| {
            let after = seconds(fault.after.unwrap_or(0));
            let began = elapsed >= after;
            let ended = fault.lasts.is_some_and(|lasts| elapsed >= after + seconds(lasts));
            let meets = match (fault.on, request) {
                (Some(on), Some(request)) => request.contains(&on),
                _ => true,
            };
            fault.kind.name == name && began && !ended && meets && fault.value != Some(0)
        })
    }

    /// Whether the fault happens now; counts it when it is limited in number.
    pub fn happens(&mut self, name: &str) -> bool {
        self.happens_on(name, None)
    }

    /// The same for a request, which is everything that `request` says at once. A fault without a
    /// choice of requests meets it when it is one of `usual`.
    pub fn meets(&mut self, name: &str, request: &[On], usual: On) -> bool {
        let chosen = self.position(name, Some(request)).and_then(|at| self.active.get(at));
        if chosen.is_some_and(|fault| fault.on.is_none()) && !request.contains(&usual) {
            return false;
        }
        self.happens_on(name, Some(request))
    }

    fn happens_on(&mut self, name: &str, request: Option<&[On]>) -> bool {
        let Some(position) = self.position(name, request) else { return false };
        let Some(fault) = self.active.get_mut(position) else { return false };
        if let Some(left) = &mut fault.value {
            *left -= 1;
            if *left == 0 {
                self.active.remove(position);
            }
        }
        true
    }

    /// Whether it would happen now; not counted.
    pub fn is_on(&self, name: &str) -> bool {
        self.position(name, None).is_some()
    }

    /// How many seconds the fault lasts, when it is switched on.
    pub fn seconds(&self, name: &str) -> Option<u32> {
        self.position(name, None).and_then(|at| self.active.get(at)).and_then(|fault| fault.value)
    }

    /// Whether a fault that lasts for some seconds still does.
    pub fn lasts(&self, name: &str) -> bool {
        let elapsed = self.clock.monotonic().saturating_sub(self.since);
        let fault = self.position(name, None).and_then(|at| self.active.get(at));
        fault.is_some_and(|fault| {
            let end = fault.after.unwrap_or(0).saturating_add(fault.value.unwrap_or(0));
            elapsed < Duration::from_secs(end.into())
        })
    }

    /// The same for a request.
    pub fn seconds_on(&self, name: &str, request: &[On]) -> Option<u32> {
        let position = self.position(name, Some(request));
        position.and_then(|at| self.active.get(at)).and_then(|fault| fault.value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LINK_STALLS, NO_CAPACITY, RATE_LIMITED, REVOKED, STOP_WITHOUT_EFFECT};
    use super::*;
    use crate::clock::{Clock, SystemClock};
    use chrono::{DateTime, Utc};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Default)]
    struct Hands(AtomicU64);

    impl Clock for Hands {
        fn now(&self) -> DateTime<Utc> {
            DateTime::UNIX_EPOCH
        }

        fn monotonic(&self) -> Duration {
            Duration::from_secs(self.0.load(Ordering::SeqCst))
        }
    }

    fn faults(texts: &[&str], clock: SharedClock) -> Faults {
        Faults::new(texts.iter().map(|text| text.parse().unwrap()).collect(), clock)
    }

    #[test]
    fn a_counted_fault_ends_and_an_uncounted_one_does_not() {
        let mut on = faults(&["rate-limited=2", "stop-without-effect"], SystemClock::shared());
        let seen: Vec<bool> = (0..4).map(|_| on.happens(RATE_LIMITED)).collect();
        assert_eq!(seen, [true, true, false, false]);
        assert!((0..9).all(|_| on.happens(STOP_WITHOUT_EFFECT)));
        assert_eq!(on.list(), ["stop-without-effect"]);
        assert!(!faults(&["no-capacity=0"], SystemClock::shared()).happens(NO_CAPACITY));
    }

    #[test]
    fn a_fault_has_a_beginning_and_an_end() {
        let clock = Arc::new(Hands::default());
        let mut on = faults(&["no-capacity@after:3@for:4"], clock.clone());
        let mut seen = Vec::new();
        for second in [0, 2, 3, 6, 7, 99] {
            clock.0.store(second, Ordering::SeqCst);
            seen.push(on.happens(NO_CAPACITY));
        }
        assert_eq!(seen, [false, false, true, true, false, false]);
        on.replace(vec!["link-stalls=2@after:1".parse().unwrap()]);
        let mut seen = Vec::new();
        for second in [99, 100, 101, 102] {
            clock.0.store(second, Ordering::SeqCst);
            seen.push(on.lasts(LINK_STALLS));
        }
        assert_eq!(seen, [false, true, true, false]);
        clock.0.store(99, Ordering::SeqCst);
        on.replace(vec!["no-capacity@after:1".parse().unwrap()]);
        assert!(!on.is_on(NO_CAPACITY), "time counts from when it was switched on");
        clock.0.store(100, Ordering::SeqCst);
        assert!(on.is_on(NO_CAPACITY));
    }

    #[test]
    fn a_fault_meets_the_requests_it_was_given_and_else_its_usual_ones() {
        let stop = [On::Any, On::Write, On::Stop];
        let list = [On::Any, On::Read, On::List];
        let clock = SystemClock::shared;
        let mut on = faults(&["rate-limited=1@on:stop", "rate-limited=1@on:list"], clock());
        assert!(on.meets(RATE_LIMITED, &list, On::Any) && !on.meets(RATE_LIMITED, &list, On::Any));
        assert!(on.meets(RATE_LIMITED, &stop, On::Any) && !on.meets(RATE_LIMITED, &stop, On::Any));
        let mut on = faults(&["revoked-key"], clock());
        assert!(on.meets(REVOKED, &stop, On::Write) && !on.meets(REVOKED, &list, On::Write));
        let mut on = faults(&["revoked-key@on:any"], clock());
        assert!(on.meets(REVOKED, &stop, On::Write) && on.meets(REVOKED, &list, On::Write));
    }
}
