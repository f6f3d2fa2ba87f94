//! The thin loop around [`super::state`]: turns the world's answers into events, carries out effects,
//! and keeps the summary on disk true at every step.

use super::capture::capture;
use super::follow::Follower;
use super::fuse;
use super::meanwhile::Meanwhile;
use super::notices::{self, Spending};
use super::options::{Note, Options};
use super::patience::{CAPTURE_MAX, stop_pause};
use super::record;
use super::risk::Risk;
use super::slept::Slept;
use super::state::{self, Effect, End, Event, Moment, State, Terms};
use super::summary::Summary;
use super::vigil;
use super::watched::Watched;
use crate::domain::{Ceiling, JobId, Pod, Vehicle};
use crate::error::{Failure, FailureKind};
use crate::ops::vigil::Kept;
use crate::ops::{PlannedJob, Tether};
use chrono::{DateTime, Utc};
use std::time::Duration;
use tokio::sync::mpsc;

/// Signals, as they reach the loop.
pub type Signals = mpsc::UnboundedReceiver<Event>;

/// Writes the summary; what keeps it from being written holds up nothing, and is told once.
pub(super) fn save(summary: &mut Summary, tell: &mut (dyn FnMut(Note) + Send)) {
    let written = summary.write();
    let Some(news) = summary.unwritten.note("the summary", written) else { return };
    if let Err(why) = &news {
        summary.trouble("summary", why);
    }
    let (Ok(said) | Err(said)) = news;
    tell(Note::Said(said));
}

/// Between two looks for a job whose launch gave no answer.
const BETWEEN_LOOKS_FOR_A_JOB: Duration = Duration::from_secs(2);

/// A run whose job is to be launched, or was.
pub(super) struct Run<'a> {
    pub(super) tether: &'a Tether,
    options: &'a Options,
    pub(super) vehicle: &'a Vehicle,
    pub(super) pod: &'a Pod,
    id: &'a JobId,
    pub(super) ceiling: Ceiling,
    terms: Terms,
    pub(super) launched_at: DateTime<Utc>,
    /// The moment that counts for the deadline.
    pub(super) moment: Moment,
    /// What is to be launched, until it is.
    pub(super) to_launch: Option<&'a PlannedJob>,
    /// Whether a campaign goes on with the pod.
    pub(super) is_link: bool,
    pub(super) follower: Follower<'a>,
    /// Whether the next look is not to wait for the end of the job.
    pub(super) look_at_once: bool,
    pub(super) spending: Spending<'a>,
    pub(super) meanwhile: Meanwhile<'a>,
    pub(super) slept: Slept,
    pub(super) risk: Risk,
    /// How often a stop was asked.
    stops: u32,
    pub(super) summary: Summary,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        tether: &'a Tether,
        options: &'a Options,
        (vehicle, pod, id, ceiling): (&'a Vehicle, &'a Pod, &'a JobId, Ceiling),
        terms: Terms,
        summary: Summary,
    ) -> Self {
        let now = tether.clock().now();
        Self {
            tether,
            options,
            vehicle,
            pod,
            id,
            ceiling,
            terms,
            launched_at: if summary.resumed > 0 { summary.started_at } else { now },
            moment: Moment::new(now, tether.clock().since_boot()),
            to_launch: None,
            is_link: false,
            stops: 0,
            follower: Follower::new(tether, vehicle, pod, id),
            // The first look tells what is armed.
            look_at_once: true,
            spending: Spending::new(tether, &options.notifier),
            meanwhile: Meanwhile::new(tether, options, vehicle, id),
            slept: Slept::from_now(tether),
            risk: Risk::default(),
            summary,
        }
    }

    /// Goes on from `state` until nothing is left to do.
    pub(super) async fn go_on(
        mut self,
        mut state: State,
        vigil: Option<Kept>,
        signals: &mut Signals,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> (Summary, Vec<(u64, f64)>) {
        let (tether, options, terms) = (self.tether, self.options, self.terms);
        let mut effect = state.effect();
        while effect != Effect::Finish {
            let event = self.carry_out(effect, signals, tell).await;
            self.after_sleep(tell);
            self.moment = self.moment.pass(tether.clock().now(), tether.clock().since_boot());
            let before = state;
            (state, effect) = state::next(&before, &event, self.moment.at, terms);
            if state == State::Capturing(End::Interrupted) && before.end().is_none() {
                let then = match options.no_stop {
                    // Of a link: whoever runs the campaign says what becomes of the pod.
                    true if self.is_link => "the campaign ends",
                    true => "the pod is left running and bills (--no-stop)",
                    false => "the pod is stopped",
                };
                tell(Note::Said(format!(
                    "ending in order: what there is comes home, then {then}; once more (Ctrl-C) leaves at once"
                )));
            }
            self.record(&before, &state, tell);
            self.summary.fuse_claim = tether.claim(self.vehicle).or(self.summary.fuse_claim.take());
            save(&mut self.summary, tell);
            notices::tell(&options.notifier, &before, &state, &self.summary, self.is_link);
        }
        // Before the last word: who dies in between is taken up again, and then this is done.
        if !state.may_still_bill() {
            let claim = self.summary.fuse_claim.as_ref();
            fuse::call_off(tether, self.vehicle, state.asked_for_all(), claim, tell).await;
        }
        let curve = self.follower.curve();
        let mut summary = self.summary;
        let code = state::exit_code(&state, options.no_stop, summary.capture_complete);
        summary.ended_at = Some(tether.clock().now());
        summary.process_exit_code = Some(code);
        save(&mut summary, tell);
        record::over(tether, self.vehicle, self.id, &summary).await;
        vigil::end(vigil, &summary);
        if notices::settle(&options.notifier, &state, &mut summary).await {
            save(&mut summary, tell);
        }
        (summary, curve)
    }

    /// A pod that is to go on after this has no lease, unless somebody else of ours goes on with it.
    fn watched(&self) -> Watched<'a> {
        let leaves = self.options.no_stop && !self.is_link;
        let lease = (!leaves).then_some(self.options.interval);
        Watched::of(self.tether, self.vehicle, self.follower.pod(), lease)
    }

    async fn launch(&mut self, job: &PlannedJob, tell: &mut (dyn FnMut(Note) + Send)) -> Event {
        let launched = self.tether.launch(job, &self.options.job).await;
        self.launched_at = self.tether.clock().now();
        match launched {
            Ok(answer) => {
                tell(Note::Said(format!("launched: {}", answer.job_dir)));
                Event::Launched
            }
            Err(failure) => {
                self.summary.trouble("launch", failure.apart_from_the_bill());
                tell(Note::Said(format!("the launch gave no good answer: {}", failure.message)));
                let answer_lost =
                    matches!(failure.kind, FailureKind::SshUnreachable | FailureKind::Timeout);
                Event::NotLaunched { answer_lost }
            }
        }
    }

    async fn carry_out(
        &mut self,
        effect: Effect,
        signals: &mut Signals,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> Event {
        match effect {
            Effect::Launch => match self.to_launch.take() {
                Some(job) => self.launch(job, tell).await,
                // Whoever has nothing to launch takes up what another process may have launched.
                None => Event::NotLaunched { answer_lost: true },
            },
            Effect::LookForJob => tokio::select! {
                () = tokio::time::sleep(BETWEEN_LOOKS_FOR_A_JOB) => self.look(tell).await,
                signal = signals.recv() => signal.unwrap_or(Event::Leave),
            },
            Effect::Look => self.follow(signals, tell).await,
            Effect::AskProvider => self.ask_provider(signals, tell).await,
            Effect::Capture => {
                self.meanwhile.end();
                let mut left = false;
                let mut late = false;
                let watched = self.watched();
                let of_job = (self.vehicle, Some(self.follower.pod()));
                tokio::select! {
                    // In one order always, so that a simulated run can be told again.
                    biased;
                    () = leave(signals) => left = true,
                    () = tokio::time::sleep(CAPTURE_MAX) => late = true,
                    () = capture(self.tether, self.options, of_job, self.id, &mut self.summary, tell) => {}
                    () = watched.keep() => {}
                }
                if late {
                    let minutes = CAPTURE_MAX.as_secs() / 60;
                    let why = format!(
                        "not done after {minutes} min and given up, so that the pod is stopped; what came is kept"
                    );
                    tell(Note::Said(format!("capture: {why}")));
                    self.summary.trouble("capture", why);
                }
                self.read_the_rest();
                if left { Event::Leave } else { Event::Captured }
            }
            Effect::Stop => {
                let tether = self.tether;
                let pause = stop_pause(self.stops, tether.settings().off);
                self.stops += 1;
                let stop = async {
                    tokio::time::sleep(pause).await;
                    tether.stop_known_pod(&self.vehicle.name.0, Some(&self.pod.id)).await
                };
                tokio::select! {
                    stopped = stop => self.stopped(stopped, tell),
                    () = leave(signals) => Event::Leave,
                }
            }
            Effect::Finish => Event::Tick,
        }
    }

    async fn follow(
        &mut self,
        signals: &mut Signals,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> Event {
        // C06: an interval never outlasts the deadline.
        let clock = self.tether.clock();
        let now = self.moment.pass(clock.now(), clock.since_boot()).at;
        let left = (self.terms.deadline - now).to_std().unwrap_or_default();
        // After lost contact anything may be so: look at once, do not wait for an end.
        let wait = if std::mem::take(&mut self.look_at_once) || self.follower.is_behind() {
            Duration::ZERO
        } else {
            self.options.interval.min(left)
        };
        if let Some(event) = self.wait(wait, signals, tell).await {
            return event;
        }
        self.after_sleep(tell);
        self.watched().renew().await;
        self.look(tell).await
    }

    async fn look(&mut self, tell: &mut (dyn FnMut(Note) + Send)) -> Event {
        match self.follower.look().await {
            Ok(found) => {
                self.look_at_once = false;
                self.saw(&found, tell);
                Event::Saw(found.state)
            }
            Err(failure) => {
                self.summary.trouble("follow", failure.apart_from_the_bill());
                tell(Note::Said(format!("the pod did not answer: {}", failure.message)));
                Event::NoContact
            }
        }
    }

    async fn ask_provider(
        &mut self,
        signals: &mut Signals,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> Event {
        // Before the question and not after it, so that the answer is fresh when it is acted on, and
        // two of them are apart.
        tokio::select! {
            () = tokio::time::sleep(self.options.interval.min(Duration::from_secs(5))) => {}
            signal = signals.recv() => return signal.unwrap_or(Event::Leave),
        }
        match self.tether.pod_by_id(&self.pod.id).await {
            Ok(Some(pod)) => {
                tell(Note::Said(format!("the provider says {}", pod.status)));
                let status = pod.status.clone();
                self.follower.move_to(pod);
                self.look_at_once = true;
                Event::Pod(status)
            }
            // A 404 is no proof that it is gone (A05); the deadline bounds the wait.
            Ok(None) => Event::Tick,
            Err(failure) => {
                self.summary.trouble("follow", failure.apart_from_the_bill());
                Event::Tick
            }
        }
    }

    fn stopped(
        &mut self,
        stopped: Result<crate::ops::StopAnswer, Failure>,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> Event {
        if self.summary.stop.is_some() {
            self.summary.stop_escalated = true;
        }
        match stopped {
            Ok(answer) => {
                let confirmed = answer.is_off();
                tell(Note::Said(answer.message.clone()));
                if answer.asked > 1 {
                    self.summary.stop_escalated = true;
                }
                if !confirmed {
                    self.summary.trouble("stop", &answer.message);
                }
                let refused = !confirmed && answer.needs_a_person;
                self.summary.stop = Some(answer);
                if refused { Event::StopRefused } else { Event::StopAsked { confirmed } }
            }
            Err(failure) => {
                self.summary.trouble("stop", failure.apart_from_the_bill());
                tell(Note::Said(format!("the stop failed: {}", failure.message)));
                Event::StopAsked { confirmed: false }
            }
        }
    }

    /// Keeps the summary in step with the state.
    fn record(&mut self, before: &State, state: &State, tell: &mut (dyn FnMut(Note) + Send)) {
        let is_resumed = self.summary.resumed > 0;
        match (before, state) {
            (State::Adopting { .. }, State::Following | State::Capturing(End::Job(_))) => {
                let state = self.summary.state.as_deref().unwrap_or("begun");
                tell(Note::Said(format!("the job did start: {state}")));
                self.summary.adopted_after_launch_timeout |= !is_resumed;
                // C07: the look that follows takes the lease with the pod's watchdog first.
                self.look_at_once = true;
            }
            (State::Adopting { .. }, State::Capturing(End::LaunchFailed)) if is_resumed => {
                tell(Note::Said("its job was never started, and is not started now".to_owned()));
                self.summary.trouble("resume", "its process ended before the job was started");
            }
            _ => {}
        }
        match state.end() {
            Some(End::MaxWait) => self.summary.force_stopped = !self.options.no_stop,
            Some(End::PodOff(status)) => self.summary.trouble(
                "follow",
                format!("the pod was found {status} before the job was seen to end"),
            ),
            _ => {}
        }
        self.summary.pod_may_still_be_running = state.may_still_bill();
    }
}

/// Waits for the word to leave at once: SIGTERM, a dead terminal, or a second SIGINT. A first one asks
/// for the orderly end that is under way.
pub(crate) async fn leave(signals: &mut Signals) {
    loop {
        match signals.recv().await {
            Some(Event::Leave) => return,
            Some(_) => tracing::warn!("the end in order is under way; once more leaves at once"),
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::patience::later;
    use super::*;

    #[test]
    fn a_deadline_beyond_all_time_is_no_overflow() {
        let at = DateTime::UNIX_EPOCH;
        assert_eq!(later(at, Duration::MAX), DateTime::<Utc>::MAX_UTC);
        assert_eq!((later(at, Duration::from_secs(60)) - at).num_seconds(), 60);
    }
}
