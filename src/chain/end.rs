//! The end of a campaign: the stop, the laptop's fuse, the last words.

use super::run::{Runner, Signals};
use super::state::{End, Event, State, Terms, exit_code};
use crate::notify::{Notice, NoticeKind, SETTLE, SETTLE_IN_HASTE};
use crate::supervise::{self, Note, call_off_fuse, stop_pause};
use std::time::Duration;

impl Runner<'_> {
    /// Asks for the stop once and waits for it, as a supervised run does at its end.
    pub(super) async fn stop(
        &mut self,
        signals: &mut Signals,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> Event {
        let (tether, vehicle) = (self.tether, self.vehicle.name.0.clone());
        let known = self.pod.as_ref().map(|pod| pod.id.clone());
        let pause = stop_pause(self.stops, tether.settings().off);
        self.stops += 1;
        let stop = async {
            tokio::time::sleep(pause).await;
            tether.stop_known_pod(&vehicle, known.as_ref()).await
        };
        let stopped = tokio::select! {
            stopped = stop => stopped,
            () = supervise::leave(signals) => {
                self.heard = Some(supervise::Event::Leave);
                return Event::Leave;
            }
        };
        match stopped {
            Ok(answer) => {
                let confirmed = answer.is_off();
                tell(Note::Said(answer.message.clone()));
                if !confirmed {
                    self.record.trouble(format!("stop: {}", answer.message));
                }
                let refused = !confirmed && answer.needs_a_person;
                self.record.stop = Some(answer.message);
                if refused { Event::StopRefused } else { Event::StopAsked { confirmed } }
            }
            Err(failure) => {
                self.record.trouble(format!("stop: {}", failure.message));
                tell(Note::Said(format!("the stop failed: {}", failure.message)));
                Event::StopAsked { confirmed: false }
            }
        }
    }

    /// What people are told of a step.
    pub(super) fn notify(&self, before: &State, after: &State) {
        let name = &self.record.campaign;
        let why = self.record.reason.as_deref().unwrap_or("for no reason that is known");
        let (kind, text) = match (before, after) {
            (
                State::Stopping(end, supervise::State::Stopping { tries: 0, .. }),
                State::Stopping(..),
            ) if before != after => {
                let what =
                    "the stop of its pod is not confirmed; it bills, and the stop is asked again";
                (NoticeKind::StopFailed, format!("{} {what}", told(*end)))
            }
            (State::Stopping(..), State::Over { end: Some(_), stop_confirmed: true }) => {
                let stop = self.record.stop.clone();
                (NoticeKind::Stopped, stop.unwrap_or_else(|| "the pod is off the bill".to_owned()))
            }
            (State::Stopping(end, _), State::Over { end: Some(_), stop_confirmed: false }) => {
                let what =
                    "the stop is given up; THE POD MAY STILL BILL: stop it in the RunPod console";
                (NoticeKind::StopFailed, format!("{}; {what}", told(*end)))
            }
            // What a link's own run was told is said by it.
            (State::Running { .. } | State::TakingUp(_), State::Over { end: None, .. }) => return,
            (_, State::Over { end: None, .. }) if self.has_begun => (
                NoticeKind::StopFailed,
                format!(
                    "it was told to leave at once; the pod was not stopped and bills: podtether stop --vehicle {}",
                    self.record.vehicle
                ),
            ),
            (before, after) if before.end().is_none() => match after.end() {
                Some(End::Done) => {
                    (NoticeKind::Ended, "every link is done; the pod is being stopped".into())
                }
                Some(End::Paused(_)) => {
                    let bills = matches!(after, State::Over { .. });
                    let pod = if bills { "is left running and bills" } else { "is being stopped" };
                    (NoticeKind::Ended, format!("it is at a stop point; the pod {pod}"))
                }
                Some(End::Interrupted) => {
                    (NoticeKind::Ended, "a person ended it; the pod is being stopped".into())
                }
                Some(End::Failed(_)) => {
                    (NoticeKind::Failed, format!("{why}; the pod is being stopped"))
                }
                Some(End::Refused(_)) => {
                    (NoticeKind::Failed, format!("{why}; nothing was changed, the pod may bill"))
                }
                None => return,
            },
            _ => return,
        };
        let text = format!("campaign {name}: {text}");
        self.options.notifier.send(&Notice::of(kind, &self.record.vehicle, text));
    }

    /// Calls off what has nothing left to stop, and writes the last words.
    pub(super) async fn finish(
        &mut self,
        state: &State,
        terms: &Terms,
        tell: &mut (dyn FnMut(Note) + Send),
    ) {
        // Before the last word: who dies in between is taken up again, and then this is done.
        if !state.may_still_bill() {
            let claim = self.claim.as_ref();
            call_off_fuse(self.tether, &self.vehicle, true, claim, tell).await;
        } else if let State::Over { end: Some(End::Paused(_)), .. } = state {
            self.leave_pod(tell).await;
        }
        if state.end().is_none() {
            self.record.state = "left".to_owned();
            let left = "it was told to leave at once; the pod was not stopped";
            self.record.reason = Some(left.to_owned());
        }
        self.record.ended_at = Some(self.tether.clock().now());
        self.record.process_exit_code = Some(exit_code(state, terms));
        self.save(tell);
        let was_left = state.end().is_none();
        let at_most = if was_left { SETTLE_IN_HASTE } else { SETTLE };
        let lost = self.options.notifier.settle(at_most).await;
        if !lost.is_empty() {
            lost.iter().for_each(|error| self.record.trouble(format!("notify: {error}")));
            self.save(tell);
        }
    }

    /// The pod goes on without anybody: no silence of ours is to end it, but its idle time and the
    /// laptop's fuse are.
    async fn leave_pod(&mut self, tell: &mut (dyn FnMut(Note) + Send)) {
        let Some(pod) = self.pod.clone() else { return };
        if let Err(failure) = self.tether.renew_lease(&self.vehicle, &pod, Duration::ZERO).await {
            self.record.trouble(format!("lease: {}", failure.message));
        }
        tell(Note::Said(format!(
            "pod {} is left running and bills; its watchdog stops it after idle_minutes without use, and the laptop's fuse, where armed, at its time",
            pod.id
        )));
    }
}

const fn told(end: End) -> &'static str {
    match end {
        End::Done => "every link is done;",
        End::Paused(_) => "it is at a stop point;",
        End::Failed(_) => "a link failed;",
        End::Interrupted => "a person ended it;",
        End::Refused(_) => "a link could not be taken up;",
    }
}
