//! The machine of a supervised job: (state, event, now) to (state, effect). Pure. Every path ends in
//! a stop that was read back, or in the words that the pod may still bill.

use crate::domain::{JobState, PodStatus};
use chrono::{DateTime, TimeDelta, Utc};

/// What does not change over a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// When following ends by force.
    pub deadline: DateTime<Utc>,
    /// Leave the pod running at the end.
    pub no_stop: bool,
    /// How often an unconfirmed stop is asked again at least, each with a wait of its own.
    pub max_stops: u32,
    /// How long it is asked again at least: an outage is outlived by time, not by tries (A01).
    pub stop_for: TimeDelta,
}

/// Why following ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The job ended.
    Job(JobState),
    /// `max_wait` passed.
    MaxWait,
    /// The provider shows the pod off the bill.
    PodOff(PodStatus),
    /// A person asked for an orderly end.
    Interrupted,
    /// The launch failed and no job is known.
    LaunchFailed,
}

/// Where a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The job runs, as far as is known.
    Following,
    /// Results are being brought home.
    Capturing(End),
    /// The pod is being stopped.
    Stopping {
        /// Why following ended.
        end: End,
        /// How often a stop was asked in vain.
        tries: u32,
        /// When the first was asked.
        since: DateTime<Utc>,
    },
    /// Nothing is left to do.
    Over {
        /// Why following ended; `None` when the run was left at once.
        end: Option<End>,
        /// Whether the provider was seen to have the pod off the bill.
        stop_confirmed: bool,
    },
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Time passed.
    Tick,
    /// The job was seen.
    Saw(JobState),
    /// The pod's shell did not answer.
    NoContact,
    /// The provider told the pod's status.
    Pod(PodStatus),
    /// Capture is done, whole or not.
    Captured,
    /// A stop was asked and waited for.
    StopAsked {
        /// Whether it was read back.
        confirmed: bool,
    },
    /// A stop was refused for good: what a person has to mend does not mend itself.
    StopRefused,
    /// A person asked for an orderly end (SIGINT).
    Interrupt,
    /// Leave now (SIGTERM, a second SIGINT).
    Leave,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Go on looking at the job.
    Look,
    /// Ask the provider for the pod's status: its shell does not answer.
    AskProvider,
    /// Bring results home.
    Capture,
    /// Ask the pod to stop and wait for EXITED.
    Stop,
    /// Write the summary and end.
    Finish,
}

impl State {
    /// What is to be done in it.
    #[must_use]
    pub const fn effect(&self) -> Effect {
        match self {
            Self::Following => Effect::Look,
            Self::Capturing(_) => Effect::Capture,
            Self::Stopping { .. } => Effect::Stop,
            Self::Over { .. } => Effect::Finish,
        }
    }
}

/// The transition.
#[must_use]
pub fn next(state: &State, event: &Event, now: DateTime<Utc>, terms: Terms) -> (State, Effect) {
    match (state, event) {
        (State::Over { .. }, _) => (state.clone(), Effect::Finish),
        (_, Event::Leave) => (State::Over { end: None, stop_confirmed: false }, Effect::Finish),

        (State::Following, Event::Interrupt) => ending(End::Interrupted),
        (State::Following, Event::Saw(job)) if job.has_ended() => ending(End::Job(*job)),
        // A job folder that is not there after a launch that was acknowledged will not come back.
        (State::Following, Event::Saw(JobState::NotFound)) => ending(End::Job(JobState::NotFound)),
        (State::Following, Event::Pod(status)) if !status.bills_compute() => {
            let end = Some(End::PodOff(status.clone()));
            (State::Over { end, stop_confirmed: true }, Effect::Finish)
        }
        (State::Following, _) if now >= terms.deadline => ending(End::MaxWait),
        (State::Following, Event::NoContact) => (State::Following, Effect::AskProvider),
        (State::Following, _) => (State::Following, Effect::Look),

        (State::Capturing(end), Event::Captured) if terms.no_stop => {
            (State::Over { end: Some(end.clone()), stop_confirmed: false }, Effect::Finish)
        }
        (State::Capturing(end), Event::Captured) => {
            (State::Stopping { end: end.clone(), tries: 0, since: now }, Effect::Stop)
        }
        (State::Capturing(_), _) => (state.clone(), Effect::Capture),

        (State::Stopping { end, .. }, Event::StopAsked { confirmed: true }) => {
            (State::Over { end: Some(end.clone()), stop_confirmed: true }, Effect::Finish)
        }
        (
            State::Stopping { end, tries, since },
            Event::StopAsked { confirmed: false } | Event::StopRefused,
        ) => {
            let tries = tries + 1;
            // A clock that was set back has not moved: it gives no more time than there was.
            let waited = (now - *since).max(TimeDelta::zero());
            let has_time = waited < terms.stop_for && *event != Event::StopRefused;
            if tries >= terms.max_stops && !has_time {
                return (
                    State::Over { end: Some(end.clone()), stop_confirmed: false },
                    Effect::Finish,
                );
            }
            (State::Stopping { end: end.clone(), tries, since: *since }, Effect::Stop)
        }
        (State::Stopping { .. }, _) => (state.clone(), Effect::Stop),
    }
}

const fn ending(end: End) -> (State, Effect) {
    (State::Capturing(end), Effect::Capture)
}

/// The process's exit code: 0 succeeded and stop confirmed (or not wanted), 6 the pod may still be
/// running, 1 anything else. 2, a refusal, never comes here.
#[must_use]
pub fn exit_code(state: &State, no_stop: bool) -> u8 {
    let State::Over { end, stop_confirmed } = state else { return 6 };
    let succeeded = *end == Some(End::Job(JobState::Succeeded));
    match (succeeded, *stop_confirmed || (no_stop && end.is_some())) {
        (_, false) => 6,
        (true, true) => 0,
        (false, true) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashSet, VecDeque};

    fn now() -> DateTime<Utc> {
        DateTime::UNIX_EPOCH
    }

    fn terms(no_stop: bool) -> Terms {
        Terms {
            deadline: now() + TimeDelta::seconds(100),
            no_stop,
            max_stops: 3,
            stop_for: TimeDelta::zero(),
        }
    }

    fn after(state: &State, event: &Event, seconds: i64) -> (State, Effect) {
        next(state, event, now() + TimeDelta::seconds(seconds), terms(false))
    }

    const JOB_STATES: [JobState; 9] = [
        JobState::Starting,
        JobState::Running,
        JobState::Succeeded,
        JobState::Failed,
        JobState::TimedOut,
        JobState::WrapperLost,
        JobState::Orphaned,
        JobState::Unknown,
        JobState::NotFound,
    ];

    fn events() -> Vec<Event> {
        let mut events = vec![
            Event::Tick,
            Event::NoContact,
            Event::Captured,
            Event::StopAsked { confirmed: true },
            Event::StopAsked { confirmed: false },
            Event::StopRefused,
            Event::Interrupt,
            Event::Leave,
        ];
        events.extend(JOB_STATES.map(Event::Saw));
        events.extend(
            ["RUNNING", "EXITED", "ERROR", "MIGRATING"].map(|word| Event::Pod(word.into())),
        );
        events
    }

    /// Every state that any sequence of events can reach, with and without the deadline passed.
    fn reachable(no_stop: bool) -> Vec<State> {
        let mut seen: Vec<State> = vec![State::Following];
        let mut queue = VecDeque::from(seen.clone());
        while let Some(state) = queue.pop_front() {
            for event in events() {
                for seconds in [0, 100] {
                    let (to, _) =
                        next(&state, &event, now() + TimeDelta::seconds(seconds), terms(no_stop));
                    if !seen.contains(&to) {
                        seen.push(to.clone());
                        queue.push_back(to);
                    }
                }
            }
        }
        seen
    }

    /// Every path that ends without a stop that was read back ends in exit code 6.
    #[test]
    fn every_end_is_a_confirmed_stop_or_says_that_the_pod_may_bill() {
        for state in reachable(false) {
            if let State::Over { stop_confirmed, .. } = &state {
                assert_eq!(exit_code(&state, false) == 6, !stop_confirmed, "{state:?}");
            }
        }
    }

    /// Whatever happens, some later answer of the world leads to the end.
    #[test]
    fn no_state_is_a_dead_end() {
        for state in reachable(false) {
            let mut at = state.clone();
            for event in [Event::Tick, Event::Captured, Event::StopAsked { confirmed: true }] {
                at = after(&at, &event, 100).0;
            }
            assert!(matches!(at, State::Over { .. }), "{state:?} stays in {at:?}");
        }
    }

    /// D01: the pod is not stopped before results were brought home, unless it is off already.
    #[test]
    fn a_stop_comes_only_after_capture() {
        for event in events() {
            for seconds in [0, 100] {
                let (state, effect) = after(&State::Following, &event, seconds);
                assert_ne!(effect, Effect::Stop, "{event:?}");
                assert!(!matches!(state, State::Stopping { .. }), "{event:?}");
            }
        }
    }

    /// E07: unknown is never dead and never done.
    #[test]
    fn an_unknown_job_is_followed_on() {
        for job in [JobState::Unknown, JobState::Starting, JobState::Running] {
            assert_eq!(
                after(&State::Following, &Event::Saw(job), 0),
                (State::Following, Effect::Look)
            );
        }
    }

    /// E08: a pod that is gone ends the run; a shell that does not answer asks the provider first.
    #[test]
    fn lost_contact_asks_the_provider_and_a_stopped_pod_ends_the_run() {
        assert_eq!(after(&State::Following, &Event::NoContact, 0).1, Effect::AskProvider);
        assert_eq!(after(&State::Following, &Event::Pod("RUNNING".into()), 0).1, Effect::Look);
        assert_eq!(after(&State::Following, &Event::Pod("MIGRATING".into()), 0).1, Effect::Look);
        let (state, _) = after(&State::Following, &Event::Pod("EXITED".into()), 0);
        assert_eq!(exit_code(&state, false), 1);
    }

    /// C06: the deadline holds whatever else happens.
    #[test]
    fn no_event_outlives_the_deadline() {
        for event in [
            Event::Tick,
            Event::NoContact,
            Event::Saw(JobState::Running),
            Event::Pod("RUNNING".into()),
        ] {
            assert_eq!(
                after(&State::Following, &event, 100).0,
                State::Capturing(End::MaxWait),
                "{event:?}"
            );
        }
    }

    #[test]
    fn an_unconfirmed_stop_is_asked_again_and_then_said() {
        let end = End::Job(JobState::Succeeded);
        let mut state = State::Stopping { end, tries: 0, since: now() };
        let mut asked = 0;
        loop {
            let (to, effect) = after(&state, &Event::StopAsked { confirmed: false }, 0);
            state = to;
            if effect == Effect::Finish {
                break;
            }
            asked += 1;
        }
        assert_eq!(asked, 2);
        assert_eq!(exit_code(&state, false), 6);
    }

    /// A01: twenty minutes without a network are outlived; a refusal that stays is not waited out.
    #[test]
    fn a_stop_is_asked_again_for_a_time_and_not_for_a_number_of_tries() {
        let terms = Terms { stop_for: TimeDelta::minutes(30), ..terms(false) };
        let end = End::Job(JobState::Succeeded);
        let state = State::Stopping { end, tries: 40, since: now() };
        let at = |event, minutes| next(&state, &event, now() + TimeDelta::minutes(minutes), terms);
        assert_eq!(at(Event::StopAsked { confirmed: false }, 20).1, Effect::Stop);
        assert_eq!(at(Event::StopAsked { confirmed: false }, 30).1, Effect::Finish);
        assert_eq!(at(Event::StopRefused, 1).1, Effect::Finish);
    }

    #[test]
    fn with_no_stop_the_exit_code_is_the_jobs() {
        let codes: HashSet<u8> = reachable(true)
            .iter()
            .filter(|state| matches!(state, State::Over { end: Some(End::Job(_)), .. }))
            .map(|state| exit_code(state, true))
            .collect();
        assert_eq!(codes, HashSet::from([0, 1]));
        let left = State::Over { end: None, stop_confirmed: false };
        assert_eq!(exit_code(&left, true), 6);
    }
}
