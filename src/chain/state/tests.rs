use super::*;
use chrono::TimeDelta;
use std::collections::{HashMap, VecDeque};

const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

fn terms(ends: &[LinkEnd]) -> Terms {
    let stop = supervise::Terms {
        deadline: NOW,
        no_stop: false,
        max_stops: 2,
        stop_for: TimeDelta::zero(),
    };
    Terms { ends: ends.to_vec(), stop }
}

/// A link, one with a stop point that stops, one that leaves the pod, and the last.
fn four() -> Terms {
    terms(&[
        LinkEnd::Next,
        LinkEnd::Pause { stops: true },
        LinkEnd::Pause { stops: false },
        LinkEnd::Stop,
    ])
}

/// Everything that an effect can come to.
fn events(effect: Effect) -> Vec<Event> {
    let mut events = match effect {
        Effect::Look(_) => vec![
            Event::Stands(Standing::Holds { pause_passed: true }),
            Event::Stands(Standing::Holds { pause_passed: false }),
            Event::Stands(Standing::InFlight),
            Event::Stands(Standing::ToRun),
        ],
        Effect::TakeUp(_) => vec![
            Event::CannotTakeUp,
            Event::NoJob,
            Event::Ended { well: true },
            Event::Ended { well: false },
        ],
        Effect::Check(_) => vec![Event::Checked { holds: true }, Event::Checked { holds: false }],
        Effect::Run(_) => {
            vec![Event::NoJob, Event::Ended { well: true }, Event::Ended { well: false }]
        }
        Effect::Rest(_) => vec![Event::Rested],
        Effect::Judge(_) => vec![Event::Judged { well: true }, Event::Judged { well: false }],
        Effect::Stop => vec![
            Event::StopAsked { confirmed: true },
            Event::StopAsked { confirmed: false },
            Event::StopRefused,
        ],
        Effect::Finish => vec![],
    };
    if effect != Effect::Finish {
        events.extend([Event::Interrupt, Event::Leave]);
    }
    events
}

/// Every path: each state with how often each link was begun on the way to it, at most.
fn paths(terms: &Terms) -> Vec<(State, Vec<u8>)> {
    let begin = (State::At(0), vec![0; terms.ends.len()]);
    let mut seen = HashMap::from([(begin.clone(), ())]);
    let mut queue = VecDeque::from([begin]);
    while let Some((state, begun)) = queue.pop_front() {
        for event in events(state.effect()) {
            let (to, _) = next(&state, event, NOW, terms);
            let mut begun = begun.clone();
            // A try that came to no job has begun nothing.
            if let (State::Running { link, .. }, Event::Ended { .. }) = (&state, event) {
                begun[*link] += 1;
            }
            if let (State::TakingUp(link), Event::Ended { .. }) = (&state, event) {
                begun[*link] += 1;
            }
            assert!(begun.iter().all(|times| *times <= 1), "{to:?} {begun:?}");
            if seen.insert((to.clone(), begun.clone()), ()).is_none() {
                queue.push_back((to, begun));
            }
        }
    }
    seen.into_keys().collect()
}

#[test]
fn every_path_ends_off_the_bill_or_where_it_was_to_be_left_or_says_that_it_may_bill() {
    let terms = four();
    let ends: Vec<(State, u8)> = paths(&terms)
        .into_iter()
        .filter(|(state, _)| state.effect() == Effect::Finish)
        .map(|(state, _)| (state.clone(), exit_code(&state, &terms)))
        .collect();
    assert!(ends.len() > 10, "{ends:?}");
    for (state, code) in &ends {
        let State::Over { end, stop_confirmed } = state else { panic!("{state:?}") };
        let left = *end == Some(End::Paused(2));
        assert_eq!(
            *code == 0,
            matches!(end, Some(End::Done | End::Paused(_))) && (*stop_confirmed || left),
            "{state:?}"
        );
        let refused = matches!(end, Some(End::Refused(_)));
        assert_eq!(*code == 6, !stop_confirmed && !left && !refused, "{state:?}");
        assert_eq!(*code == 2, refused, "{state:?}");
    }
    for code in [0, 1, 2, 6] {
        assert!(ends.iter().any(|(_, found)| *found == code), "{code}");
    }
}

/// No state waits for nothing: every answer to its effect leads on, but for a stop that is asked again.
#[test]
fn every_answer_leads_on() {
    let terms = four();
    for (state, _) in paths(&terms) {
        for event in events(state.effect()) {
            let (to, _) = next(&state, event, NOW, &terms);
            let is_asked_on = matches!(state, State::Stopping(..)) && event == Event::Interrupt;
            assert!(to != state || is_asked_on, "{state:?} {event:?}");
        }
    }
}

/// Only a link that came to no job is tried again, and once.
#[test]
fn a_link_is_tried_again_once_and_only_when_it_made_no_job() {
    let terms = four();
    let running = State::Running { link: 0, again: false };
    let rest = next(&running, Event::NoJob, NOW, &terms);
    assert_eq!(rest, (State::Resting(0), Effect::Rest(0)));
    let checked = next(&rest.0, Event::Rested, NOW, &terms).0;
    let again = next(&checked, Event::Checked { holds: true }, NOW, &terms).0;
    assert_eq!(again, State::Running { link: 0, again: true });
    assert_eq!(next(&again, Event::NoJob, NOW, &terms).0.end(), Some(End::Failed(0)));
    let ended = next(&running, Event::Ended { well: false }, NOW, &terms);
    assert_eq!((ended.0.end(), ended.1), (Some(End::Failed(0)), Effect::Stop));
}

#[test]
fn a_stop_point_is_passed_once_it_was_reached() {
    let terms = four();
    let at = |link, pause_passed| {
        let event = Event::Stands(Standing::Holds { pause_passed });
        next(&State::At(link), event, NOW, &terms).0
    };
    assert_eq!(at(0, false), State::At(1));
    assert_eq!(at(1, false).end(), Some(End::Paused(1)));
    assert_eq!(at(1, true), State::At(2));
    assert_eq!(at(2, false), State::Over { end: Some(End::Paused(2)), stop_confirmed: false });
    assert_eq!(at(3, true).end(), Some(End::Done));
}

/// What is in flight is never begun by this process, and one that may not be taken up is left alone.
#[test]
fn what_is_in_flight_is_taken_up_or_left_alone() {
    let terms = four();
    let taking = next(&State::At(0), Event::Stands(Standing::InFlight), NOW, &terms);
    assert_eq!(taking, (State::TakingUp(0), Effect::TakeUp(0)));
    let (refused, effect) = next(&taking.0, Event::CannotTakeUp, NOW, &terms);
    assert_eq!((effect, exit_code(&refused, &terms)), (Effect::Finish, 2));
    assert!(refused.may_still_bill());
}
