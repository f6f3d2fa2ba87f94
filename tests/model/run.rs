//! A supervised run and the laptop's fuse beside it, over one pod, one job, one laptop and one provider.
//! Both machines are the real ones; what is around them is chosen freely at every step.
//!
//! Time goes in rounds: each machine that lives takes one step in each, in either order, and what goes
//! wrong may come before, between and after. Every step adds to `rank`, so that no path has a circle,
//! and `eventually` in the checker is what it says.

use crate::asking::{self, Answer, Told, Way};
use crate::world::{ANOTHERS, Bad, Power, RUNS, TICK, World, at};
use chrono::{DateTime, Utc};
use podtether::deadman::Claim;
use podtether::deadman::state::{self as deadman, Asked, Form, Now, Outcome, Phase};
use podtether::domain::{JobState, PodStatus};
use podtether::supervise::{self, Effect, End, Event, Moment, State};
use stateright::{Model, Property};
use std::time::Duration;

type SuperviseNext = fn(&State, &Event, DateTime<Utc>, supervise::Terms) -> (State, Effect);
type DeadmanNext = fn(&deadman::State, deadman::Event, Now, deadman::Terms) -> deadman::Step;

/// The machines, and where a mutant is put in their place.
#[derive(Clone, Copy)]
pub struct Machines {
    pub supervise: SuperviseNext,
    pub exit_code: fn(&State, bool, bool) -> u8,
    /// Whether the fuse is called off, and whether it is so without a look at the list.
    pub calls_off: fn(&State) -> (bool, bool),
    pub moment: fn(Moment, &World) -> Moment,
    pub deadman: DeadmanNext,
    pub may_still_bill: fn(Outcome, bool) -> bool,
    /// Whether the fuse looks at names.
    pub minds_names: bool,
    /// Whether a claim on the fuse is the last one.
    pub is_the_last: fn(&Claim, Option<&Claim>) -> bool,
}

impl Machines {
    pub const REAL: Self = Self {
        supervise: supervise::next,
        exit_code: supervise::exit_code,
        calls_off: |state| (!state.may_still_bill(), state.asked_for_all()),
        moment: |moment, world| moment.pass(world.wall(), world.since_boot()),
        deadman: deadman::next,
        may_still_bill: Outcome::may_still_bill,
        minds_names: true,
        is_the_last: Claim::is_the_last,
    };
}

/// One model.
#[derive(Clone, Copy)]
pub struct Run {
    pub machines: Machines,
    pub supervise: bool,
    pub fuse: bool,
    pub no_stop: bool,
    /// How many things go wrong on one path.
    pub bad: u8,
    /// How many answers of the provider are not so.
    pub lies: u8,
    pub goes_wrong: &'static [Bad],
}

/// When following ends by force, in ticks.
const DEADLINE: u8 = 2;
/// When the fuse fires.
const DUE: u8 = 6;
/// From here on nothing goes wrong any more.
const FAULTS_END: u8 = 9;
/// By then everything must be over.
const END: u8 = 34;

/// A supervised run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sup {
    None,
    Lives {
        state: State,
        effect: Effect,
        moment: Moment,
    },
    /// Over, and the fuse is about to be called off.
    CallsOff {
        code: u8,
        asked_for_all: bool,
    },
    Ended(u8),
    Killed,
}

/// The laptop's fuse.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fuse {
    None,
    Burns {
        state: deadman::State,
        effect: deadman::Effect,
    },
    Over(Outcome),
    /// The laptop died.
    Dead,
}

/// Another session, which begins to use the vehicle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Another {
    None,
    /// It has armed or extended the fuse, then; its start of the pod is on its way.
    Claimed(u8),
    Started,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct All {
    pub world: World,
    pub sup: Sup,
    pub fuse: Fuse,
    /// Who has taken a step in this round.
    sup_ran: bool,
    fuse_ran: bool,
    /// Whether the fuse is asked to go, the pod having been read off.
    called_off: bool,
    /// When the fuse fires, in ticks.
    due: u8,
    another: Another,
    launches: u8,
    captured: bool,
    whole: bool,
    /// Whether the run's pod was off when the run was last told so.
    was_off: bool,
    /// What was seen to be wrong, the first thing.
    pub wrong: Option<&'static str>,
    /// Whether the last stop of each was read back.
    sup_read: bool,
    fuse_read: bool,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    JobEnds(JobState),
    GoesWrong(Bad),
    Supervise(Answer),
    Deadman(Answer),
    Tick,
    /// The laptop is dead, and the pod's own fuse strikes.
    PodsOwnFuse,
    /// The start of another session comes through.
    AnotherStarts,
}

impl All {
    fn sup_lives(&self) -> bool {
        matches!(self.sup, Sup::Lives { .. } | Sup::CallsOff { .. })
    }

    fn fuse_lives(&self) -> bool {
        matches!(self.fuse, Fuse::Burns { .. })
    }

    /// Whether nobody does anything any more.
    pub fn is_over(&self) -> bool {
        !self.sup_lives() && !self.fuse_lives()
    }

    fn laptop_is_dead(&self) -> bool {
        self.fuse == Fuse::Dead
    }

    fn note(&mut self, wrong: &'static str) {
        self.wrong.get_or_insert(wrong);
    }
}

impl Run {
    fn terms(&self) -> supervise::Terms {
        supervise::Terms {
            deadline: at(DEADLINE),
            no_stop: self.no_stop,
            max_stops: 2,
            stop_for: chrono::TimeDelta::seconds(60),
        }
    }

    const FUSE: deadman::Terms = deadman::Terms { retries: 1, spacing: Duration::from_secs(TICK) };

    fn supervise(&self, all: &All, answer: Answer) -> Option<All> {
        let mut next = all.clone();
        if all.sup_ran || self.is_late_for(all, answer) {
            return None;
        }
        next.sup_ran = true;
        let (state, effect, moment) = match &all.sup {
            // A list that cannot be read shows nothing off.
            Sup::CallsOff { code, asked_for_all }
                if answer == Answer::True || (answer == Answer::Down && !asked_for_all) =>
            {
                let shows_none = answer == Answer::True && !all.world.bills();
                next.called_off = self.claim_holds(all) && (*asked_for_all || shows_none);
                next.sup = Sup::Ended(*code);
                return Some(next);
            }
            Sup::Lives { state, effect, moment } => (state, *effect, *moment),
            _ => return None,
        };
        let event = Self::happens(&mut next, effect, answer)?;
        let moment = (self.machines.moment)(moment, &next.world);
        let (to, effect) = (self.machines.supervise)(state, &event, moment.at, self.terms());
        let follows = matches!(to, State::Following | State::Adopting { .. });
        if follows && effect != Effect::AskProvider && next.world.time > DEADLINE {
            next.note("supervise follows past its deadline");
        }
        if let State::Over { end, stop_confirmed } = &to {
            let of_run = next.world.pods[RUNS];
            let bills = match end {
                // Off at some moment since it was asked is off: it may have been started again.
                Some(End::PodOff(_)) => {
                    of_run.ours && of_run.power == Power::Running && !next.was_off
                }
                _ => next.world.bills(),
            };
            if *stop_confirmed && bills {
                next.note("supervise said off, and a pod of ours bills");
            }
            let was_read = next.sup_read || matches!(end, Some(End::PodOff(_)));
            if *stop_confirmed && !was_read {
                next.note("supervise said off without having read it");
            }
            next.sup_read = was_read && *stop_confirmed;
            let code = (self.machines.exit_code)(&to, self.no_stop, next.whole);
            let (calls_off, asked_for_all) = (self.machines.calls_off)(&to);
            next.sup = match calls_off && self.fuse {
                true => Sup::CallsOff { code, asked_for_all },
                false => Sup::Ended(code),
            };
        } else {
            next.was_off &= matches!(to, State::SeenOff { .. });
            next.sup = Sup::Lives { state: to, effect, moment };
        }
        Some(next)
    }

    /// Whether the run's claim on the fuse is the last: it made the first one.
    fn claim_holds(&self, all: &All) -> bool {
        let claim = |text: &str| serde_json::from_str::<Claim>(text).expect("a claim");
        let last = match all.another {
            Another::None => claim("\"run's\""),
            Another::Claimed(_) | Another::Started => claim("\"another's\""),
        };
        (self.machines.is_the_last)(&claim("\"run's\""), Some(&last))
    }

    /// Another session has the fuse cover what it is about to start, or arms one where none burns. Whoever
    /// calls off or arms has the turn, so it comes before or after a call-off and not into it.
    fn claims(&self, mut next: All) -> Option<All> {
        if next.laptop_is_dead() || (next.called_off && next.fuse_lives()) {
            return None;
        }
        let now = next.world.clocks();
        let until = now.wall + chrono::TimeDelta::seconds(i64::from(DUE) * 60);
        let (fuse, due) = match &next.fuse {
            Fuse::Burns { state, .. } if state.phase == Phase::Armed => {
                let extend = deadman::Event::Extend(until);
                let step = (self.machines.deadman)(state, extend, now, Self::FUSE);
                // One that fires is not extended, and then nothing is started.
                let waits = step.effect == deadman::Effect::Wait;
                let due = next.due.max(next.world.time + DUE);
                (waits.then_some(Fuse::Burns { state: step.state, effect: step.effect })?, due)
            }
            Fuse::Burns { .. } => return None,
            _ => {
                let state = deadman::State::armed(until, now);
                let effect = deadman::Effect::Wait;
                (Fuse::Burns { state, effect }, next.world.time + DUE)
            }
        };
        (next.fuse, next.due, next.called_off) = (fuse, due, false);
        next.another = Another::Claimed(next.world.time);
        Some(next)
    }

    /// Faults end some time, and a lie that there is no budget for is not told.
    fn is_late_for(&self, all: &All, answer: Answer) -> bool {
        let late = all.world.time >= FAULTS_END && answer != Answer::True;
        late || (answer.is_a_lie() && all.world.lies == 0)
    }

    /// Carries an effect out.
    fn happens(all: &mut All, effect: Effect, answer: Answer) -> Option<Event> {
        let world = &mut all.world;
        let pod = world.pods[RUNS];
        let runs = pod.power == Power::Running;
        let looks = matches!(effect, Effect::Look | Effect::LookForJob | Effect::AskProvider);
        Some(match (effect, answer) {
            (Effect::Finish, _) => return None,
            (Effect::Launch, Answer::Interrupt | Answer::Terminate) => return None,
            (_, Answer::Terminate) => Event::Leave,
            (_, Answer::Interrupt) if looks => Event::Interrupt,
            // The loop takes a word of a person for "leave" once the orderly end has begun.
            (_, Answer::Interrupt) => Event::Leave,

            (Effect::Launch, _) => {
                all.launches += 1;
                match answer {
                    Answer::True if runs => {
                        world.job = Some(JobState::Running);
                        Event::Launched
                    }
                    Answer::Lost if runs => {
                        world.job = Some(JobState::Running);
                        Event::NotLaunched { answer_lost: true }
                    }
                    Answer::Half if runs => {
                        world.job = Some(JobState::Starting);
                        Event::NotLaunched { answer_lost: true }
                    }
                    Answer::No => Event::NotLaunched { answer_lost: false },
                    Answer::Down => Event::NotLaunched { answer_lost: true },
                    Answer::True => Event::NotLaunched { answer_lost: true },
                    _ => return None,
                }
            }
            (Effect::Look | Effect::LookForJob, Answer::True) if runs => {
                Event::Saw(world.job.unwrap_or(JobState::NotFound))
            }
            (Effect::Look | Effect::LookForJob, Answer::True) => Event::NoContact,
            (Effect::Look | Effect::LookForJob, Answer::Down) if runs => Event::NoContact,
            (Effect::Look | Effect::LookForJob, Answer::Blind) if runs => {
                Event::Saw(JobState::Unknown)
            }
            (Effect::AskProvider, Answer::True) if !runs => {
                all.was_off = true;
                Event::Pod(match pod.power {
                    Power::Gone => PodStatus::Terminated,
                    _ => PodStatus::Exited,
                })
            }
            (Effect::AskProvider, Answer::True) => Event::Pod(PodStatus::Running),
            (Effect::AskProvider, Answer::Down) => Event::Tick,
            (Effect::AskProvider, Answer::OldPage) => {
                world.lies -= 1;
                match asking::former(pod.power) {
                    Power::Running => Event::Pod(PodStatus::Running),
                    _ => Event::Pod(PodStatus::Exited),
                }
            }
            (Effect::Capture, Answer::True) => {
                (all.captured, all.whole) = (true, runs);
                Event::Captured
            }
            (Effect::Capture, Answer::Half) if runs => {
                all.captured = true;
                Event::Captured
            }
            (Effect::Stop, answer) => {
                if !all.captured {
                    all.note("supervise stops before it captured");
                }
                let (world, told) = asking::stop(&all.world, answer, Way::Supervise, true)?;
                all.world = world;
                all.sup_read = matches!(told, Told::Off | Told::Absent);
                match told {
                    Told::Off | Told::Absent => Event::StopAsked { confirmed: true },
                    Told::Refused | Told::NotOurs => Event::StopRefused,
                    Told::Down | Told::NoEffect => Event::StopAsked { confirmed: false },
                    Told::Limited => return None,
                }
            }
            _ => return None,
        })
    }

    fn deadman(&self, all: &All, answer: Answer) -> Option<All> {
        let Fuse::Burns { state, effect } = &all.fuse else { return None };
        if all.fuse_ran || self.is_late_for(all, answer) {
            return None;
        }
        let mut next = all.clone();
        next.fuse_ran = true;
        let event = match effect {
            // What it is told by its starter comes first, as in the loop.
            _ if all.called_off && answer == Answer::True => deadman::Event::Cancel,
            _ if all.called_off => return None,
            deadman::Effect::Wait if answer == Answer::True => deadman::Event::Tick,
            deadman::Effect::Ask(form) => {
                let way = match form {
                    Form::Graceful => Way::Graceful,
                    Form::Forced => Way::Forced,
                };
                let (world, told) =
                    asking::stop(&all.world, answer, way, self.machines.minds_names)?;
                next.world = world;
                next.fuse_read = matches!(told, Told::Off | Told::Absent);
                deadman::Event::Asked(match told {
                    Told::Off => Asked::Off,
                    Told::Absent => Asked::Absent,
                    Told::NotOurs => Asked::NotOurs,
                    Told::Down => Asked::Unreachable { wait: None },
                    Told::Limited => {
                        Asked::Unreachable { wait: Some(Duration::from_secs(2 * TICK)) }
                    }
                    Told::Refused => Asked::Refused,
                    Told::NoEffect => Asked::NoEffect,
                })
            }
            _ => return None,
        };
        let now = next.world.clocks();
        let step = (self.machines.deadman)(state, event, now, Self::FUSE);
        if step.state.phase == Phase::Armed && next.world.time >= next.due {
            next.note("the fuse lives past its deadline and does not fire");
        }
        next.fuse = match step.effect {
            deadman::Effect::Finish(outcome) => {
                if outcome == Outcome::Stopped && next.world.bills() {
                    next.note("the fuse said stopped, and a pod of ours bills");
                }
                if outcome == Outcome::Stopped && !next.fuse_read {
                    next.note("the fuse said stopped without having read it");
                }
                if outcome == Outcome::Cancelled && next.world.bills() {
                    next.note("the fuse was called off, and a pod of ours bills");
                }
                Fuse::Over(outcome)
            }
            effect => Fuse::Burns { state: step.state, effect },
        };
        Some(next)
    }

    fn world(&self, all: &All, bad: Bad) -> Option<All> {
        // A pod that somebody starts without podtether has no fuse: only while the run looks after it.
        let begins = matches!(bad, Bad::AnotherPodOfTheName | Bad::PodIsStartedAgain);
        if (begins && !matches!(all.sup, Sup::Lives { .. })) || all.world.time >= FAULTS_END {
            return None;
        }
        let world = all.world.goes_wrong(bad)?;
        let mut next = All { world, ..all.clone() };
        match bad {
            Bad::SuperviseIsKilled if all.sup_lives() => next.sup = Sup::Killed,
            Bad::LaptopDies if self.fuse => {
                if all.sup_lives() {
                    next.sup = Sup::Killed;
                }
                if all.fuse_lives() {
                    next.fuse = Fuse::Dead;
                }
            }
            Bad::AnotherSessionBegins if self.fuse && all.another == Another::None => {
                return self.claims(next);
            }
            Bad::SuperviseIsKilled | Bad::LaptopDies | Bad::AnotherSessionBegins => return None,
            _ => {}
        }
        Some(next)
    }

    /// Grows with every step.
    fn rank(all: &All) -> u32 {
        let ended = |over: bool| u32::from(over);
        let job_ended = all.world.job.is_some_and(JobState::has_ended);
        u32::from(all.world.time) * 64
            + u32::from(all.sup_ran) * 2
            + u32::from(all.fuse_ran) * 2
            + (8 - u32::from(all.world.bad)) * 4
            + ended(job_ended)
            + ended(all.laptop_is_dead() && !all.world.bills())
            + ended(all.another == Another::Started)
    }

    /// What a path comes to: a stop that was read back, or words and an exit code that say otherwise.
    fn ends_well(&self, all: &All) -> bool {
        let sup = match all.sup {
            Sup::Ended(6) => Some(false),
            Sup::Ended(_) => Some(all.sup_read),
            _ => None,
        };
        match (&all.fuse, &all.sup) {
            (Fuse::None, Sup::Ended(code)) if self.no_stop => [0, 1, 6].contains(code),
            (Fuse::None, Sup::Ended(code)) => *code == 6 || all.sup_read,
            (Fuse::Over(outcome), _) => {
                let was_off = all.called_off;
                let says_so =
                    (self.machines.may_still_bill)(*outcome, was_off) && outcome.exit_code() != 0;
                match outcome {
                    Outcome::Stopped => all.fuse_read && !says_so,
                    Outcome::Cancelled => sup == Some(true) && all.sup_read,
                    Outcome::StopFailed | Outcome::Refused => says_so,
                }
            }
            // Nobody is left but the pod itself.
            (Fuse::Dead, _) => !all.world.bills(),
            _ => false,
        }
    }
}

impl Model for Run {
    type State = All;
    type Action = Action;

    fn init_states(&self) -> Vec<All> {
        let world = World::new(self.bad, self.lies);
        let now = world.clocks();
        let sup = Sup::Lives {
            state: State::Launching,
            effect: Effect::Launch,
            moment: Moment::new(world.wall(), world.since_boot()),
        };
        let fuse = Fuse::Burns {
            state: deadman::State::armed(at(DUE), now),
            effect: deadman::Effect::Wait,
        };
        vec![All {
            world,
            sup: if self.supervise { sup } else { Sup::None },
            fuse: if self.fuse { fuse } else { Fuse::None },
            sup_ran: false,
            fuse_ran: false,
            called_off: false,
            due: DUE,
            another: Another::None,
            launches: 0,
            captured: false,
            whole: false,
            was_off: false,
            wrong: None,
            sup_read: false,
            fuse_read: false,
        }]
    }

    fn actions(&self, all: &All, actions: &mut Vec<Action>) {
        if all.wrong.is_some() || all.world.time >= END {
            return;
        }
        if all.is_over() {
            if all.laptop_is_dead() && all.world.bills() {
                actions.push(Action::PodsOwnFuse);
            }
            return;
        }
        if all.world.job == Some(JobState::Running) {
            let ends = [JobState::Succeeded, JobState::Failed, JobState::TimedOut];
            actions.extend(ends.map(Action::JobEnds));
        }
        actions.extend(self.goes_wrong.iter().map(|bad| Action::GoesWrong(*bad)));
        if all.sup_lives() && !all.sup_ran {
            actions.extend(Answer::ALL.map(Action::Supervise));
        }
        if all.fuse_lives() && !all.fuse_ran {
            actions.extend(Answer::ALL.map(Action::Deadman));
        }
        // It sends the start within the minute, or dies.
        if matches!(all.another, Another::Claimed(at) if all.world.time <= at + 1)
            && all.world.pods[RUNS].power == Power::Exited
        {
            actions.push(Action::AnotherStarts);
        }
        let sup_waits = !all.sup_lives() || all.sup_ran;
        let fuse_waits = !all.fuse_lives() || all.fuse_ran;
        if sup_waits && fuse_waits {
            actions.push(Action::Tick);
        }
    }

    fn next_state(&self, all: &All, action: Action) -> Option<All> {
        let next = match action {
            Action::JobEnds(job) => {
                let mut next = all.clone();
                next.world.job = Some(job);
                next
            }
            Action::GoesWrong(bad) => self.world(all, bad)?,
            Action::Supervise(answer) => self.supervise(all, answer)?,
            Action::Deadman(answer) => self.deadman(all, answer)?,
            Action::Tick => {
                let mut next = all.clone();
                next.world.time += 1;
                (next.sup_ran, next.fuse_ran) = (false, false);
                next
            }
            Action::AnotherStarts => {
                let mut next = all.clone();
                next.another = Another::Started;
                next.world.pods[RUNS].power = Power::Running;
                if next.world.pods[RUNS].ours && matches!(next.fuse, Fuse::Over(Outcome::Cancelled))
                {
                    next.note(
                        "another session's pod runs, and the fuse that it armed was called off",
                    );
                }
                next
            }
            Action::PodsOwnFuse => {
                let mut next = all.clone();
                for id in [RUNS, ANOTHERS] {
                    if next.world.pods[id].ours && next.world.pods[id].power == Power::Running {
                        next.world.power_off(id, Power::Exited);
                    }
                }
                next
            }
        };
        assert!(Self::rank(all) < Self::rank(&next), "{action:?} goes in a circle from {all:?}");
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("no path does anything to a pod but stop it", |_, all: &All| {
                !all.world.else_asked
            }),
            Property::always("no path stops a pod that is not ours", |_, all: &All| {
                !all.world.foreign_stopped
            }),
            Property::always("nobody is wrong about what bills, or late", |_, all: &All| {
                all.wrong.is_none()
            }),
            Property::always("a job is launched at most once", |_, all: &All| all.launches <= 1),
            Property::always("0 is said only of a success", |model: &Self, all: &All| {
                let succeeded = all.world.job == Some(JobState::Succeeded) && all.whole;
                let is_off = model.no_stop || all.sup_read;
                !matches!(all.sup, Sup::Ended(0) | Sup::CallsOff { code: 0, .. })
                    || (succeeded && is_off)
            }),
            // Holds in an end state or nowhere, so that paths that meet do not hide one another.
            Property::eventually(
                "every path ends in a stop that was read back, or says that the pod may bill",
                |model: &Self, all: &All| all.is_over() && model.ends_well(all),
            ),
        ];
        if self.supervise {
            properties.push(Property::sometimes("a run ends with 0", |_, all: &All| {
                all.sup == Sup::Ended(0)
            }));
            properties.push(Property::sometimes("a run ends with 6", |_, all: &All| {
                all.sup == Sup::Ended(6)
            }));
        }
        if self.fuse {
            properties.push(Property::sometimes("the fuse stops the pod", |_, all: &All| {
                all.fuse == Fuse::Over(Outcome::Stopped)
            }));
            properties
                .push(Property::sometimes("the fuse gives up and says so", |_, all: &All| {
                    all.fuse == Fuse::Over(Outcome::StopFailed)
                }));
        }
        properties
    }
}
