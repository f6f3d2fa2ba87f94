//! The machine of a watch: (state, event, now) to (state, effects). Pure; the state is data that another
//! process can go on from. It ends in one verdict, and it never pages twice for one cause.

use super::failure::{FailureCause, Finding};
use super::plateau::{Curve, PlateauRule};
use super::verdict::Verdict;
use crate::domain::JobState;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// What does not change over a watch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// Between two looks.
    pub interval: TimeDelta,
    /// How long a job may take to appear, and its log to say the first thing, before silence counts.
    pub startup_grace: TimeDelta,
    /// How long a log may be silent.
    pub stall: TimeDelta,
    /// When a flat reward is a plateau.
    pub plateau: PlateauRule,
}

/// After this many looks in vain the provider is asked (E08).
pub const LOOKS_IN_VAIN: u32 = 3;
/// From this use on a GPU is at work, in percent.
pub const GPU_AT_WORK: u32 = 5;
/// A log that is silent for this many times the limit is a stall although the GPU is busy: a collective
/// that hangs keeps its GPUs at 100 %.
pub const BUSY_PATIENCE: i32 = 6;

/// Where a watch is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// No job is known yet.
    Discovering,
    /// A job is being followed.
    Following,
    /// There is a verdict.
    Over {
        /// The verdict.
        verdict: Verdict,
        /// Whether the job had ended; otherwise there is something to follow on.
        job_ended: bool,
    },
}

/// The state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Where it is.
    pub phase: Phase,
    /// Since when it waits for a job or for the log's first words.
    pub since: DateTime<Utc>,
    /// When the log was last seen to grow.
    pub grew_at: Option<DateTime<Utc>>,
    /// Whether the log has shown progress.
    pub progressed: bool,
    /// The newest rewards.
    pub curve: Curve,
    /// A failure in the log's words, and since when no progress has taken it back.
    pub suspicion: Option<(Finding, DateTime<Utc>)>,
    /// Looks in vain in a row.
    pub in_vain: u32,
    /// Whether the log is silent while the GPU works.
    pub quiet: bool,
    /// What the last page was about, as long as that lasts.
    pub paged: Option<Verdict>,
    /// Whether the log said that the training has come to its end.
    pub finished: bool,
}

/// One look at the job and its log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// What is known of the job; `None` is the same as unknown.
    pub job: Option<JobState>,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// Whether the log has become longer since the last look.
    pub grew: bool,
    /// Whether the log was read to its end.
    pub at_end: bool,
    /// How long ago the log was written to, by the pod's clock.
    pub log_age: Option<TimeDelta>,
    /// Whether the run is further than at the last look.
    pub progressed: bool,
    /// Iterations and mean rewards since the last look.
    pub points: Vec<(u64, f64)>,
    /// What the log says went wrong.
    pub finding: Option<Finding>,
    /// Whether the log says that the training has come to its end.
    pub finished: bool,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The pod was asked for its live jobs; whether there is one to follow.
    Discovered(bool),
    /// The job was looked at.
    Looked(Box<Look>),
    /// The pod's shell did not answer.
    NoContact,
    /// The provider told whether the pod bills, with its word for the status; `None` when it did not tell.
    Pod(Option<(bool, String)>),
    /// The GPU's use in percent; `None` when it cannot be read.
    Gpu(Option<u32>),
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Ask the pod for its live jobs after an interval.
    Discover,
    /// Look at the job after an interval.
    Look,
    /// Look at once: there is more to read.
    LookOn,
    /// Ask the provider for the pod's status.
    AskProvider,
    /// Tell the use of the GPU, as the last look saw it.
    AskGpu,
    /// Tell people, once for each cause.
    Page(Verdict),
    /// End with this exit code.
    Finish(u8),
}

impl State {
    /// A watch that begins now.
    #[must_use]
    pub fn new(now: DateTime<Utc>, knows_the_job: bool) -> Self {
        Self {
            phase: if knows_the_job { Phase::Following } else { Phase::Discovering },
            since: now,
            grew_at: None,
            progressed: false,
            curve: Curve::default(),
            suspicion: None,
            in_vain: 0,
            quiet: false,
            paged: None,
            finished: false,
        }
    }

    /// The same watch in another process. What a page was about is not paged again while it lasts; a job
    /// that had ended has its verdict already.
    #[must_use]
    pub fn resumed(mut self) -> Self {
        if let Phase::Over { job_ended: false, .. } = self.phase {
            self.phase = Phase::Following;
        }
        // What was read before is read again from the last block on.
        (self.suspicion, self.in_vain) = (None, 0);
        self
    }

    /// The verdict, once there is one.
    #[must_use]
    pub const fn verdict(&self) -> Option<&Verdict> {
        match &self.phase {
            Phase::Over { verdict, .. } => Some(verdict),
            _ => None,
        }
    }

    fn over(&mut self, verdict: Verdict, job_ended: bool) -> Vec<Effect> {
        let exit = verdict.exit_code();
        let told = self.paged.as_ref().is_some_and(|paged| paged.is_about_the_same_as(&verdict));
        self.phase = Phase::Over { verdict: verdict.clone(), job_ended };
        if told || !verdict.is_a_page() {
            return vec![Effect::Finish(exit)];
        }
        self.paged = Some(verdict.clone());
        vec![Effect::Page(verdict), Effect::Finish(exit)]
    }

    /// A verdict about a job that goes on; what was paged for already is no reason to end.
    fn page(&mut self, verdict: Verdict) -> Option<Vec<Effect>> {
        let told = self.paged.as_ref().is_some_and(|paged| paged.is_about_the_same_as(&verdict));
        (!told).then(|| self.over(verdict, false))
    }

    fn forget_page(&mut self, is_over: impl Fn(&Verdict) -> bool) {
        if self.paged.as_ref().is_some_and(is_over) {
            self.paged = None;
        }
    }
}

/// The transition.
#[must_use]
pub fn next(
    state: &State,
    event: &Event,
    now: DateTime<Utc>,
    terms: &Terms,
) -> (State, Vec<Effect>) {
    let mut state = state.clone();
    let effects = match (&state.phase, event) {
        (Phase::Over { verdict, .. }, _) => vec![Effect::Finish(verdict.exit_code())],
        (_, Event::NoContact) => no_contact(&mut state),
        (_, Event::Pod(Some((false, status)))) => {
            let status = status.clone();
            pod_off(&mut state, status)
        }
        (_, Event::Pod(_)) => after_the_provider(&mut state, terms),
        (Phase::Discovering, Event::Discovered(true)) => {
            state.phase = Phase::Following;
            state.in_vain = 0;
            vec![Effect::LookOn]
        }
        (Phase::Discovering, _) => {
            state.in_vain = 0;
            if now - state.since >= terms.startup_grace {
                state.over(Verdict::NoJob, false)
            } else {
                vec![Effect::Discover]
            }
        }
        (Phase::Following, Event::Looked(look)) => looked(&mut state, look, now, terms),
        (Phase::Following, Event::Gpu(percent)) => gpu(&mut state, *percent, now, terms),
        (Phase::Following, Event::Discovered(_)) => vec![Effect::Look],
    };
    (state, effects)
}

/// Finished, failure in the log, plateau, stall; a pod that is off comes as an event of its own.
fn looked(state: &mut State, look: &Look, now: DateTime<Utc>, terms: &Terms) -> Vec<Effect> {
    state.in_vain = 0;
    state.finished = look.finished;
    state.progressed |= look.progressed;
    if look.grew || state.grew_at.is_none() {
        state.grew_at = Some(now);
        state.quiet = false;
        state.forget_page(|paged| matches!(paged, Verdict::Stalled { .. } | Verdict::Lost { .. }));
    }
    for (iteration, reward) in &look.points {
        state.curve.push(*iteration, *reward, terms.plateau.window);
    }
    // A watch that was begun again reads from the last block on, and its words perhaps in pieces.
    if look.finding.is_none() && look.at_end {
        state.forget_page(|paged| matches!(paged, Verdict::Failed(_)));
    }
    let job = look.job.unwrap_or(JobState::Unknown);
    let over = job.has_ended() || job == JobState::NotFound;
    if over && !look.at_end {
        return vec![Effect::LookOn];
    }
    if over {
        return state.over(end_of(job, look), true);
    }
    state.suspicion = match (&look.finding, state.suspicion.take()) {
        (None, _) => None,
        (Some(finding), Some((before, since)))
            if !look.progressed && before.cause == finding.cause =>
        {
            Some((finding.clone(), since))
        }
        (Some(finding), _) => Some((finding.clone(), now)),
    };
    if !look.at_end {
        return vec![Effect::LookOn];
    }
    if let Some((finding, since)) = state.suspicion.clone() {
        // What the numbers say is so at once. Words may be about something that is caught; they are
        // believed when a round has brought no progress.
        let certain = matches!(finding.cause, FailureCause::Nan | FailureCause::Diverged);
        if (certain || now - since >= terms.interval)
            && let Some(effects) = state.page(Verdict::Failed(finding))
        {
            return effects;
        }
    }
    match state.curve.flat(&terms.plateau) {
        Some(flat) if !look.finished && now - state.since >= terms.startup_grace => {
            if let Some(effects) = state.page(Verdict::Plateau(flat)) {
                return effects;
            }
        }
        Some(_) => {}
        None => state.forget_page(|paged| matches!(paged, Verdict::Plateau(_))),
    }
    let is_silent = silence(state, look.log_age, now) >= patience(state, terms);
    match job {
        JobState::Running if is_silent => return vec![Effect::AskGpu],
        // The shell answers and the volume does not (E14).
        JobState::Unknown if is_silent => {
            let why = "nobody can say what the job does; does its volume answer?".to_owned();
            if let Some(effects) = state.page(Verdict::Lost { why }) {
                return effects;
            }
        }
        _ => {}
    }
    vec![Effect::Look]
}

/// What the end of a job means.
fn end_of(job: JobState, look: &Look) -> Verdict {
    let failed = |evidence: String| {
        let finding = look.finding.clone();
        let unexplained = Finding { cause: FailureCause::NonZeroExit, evidence };
        Verdict::Failed(finding.unwrap_or(unexplained))
    };
    match (job, look.exit_code, &look.finding) {
        (JobState::Succeeded, ..) => Verdict::Done,
        (JobState::TimedOut, ..) => Verdict::Failed(Finding {
            cause: FailureCause::StoppedFromOutside,
            evidence: "the job's ceiling struck".to_owned(),
        }),
        (JobState::Failed, code, _) => failed(format!(
            "exit code {}",
            code.map_or_else(|| "?".to_owned(), |code| code.to_string())
        )),
        (_, _, Some(_)) => failed(String::new()),
        (JobState::NotFound, ..) => {
            Verdict::Lost { why: "the job's folder is not there".to_owned() }
        }
        _ => Verdict::Lost { why: format!("the job is {job}: it left no exit code") },
    }
}

/// E10: both clocks must say so. The pod's file system may be slow to tell, the laptop may have slept.
fn silence(state: &State, log_age: Option<TimeDelta>, now: DateTime<Utc>) -> TimeDelta {
    let seen = now - state.grew_at.unwrap_or(now);
    log_age.map_or(seen, |age| age.min(seen)).max(TimeDelta::zero())
}

fn patience(state: &State, terms: &Terms) -> TimeDelta {
    if state.progressed { terms.stall } else { terms.stall + terms.startup_grace }
}

/// E11: a log that is silent while the GPU works is quiet, not stalled.
fn gpu(state: &mut State, percent: Option<u32>, now: DateTime<Utc>, terms: &Terms) -> Vec<Effect> {
    let silent = silence(state, None, now);
    let patience = patience(state, terms);
    // An answer that comes when nobody asks any more means nothing.
    if silent < patience {
        return vec![Effect::Look];
    }
    let at_work = percent.is_some_and(|percent| percent >= GPU_AT_WORK);
    state.quiet = at_work;
    if at_work && silent < patience * BUSY_PATIENCE {
        return vec![Effect::Look];
    }
    let verdict = Verdict::Stalled { silent_sec: silent.num_seconds(), gpu_percent: percent };
    state.page(verdict).unwrap_or_else(|| vec![Effect::Look])
}

fn no_contact(state: &mut State) -> Vec<Effect> {
    state.in_vain = state.in_vain.saturating_add(1);
    if state.in_vain < LOOKS_IN_VAIN {
        return go_on(state);
    }
    vec![Effect::AskProvider]
}

/// The provider says that the pod runs, or nothing: counted in looks and not in time, because a laptop
/// that slept has not looked.
fn after_the_provider(state: &mut State, terms: &Terms) -> Vec<Effect> {
    let seconds = terms.interval.num_seconds().max(1);
    let most = u32::try_from(terms.stall.num_seconds() / seconds).unwrap_or(u32::MAX);
    // F01: the provider may just have told another address, and nobody has looked there yet.
    if state.in_vain >= most.max(LOOKS_IN_VAIN + 1) {
        let why = format!("the pod did not answer {} looks in a row", state.in_vain);
        if let Some(effects) = state.page(Verdict::Lost { why }) {
            return effects;
        }
    }
    go_on(state)
}

/// The log may have said enough before the pod went off.
fn pod_off(state: &mut State, status: String) -> Vec<Effect> {
    let verdict = match (&state.suspicion, state.finished) {
        (Some((finding, _)), _) => Verdict::Failed(finding.clone()),
        (None, true) => Verdict::Done,
        (None, false) => Verdict::PodOff { status },
    };
    state.over(verdict, false)
}

fn go_on(state: &State) -> Vec<Effect> {
    vec![if state.phase == Phase::Discovering { Effect::Discover } else { Effect::Look }]
}

#[cfg(test)]
mod tests;
