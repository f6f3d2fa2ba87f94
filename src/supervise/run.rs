//! The thin loop around [`super::state`]: turns the world's answers into events, carries out effects,
//! and keeps the summary on disk true at every step.

use super::capture::capture;
use super::follow::Follower;
use super::fuse;
use super::meanwhile::Meanwhile;
use super::notices::{self, Spending};
use super::options::{Note, Options};
use super::patience::{CAPTURE_MAX, later, stop_pause};
use super::risk::Risk;
use super::slept::Slept;
use super::state::{self, Effect, End, Event, State, Terms};
use super::summary::Summary;
use super::vigil;
use super::watched::Watched;
use crate::domain::{Ceiling, JobId, JobState, Pod, Vehicle};
use crate::error::{Failure, FailureKind};
use crate::ops::Tether;
use crate::ops::vigil::Kept;
use chrono::{DateTime, Utc};
use std::time::Duration;
use tokio::sync::mpsc;

/// Signals, as they reach the loop.
pub type Signals = mpsc::UnboundedReceiver<Event>;

/// Writes the summary; what keeps it from being written holds up nothing.
pub(super) fn save(summary: &mut Summary, tell: &mut (dyn FnMut(Note) + Send)) {
    if let Err(error) = summary.write() {
        tell(Note::Said(format!("the summary could not be written: {error}")));
    }
}

/// A run whose job was launched, or may have been.
pub(super) struct Run<'a> {
    pub(super) tether: &'a Tether,
    options: &'a Options,
    pub(super) vehicle: &'a Vehicle,
    pub(super) pod: &'a Pod,
    id: &'a JobId,
    pub(super) ceiling: Ceiling,
    terms: Terms,
    pub(super) launched_at: DateTime<Utc>,
    /// When this process took it up, on both clocks.
    pub(super) began: (DateTime<Utc>, Duration),
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
            began: (now, tether.clock().monotonic()),
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
        notices::tell(&options.notifier, &State::Following, &state, &self.summary);
        self.record(&state, options.no_stop);
        let mut effect = state.effect();
        while effect != Effect::Finish {
            let event = self.carry_out(effect, signals, tell).await;
            self.after_sleep(tell);
            // C02: a wall clock that is set back does not put the deadline off.
            let (at, monotonic) = self.began;
            let elapsed = tether.clock().monotonic().saturating_sub(monotonic);
            let now = tether.clock().now().max(later(at, elapsed));
            let before = state;
            (state, effect) = state::next(&before, &event, now, terms);
            if state == State::Capturing(End::Interrupted) && before == State::Following {
                let way = "ending in order: what there is comes home, then the pod is stopped; once more (Ctrl-C) leaves at once";
                tell(Note::Said(way.to_owned()));
            }
            self.record(&state, options.no_stop);
            save(&mut self.summary, tell);
            notices::tell(&options.notifier, &before, &state, &self.summary);
        }
        let curve = self.follower.curve();
        let mut summary = self.summary;
        let code = state::exit_code(&state, options.no_stop);
        // A capture that is not whole is no success, whatever the job said.
        let code = if code == 0 && !summary.capture_complete { 1 } else { code };
        // Before the last word: who is killed in between is taken up, and calls it off then.
        fuse::call_off(tether, self.vehicle, &summary, tell).await;
        summary.ended_at = Some(tether.clock().now());
        summary.process_exit_code = Some(code);
        save(&mut summary, tell);
        vigil::end(vigil, &summary);
        if notices::settle(&options.notifier, &state, &mut summary).await {
            save(&mut summary, tell);
        }
        (summary, curve)
    }

    /// F04: a launch whose answer was lost is looked up by the job's id, never sent again.
    pub(super) async fn after_a_failed_launch(
        &mut self,
        failure: Failure,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> State {
        self.summary.trouble("launch", &failure);
        tell(Note::Said(format!("the launch gave no good answer: {}", failure.message)));
        let answer_was_lost =
            matches!(failure.kind, FailureKind::SshUnreachable | FailureKind::Timeout);
        let has_started = answer_was_lost && self.was_launched(tell).await == Some(true);
        self.summary.adopted_after_launch_timeout = has_started;
        if has_started { State::Following } else { State::Capturing(End::LaunchFailed) }
    }

    /// Whether a job was launched whose launch nobody saw end; `None` when the pod does not tell.
    pub(super) async fn was_launched(
        &mut self,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> Option<bool> {
        let mut told = None;
        for _ in 0..5 {
            match self.follower.look().await.map(|found| found.state) {
                Ok(JobState::NotFound) => return Some(false),
                // Placed files look like a job that starts; only one that was launched goes on.
                Ok(JobState::Starting) => told = Some(false),
                Ok(JobState::Unknown) | Err(_) => {}
                Ok(state) => {
                    tell(Note::Said(format!("the job did start: {state}")));
                    return Some(true);
                }
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        told
    }

    async fn carry_out(
        &mut self,
        effect: Effect,
        signals: &mut Signals,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> Event {
        match effect {
            Effect::Look => self.follow(signals, tell).await,
            Effect::AskProvider => self.ask_provider(signals, tell).await,
            Effect::Capture => {
                self.meanwhile.end();
                let mut left = false;
                let mut late = false;
                let watched =
                    Watched::of(self.tether, self.options, self.vehicle, self.follower.pod());
                tokio::select! {
                    // In one order always, so that a simulated run can be told again.
                    biased;
                    () = leave(signals) => left = true,
                    () = tokio::time::sleep(CAPTURE_MAX) => late = true,
                    () = capture(self.tether, self.options, self.vehicle, self.id, &mut self.summary, tell) => {}
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
        let left = (self.terms.deadline - self.tether.clock().now()).to_std().unwrap_or_default();
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
        Watched::of(self.tether, self.options, self.vehicle, self.follower.pod()).renew().await;
        match self.follower.look().await {
            Ok(found) => {
                self.look_at_once = false;
                self.saw(&found, tell);
                Event::Saw(found.state)
            }
            Err(failure) => {
                self.summary.trouble("follow", &failure);
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
        let answer = self.tether.pod_by_id(&self.pod.id).await;
        let event = match answer {
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
                self.summary.trouble("follow", &failure);
                Event::Tick
            }
        };
        tokio::select! {
            () = tokio::time::sleep(self.options.interval.min(Duration::from_secs(5))) => event,
            signal = signals.recv() => signal.unwrap_or(Event::Leave),
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
                self.summary.trouble("stop", &failure);
                tell(Note::Said(format!("the stop failed: {}", failure.message)));
                Event::StopAsked { confirmed: false }
            }
        }
    }

    /// Keeps the summary in step with the state.
    fn record(&mut self, state: &State, no_stop: bool) {
        let end = match state {
            State::Following => None,
            State::Capturing(end) | State::Stopping { end, .. } => Some(end),
            State::Over { end, .. } => end.as_ref(),
        };
        match end {
            Some(End::MaxWait) => self.summary.force_stopped = !no_stop,
            Some(End::PodOff(status)) => self.summary.trouble(
                "follow",
                format!("the pod was found {status} before the job was seen to end"),
            ),
            _ => {}
        }
        self.summary.pod_may_still_be_running =
            !matches!(state, State::Over { stop_confirmed: true, .. });
    }
}

/// Waits for the word to leave at once: SIGTERM, or SIGINT once the orderly end has begun.
async fn leave(signals: &mut Signals) {
    loop {
        match signals.recv().await {
            Some(Event::Leave | Event::Interrupt) => return,
            Some(_) => {}
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_beyond_all_time_is_no_overflow() {
        let at = DateTime::UNIX_EPOCH;
        assert_eq!(later(at, Duration::MAX), DateTime::<Utc>::MAX_UTC);
        assert_eq!((later(at, Duration::from_secs(60)) - at).num_seconds(), 60);
    }
}
