//! The thin loop around [`super::state`]: turns the world's answers into events, carries out effects,
//! and keeps the summary on disk true at every step.

use super::capture::capture;
use super::follow::Follower;
use super::fuse;
use super::notices::{self, Spending};
use super::options::{Note, Options};
use super::patience::{self, CAPTURE_MAX, MAX_STOPS, later, stop_pause};
use super::refused::refused;
use super::state::{self, Effect, End, Event, State, Terms};
use super::summary::{Spec, Summary};
use super::vigil;
use super::watched::Watched;
use crate::apply::OffSettings;
use crate::domain::{Ceiling, JobEnd, JobId, JobState, Pod, Vehicle};
use crate::error::{Failure, FailureKind};
use crate::ops::Tether;
use chrono::{DateTime, Utc};
use std::time::Duration;
use tokio::sync::mpsc;

/// Signals, as they reach the loop.
pub type Signals = mpsc::UnboundedReceiver<Event>;

/// Runs a job under supervision. Returns the summary, whose `process_exit_code` is the outcome, and
/// the points of the reward curve.
pub async fn run(
    tether: &Tether,
    options: &Options,
    signals: &mut Signals,
    tell: &mut (dyn FnMut(Note) + Send),
) -> (Summary, Vec<(u64, f64)>) {
    let started_at = tether.clock().now();
    let spec = Spec {
        vehicle: options
            .job
            .vehicle
            .clone()
            .unwrap_or_else(|| tether.config().default_vehicle.0.clone()),
        name: options.job.name.clone(),
        command: options.job.command.clone(),
        workdir: options.job.workdir.clone(),
        max_runtime_sec: options.job.max_runtime_sec,
        sync_subdir: options.sync_subdir.clone(),
        no_stop: options.no_stop,
    };
    let mut summary = Summary::new(tether.cloud_name(), spec, started_at);
    summary.summary_path.clone_from(&options.summary_path);

    // The pod must run already, and the plan must have a finite end, before anything is spent.
    let end = end_of_job(options, tether.settings().off);
    let job = match tether.plan_job(&options.job, end).await {
        Ok(job) => job,
        Err(failure) => return (refused(summary, tether, options, failure), Vec::new()),
    };
    tell(Note::Said(format!(
        "plan: job {} on pod {}, ceiling {} s, worst case {}",
        job.id,
        job.pod.id,
        job.ceiling.as_secs(),
        job.worst_case().total(),
    )));
    if let Some(told) = tether.receipts_told(&job.vehicle) {
        tell(Note::Said(told));
    }
    for warning in tether.warnings() {
        tell(Note::Said(format!("note: {warning}")));
    }
    let longest = job.ceiling.duration()
        + Duration::from_secs(u64::from(Ceiling::KILL_GRACE_SEC))
        + options.backstop;
    let max_wait = options.max_wait.unwrap_or(longest);
    let deadline = later(started_at, max_wait);
    let began = tether.clock().monotonic();
    let terms = Terms {
        deadline,
        no_stop: options.no_stop,
        max_stops: MAX_STOPS,
        stop_for: patience::stop_for(tether.settings().off),
    };
    summary.set_terms(terms);
    let over = later(deadline, patience::last_part(tether.settings().off));
    if let Err(failure) = fuse::arm(tether, &job.vehicle, &job.pod, over, tell).await {
        return (refused(summary, tether, options, failure), Vec::new());
    }
    summary.job_id = Some(job.id.to_string());
    let default_path = || job.vehicle.local_log_dir.join(format!("supervise-{}.json", job.id));
    summary.summary_path = Some(options.summary_path.clone().unwrap_or_else(default_path));
    summary.pod_id = Some(job.pod.id.clone());
    summary.stops_by = (!options.no_stop).then_some(over);
    save(&mut summary, tell);
    let vigil = vigil::begin(&summary, &job.vehicle, &job.pod, tell).await;

    let mut run = Run {
        tether,
        options,
        vehicle: &job.vehicle,
        pod: &job.pod,
        id: &job.id,
        ceiling: job.ceiling,
        deadline,
        launched_at: tether.clock().now(),
        stops: 0,
        follower: Follower::new(tether, &job.vehicle, &job.pod, &job.id),
        look_at_once: false,
        spending: Spending::new(tether, &options.notifier),
        summary,
    };
    let mut state = match tether.launch(&job, &options.job).await {
        Ok(answer) => {
            tell(Note::Said(format!("launched: {}", answer.job_dir)));
            State::Following
        }
        Err(failure) => run.after_a_failed_launch(failure, tell).await,
    };
    notices::tell(&options.notifier, &State::Following, &state, &run.summary);
    let mut effect = match &state {
        State::Following => Effect::Look,
        _ => Effect::Capture,
    };
    while effect != Effect::Finish {
        let event = run.carry_out(effect, signals, tell).await;
        // C02: a wall clock that is set back does not put the deadline off.
        let elapsed = tether.clock().monotonic().saturating_sub(began);
        let now = tether.clock().now().max(later(started_at, elapsed));
        let before = state;
        (state, effect) = state::next(&before, &event, now, terms);
        run.record(&state, options.no_stop);
        save(&mut run.summary, tell);
        notices::tell(&options.notifier, &before, &state, &run.summary);
    }
    let curve = run.follower.curve();
    let mut summary = run.summary;
    let code = state::exit_code(&state, options.no_stop);
    // A capture that is not whole is no success, whatever the job said.
    let code = if code == 0 && !summary.capture_complete { 1 } else { code };
    summary.ended_at = Some(tether.clock().now());
    summary.process_exit_code = Some(code);
    save(&mut summary, tell);
    vigil::end(vigil, &summary);
    fuse::call_off(tether, &job.vehicle, &summary, tell).await;
    if notices::settle(&options.notifier, &state, &mut summary).await {
        save(&mut summary, tell);
    }
    (summary, curve)
}

/// What comes after the job, each part for as long as it may take.
fn end_of_job(options: &Options, off: OffSettings) -> JobEnd {
    match options.no_stop {
        true => JobEnd::Left,
        false => JobEnd::Supervised {
            max_wait: options.max_wait,
            backstop: options.backstop,
            capture: CAPTURE_MAX,
            stop: patience::longest_stop(off),
        },
    }
}

fn save(summary: &mut Summary, tell: &mut (dyn FnMut(Note) + Send)) {
    if let Err(error) = summary.write() {
        tell(Note::Said(format!("the summary could not be written: {error}")));
    }
}

struct Run<'a> {
    tether: &'a Tether,
    options: &'a Options,
    vehicle: &'a Vehicle,
    pod: &'a Pod,
    id: &'a JobId,
    ceiling: Ceiling,
    deadline: DateTime<Utc>,
    launched_at: DateTime<Utc>,
    follower: Follower<'a>,
    /// Whether the next look is not to wait for the end of the job.
    look_at_once: bool,
    spending: Spending<'a>,
    /// How often a stop was asked.
    stops: u32,
    summary: Summary,
}

impl Run<'_> {
    /// F04: a launch whose answer was lost is looked up by the job's id, never sent again.
    async fn after_a_failed_launch(
        &mut self,
        failure: Failure,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> State {
        self.summary.trouble("launch", &failure);
        tell(Note::Said(format!("the launch gave no good answer: {}", failure.message)));
        let answer_was_lost =
            matches!(failure.kind, FailureKind::SshUnreachable | FailureKind::Timeout);
        for _ in 0..if answer_was_lost { 5 } else { 0 } {
            match self.follower.look().await {
                Ok((JobState::NotFound, _)) => break,
                // Placed files look like a job that starts; only one that was launched goes on.
                Ok((state, _)) if !matches!(state, JobState::Unknown | JobState::Starting) => {
                    tell(Note::Said(format!("the job did start: {state}")));
                    self.summary.adopted_after_launch_timeout = true;
                    return State::Following;
                }
                Ok(_) | Err(_) => tokio::time::sleep(Duration::from_secs(2)).await,
            }
        }
        State::Capturing(End::LaunchFailed)
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
        let left = (self.deadline - self.tether.clock().now()).to_std().unwrap_or_default();
        // After lost contact anything may be so: look at once, do not wait for an end.
        let wait = if std::mem::take(&mut self.look_at_once) {
            Duration::ZERO
        } else {
            self.options.interval.min(left)
        };
        tokio::select! {
            () = self.spending.beside(self.follower.hold(wait), &self.vehicle.name.0) => {}
            event = signals.recv() => return event.unwrap_or(Event::Leave),
        }
        Watched::of(self.tether, self.options, self.vehicle, self.follower.pod()).renew().await;
        match self.follower.look().await {
            Ok((state, exit_code)) => {
                self.summary.state = Some(state.to_string());
                self.summary.exit_code = exit_code;
                self.summary.latest_metrics = self.follower.latest();
                let elapsed =
                    (self.tether.clock().now() - self.launched_at).to_std().unwrap_or_default();
                tell(Note::Progress {
                    state,
                    metrics: self.follower.latest(),
                    elapsed,
                    ceiling: self.ceiling,
                    cost: self.pod.price.known().map(|rate| rate.cost_of(elapsed)),
                });
                Event::Saw(state)
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
