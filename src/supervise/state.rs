//! The machine of a supervised job: (state, event, now) to (state, effect). Pure. Every path ends in
//! a stop that was read back, or in the words that the pod may still bill.

use crate::domain::{JobState, PodStatus};
use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;

/// What does not change over a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Nothing was spent yet.
    Launching,
    /// F04: the answer to the launch was lost. The job is looked for by its id, never launched again.
    Adopting {
        /// How often it was seen placed and not begun.
        looks: u32,
    },
    /// The job runs, as far as is known.
    Following,
    /// The provider showed the pod off the bill once. One answer may be old (A05).
    SeenOff {
        /// What it said.
        status: PodStatus,
        /// The looks of the adoption that this came into, if the job is not known to have begun.
        adopting: Option<u32>,
    },
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Time passed.
    Tick,
    /// The launch was acknowledged.
    Launched,
    /// The launch gave no good answer.
    NotLaunched {
        /// Whether the job may have begun all the same.
        answer_lost: bool,
    },
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Launch the job. Once: no other effect does, and no state comes back to this one.
    Launch,
    /// Look for a job whose launch gave no answer, after a moment.
    LookForJob,
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

/// How often a job may be seen placed and not begun before its launch counts as failed.
pub const LOOKS_FOR_A_JOB: u32 = 5;

impl State {
    /// What is to be done in it.
    #[must_use]
    pub const fn effect(&self) -> Effect {
        match self {
            Self::Launching => Effect::Launch,
            Self::Adopting { .. } => Effect::LookForJob,
            Self::Following => Effect::Look,
            Self::SeenOff { .. } => Effect::AskProvider,
            Self::Capturing(_) => Effect::Capture,
            Self::Stopping { .. } => Effect::Stop,
            Self::Over { .. } => Effect::Finish,
        }
    }

    /// Why following ended, once it has.
    #[must_use]
    pub const fn end(&self) -> Option<&End> {
        match self {
            Self::Capturing(end) | Self::Stopping { end, .. } => Some(end),
            Self::Over { end, .. } => end.as_ref(),
            _ => None,
        }
    }

    /// Whether nobody has read the pod off the bill. While this is so the laptop's fuse stays armed
    /// and the summary says that the pod may be running.
    #[must_use]
    pub const fn may_still_bill(&self) -> bool {
        !matches!(self, Self::Over { stop_confirmed: true, .. })
    }

    /// Whether a stop was asked of all that goes by the vehicle's name, and read back. A run that found
    /// its own pod off has not asked: another session may have begun there, and the laptop's fuse, which
    /// is the vehicle's, is called off only when a list shows that nothing is left for it.
    #[must_use]
    pub const fn asked_for_all(&self) -> bool {
        !self.may_still_bill() && !matches!(self.end(), Some(End::PodOff(_)))
    }
}

/// The moment that counts for the deadline. C02: of each step the larger progress of the two clocks
/// counts. Sleep shows on both where the system has a clock that counts it, and a wall clock set back takes
/// nothing away, so that the deadline comes early and never late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Moment {
    /// The moment.
    pub at: DateTime<Utc>,
    wall: DateTime<Utc>,
    steady: Duration,
}

impl Moment {
    /// From now on; `steady` is a clock that is never set back and goes on in sleep, where there is one.
    #[must_use]
    pub const fn new(wall: DateTime<Utc>, steady: Duration) -> Self {
        Self { at: wall, wall, steady }
    }

    /// The same, but not before `at`: what another process has lived through.
    #[must_use]
    pub fn no_earlier(self, at: DateTime<Utc>) -> Self {
        Self { at: self.at.max(at), ..self }
    }

    /// What the clocks say later.
    #[must_use]
    pub fn pass(self, wall: DateTime<Utc>, steady: Duration) -> Self {
        let by_steady = TimeDelta::from_std(steady.saturating_sub(self.steady));
        let by = by_steady.unwrap_or(TimeDelta::MAX).max(wall - self.wall);
        let at = self.at.checked_add_signed(by).unwrap_or(DateTime::<Utc>::MAX_UTC);
        Self { at, wall, steady }
    }
}

/// The transition.
#[must_use]
pub fn next(state: &State, event: &Event, now: DateTime<Utc>, terms: Terms) -> (State, Effect) {
    match (state, event) {
        (State::Over { .. }, _) => (state.clone(), Effect::Finish),
        (_, Event::Leave) => (State::Over { end: None, stop_confirmed: false }, Effect::Finish),

        (State::Launching, Event::Launched) => following(None, event, now, terms),
        (State::Launching, Event::NotLaunched { answer_lost: true }) => {
            following(Some(0), event, now, terms)
        }
        (State::Launching, Event::NotLaunched { .. }) => ending(End::LaunchFailed),
        (State::Launching, _) => (State::Launching, Effect::Launch),

        (State::Adopting { looks }, event) => following(Some(*looks), event, now, terms),
        (State::SeenOff { .. }, Event::Pod(status)) if !status.bills_compute() => {
            let end = Some(End::PodOff(status.clone()));
            (State::Over { end, stop_confirmed: true }, Effect::Finish)
        }
        (State::SeenOff { .. }, Event::Tick | Event::NoContact) if now < terms.deadline => {
            (state.clone(), Effect::AskProvider)
        }
        (State::SeenOff { adopting, .. }, event) => following(*adopting, event, now, terms),
        (State::Following, event) => following(None, event, now, terms),

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

/// A job that is followed, or looked for when `adopting` says how often it was seen not begun.
fn following(
    adopting: Option<u32>,
    event: &Event,
    now: DateTime<Utc>,
    terms: Terms,
) -> (State, Effect) {
    let go_on = |looks: Option<u32>, ask: bool| match (looks, ask) {
        (Some(looks), true) => (State::Adopting { looks }, Effect::AskProvider),
        (Some(looks), false) => (State::Adopting { looks }, Effect::LookForJob),
        (None, true) => (State::Following, Effect::AskProvider),
        (None, false) => (State::Following, Effect::Look),
    };
    match (event, adopting) {
        (Event::Interrupt, _) => ending(End::Interrupted),
        (Event::Saw(job), _) if job.has_ended() => ending(End::Job(*job)),
        // A job folder that is not there after a launch that was acknowledged will not come back.
        (Event::Saw(JobState::NotFound), None) => ending(End::Job(JobState::NotFound)),
        (Event::Saw(JobState::NotFound), Some(_)) => ending(End::LaunchFailed),
        (Event::Pod(status), _) if !status.bills_compute() => {
            (State::SeenOff { status: status.clone(), adopting }, Effect::AskProvider)
        }
        _ if now >= terms.deadline => ending(End::MaxWait),
        // Placed files look like a job that starts; only one that was launched goes on.
        (Event::Saw(JobState::Starting), Some(looks)) => match looks.saturating_add(1) {
            LOOKS_FOR_A_JOB.. => ending(End::LaunchFailed),
            looks => go_on(Some(looks), false),
        },
        (Event::Saw(JobState::Running), Some(_)) => go_on(None, false),
        // E07: whoever cannot see has not seen that there is none. It uses up no look.
        (Event::NoContact, looks) => go_on(looks, true),
        (_, looks) => go_on(looks, false),
    }
}

const fn ending(end: End) -> (State, Effect) {
    (State::Capturing(end), Effect::Capture)
}

/// The process's exit code: 0 succeeded and stop confirmed (or not wanted), 6 the pod may still be
/// running, 1 anything else. 2, a refusal, never comes here. A capture that is not `whole` is no
/// success, whatever the job said.
#[must_use]
pub fn exit_code(state: &State, no_stop: bool, whole: bool) -> u8 {
    let State::Over { end, stop_confirmed } = state else { return 6 };
    let succeeded = whole && *end == Some(End::Job(JobState::Succeeded));
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
            Event::Launched,
            Event::NotLaunched { answer_lost: true },
            Event::NotLaunched { answer_lost: false },
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
        let mut seen: Vec<State> = vec![State::Launching];
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
                assert_eq!(exit_code(&state, false, true) == 6, !stop_confirmed, "{state:?}");
            }
        }
    }

    /// Whatever happens, some later answer of the world leads to the end.
    #[test]
    fn no_state_is_a_dead_end() {
        for state in reachable(false) {
            let mut at = state.clone();
            for event in [
                Event::Launched,
                Event::Tick,
                Event::Captured,
                Event::StopAsked { confirmed: true },
            ] {
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
        let off = Event::Pod("EXITED".into());
        // A05: one answer may be old.
        let (seen_off, effect) = after(&State::Following, &off, 0);
        assert_eq!(effect, Effect::AskProvider);
        assert_eq!(after(&seen_off, &Event::Tick, 0).1, Effect::AskProvider);
        let running = after(&seen_off, &Event::Pod("RUNNING".into()), 0);
        assert_eq!(running, (State::Following, Effect::Look));
        let (state, _) = after(&seen_off, &off, 0);
        assert_eq!(exit_code(&state, false, true), 1);
    }

    /// F04: only a job that has begun is adopted; files that are placed and nothing more are a launch
    /// that failed. E07: not being able to look is neither.
    #[test]
    fn a_launch_without_an_answer_is_looked_up_and_never_sent_again() {
        let (lost, effect) = after(&State::Launching, &Event::NotLaunched { answer_lost: true }, 0);
        assert_eq!(effect, Effect::LookForJob);
        let running = after(&lost, &Event::Saw(JobState::Running), 0);
        assert_eq!(running, (State::Following, Effect::Look));
        let ended = after(&lost, &Event::Saw(JobState::Succeeded), 0).0;
        assert_eq!(ended, State::Capturing(End::Job(JobState::Succeeded)));
        let failed = State::Capturing(End::LaunchFailed);
        assert_eq!(after(&lost, &Event::Saw(JobState::NotFound), 0).0, failed);
        let mut state = lost;
        for _ in 0..100 {
            assert_eq!(after(&state, &Event::NoContact, 0), (state.clone(), Effect::AskProvider));
            assert_eq!(after(&state, &Event::Saw(JobState::Unknown), 0).0, state);
        }
        for _ in 0..LOOKS_FOR_A_JOB {
            assert_ne!(state, failed);
            state = after(&state, &Event::Saw(JobState::Starting), 0).0;
        }
        assert_eq!(state, failed);
        for state in reachable(false) {
            let launches = |event| after(&state, event, 0).1 == Effect::Launch;
            assert_eq!(events().iter().any(launches), state == State::Launching, "{state:?}");
        }
    }

    /// C02: a wall clock that is set back does not put the deadline off, sleep counts, and one after
    /// the other does not hide the sleep.
    #[test]
    fn neither_sleep_nor_a_clock_set_back_puts_the_deadline_off() {
        let at = |seconds| now() + TimeDelta::seconds(seconds);
        let begun = Moment::new(now(), Duration::ZERO);
        let back = begun.pass(at(-7200), Duration::from_secs(60));
        assert_eq!(back.at, at(60));
        let slept = back.pass(at(-7200 + 32_400), Duration::from_secs(60));
        assert_eq!(slept.at, at(60 + 32_400));
        assert_eq!(begun.pass(at(32_400), Duration::ZERO).at, at(32_400));
        assert_eq!(begun.pass(at(1), Duration::MAX).at, DateTime::<Utc>::MAX_UTC);
    }

    #[test]
    fn a_capture_that_is_not_whole_is_no_success() {
        let end = Some(End::Job(JobState::Succeeded));
        let state = State::Over { end, stop_confirmed: true };
        assert_eq!([true, false].map(|whole| exit_code(&state, false, whole)), [0, 1]);
    }

    /// C06: the deadline holds whatever else happens.
    #[test]
    fn no_event_outlives_the_deadline() {
        let ended = State::Capturing(End::MaxWait);
        for event in [
            Event::Tick,
            Event::NoContact,
            Event::Saw(JobState::Running),
            Event::Pod("RUNNING".into()),
        ] {
            assert_eq!(after(&State::Following, &event, 100).0, ended, "{event:?}");
        }
        // A laptop that slept through its own launch.
        for event in [Event::Launched, Event::NotLaunched { answer_lost: true }] {
            assert_eq!(after(&State::Launching, &event, 100).0, ended, "{event:?}");
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
        assert_eq!(exit_code(&state, false, true), 6);
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
            .map(|state| exit_code(state, true, true))
            .collect();
        assert_eq!(codes, HashSet::from([0, 1]));
        let left = State::Over { end: None, stop_confirmed: false };
        assert_eq!(exit_code(&left, true, true), 6);
    }
}
