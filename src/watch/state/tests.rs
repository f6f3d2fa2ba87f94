//! The rules of a watch, and that no order of events breaks them.

use super::*;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
}

fn terms() -> Terms {
    Terms {
        interval: TimeDelta::seconds(60),
        startup_grace: TimeDelta::seconds(180),
        stall: TimeDelta::seconds(600),
        plateau: PlateauRule { window: 5, ..PlateauRule::default() },
    }
}

fn running() -> Look {
    Look { job: Some(JobState::Running), at_end: true, ..Look::default() }
}

fn finding(cause: FailureCause) -> Finding {
    Finding { cause, evidence: "words".to_owned() }
}

/// Feeds looks, one a minute from `start` on; what the last one led to, or the first end.
fn fed(
    mut state: State,
    start: i64,
    looks: impl IntoIterator<Item = Look>,
) -> (State, Vec<Effect>) {
    let mut effects = Vec::new();
    for (minute, look) in looks.into_iter().enumerate() {
        let now = at(start + 60 * i64::try_from(minute).unwrap());
        (state, effects) = next(&state, &Event::Looked(Box::new(look)), now, &terms());
        if state.verdict().is_some() {
            break;
        }
    }
    (state, effects)
}

fn following() -> State {
    State::new(at(0), true)
}

fn code(effects: &[Effect]) -> Option<u8> {
    effects.iter().find_map(|effect| match effect {
        Effect::Finish(code) => Some(*code),
        _ => None,
    })
}

fn pages(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::Page(_))).count()
}

#[test]
fn a_job_that_ends_well_is_done_whatever_its_log_says() {
    let look = Look {
        job: Some(JobState::Succeeded),
        exit_code: Some(0),
        finding: Some(finding(FailureCause::Exception)),
        ..running()
    };
    let (_, effects) = fed(following(), 0, [look]);
    assert_eq!(effects, [Effect::Finish(0)]);
}

#[test]
fn a_job_that_ends_badly_is_a_failure_with_the_cause_that_its_log_shows() {
    let look = Look { job: Some(JobState::Failed), exit_code: Some(3), ..running() };
    let (state, effects) = fed(following(), 0, [look.clone()]);
    assert_eq!((code(&effects), pages(&effects)), (Some(4), 1));
    assert!(state.verdict().unwrap().to_string().contains("exit code 3"));
    let explained = Look { finding: Some(finding(FailureCause::OutOfMemory)), ..look };
    let (state, _) = fed(following(), 0, [explained]);
    assert_eq!(state.verdict(), Some(&Verdict::Failed(finding(FailureCause::OutOfMemory))));
}

/// D01: the log is read to its end before the end is judged.
#[test]
fn an_ended_job_is_judged_when_its_log_is_read_whole() {
    let part = Look { job: Some(JobState::Failed), at_end: false, ..running() };
    let (state, effects) = fed(following(), 0, [part]);
    assert_eq!((state.verdict(), effects), (None, vec![Effect::LookOn]));
}

#[test]
fn words_are_believed_after_a_round_without_progress_and_numbers_at_once() {
    let words = Look { finding: Some(finding(FailureCause::Exception)), ..running() };
    assert_eq!(code(&fed(following(), 0, [words.clone()]).1), None);
    assert_eq!(code(&fed(following(), 0, [words.clone(), words.clone()]).1), Some(4));
    let caught = [words.clone(), Look { progressed: true, ..running() }, words];
    assert_eq!(code(&fed(following(), 0, caught).1), None, "it was caught, and another came");
    for cause in [FailureCause::Nan, FailureCause::Diverged] {
        let numbers = Look { finding: Some(finding(cause)), ..running() };
        assert_eq!(code(&fed(following(), 0, [numbers]).1), Some(4), "{cause}");
    }
}

#[test]
fn a_plateau_is_paged_once_and_again_only_after_the_reward_has_moved() {
    let flat = |from: u64| Look {
        points: (from..from + 6).map(|at| (at, 1.0)).collect(),
        progressed: true,
        grew: true,
        ..running()
    };
    let (state, effects) = fed(following(), 0, [flat(0)]);
    assert_eq!(code(&effects), None, "within the grace of the start");
    let (state, effects) = fed(state, 180, [flat(6)]);
    assert_eq!((code(&effects), pages(&effects)), (Some(3), 1));
    let (state, effects) = fed(state.resumed(), 240, [flat(12)]);
    assert_eq!((code(&effects), pages(&effects)), (None, 0), "the same plateau");
    let moved = Look { points: vec![(18, 50.0)], ..flat(0) };
    let (_, effects) = fed(state, 300, [moved, flat(19), flat(25)]);
    assert_eq!((code(&effects), pages(&effects)), (Some(3), 1));
}

#[test]
fn a_training_that_is_finished_has_no_plateau() {
    let points = (0..50).map(|at| (at, 1.0)).collect();
    let look = Look { points, finished: true, ..running() };
    assert_eq!(code(&fed(following(), 600, [look]).1), None);
}

fn silent(minutes: usize) -> impl Iterator<Item = Look> {
    let first = Look { grew: true, progressed: true, ..running() };
    let silent = (0..minutes).map(|minute| Look {
        log_age: Some(TimeDelta::minutes(i64::try_from(minute).unwrap() + 1)),
        ..running()
    });
    std::iter::once(first).chain(silent)
}

/// E10, E11: the log alone does not make a stall.
#[test]
fn a_silent_log_asks_the_gpu_and_a_busy_gpu_is_no_stall() {
    let (state, effects) = fed(following(), 0, silent(9));
    assert_eq!(effects, [Effect::Look]);
    let (state, effects) = fed(state, 600, silent(10).skip(10));
    assert_eq!(effects, [Effect::AskGpu]);
    let ask =
        |percent, minutes: i64| next(&state, &Event::Gpu(percent), at(60 * minutes), &terms());
    let (quiet, effects) = ask(Some(80), 10);
    assert_eq!((effects, quiet.quiet), (vec![Effect::Look], true));
    for percent in [Some(0), Some(4), None] {
        let (_, effects) = ask(percent, 10);
        assert_eq!((code(&effects), pages(&effects)), (Some(5), 1), "{percent:?}");
    }
    assert_eq!(code(&ask(Some(100), 59).1), None);
    assert_eq!(code(&ask(Some(100), 60).1), Some(5), "a hung collective keeps its GPU busy");
}

/// A14, E10: a log whose age is wrong, or a laptop that slept, makes no stall by itself.
#[test]
fn silence_is_what_both_clocks_say() {
    let young = Look { log_age: Some(TimeDelta::seconds(5)), ..running() };
    let (state, _) = fed(following(), 0, silent(1));
    assert_eq!(fed(state.clone(), 7200, [young]).1, [Effect::Look], "the laptop slept");
    let old = Look { log_age: Some(TimeDelta::days(300)), ..running() };
    assert_eq!(fed(state, 120, [old]).1, [Effect::Look], "the pod's clock is wrong");
}

#[test]
fn a_log_that_has_not_begun_has_the_grace_of_the_start() {
    let none = || std::iter::repeat_with(running);
    assert_eq!(fed(following(), 0, none().take(13)).1, [Effect::Look]);
    assert_eq!(fed(following(), 0, none().take(14)).1, [Effect::AskGpu]);
}

/// E08: a pod that is gone ends the watch with that reason, and one that runs is waited for.
#[test]
fn lost_contact_asks_the_provider() {
    let mut state = following();
    let mut asked = 0;
    for look in 0..9 {
        let (to, effects) = next(&state, &Event::NoContact, at(60 * look), &terms());
        state = to;
        asked += usize::from(effects == [Effect::AskProvider]);
        assert_eq!(code(&effects), None);
    }
    assert_eq!(asked, 7);
    let told = |state: &State, answer: Option<(bool, &str)>| {
        let answer = answer.map(|(bills, word)| (bills, word.to_owned()));
        next(state, &Event::Pod(answer), at(540), &terms())
    };
    assert_eq!(told(&state, Some((true, "RUNNING"))).1, [Effect::Look]);
    let (gone, effects) = told(&state, Some((false, "EXITED")));
    assert_eq!(code(&effects), Some(5));
    assert!(gone.verdict().unwrap().to_string().contains("EXITED"));
    let (last, _) = next(&state, &Event::NoContact, at(600), &terms());
    assert_eq!(code(&told(&last, None).1), Some(5));
    let (back, _) = next(&last, &Event::Looked(Box::new(running())), at(660), &terms());
    assert_eq!(back.in_vain, 0);
}

/// F01: a pod that has booted anew answers at another address, which the provider tells after three looks in
/// vain. Nobody has looked there yet, however few looks fit into a stall.
#[test]
fn contact_is_not_lost_before_the_address_that_the_provider_told_was_tried() {
    let terms = Terms { interval: TimeDelta::seconds(300), ..terms() };
    let step = |state: &State, event: &Event, minutes| next(state, event, at(60 * minutes), &terms);
    let running = Event::Pod(Some((true, "RUNNING".to_owned())));
    let mut state = following();
    for look in 0..LOOKS_IN_VAIN {
        state = step(&state, &Event::NoContact, 5 * i64::from(look)).0;
    }
    let (told, effects) = step(&state, &running, 15);
    assert_eq!(effects, [Effect::Look]);
    let (vain, effects) = step(&told, &Event::NoContact, 20);
    assert_eq!(effects, [Effect::AskProvider]);
    assert_eq!(code(&step(&vain, &running, 20).1), Some(5));
}

#[test]
fn a_pod_that_goes_off_ends_in_what_the_log_had_said() {
    let off = Event::Pod(Some((false, "EXITED".to_owned())));
    let ends = |look: Look| {
        let (state, _) = fed(following(), 0, [look]);
        code(&next(&state, &off, at(60), &terms()).1)
    };
    assert_eq!(ends(Look { finished: true, ..running() }), Some(0));
    assert_eq!(ends(Look { finding: Some(finding(FailureCause::Cuda)), ..running() }), Some(4));
    assert_eq!(ends(running()), Some(5));
}

#[test]
fn without_a_job_the_grace_is_waited_out_and_no_page_goes_out() {
    let state = State::new(at(0), false);
    let (waiting, effects) = next(&state, &Event::Discovered(false), at(179), &terms());
    assert_eq!(effects, [Effect::Discover]);
    assert_eq!(next(&waiting, &Event::Discovered(true), at(179), &terms()).1, [Effect::LookOn]);
    let (_, effects) = next(&waiting, &Event::Discovered(false), at(180), &terms());
    assert_eq!(effects, [Effect::Finish(2)]);
}

/// E07, E14: unknown is never dead and never done. A volume that answers nothing for as long as a stall
/// is lost contact.
#[test]
fn an_unknown_job_is_watched_on_and_then_lost() {
    let unknown = |_| Look { job: Some(JobState::Unknown), ..running() };
    assert_eq!(fed(following(), 0, (0..13).map(unknown)).1, [Effect::Look]);
    let (state, effects) = fed(following(), 0, (0..14).map(unknown));
    assert_eq!((code(&effects), pages(&effects)), (Some(5), 1));
    assert!(matches!(state.verdict(), Some(Verdict::Lost { .. })));
}

/// A stream of numbers that is the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn any_event(dice: &mut Dice) -> Event {
    const JOBS: [JobState; 9] = [
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
    const CAUSES: [FailureCause; 4] = [
        FailureCause::Nan,
        FailureCause::Exception,
        FailureCause::Cuda,
        FailureCause::StoppedFromOutside,
    ];
    match dice.roll(12) {
        0 => Event::Discovered(dice.roll(2) == 0),
        1 => Event::NoContact,
        2 => Event::Pod(None),
        3 => Event::Pod(Some((dice.roll(8) > 0, "WORD".to_owned()))),
        4 => Event::Gpu([None, Some(0), Some(90)][usize::try_from(dice.roll(3)).unwrap()]),
        _ => {
            let job = if dice.roll(20) == 0 { dice.roll(9) } else { 1 };
            let start = dice.roll(1000);
            let points = (start..start + dice.roll(8)).map(|at| (at, 0.5)).collect();
            let cause = CAUSES[usize::try_from(dice.roll(4)).unwrap()];
            Event::Looked(Box::new(Look {
                job: Some(JOBS[usize::try_from(job).unwrap()]),
                exit_code: (dice.roll(2) == 0).then_some(1),
                grew: dice.roll(3) == 0,
                at_end: dice.roll(4) > 0,
                log_age: (dice.roll(2) == 0)
                    .then(|| TimeDelta::seconds(dice.roll(9000).cast_signed())),
                progressed: dice.roll(3) == 0,
                points,
                finding: (dice.roll(6) == 0).then(|| finding(cause)),
                finished: dice.roll(5) == 0,
            }))
        }
    }
}

/// Whatever happens in whatever order, also over restarts: one verdict, one exit code that goes with it,
/// and no two pages for one cause without its end in between.
#[test]
fn every_order_of_events_ends_in_one_verdict_and_no_cause_is_paged_twice() {
    let mut verdicts = std::collections::BTreeMap::<u8, u32>::new();
    for seed in 1..=4_000 {
        let mut dice = Dice(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
        let mut state = State::new(at(0), dice.roll(2) == 0);
        let mut now = 0;
        for _ in 0..60 {
            // Clocks jump, also back.
            now += dice.roll(400).cast_signed() - 20;
            let before = state.clone();
            let event = any_event(&mut dice);
            let (to, effects) = next(&state, &event, at(now), &terms());
            assert!(!effects.is_empty(), "a dead end after {before:?}");
            assert_eq!(to.verdict().map(Verdict::exit_code), code(&effects), "{effects:?}");
            assert!(pages(&effects) <= 1);
            if let Some(Effect::Page(verdict)) = effects.first() {
                assert!(before.verdict().is_none(), "a page after the end");
                let told =
                    before.paged.as_ref().is_some_and(|paged| paged.is_about_the_same_as(verdict));
                // Only an event that ends a cause lets it be paged anew.
                let has_ended = match (verdict, &event) {
                    (Verdict::Failed(_), Event::Looked(look)) => look.finding.is_none(),
                    (Verdict::Lost { .. }, Event::Looked(look)) => look.grew,
                    _ => false,
                };
                assert!(!told || has_ended, "{verdict:?} was paged already");
            }
            if let Some(verdict) = before.verdict() {
                assert_eq!(to, before, "nothing changes after {verdict}");
            }
            let kept = serde_json::to_string(&to).unwrap();
            state = serde_json::from_str(&kept).unwrap();
            assert_eq!(state, to);
            if let Some(verdict) = state.verdict() {
                if dice.roll(2) == 0 {
                    *verdicts.entry(verdict.exit_code()).or_default() += 1;
                    break;
                }
                state = state.resumed();
            }
        }
    }
    println!("ends by exit code: {verdicts:?}");
    assert_eq!(verdicts.keys().copied().collect::<Vec<_>>(), [0, 2, 3, 4, 5]);
}
