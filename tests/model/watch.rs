//! The watch, under every sequence of answers that its effects can get: no world decides what comes, so
//! whatever a world could say is among it. Ages are kept relative to now and rounded down to the last
//! threshold that they have passed, which makes the space finite without an end of time.

use chrono::{DateTime, TimeDelta, Utc};
use podtether::domain::JobState;
use podtether::watch::state::{Effect, Event, Look, Phase, State, Terms};
use podtether::watch::{FailureCause, Finding, PlateauRule, Verdict};
use stateright::{Model, Property};
use std::hash::{Hash, Hasher};
use std::sync::LazyLock;

type Next = fn(&State, &Event, DateTime<Utc>, &Terms) -> (State, Vec<Effect>);

/// The model.
#[derive(Clone, Copy)]
pub struct Watch {
    pub next: Next,
}

/// The state and what was done so far.
#[derive(Clone, Debug)]
pub struct Watching {
    state: State,
    todo: Effect,
    /// The watch was begun again in another process; once.
    resumed: bool,
    pub wrong: Option<&'static str>,
    /// The state in whole numbers, which have a hash and fractions do not.
    key: Vec<i64>,
}

impl PartialEq for Watching {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Hash for Watching {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.key.hash(hasher);
    }
}

/// A step: after so many ticks this comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    Answer(u8, &'static Event),
    Resume,
}

const TERMS: Terms = Terms {
    interval: TimeDelta::minutes(1),
    startup_grace: TimeDelta::minutes(1),
    stall: TimeDelta::minutes(2),
    plateau: PlateauRule { window: 1, min_delta: 3.0, after: None, relative: None, below: None },
};
/// The thresholds of ages, in minutes: the grace and the interval, both patiences, and six of each.
const AGES: [i64; 6] = [18, 12, 3, 2, 1, 0];
/// How far apart two looks may be: an interval, and whatever a laptop that slept makes of it.
const APART: [u8; 2] = [1, 9];

fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(1)
}

fn older(at: DateTime<Utc>, by: u8) -> DateTime<Utc> {
    let age = (now() - at).num_minutes() + i64::from(by);
    let rounded = AGES.iter().find(|threshold| age >= **threshold).copied().unwrap_or(0);
    now() - TimeDelta::minutes(rounded)
}

/// Lets time go by: now is always the same moment, and everything is longer ago.
fn pass(state: &mut State, by: u8) {
    state.since = older(state.since, by);
    state.grew_at = state.grew_at.map(|at| older(at, by));
    state.suspicion = state.suspicion.take().map(|(finding, at)| (finding, older(at, by)));
}

/// Takes away what nothing is decided by.
fn plain(state: &mut State) {
    // It is compared with 2 and 3 looks, and counts on for ever.
    state.in_vain = state.in_vain.min(4);
    let plain = |verdict: &mut Verdict| match verdict {
        Verdict::Stalled { silent_sec, .. } => *silent_sec = 0,
        Verdict::Lost { why } => why.clear(),
        _ => {}
    };
    state.paged.iter_mut().for_each(plain);
    if let Phase::Over { verdict, .. } = &mut state.phase {
        plain(verdict);
    }
}

fn finding(cause: FailureCause) -> Finding {
    Finding { cause, evidence: "its words".to_owned() }
}

/// Everything that a look may show.
fn looks() -> Vec<Look> {
    let findings = [None, Some(FailureCause::Exception), Some(FailureCause::Nan)];
    let mut looks = Vec::new();
    for job in [JobState::Running, JobState::Unknown] {
        for cause in findings {
            let quiet = Look {
                job: Some(job),
                at_end: true,
                finding: cause.map(finding),
                ..Look::default()
            };
            looks.push(quiet.clone());
            // The pod's clock says that the log is young: both must say that it is old (E10).
            looks.push(Look { log_age: Some(TimeDelta::zero()), ..quiet.clone() });
            let grew = Look { grew: true, ..quiet };
            looks.push(grew.clone());
            looks.push(Look { at_end: false, ..grew.clone() });
            if job != JobState::Running {
                continue;
            }
            let further = Look { progressed: true, ..grew };
            for points in [vec![], vec![(0, 0.0), (1, 0.0)], vec![(0, 0.0), (1, 9.0)]] {
                looks.push(Look { points: points.clone(), ..further.clone() });
                looks.push(Look { points, finished: true, ..further.clone() });
            }
        }
    }
    for job in [
        JobState::Succeeded,
        JobState::Failed,
        JobState::TimedOut,
        JobState::WrapperLost,
        JobState::NotFound,
    ] {
        for cause in findings {
            for at_end in [true, false] {
                looks.push(Look {
                    job: Some(job),
                    exit_code: (job == JobState::Failed).then_some(1),
                    grew: !at_end,
                    at_end,
                    finding: cause.map(finding),
                    ..Look::default()
                });
            }
        }
    }
    looks
}

/// What each effect can come to.
struct Answers {
    discover: Vec<Event>,
    look: Vec<Event>,
    provider: Vec<Event>,
    gpu: Vec<Event>,
}

static ANSWERS: LazyLock<Answers> = LazyLock::new(|| {
    let looks = looks().into_iter().map(|look| Event::Looked(Box::new(look)));
    Answers {
        discover: vec![Event::Discovered(true), Event::Discovered(false), Event::NoContact],
        look: looks.chain([Event::NoContact]).collect(),
        provider: vec![
            Event::Pod(None),
            Event::Pod(Some((true, "RUNNING".to_owned()))),
            Event::Pod(Some((false, "EXITED".to_owned()))),
        ],
        gpu: vec![Event::Gpu(None), Event::Gpu(Some(0)), Event::Gpu(Some(100))],
    }
});

fn answers(effect: &Effect) -> &'static [Event] {
    match effect {
        Effect::Discover => &ANSWERS.discover,
        Effect::Look | Effect::LookOn => &ANSWERS.look,
        Effect::AskProvider => &ANSWERS.provider,
        Effect::AskGpu => &ANSWERS.gpu,
        Effect::Page(_) | Effect::Finish(_) => &[],
    }
}

fn of_verdict(verdict: &Verdict) -> i64 {
    let cause = match verdict {
        Verdict::Failed(finding) => finding.cause as i64,
        Verdict::PodOff { .. } => 1,
        Verdict::Lost { .. } => 2,
        _ => 0,
    };
    1 + i64::from(verdict.exit_code()) * 100 + cause
}

fn key(state: &State, todo: &Effect, resumed: bool, wrong: Option<&str>) -> Vec<i64> {
    let age = |at: DateTime<Utc>| (now() - at).num_minutes();
    let phase = match &state.phase {
        Phase::Discovering => -1,
        Phase::Following => -2,
        Phase::Over { verdict, job_ended } => of_verdict(verdict) * 2 + i64::from(*job_ended),
    };
    let todo = match todo {
        Effect::Discover => -1,
        Effect::Look => -2,
        Effect::LookOn => -3,
        Effect::AskProvider => -4,
        Effect::AskGpu => -5,
        Effect::Page(verdict) => -10 - of_verdict(verdict),
        Effect::Finish(code) => i64::from(*code),
    };
    vec![
        phase,
        todo,
        age(state.since),
        state.grew_at.map_or(-1, age),
        i64::from(state.progressed),
        // Points come by pairs, so that how much they moved is all that there is to know.
        state.curve.trend().map_or(-1, |moved| if moved > 1.0 { 1 } else { 0 }),
        state.suspicion.as_ref().map_or(-1, |(found, at)| 100 * found.cause as i64 + age(*at)),
        i64::from(state.in_vain),
        i64::from(state.quiet),
        state.paged.as_ref().map_or(0, of_verdict),
        i64::from(state.finished),
        i64::from(resumed),
        i64::from(wrong.is_some()),
    ]
}

impl Watching {
    fn new(mut state: State, todo: Effect, resumed: bool, wrong: Option<&'static str>) -> Self {
        plain(&mut state);
        let key = key(&state, &todo, resumed, wrong);
        Self { state, todo, resumed, wrong, key }
    }

    const fn is_over(&self) -> bool {
        matches!(self.todo, Effect::Finish(_))
    }
}

impl Watch {
    fn step(&self, from: &Watching, apart: u8, event: &Event) -> Watching {
        let mut before = from.state.clone();
        pass(&mut before, apart);
        let (state, effects) = (self.next)(&before, event, now(), &TERMS);
        let mut wrong = None;
        let (mut pages, mut ends, mut todo) = (0, Vec::new(), Effect::Look);
        for effect in effects {
            // Every effect by name: one that changes something would have to be added here.
            match effect {
                Effect::Page(verdict) => {
                    pages += 1;
                    let told = |paged: &Verdict| paged.is_about_the_same_as(&verdict);
                    if before.paged.as_ref().is_some_and(told) && lasts(&before, event) {
                        wrong = Some("people were told twice of one thing");
                    }
                }
                Effect::Finish(code) => ends.push(code),
                Effect::Discover
                | Effect::Look
                | Effect::LookOn
                | Effect::AskProvider
                | Effect::AskGpu => todo = effect,
            }
        }
        match (state.verdict(), ends.as_slice()) {
            (None, []) if pages == 0 => {}
            (Some(verdict), [code]) if *code == verdict.exit_code() && pages <= 1 => {
                todo = Effect::Finish(*code);
                // Whatever comes after the end, it stays what it is.
                for event in [Event::NoContact, Event::Gpu(None), Event::Discovered(false)] {
                    let (again, _) = (self.next)(&state, &event, now(), &TERMS);
                    if again.verdict() != Some(verdict) {
                        wrong = Some("a verdict was taken back");
                    }
                }
            }
            _ => wrong = Some("not one verdict with one exit code"),
        }
        if let Event::Looked(look) = event {
            let job = look.job.unwrap_or(JobState::Unknown);
            let ended = job.has_ended() && look.at_end;
            wrong = match state.verdict() {
                None if ended => Some("the end of the job is no end of the watch"),
                Some(Verdict::Done) if job != JobState::Succeeded => Some("done without success"),
                Some(other) if ended && job == JobState::Succeeded && *other != Verdict::Done => {
                    Some("a failure in the log goes before the end of the job")
                }
                Some(Verdict::Plateau(_))
                    if state.suspicion.is_some() && before.paged.is_none() =>
                {
                    // An exception waits for a round; what the numbers say does not.
                    let certain = |(finding, _): &(Finding, _)| finding.cause == FailureCause::Nan;
                    state
                        .suspicion
                        .as_ref()
                        .filter(|found| certain(found))
                        .and(Some("a plateau goes before a failure in the log"))
                }
                _ => wrong,
            };
        }
        if matches!(event, Event::Pod(Some((false, _)))) && state.verdict().is_none() {
            wrong = Some("a pod that is off is no end of the watch");
        }
        Watching::new(state, todo, from.resumed, wrong)
    }
}

/// Whether what the last page was about is not over by this: a log that grows again is no stall.
fn lasts(before: &State, event: &Event) -> bool {
    let Event::Looked(look) = event else { return true };
    match &before.paged {
        Some(Verdict::Stalled { .. } | Verdict::Lost { .. }) => {
            !look.grew && before.grew_at.is_some()
        }
        Some(Verdict::Failed(_)) => look.finding.is_some(),
        _ => true,
    }
}

impl Model for Watch {
    type State = Watching;
    type Action = Action;

    fn init_states(&self) -> Vec<Watching> {
        let of = |knows, todo| Watching::new(State::new(now(), knows), todo, false, None);
        vec![of(false, Effect::Discover), of(true, Effect::LookOn)]
    }

    fn actions(&self, from: &Watching, actions: &mut Vec<Action>) {
        if from.wrong.is_some() {
            return;
        }
        if from.is_over() {
            if !from.resumed {
                actions.push(Action::Resume);
            }
            return;
        }
        let apart: &[u8] = match from.todo {
            Effect::Look | Effect::Discover => &APART,
            _ => &[0],
        };
        for event in answers(&from.todo) {
            actions.extend(apart.iter().map(|by| Action::Answer(*by, event)));
        }
    }

    fn next_state(&self, from: &Watching, action: Action) -> Option<Watching> {
        Some(match action {
            Action::Answer(apart, event) => self.step(from, apart, event),
            Action::Resume => {
                let state = from.state.clone().resumed();
                let over = state.verdict().map(|verdict| Effect::Finish(verdict.exit_code()));
                Watching::new(state, over.unwrap_or(Effect::LookOn), true, None)
            }
        })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one verdict, once, by the contract's order", |_, of: &Watching| {
                of.wrong.is_none()
            }),
            Property::always(
                "from everywhere the end of the job ends it",
                |model: &Self, of: &Watching| {
                    of.is_over() || of.wrong.is_some() || model.would_end(of)
                },
            ),
            Property::sometimes("done", |_, of: &Watching| of.todo == Effect::Finish(0)),
            Property::sometimes("no job", |_, of: &Watching| of.todo == Effect::Finish(2)),
            Property::sometimes("plateau", |_, of: &Watching| of.todo == Effect::Finish(3)),
            Property::sometimes("failure", |_, of: &Watching| of.todo == Effect::Finish(4)),
            Property::sometimes("stall or lost", |_, of: &Watching| of.todo == Effect::Finish(5)),
        ]
    }
}

impl Watch {
    /// Whether a world that answers leads to a verdict: the job is found, and has ended.
    fn would_end(&self, of: &Watching) -> bool {
        let look = Look { job: Some(JobState::Succeeded), at_end: true, ..Look::default() };
        let found = self.step(of, 1, &Event::Discovered(true));
        found.is_over() || self.step(&found, 1, &Event::Looked(Box::new(look))).is_over()
    }
}
