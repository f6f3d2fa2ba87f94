//! The thin loop around [`super::state`]: turns the world's answers into events, carries out effects,
//! and keeps the record on disk true at every step.

use super::prepared::Prepared;
use super::preview::{Survey, survey};
use super::record::{self, Outcome, Record};
use super::standing::Unchanged;
use super::state::{self, Effect, End, Event, Standing, State, Terms};
use crate::domain::{Campaign, LinkEnd, Pod, UsdPerHour, Vehicle};
use crate::error::Failure;
use crate::notify::Notifier;
use crate::ops::{FuseClaim, Tether};
use crate::supervise::{self, Moment, Note, Summary, stop_terms};
use chrono::{DateTime, Utc};
use std::time::Duration;
use tokio::sync::mpsc;

/// Signals, as they reach the loop.
pub(super) type Signals = mpsc::UnboundedReceiver<supervise::Event>;

/// What is asked of a campaign.
#[derive(Clone, Debug)]
pub struct Options {
    /// The campaign.
    pub campaign: Campaign,
    /// How often a job is looked at.
    pub interval: Duration,
    /// How often results are brought home while a job runs, at most.
    pub pull_every: Duration,
    /// How long to wait before a link that made no job is tried again; one minute when `None`.
    pub rest: Option<Duration>,
    /// Links that are run again whatever is recorded of them.
    pub again: Vec<String>,
    /// Who is told of what happens.
    pub notifier: Notifier,
}

/// A campaign that is being run.
pub(super) struct Runner<'a> {
    pub(super) tether: &'a Tether,
    pub(super) options: &'a Options,
    pub(super) vehicle: Vehicle,
    pub(super) links: Vec<Prepared>,
    pub(super) record: Record,
    pub(super) rate: Option<UsdPerHour>,
    /// Whether the rules have seen all links that are to be run, together.
    pub(super) is_reviewed: bool,
    /// What links have left and was read by this process.
    pub(super) unchanged: Unchanged,
    /// The pod as it was last told.
    pub(super) pod: Option<Pod>,
    /// The moment that counts: of each step the larger progress of the two clocks (C02).
    moment: Moment,
    /// When the present link began, by that moment.
    pub(super) link_began: DateTime<Utc>,
    /// The run of the present link, once it is over.
    pub(super) summary: Option<Summary>,
    /// Why it did not go on, in words.
    pub(super) reason: Option<String>,
    /// A signal that came while something else was done.
    pub(super) heard: Option<supervise::Event>,
    /// How often a stop was asked.
    pub(super) stops: u32,
    /// What this campaign has claimed last of the laptop's fuse.
    pub(super) claim: Option<FuseClaim>,
    /// Whether anything was begun: before that nothing is ended either.
    pub(super) has_begun: bool,
}

/// Runs a campaign, or goes on with it: links whose recorded outcome holds are skipped. Returns the
/// record, whose `process_exit_code` is the outcome.
///
/// # Errors
/// What is refused before anything was changed: a file that makes no sense, money, a pod that does not
/// run, another process that runs it.
pub async fn run(
    tether: &Tether,
    options: &Options,
    signals: &mut Signals,
    tell: &mut (dyn FnMut(Note) + Send),
) -> Result<Record, Failure> {
    let vehicle = tether.vehicle(Some(&options.campaign.vehicle.0))?;
    let _lock = record::lock(&options.campaign, &vehicle).await?;
    let survey = survey(tether, &options.campaign, &options.again).await?;
    if let Some(refusal) = survey.refusal() {
        return Err(refusal);
    }
    if let (Some(worst), Some(counted)) =
        (survey.preview.worst_case_usd, survey.preview.counted_usd)
    {
        let budget = survey.preview.budget_usd;
        let budget = budget.map_or_else(|| "no budget is set".to_owned(), |usd| usd.to_string());
        tell(Note::Said(format!(
            "campaign {}: its links can cost {worst} at worst; {counted} with their end, what was spent and what is promised; limits.budget_usd: {budget}",
            options.campaign.name
        )));
    }
    let Survey { vehicle, links, record, rate, is_reviewed, unchanged, .. } = survey;
    let now = tether.clock().now();
    let runner = Runner {
        tether,
        options,
        vehicle,
        links,
        record,
        rate,
        is_reviewed,
        unchanged,
        pod: None,
        moment: Moment::new(now, tether.clock().since_boot()),
        link_began: now,
        summary: None,
        reason: None,
        heard: None,
        stops: 0,
        claim: None,
        has_begun: false,
    };
    Ok(runner.go_on(signals, tell).await)
}

impl Runner<'_> {
    async fn go_on(mut self, signals: &mut Signals, tell: &mut (dyn FnMut(Note) + Send)) -> Record {
        let terms = Terms {
            ends: self.links.iter().map(|link| link.link.end).collect(),
            stop: stop_terms(self.record.started_at, false, self.tether.settings().off),
        };
        let mut state = State::At(0);
        let mut effect = state.effect();
        while effect != Effect::Finish {
            let event = match signals.try_recv() {
                Ok(signal) => {
                    self.heard = Some(signal);
                    None
                }
                Err(_) => Some(self.carry_out(effect, signals, tell).await),
            };
            let event = self.heard.take().map(|signal| self.asked(&signal)).or(event);
            let event = event.unwrap_or(Event::Leave);
            self.pass_time();
            self.claim = self.tether.claim(&self.vehicle).or(self.claim.take());
            let before = state;
            (state, effect) = state::next(&before, event, self.moment.at, &terms);
            self.keep_record(&before, &state, tell);
            self.notify(&before, &state);
        }
        self.finish(&state, &terms, tell).await;
        self.record
    }

    /// What a signal asks for. Before anything was begun there is nothing to end in order: the pod ran
    /// before and runs on.
    fn asked(&self, signal: &supervise::Event) -> Event {
        match signal {
            supervise::Event::Interrupt if self.has_begun => Event::Interrupt,
            _ => Event::Leave,
        }
    }

    /// Now, by the moment that counts.
    pub(super) fn pass_time(&mut self) -> DateTime<Utc> {
        let clock = self.tether.clock();
        self.moment = self.moment.pass(clock.now(), clock.since_boot());
        self.moment.at
    }

    async fn carry_out(
        &mut self,
        effect: Effect,
        signals: &mut Signals,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> Event {
        match effect {
            Effect::Look(link) => self.look(link, tell).await,
            Effect::TakeUp(link) => self.take_up(link, signals, tell).await,
            Effect::Check(link) => self.check(link, signals, tell).await,
            Effect::Run(link) => self.run_link(link, signals, tell).await,
            Effect::Rest(link) => self.rest(link, signals, tell).await,
            Effect::Judge(link) => self.judge(link, signals, tell).await,
            Effect::Stop => self.stop(signals, tell).await,
            Effect::Finish => Event::Leave,
        }
    }

    async fn look(&mut self, link: usize, tell: &mut (dyn FnMut(Note) + Send)) -> Event {
        self.summary = None;
        self.reason = None;
        self.link_began = self.pass_time();
        if self.pod.is_none() {
            self.pod = self.tether.pod_of_links(&self.vehicle).await.ok();
        }
        let pod = self.pod.as_ref();
        let all = self.unchanged.standings(&self.links, &self.record, pod).await;
        let Some((standing, why)) = all.into_iter().nth(link) else { return Event::Leave };
        let place = self.place(link);
        match standing {
            Standing::Holds { .. } if why.is_empty() => {}
            Standing::Holds { .. } => tell(Note::Said(format!("{place}: {why}; skipped"))),
            Standing::InFlight => tell(Note::Said(format!("{place}: {why}; it is taken up"))),
            Standing::ToRun => {
                let work = self.links.get(link).map(|link| link.link.work.told());
                let work = work.unwrap_or_default();
                tell(Note::Said(format!("{place}: {work} ({why})")));
            }
        }
        Event::Stands(standing)
    }

    /// A link by its number and its name.
    pub(super) fn place(&self, link: usize) -> String {
        let name = self.links.get(link).map_or("", |link| link.link.name.as_str());
        format!("link {}/{} {name}", link + 1, self.links.len())
    }

    /// Keeps the record in step with the state.
    fn keep_record(&mut self, before: &State, state: &State, tell: &mut (dyn FnMut(Note) + Send)) {
        let now = self.tether.clock().now();
        if let (None, Some(end)) = (before.end(), state.end()) {
            self.comes_to(end, now, tell);
        }
        if let State::Over { end: Some(End::Paused(link)), .. } = state
            && let Some(name) = self.links.get(*link).map(|link| link.link.name.clone())
            && (!state.may_still_bill() || self.leaves(*link))
            && let Some(record) = self.record.of_mut(&name)
        {
            record.paused_at = Some(now);
        }
        self.record.pod_may_still_be_running = state.may_still_bill();
        self.save(tell);
    }

    fn leaves(&self, link: usize) -> bool {
        let end = self.links.get(link).map(|link| link.link.end);
        end == Some(LinkEnd::Pause { stops: false })
    }

    fn comes_to(&mut self, end: End, now: DateTime<Utc>, tell: &mut (dyn FnMut(Note) + Send)) {
        let reason =
            self.reason.clone().unwrap_or_else(|| "for no reason that is known".to_owned());
        let (word, why) = match end {
            End::Done => ("done", None),
            End::Paused(_) => ("paused", None),
            End::Failed(link) => {
                let why = format!("{}: {reason}", self.place(link));
                self.failed(link, &reason, now);
                tell(Note::Said(format!(
                    "{why}; the campaign ends here and the pod is being stopped"
                )));
                ("failed", Some(why))
            }
            End::Interrupted => {
                let way =
                    "ending in order: the pod is being stopped; once more (Ctrl-C) leaves at once";
                tell(Note::Said(way.to_owned()));
                ("interrupted", Some("a person ended it".to_owned()))
            }
            End::Refused(link) => {
                let why = format!("{}: {reason}", self.place(link));
                tell(Note::Said(format!("{why}; nothing was changed")));
                ("refused", Some(why))
            }
        };
        self.record.state = word.to_owned();
        self.record.reason = why;
    }

    /// Records that a link failed. One whose pod went off under it stays in flight: what its job came to
    /// is on the volume, and the next run looks there before it launches anything.
    fn failed(&mut self, link: usize, reason: &str, now: DateTime<Utc>) {
        let pod_went_off =
            self.summary.as_ref().is_some_and(|summary| !summary.pod_may_still_be_running);
        let Some(name) = self.links.get(link).map(|link| link.link.name.clone()) else { return };
        if let Some(record) = self.record.of_mut(&name) {
            record.reason = Some(reason.to_owned());
            if record.outcome == Outcome::InFlight && !pod_went_off {
                record.outcome = Outcome::Failed;
                record.ended_at = Some(now);
            }
        }
    }

    /// Writes the record; what keeps it from being written holds up nothing that was begun.
    pub(super) fn save(&mut self, tell: &mut (dyn FnMut(Note) + Send)) {
        let written = self.record.write();
        let Some(news) = self.record.unwritten.note("the campaign's record", written) else {
            return;
        };
        if let Err(why) = &news {
            self.record.trouble(why);
        }
        let (Ok(said) | Err(said)) = news;
        tell(Note::Said(said));
    }
}
