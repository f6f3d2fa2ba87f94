//! The machine of a campaign: (state, event, now) to (state, effect). Pure. A link that was begun is
//! never begun again by the same path, and every path ends in a stop that was read back, at a stop
//! point that leaves the pod on purpose, or in the words that the pod may still bill.

use crate::domain::LinkEnd;
use crate::supervise;
use chrono::{DateTime, Utc};

/// What does not change over a campaign.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    /// What comes after each link, in order; the last stops.
    pub ends: Vec<LinkEnd>,
    /// How an unconfirmed stop is asked again.
    pub stop: supervise::Terms,
}

/// How a campaign comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Every link ended well.
    Done,
    /// At the stop point after this link.
    Paused(usize),
    /// This link did not end well.
    Failed(usize),
    /// A person asked for an orderly end.
    Interrupted,
    /// This link is in flight and cannot be taken up, or may not: nothing was changed.
    Refused(usize),
}

/// Where a campaign is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It comes to this link.
    At(usize),
    /// An earlier process began this link.
    TakingUp(usize),
    /// What must hold before this link is looked at.
    Checking {
        /// The link.
        link: usize,
        /// Whether it was tried before, and came to no job.
        again: bool,
    },
    /// This link runs.
    Running {
        /// The link.
        link: usize,
        /// Whether it was tried before.
        again: bool,
    },
    /// A pause before this link is tried again, once.
    Resting(usize),
    /// What this link has left and cost is looked at.
    Judging(usize),
    /// The pod is being stopped; the second is the machine of a supervised run, from its stop on.
    Stopping(End, supervise::State),
    /// Nothing is left to do.
    Over {
        /// How it came to its end; `None` when it was left at once.
        end: Option<End>,
        /// Whether the provider was seen to have the pod off the bill.
        stop_confirmed: bool,
    },
}

/// What is known of a link when the campaign comes to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It was done before, and what it left is there.
    Holds {
        /// Whether its stop point, if it has one, was passed.
        pause_passed: bool,
    },
    /// An earlier process began it, and its end is not recorded.
    InFlight,
    /// It is to be run.
    ToRun,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// What is known of the link.
    Stands(Standing),
    /// Whether what must hold before the link does.
    Checked {
        /// Whether it does.
        holds: bool,
    },
    /// The link came to its end.
    Ended {
        /// Whether it ended well.
        well: bool,
    },
    /// The link made no job: whatever kept it from that, nothing of it was begun.
    NoJob,
    /// The link in flight cannot be taken up; nothing was changed.
    CannotTakeUp,
    /// The pause is over.
    Rested,
    /// Whether the link has left what it must, within its envelope.
    Judged {
        /// Whether it has.
        well: bool,
    },
    /// A stop was asked and waited for.
    StopAsked {
        /// Whether it was read back.
        confirmed: bool,
    },
    /// A stop was refused for good.
    StopRefused,
    /// A person asked for an orderly end (SIGINT).
    Interrupt,
    /// Leave now (SIGTERM, a second SIGINT).
    Leave,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Find out what is known of this link.
    Look(usize),
    /// Go on with the run that an earlier process began. Launches nothing.
    TakeUp(usize),
    /// Look at pins, gates and money of this link.
    Check(usize),
    /// Begin this link.
    Run(usize),
    /// Wait before it is tried again.
    Rest(usize),
    /// Look at what it left and cost, and record it.
    Judge(usize),
    /// Ask the pod to stop and wait for EXITED.
    Stop,
    /// Write the record and end.
    Finish,
}

impl State {
    /// What is to be done in it.
    #[must_use]
    pub const fn effect(&self) -> Effect {
        match self {
            Self::At(link) => Effect::Look(*link),
            Self::TakingUp(link) => Effect::TakeUp(*link),
            Self::Checking { link, .. } => Effect::Check(*link),
            Self::Running { link, .. } => Effect::Run(*link),
            Self::Resting(link) => Effect::Rest(*link),
            Self::Judging(link) => Effect::Judge(*link),
            Self::Stopping(..) => Effect::Stop,
            Self::Over { .. } => Effect::Finish,
        }
    }

    /// How it comes to its end, once that is known.
    #[must_use]
    pub const fn end(&self) -> Option<End> {
        match self {
            Self::Stopping(end, _) => Some(*end),
            Self::Over { end, .. } => *end,
            _ => None,
        }
    }

    /// Whether nobody has read the pod off the bill.
    #[must_use]
    pub const fn may_still_bill(&self) -> bool {
        !matches!(self, Self::Over { stop_confirmed: true, .. })
    }
}

/// The transition.
#[must_use]
pub fn next(state: &State, event: Event, now: DateTime<Utc>, terms: &Terms) -> (State, Effect) {
    let to = step(state, event, now, terms);
    let effect = to.effect();
    (to, effect)
}

fn step(state: &State, event: Event, now: DateTime<Utc>, terms: &Terms) -> State {
    match (state, event) {
        (State::Over { .. }, _) => state.clone(),
        (_, Event::Leave) => over(None, false),

        (State::Stopping(end, stop), event) => stopping(*end, stop, event, now, terms),
        // Whatever a link is at: its own run has captured what there is.
        (_, Event::Interrupt) => stop(End::Interrupted, now),

        (State::At(link), Event::Stands(Standing::Holds { pause_passed })) => {
            after(*link, pause_passed, now, terms)
        }
        (State::At(link), Event::Stands(Standing::InFlight)) => State::TakingUp(*link),
        (State::At(link), Event::Stands(Standing::ToRun)) => {
            State::Checking { link: *link, again: false }
        }

        (State::TakingUp(link), Event::CannotTakeUp) => over(Some(End::Refused(*link)), false),
        // Recorded and not begun: its process died in between. That was no try.
        (State::TakingUp(link), Event::NoJob) => State::Checking { link: *link, again: false },

        (State::Checking { link, again }, Event::Checked { holds: true }) => {
            State::Running { link: *link, again: *again }
        }
        (State::Checking { link, .. }, Event::Checked { holds: false }) => {
            stop(End::Failed(*link), now)
        }

        (State::Running { link, again: false }, Event::NoJob) => State::Resting(*link),
        (State::Running { link, again: true }, Event::NoJob) => stop(End::Failed(*link), now),
        (State::Resting(link), Event::Rested) => State::Checking { link: *link, again: true },

        (State::Running { link, .. } | State::TakingUp(link), Event::Ended { well: true }) => {
            State::Judging(*link)
        }
        (State::Running { link, .. } | State::TakingUp(link), Event::Ended { well: false }) => {
            stop(End::Failed(*link), now)
        }
        (State::Judging(link), Event::Judged { well: true }) => after(*link, false, now, terms),
        (State::Judging(link), Event::Judged { well: false }) => stop(End::Failed(*link), now),

        // What does not belong here changes nothing.
        (state, _) => state.clone(),
    }
}

/// What comes after a link that is done.
fn after(link: usize, pause_passed: bool, now: DateTime<Utc>, terms: &Terms) -> State {
    match terms.ends.get(link) {
        Some(LinkEnd::Next) => State::At(link + 1),
        Some(LinkEnd::Pause { .. }) if pause_passed => State::At(link + 1),
        Some(LinkEnd::Pause { stops: false }) => over(Some(End::Paused(link)), false),
        Some(LinkEnd::Pause { stops: true }) => stop(End::Paused(link), now),
        Some(LinkEnd::Stop) | None => stop(End::Done, now),
    }
}

const fn over(end: Option<End>, stop_confirmed: bool) -> State {
    State::Over { end, stop_confirmed }
}

fn stop(end: End, now: DateTime<Utc>) -> State {
    // Why a supervised run stops is not looked at from there on.
    let end_of_run = supervise::End::Interrupted;
    let stop = supervise::State::Stopping { end: end_of_run, tries: 0, since: now };
    State::Stopping(end, stop)
}

/// A stop is asked as at the end of a supervised run, by the same machine.
fn stopping(
    end: End,
    stop: &supervise::State,
    event: Event,
    now: DateTime<Utc>,
    terms: &Terms,
) -> State {
    let event = match event {
        Event::StopAsked { confirmed } => supervise::Event::StopAsked { confirmed },
        Event::StopRefused => supervise::Event::StopRefused,
        _ => supervise::Event::Tick,
    };
    match supervise::next(stop, &event, now, terms.stop) {
        (supervise::State::Over { stop_confirmed, .. }, _) => over(Some(end), stop_confirmed),
        (stop, _) => State::Stopping(end, stop),
    }
}

/// The process's exit code: 0 the campaign is done, or at a stop point, and the pod is as the link says
/// (off and read back, or left on purpose) · 2 a link in flight could not be taken up · 6 the pod may
/// still be running · 1 anything else.
#[must_use]
pub fn exit_code(state: &State, terms: &Terms) -> u8 {
    let State::Over { end, stop_confirmed } = state else { return 6 };
    let left_on_purpose =
        |link: &usize| matches!(terms.ends.get(*link), Some(LinkEnd::Pause { stops: false }));
    match (end, stop_confirmed) {
        (Some(End::Done | End::Paused(_)), true) => 0,
        (Some(End::Paused(link)), false) if left_on_purpose(link) => 0,
        (Some(End::Refused(_)), _) => 2,
        (Some(_), true) => 1,
        (_, false) | (None, true) => 6,
    }
}

#[cfg(test)]
mod tests;
