//! The machine of the laptop's fuse: (state, event, now) to a step. Pure. Every path ends in a stop
//! that was read back, or in words and an exit code that say that the pod may still bill.

use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;

/// The clocks, read at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Now {
    /// Wall time. Goes on while the machine sleeps; may be set back or forward.
    pub wall: DateTime<Utc>,
    /// A clock that is never set back, and stands still while the machine sleeps.
    pub monotonic: Duration,
    /// A clock that is never set back and goes on in sleep, where the system has one; else the same as
    /// [`Self::monotonic`].
    pub since_boot: Duration,
}

/// What does not change over the life of a fuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    /// How many cycles of stops are tried again after the first one that was answered in vain.
    pub retries: u32,
    /// Between two cycles.
    pub spacing: Duration,
}

/// How the pod is asked off the bill within one cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// As stop_pod does: what the account's list shows under the vehicle's name.
    Graceful,
    /// By the ids that are known, past the list.
    Forced,
}

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asked {
    /// EXITED or TERMINATED was read, or the pod went from the lists after it was asked.
    Off,
    /// The account shows no pod of the vehicle.
    Absent,
    /// The pod that was armed for now carries another name, and no pod carries the vehicle's.
    NotOurs,
    /// Nobody answered who could know: no network, an edge page, a limit, a provider in trouble.
    Unreachable {
        /// How long the provider asks to be left alone.
        wait: Option<Duration>,
    },
    /// The provider, or the guard, said no.
    Refused,
    /// It was accepted and no effect was seen.
    NoEffect,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Time went by.
    Tick,
    /// Somebody asks for more time.
    Extend(DateTime<Utc>),
    /// Somebody calls it off.
    Cancel,
    /// What an ask came to.
    Asked(Asked),
    /// The local cloud is gone with its pods; never said of a provider.
    CloudGone,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The pod is off the bill, as read.
    Stopped,
    /// It was asked as often as was agreed: the pod may still bill.
    StopFailed,
    /// Somebody called it off, or the local cloud is gone.
    Cancelled,
    /// The pod is not the vehicle's (any more): it was left alone and may bill.
    Refused,
}

impl Outcome {
    /// The stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::StopFailed => "stop_failed",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
        }
    }

    /// The exit code of a fuse that ended like this: 1 when a pod may still bill against its will.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Stopped | Self::Cancelled => 0,
            Self::StopFailed | Self::Refused => 1,
        }
    }

    /// Whether a pod may go on billing; `was_off` is what whoever called it off had read.
    #[must_use]
    pub const fn may_still_bill(self, was_off: bool) -> bool {
        match self {
            Self::Stopped => false,
            Self::Cancelled => !was_off,
            Self::StopFailed | Self::Refused => true,
        }
    }
}

/// Where a fuse that fires stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Firing {
    /// Cycles that were answered in vain.
    pub failed: u32,
    /// How the next ask is made.
    pub form: Form,
    /// When, in time since it was armed.
    pub next: Duration,
    /// Since when the account shows no pod of the vehicle.
    pub absent_since: Option<Duration>,
    /// Whether an ask is under way.
    pub is_asking: bool,
}

/// What it is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Waiting.
    Armed,
    /// Stopping.
    Firing(Firing),
    /// Done.
    Over(Outcome),
}

/// A fuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// What it is doing.
    pub phase: Phase,
    /// Time since it was armed. Of each step the largest progress of the clocks counts: sleep shows on the
    /// wall clock and on the one since the boot, and a wall clock set back takes nothing away. One that is
    /// set back and then forward again counts twice, so that it fires early and never late.
    pub elapsed: Duration,
    /// How much of it the machine slept, or the wall clock was set forward, in gaps of a minute and
    /// more.
    pub slept: Duration,
    /// When it fires, in time since it was armed.
    pub due: Duration,
    last: Now,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing until the next tick.
    Wait,
    /// Ask the pod off the bill.
    Ask(Form),
    /// Write the summary and go.
    Finish(Outcome),
}

/// The clocks went apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Jump {
    /// The machine slept, or the wall clock was set forward.
    Ahead(Duration),
    /// The wall clock was set back. The deadline stays where it was.
    Back(Duration),
}

/// What a step gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The state after it.
    pub state: State,
    /// What to do.
    pub effect: Effect,
    /// What is to be logged of the clocks.
    pub jump: Option<Jump>,
}

/// How long the account must show no pod of the vehicle before that is believed (A05): a list may
/// miss a new pod, and one whose create answer was lost may appear late.
pub const ABSENT_FOR: Duration = Duration::from_secs(120);
/// Between two looks for a pod that is not shown, and between two tries without an answer: a name
/// service that is dead for 90 s after waking costs no more than this.
pub const AGAIN: Duration = Duration::from_secs(15);
/// The longest pause that the provider is given. A stop is delayed, never given up for it (A09).
pub const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// Clocks that go apart by less are no news: they are read one after the other.
const TELLING: Duration = Duration::from_secs(2);
/// C03: a gap like this is sleep, or a clock that was set.
const SLEEP: Duration = Duration::from_secs(60);

impl State {
    /// A fuse that fires at `fire_at`.
    #[must_use]
    pub fn armed(fire_at: DateTime<Utc>, now: Now) -> Self {
        Self {
            phase: Phase::Armed,
            elapsed: Duration::ZERO,
            slept: Duration::ZERO,
            due: (fire_at - now.wall).to_std().unwrap_or_default(),
            last: now,
        }
    }

    /// When it fires, by the wall clock of `now`.
    #[must_use]
    pub fn fire_at(&self) -> DateTime<Utc> {
        let left = TimeDelta::from_std(self.due.saturating_sub(self.elapsed));
        let past = TimeDelta::from_std(self.elapsed.saturating_sub(self.due));
        let (left, past) = (left.unwrap_or(TimeDelta::MAX), past.unwrap_or_default());
        let at = self.last.wall.checked_add_signed(left).unwrap_or(DateTime::<Utc>::MAX_UTC);
        at.checked_sub_signed(past).unwrap_or(at)
    }

    fn pass(&mut self, now: Now) -> Option<Jump> {
        let awake = now.monotonic.saturating_sub(self.last.monotonic);
        let steady = now.since_boot.saturating_sub(self.last.since_boot).max(awake);
        let wall = now.wall - self.last.wall;
        self.elapsed += steady.max(wall.to_std().unwrap_or_default());
        self.last = now;
        let drift = wall - TimeDelta::from_std(awake).unwrap_or(TimeDelta::MAX);
        // Sleep shows also where the wall clock was set back meanwhile.
        let asleep = TimeDelta::from_std(steady - awake).unwrap_or(TimeDelta::MAX);
        let drift = if steady - awake >= TELLING { drift.max(asleep) } else { drift };
        if let Ok(ahead) = drift.to_std() {
            if ahead >= SLEEP {
                self.slept += ahead;
            }
            return (ahead >= TELLING).then_some(Jump::Ahead(ahead));
        }
        let back = (-drift).to_std().unwrap_or_default();
        (back >= TELLING).then_some(Jump::Back(back))
    }
}

/// One step.
#[must_use]
pub fn next(state: &State, event: Event, now: Now, terms: Terms) -> Step {
    let mut state = *state;
    let jump = state.pass(now);
    let effect = match (state.phase, event) {
        (Phase::Over(outcome), _) => Effect::Finish(outcome),
        (_, Event::Cancel | Event::CloudGone) => over(&mut state, Outcome::Cancelled),
        (Phase::Armed, _) => armed(&mut state, event, now),
        (Phase::Firing(firing), Event::Asked(asked)) => answered(&mut state, firing, asked, terms),
        // A stop that was begun is not put off; only a cancel ends it.
        (Phase::Firing(firing), Event::Tick | Event::Extend(_)) => ask(&mut state, firing),
    };
    Step { state, effect, jump }
}

fn armed(state: &mut State, event: Event, now: Now) -> Effect {
    // The deadline goes first: whoever comes after it comes too late.
    if state.elapsed >= state.due {
        let firing = Firing {
            failed: 0,
            form: Form::Graceful,
            next: state.elapsed,
            absent_since: None,
            is_asking: false,
        };
        return ask(state, firing);
    }
    if let Event::Extend(until) = event {
        let more = (until - now.wall).to_std().unwrap_or_default();
        // Never shortened.
        state.due = state.due.max(state.elapsed.saturating_add(more));
    }
    Effect::Wait
}

fn ask(state: &mut State, firing: Firing) -> Effect {
    let is_time = !firing.is_asking && state.elapsed >= firing.next;
    state.phase = Phase::Firing(Firing { is_asking: firing.is_asking || is_time, ..firing });
    if is_time { Effect::Ask(firing.form) } else { Effect::Wait }
}

fn over(state: &mut State, outcome: Outcome) -> Effect {
    state.phase = Phase::Over(outcome);
    Effect::Finish(outcome)
}

fn answered(state: &mut State, firing: Firing, asked: Asked, terms: Terms) -> Effect {
    let at = state.elapsed;
    let again = Firing { is_asking: false, form: Form::Graceful, ..firing };
    let later = |pause: Duration| at.saturating_add(pause);
    let next = match asked {
        Asked::Off => return over(state, Outcome::Stopped),
        Asked::NotOurs => return over(state, Outcome::Refused),
        Asked::Absent => {
            let since = firing.absent_since.unwrap_or(at);
            if at.saturating_sub(since) >= ABSENT_FOR {
                return over(state, Outcome::Stopped);
            }
            Firing { absent_since: Some(since), next: later(AGAIN), ..again }
        }
        // Time is what is agreed, not tries: whatever did not reach the provider uses up nothing.
        Asked::Unreachable { wait } => {
            let pause = wait.map_or(AGAIN, |wait| wait.clamp(AGAIN, LONGEST_PAUSE));
            Firing { next: later(pause), ..again }
        }
        Asked::Refused | Asked::NoEffect if firing.form == Form::Graceful => {
            Firing { form: Form::Forced, next: at, absent_since: None, ..again }
        }
        Asked::Refused | Asked::NoEffect => {
            let failed = firing.failed.saturating_add(1);
            if failed > terms.retries {
                return over(state, Outcome::StopFailed);
            }
            Firing { failed, next: later(terms.spacing), absent_since: None, ..again }
        }
    };
    ask(state, next)
}

#[cfg(test)]
mod tests;
