//! Machines with one decision turned round. Each must be caught with a path that shows it, or the
//! checker proves nothing.

use crate::run::{Machines, Run};
use crate::watch::Watch;
use crate::world::{Bad, World};
use chrono::{DateTime, Utc};
use podtether::deadman::state::{self as deadman, Asked, Outcome};
use podtether::supervise::{self, Effect, Event, Moment, State};
use podtether::watch::state as watch;

/// What is turned round, what must be seen of it, and the model that shows it.
pub type Mutant<M> = (&'static str, &'static str, M);

const fn run(machines: Machines) -> Run {
    Run {
        machines,
        supervise: true,
        fuse: true,
        no_stop: false,
        bad: 1,
        lies: 0,
        goes_wrong: &[Bad::SuperviseIsKilled, Bad::KeyIsRevoked],
    }
}

const REAL: Machines = Machines::REAL;

fn believes_a_200(
    state: &State,
    event: &Event,
    now: DateTime<Utc>,
    terms: supervise::Terms,
) -> (State, Effect) {
    let event = match event {
        Event::StopAsked { .. } => &Event::StopAsked { confirmed: true },
        other => other,
    };
    supervise::next(state, event, now, terms)
}

fn stops_before_capture(
    state: &State,
    event: &Event,
    now: DateTime<Utc>,
    terms: supervise::Terms,
) -> (State, Effect) {
    match supervise::next(state, event, now, terms) {
        (State::Capturing(end), _) => (State::Stopping { end, tries: 0, since: now }, Effect::Stop),
        other => other,
    }
}

fn launches_again(
    state: &State,
    event: &Event,
    now: DateTime<Utc>,
    terms: supervise::Terms,
) -> (State, Effect) {
    match supervise::next(state, event, now, terms) {
        (State::Adopting { .. }, Effect::LookForJob) => (State::Launching, Effect::Launch),
        other => other,
    }
}

fn believes_one_read(
    state: &State,
    event: &Event,
    now: DateTime<Utc>,
    terms: supervise::Terms,
) -> (State, Effect) {
    match supervise::next(state, event, now, terms) {
        (seen @ State::SeenOff { .. }, _) => supervise::next(&seen, event, now, terms),
        other => other,
    }
}

fn goes_on_after_the_deadline(
    state: &State,
    event: &Event,
    _: DateTime<Utc>,
    terms: supervise::Terms,
) -> (State, Effect) {
    supervise::next(state, event, DateTime::UNIX_EPOCH, terms)
}

/// The kind of mutant that says too little: a 1 where the pod may bill.
fn says_1(state: &State, no_stop: bool, whole: bool) -> u8 {
    supervise::exit_code(state, no_stop, whole).min(1)
}

fn calls_off_at_every_end(state: &State) -> (bool, bool) {
    (matches!(state, State::Over { .. }), true)
}

fn calls_off_when_its_pod_is_off(state: &State) -> (bool, bool) {
    (!state.may_still_bill(), true)
}

/// Time does not pass in sleep.
fn steady_alone(moment: Moment, world: &World) -> Moment {
    moment.pass(moment.at, world.steady())
}

fn ends_after_a_refusal(
    state: &deadman::State,
    event: deadman::Event,
    now: deadman::Now,
    terms: deadman::Terms,
) -> deadman::Step {
    let event = match event {
        deadman::Event::Asked(Asked::Refused) => deadman::Event::Cancel,
        other => other,
    };
    deadman::next(state, event, now, terms)
}

fn takes_a_200_for_a_stop(
    state: &deadman::State,
    event: deadman::Event,
    now: deadman::Now,
    terms: deadman::Terms,
) -> deadman::Step {
    let event = match event {
        deadman::Event::Asked(Asked::NoEffect) => deadman::Event::Asked(Asked::Off),
        other => other,
    };
    deadman::next(state, event, now, terms)
}

fn gives_up_without_a_network(
    state: &deadman::State,
    event: deadman::Event,
    now: deadman::Now,
    terms: deadman::Terms,
) -> deadman::Step {
    let step = deadman::next(state, event, now, terms);
    match event {
        deadman::Event::Asked(Asked::Unreachable { .. }) => {
            deadman::Step { effect: deadman::Effect::Finish(Outcome::Cancelled), ..step }
        }
        _ => step,
    }
}

/// The clock that stands still in sleep, and nothing else.
fn counts_steady_time(
    state: &deadman::State,
    event: deadman::Event,
    now: deadman::Now,
    terms: deadman::Terms,
) -> deadman::Step {
    let wall = crate::world::at(0) + chrono::TimeDelta::from_std(now.monotonic).expect("it fits");
    deadman::next(state, event, deadman::Now { wall, since_boot: now.monotonic, ..now }, terms)
}

fn never_fires(
    state: &deadman::State,
    _: deadman::Event,
    _: deadman::Now,
    _: deadman::Terms,
) -> deadman::Step {
    deadman::Step { state: *state, effect: deadman::Effect::Wait, jump: None }
}

const fn says_nothing(_: Outcome, _: bool) -> bool {
    false
}

/// Every mutant of the run and the fuse, each with a model that is just bad enough.
pub fn of_runs() -> Vec<Mutant<Run>> {
    vec![
        (
            "a supervise that believes the answer to a stop",
            "supervise said off, and a pod of ours bills",
            run(Machines { supervise: believes_a_200, ..REAL }),
        ),
        (
            "a supervise that stops before it captures",
            "supervise stops before it captured",
            run(Machines { supervise: stops_before_capture, ..REAL }),
        ),
        (
            "a supervise that launches again when the answer is lost",
            "a job is launched at most once",
            run(Machines { supervise: launches_again, ..REAL }),
        ),
        (
            "a supervise that believes one read",
            "supervise said off, and a pod of ours bills",
            Run { lies: 1, ..run(Machines { supervise: believes_one_read, ..REAL }) },
        ),
        (
            "a supervise that follows past its deadline",
            "supervise follows past its deadline",
            run(Machines { supervise: goes_on_after_the_deadline, ..REAL }),
        ),
        (
            "a supervise whose deadline does not pass in sleep",
            "supervise follows past its deadline",
            Run {
                goes_wrong: &[Bad::LaptopSleeps],
                ..run(Machines { moment: steady_alone, ..REAL })
            },
        ),
        (
            "a supervise that says 1 when the pod may bill",
            "every path ends",
            Run { fuse: false, ..run(Machines { exit_code: says_1, ..REAL }) },
        ),
        (
            "a fuse that is called off before the stop was read back",
            "the fuse was called off, and a pod of ours bills",
            run(Machines { calls_off: calls_off_at_every_end, ..REAL }),
        ),
        (
            "a fuse that is called off by a run that only found its own pod off",
            "the fuse was called off, and a pod of ours bills",
            Run {
                bad: 2,
                goes_wrong: &[Bad::PodIsStopped, Bad::AnotherPodOfTheName],
                ..run(Machines { calls_off: calls_off_when_its_pod_is_off, ..REAL })
            },
        ),
        (
            "a fuse that is called off though another session has claimed it",
            "the fuse was called off, and a pod of ours bills",
            Run {
                goes_wrong: &[Bad::AnotherSessionBegins],
                ..run(Machines { is_the_last: |_, _| true, ..REAL })
            },
        ),
        (
            "a fuse that ends after a refused stop",
            "the fuse was called off, and a pod of ours bills",
            Run { supervise: false, ..run(Machines { deadman: ends_after_a_refusal, ..REAL }) },
        ),
        (
            "a fuse that believes the answer to a stop",
            "the fuse said stopped, and a pod of ours bills",
            Run { supervise: false, ..run(Machines { deadman: takes_a_200_for_a_stop, ..REAL }) },
        ),
        (
            "a fuse that gives up without a network",
            "the fuse was called off, and a pod of ours bills",
            Run {
                supervise: false,
                ..run(Machines { deadman: gives_up_without_a_network, ..REAL })
            },
        ),
        (
            "a fuse whose deadline does not pass in sleep",
            "the fuse lives past its deadline",
            Run {
                supervise: false,
                goes_wrong: &[Bad::LaptopSleeps],
                ..run(Machines { deadman: counts_steady_time, ..REAL })
            },
        ),
        (
            "a fuse that never fires",
            "the fuse lives past its deadline",
            Run { supervise: false, ..run(Machines { deadman: never_fires, ..REAL }) },
        ),
        (
            "a fuse that does not say that the pod may bill",
            "every path ends",
            Run { supervise: false, ..run(Machines { may_still_bill: says_nothing, ..REAL }) },
        ),
        (
            "a fuse that does not look at names",
            "no path stops a pod that is not ours",
            Run { supervise: false, ..run(Machines { minds_names: false, ..REAL }) },
        ),
    ]
}

fn pages_at_every_end(
    state: &watch::State,
    event: &watch::Event,
    now: DateTime<Utc>,
    terms: &watch::Terms,
) -> (watch::State, Vec<watch::Effect>) {
    let (to, mut effects) = watch::next(state, event, now, terms);
    if let (Some(verdict), [watch::Effect::Finish(_)]) = (to.verdict(), effects.as_slice()) {
        effects.insert(0, watch::Effect::Page(verdict.clone()));
    }
    (to, effects)
}

fn ends_with_0(
    state: &watch::State,
    event: &watch::Event,
    now: DateTime<Utc>,
    terms: &watch::Terms,
) -> (watch::State, Vec<watch::Effect>) {
    let (to, effects) = watch::next(state, event, now, terms);
    let quiet = |effect| match effect {
        watch::Effect::Finish(_) => watch::Effect::Finish(0),
        other => other,
    };
    (to, effects.into_iter().map(quiet).collect())
}

fn reads_words_before_the_end(
    state: &watch::State,
    event: &watch::Event,
    now: DateTime<Utc>,
    terms: &watch::Terms,
) -> (watch::State, Vec<watch::Effect>) {
    let event = match event {
        watch::Event::Looked(look) if look.finding.is_some() => {
            let job = Some(podtether::domain::JobState::Failed);
            &watch::Event::Looked(Box::new(watch::Look { job, ..(**look).clone() }))
        }
        other => other,
    };
    watch::next(state, event, now, terms)
}

fn does_not_see_a_pod_that_is_off(
    state: &watch::State,
    event: &watch::Event,
    now: DateTime<Utc>,
    terms: &watch::Terms,
) -> (watch::State, Vec<watch::Effect>) {
    let event = match event {
        watch::Event::Pod(_) => &watch::Event::Pod(None),
        other => other,
    };
    watch::next(state, event, now, terms)
}

/// Every mutant of the watch.
pub fn of_watches() -> Vec<Mutant<Watch>> {
    vec![
        (
            "a watch that pages twice",
            "people were told twice of one thing",
            Watch { next: pages_at_every_end },
        ),
        (
            "a watch that ends with 0 whatever it saw",
            "not one verdict with one exit code",
            Watch { next: ends_with_0 },
        ),
        (
            "a watch that goes by words before the end",
            "a failure in the log goes before the end of the job",
            Watch { next: reads_words_before_the_end },
        ),
        (
            "a watch that does not see a pod that is off",
            "a pod that is off is no end of the watch",
            Watch { next: does_not_see_a_pod_that_is_off },
        ),
    ]
}
