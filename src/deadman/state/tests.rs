//! The fuse's rules, with clocks that are numbers.

use super::*;
use std::collections::{HashMap, HashSet, VecDeque};

const TERMS: Terms = Terms { retries: 5, spacing: Duration::from_secs(300) };

fn at(wall: i64, monotonic: u64) -> Now {
    let wall = DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::seconds(wall);
    let monotonic = Duration::from_secs(monotonic);
    Now { wall, monotonic, since_boot: monotonic }
}

/// C02: a wall clock that is set back while the machine sleeps, or before anybody looks again, hides nothing
/// of the sleep from the clock that counts it.
#[test]
fn a_sleep_shows_also_where_the_clock_was_set_back_in_it() {
    let mut state = armed_for(4 * 3600);
    assert_eq!(tick(&mut state, at(30, 30)), Effect::Wait);
    let woken = Now { since_boot: Duration::from_secs(5 * 3600), ..at(60, 60) };
    let (effect, jump) = step(&mut state, Event::Tick, woken);
    assert_eq!(effect, Effect::Ask(Form::Graceful));
    assert_eq!(jump, Some(Jump::Ahead(Duration::from_secs(5 * 3600 - 60))));
    assert_eq!(state.slept, Duration::from_secs(5 * 3600 - 60));
}

/// Armed at zero for so many seconds.
fn armed_for(seconds: i64) -> State {
    State::armed(at(seconds, 0).wall, at(0, 0))
}

fn step(state: &mut State, event: Event, now: Now) -> (Effect, Option<Jump>) {
    let step = next(state, event, now, TERMS);
    *state = step.state;
    (step.effect, step.jump)
}

fn tick(state: &mut State, now: Now) -> Effect {
    step(state, Event::Tick, now).0
}

/// A fuse that has just asked for the first time, at second 10.
fn firing() -> State {
    let mut state = armed_for(10);
    assert_eq!(tick(&mut state, at(10, 10)), Effect::Ask(Form::Graceful));
    state
}

/// C02: a Mac that slept through the deadline fires at the first tick after it woke.
#[test]
fn it_fires_at_the_first_tick_after_a_sleep() {
    let mut state = armed_for(4 * 3600);
    assert_eq!(tick(&mut state, at(30, 30)), Effect::Wait);
    let (effect, jump) = step(&mut state, Event::Tick, at(9 * 3600, 60));
    assert_eq!(effect, Effect::Ask(Form::Graceful));
    let slept = Duration::from_secs(9 * 3600 - 60);
    assert_eq!(jump, Some(Jump::Ahead(slept)));
    assert_eq!(state.slept, slept, "C03: what was slept is kept for the summary");
}

/// C02: neither a clock set back nor one that stands still puts the deadline off, whether the machine
/// slept before or not.
#[test]
fn a_wall_clock_set_back_does_not_put_the_deadline_off() {
    let mut state = armed_for(3600);
    let (effect, jump) = step(&mut state, Event::Tick, at(-7200, 30));
    assert_eq!((effect, jump), (Effect::Wait, Some(Jump::Back(Duration::from_secs(7230)))));
    assert_eq!(tick(&mut state, at(-7200 + 3569, 3599)), Effect::Wait);
    assert_eq!(tick(&mut state, at(-7200 + 3570, 3600)), Effect::Ask(Form::Graceful));

    let mut slept = armed_for(3600);
    assert_eq!(tick(&mut slept, at(3500, 10)), Effect::Wait);
    assert_eq!(tick(&mut slept, at(0, 20)), Effect::Wait);
    assert_eq!(tick(&mut slept, at(90, 110)), Effect::Ask(Form::Graceful));
}

/// C02: set forward by a user or by NTP: it fires by the new time, and that is logged.
#[test]
fn a_wall_clock_set_forward_is_logged_and_holds() {
    let mut state = armed_for(3600);
    let (effect, jump) = step(&mut state, Event::Tick, at(40, 30));
    assert_eq!((effect, jump), (Effect::Wait, Some(Jump::Ahead(Duration::from_secs(10)))));
    assert_eq!(state.slept, Duration::ZERO, "ten seconds are no sleep");
    assert_eq!(state.fire_at(), at(3600, 0).wall);
    assert_eq!(tick(&mut state, at(3600, 31)), Effect::Ask(Form::Graceful));
}

#[test]
fn an_extension_never_shortens_and_comes_too_late_after_the_deadline() {
    let mut state = armed_for(3600);
    step(&mut state, Event::Extend(at(600, 0).wall), at(10, 10));
    assert_eq!(state.fire_at(), at(3600, 0).wall);
    step(&mut state, Event::Extend(at(7200, 0).wall), at(20, 20));
    assert_eq!(state.fire_at(), at(7200, 0).wall);
    let late = step(&mut state, Event::Extend(at(9000, 0).wall), at(7200, 7200)).0;
    assert_eq!(late, Effect::Ask(Form::Graceful));
    step(&mut state, Event::Extend(at(99_000, 0).wall), at(7201, 7201));
    assert!(matches!(state.phase, Phase::Firing(_)), "a stop that was begun is not put off");
}

/// C02: tries are in time. A name service that is dead for 90 s after waking, or a network that is
/// away for a day, uses up none of them, and the pause stays short.
#[test]
fn what_does_not_reach_the_provider_uses_up_no_try() {
    let mut state = firing();
    let mut second = 10;
    let unreachable = Event::Asked(Asked::Unreachable { wait: None });
    for _ in 0..5760 {
        assert_eq!(step(&mut state, unreachable, at(second, second as u64)).0, Effect::Wait);
        second += AGAIN.as_secs() as i64;
        assert_eq!(tick(&mut state, at(second, second as u64)), Effect::Ask(Form::Graceful));
    }
    let off = step(&mut state, Event::Asked(Asked::Off), at(second, second as u64)).0;
    assert_eq!(off, Effect::Finish(Outcome::Stopped));
}

/// A09: a provider that asks for quiet is left alone for as long, within reason, and asked again.
#[test]
fn a_limit_delays_the_stop_and_never_ends_it() {
    for (said, waited) in [(0, 15), (120, 120), (3600, 600)] {
        let mut state = firing();
        let wait = Some(Duration::from_secs(said));
        step(&mut state, Event::Asked(Asked::Unreachable { wait }), at(10, 10));
        assert_eq!(tick(&mut state, at(9 + waited, 9 + waited as u64)), Effect::Wait);
        let asks = tick(&mut state, at(10 + waited, 10 + waited as u64));
        assert_eq!(asks, Effect::Ask(Form::Graceful));
    }
}

/// A02: a key that was revoked. Gracefully, by force, and again after each spacing; then it says so
/// and never "stopped".
#[test]
fn an_answer_of_no_is_tried_again_by_force_and_as_often_as_agreed() {
    for answer in [Asked::Refused, Asked::NoEffect] {
        let (mut state, mut second, mut asks) = (firing(), 10, vec![Form::Graceful]);
        let end = loop {
            match step(&mut state, Event::Asked(answer), at(second, second as u64)).0 {
                Effect::Ask(form) => asks.push(form),
                Effect::Finish(outcome) => break outcome,
                Effect::Wait => {
                    second += 299;
                    assert_eq!(tick(&mut state, at(second, second as u64)), Effect::Wait);
                    second += 1;
                    let Effect::Ask(form) = tick(&mut state, at(second, second as u64)) else {
                        panic!("{state:?}");
                    };
                    asks.push(form);
                }
            }
        };
        assert_eq!((end, end.exit_code()), (Outcome::StopFailed, 1));
        let cycle = [Form::Graceful, Form::Forced];
        assert_eq!(asks, cycle.repeat(6), "one cycle and five more");
        assert_eq!(second, 10 + 5 * 300);
    }
}

/// A05: one list without the pod is no proof; two minutes of them are.
#[test]
fn a_pod_that_is_not_shown_is_gone_only_after_two_minutes() {
    let (mut state, mut second) = (firing(), 10);
    while step(&mut state, Event::Asked(Asked::Absent), at(second, second as u64)).0 == Effect::Wait
    {
        second += 15;
        assert_eq!(tick(&mut state, at(second, second as u64)), Effect::Ask(Form::Graceful));
    }
    assert_eq!((state.phase, second), (Phase::Over(Outcome::Stopped), 130));
}

#[test]
fn one_ask_at_a_time_and_none_after_the_end() {
    let mut state = firing();
    assert_eq!(tick(&mut state, at(5000, 5000)), Effect::Wait);
    let cancelled = step(&mut state, Event::Cancel, at(5001, 5001)).0;
    assert_eq!(cancelled, Effect::Finish(Outcome::Cancelled));
    assert_eq!(tick(&mut state, at(9000, 9000)), Effect::Finish(Outcome::Cancelled));
}

/// Every answer in every order, with sleep, clocks that are set, extensions and cancels: whatever
/// happens, the fuse ends in a stop that was read back, in the word of a person, or in words with an
/// exit code of 1; from wherever it is, an end is in reach; before its deadline it asks nothing, and
/// after it an ask is never further away than the longest pause. It has no word for a terminate.
#[test]
fn every_path_ends_confirmed_or_said() {
    const TERMS: Terms = Terms { retries: 1, spacing: Duration::from_secs(60) };
    let answers = [
        Asked::Off,
        Asked::Absent,
        Asked::NotOurs,
        Asked::Unreachable { wait: None },
        Asked::Unreachable { wait: Some(Duration::from_secs(3600)) },
        Asked::Refused,
        Asked::NoEffect,
    ];
    // Pairs of how far the wall clock and the steady clock go in one step.
    let steps = [(0_i64, 0_u64), (30, 30), (60, 60), (3600, 1), (-7200, 30), (600, 600)];
    let (mut seen, mut queue) = (HashSet::new(), VecDeque::new());
    let mut leads: HashMap<State, Vec<State>> = HashMap::new();
    // Where its clocks stand is no part of what a fuse does next: all are moved to one place.
    let rest = |state: State| {
        let moved = |time: Duration| ABSENT_FOR + time.saturating_sub(state.elapsed);
        let moved_back =
            |time: Duration| ABSENT_FOR.saturating_sub(state.elapsed.saturating_sub(time));
        let phase = match state.phase {
            Phase::Firing(firing) => Phase::Firing(Firing {
                next: moved(firing.next),
                absent_since: firing.absent_since.map(moved_back),
                ..firing
            }),
            other => other,
        };
        let due = moved(state.due);
        State { phase, due, elapsed: ABSENT_FOR, last: at(0, 0), slept: Duration::ZERO }
    };
    queue.push_back(rest(armed_for(60)));
    while let Some(state) = queue.pop_front() {
        if !seen.insert(state) {
            continue;
        }
        assert!(seen.len() < 200_000, "the machine is no longer small");
        let mut events = vec![Event::Tick, Event::Cancel];
        match state.phase {
            Phase::Over(outcome) => {
                assert!(
                    matches!(outcome, Outcome::Stopped | Outcome::Cancelled)
                        || outcome.exit_code() == 1
                );
                continue;
            }
            Phase::Armed => events.push(Event::Extend(at(120, 0).wall)),
            Phase::Firing(firing) if firing.is_asking => {
                events.extend(answers.map(Event::Asked));
            }
            Phase::Firing(firing) => {
                let pause = firing.next.saturating_sub(state.elapsed);
                assert!(pause <= LONGEST_PAUSE, "{state:?}");
            }
        }
        for event in events {
            for (wall, steady) in steps {
                let done = next(&state, event, at(wall, steady), TERMS);
                let was_due = done.state.elapsed >= state.due;
                match (state.phase, done.effect) {
                    (Phase::Armed, Effect::Ask(_)) => assert!(was_due),
                    (Phase::Armed, Effect::Wait) => assert!(!was_due, "{state:?} {event:?}"),
                    (Phase::Firing(before), Effect::Wait) if event == Event::Tick => {
                        let may_wait = before.is_asking || done.state.elapsed < before.next;
                        assert!(may_wait, "{state:?}");
                    }
                    (_, Effect::Finish(Outcome::Stopped)) => assert!(
                        matches!(event, Event::Asked(Asked::Off | Asked::Absent)),
                        "stopped without having read it: {event:?}"
                    ),
                    _ => {}
                }
                let after = rest(done.state);
                leads.entry(after).or_default().push(state);
                queue.push_back(after);
            }
        }
    }
    // An end is in reach of every state, a confirmed one too.
    let ends = |wanted: &dyn Fn(Outcome) -> bool| -> HashSet<State> {
        let is_end =
            |state: &&State| matches!(state.phase, Phase::Over(outcome) if wanted(outcome));
        let mut reach: HashSet<State> = seen.iter().filter(is_end).copied().collect();
        let mut queue: Vec<State> = reach.iter().copied().collect();
        while let Some(state) = queue.pop() {
            for before in leads.get(&state).into_iter().flatten() {
                if reach.insert(*before) {
                    queue.push(*before);
                }
            }
        }
        reach
    };
    let live = seen.iter().filter(|state| !matches!(state.phase, Phase::Over(_))).count();
    let stops = ends(&|outcome| outcome == Outcome::Stopped);
    let stops = stops.iter().filter(|state| !matches!(state.phase, Phase::Over(_))).count();
    println!("deadman: {} states, from each of {live} a confirmed stop is in reach", seen.len());
    assert_eq!(stops, live);
}
