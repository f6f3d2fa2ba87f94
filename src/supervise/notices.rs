//! What a run tells people: that it ended, whether the pod was stopped, and that the budget is nearly
//! used up. Nothing here holds up a stop or changes an exit code.

use super::state::{End, State};
use super::summary::Summary;
use crate::domain::JobState;
use crate::notify::{Notice, NoticeKind, Notifier, SETTLE, SETTLE_IN_HASTE, Threshold};
use crate::ops::{SpendReport, Tether};
use std::pin::pin;
use std::time::Duration;

/// Between two looks at what was spent. The bill lags by an hour; what runs up is estimated.
const SPEND_EVERY: Duration = Duration::from_secs(300);

/// Tells what came of a step, if it is worth telling. Returns at once.
pub(super) fn tell(
    notifier: &Notifier,
    before: &State,
    after: &State,
    summary: &Summary,
    is_link: bool,
) {
    if notifier.is_silent() {
        return;
    }
    let job = summary.job_id.as_deref().unwrap_or("none");
    for (kind, words) in of_step(before, after, summary, is_link) {
        let text = format!("job {job}: {words}");
        notifier.send(&Notice::of(kind, &summary.spec.vehicle, text));
    }
}

/// Waits for what is under way, within bounds, and notes what did not get through. Returns whether
/// there was anything to note.
pub(super) async fn settle(notifier: &Notifier, state: &State, summary: &mut Summary) -> bool {
    let was_left = matches!(state, State::Over { end: None, .. });
    let at_most = if was_left { SETTLE_IN_HASTE } else { SETTLE };
    let errors = notifier.settle(at_most).await;
    errors.iter().for_each(|error| summary.trouble("notify", error));
    !errors.is_empty()
}

/// The notices of one step of the machine.
fn of_step(
    before: &State,
    after: &State,
    summary: &Summary,
    is_link: bool,
) -> Vec<(NoticeKind, String)> {
    let mut notices = Vec::new();
    if let (None, Some(end)) = (before.end(), after.end()) {
        notices.push(of_end(end, summary, is_link));
    }
    let pod = summary.pod_id.as_ref().map_or("of the run", |pod| pod.0.as_str());
    let last_error = || {
        let stops = summary.errors.iter().rev().find(|trouble| trouble.step == "stop");
        stops.map_or_else(String::new, |trouble| format!(" ({})", trouble.error))
    };
    match (before, after) {
        (State::Stopping { tries: 0, .. }, State::Stopping { .. }) => notices.push((
            NoticeKind::StopFailed,
            format!(
                "the stop of pod {pod} is not confirmed{}; it bills, and the stop is asked again",
                last_error()
            ),
        )),
        (State::Stopping { .. }, State::Over { end: Some(_), stop_confirmed: true }) => {
            let message = summary.stop.as_ref().map(|stop| stop.message.clone());
            notices.push((NoticeKind::Stopped, message.unwrap_or_else(|| format!("pod {pod}"))));
        }
        (State::Stopping { .. }, State::Over { end: Some(_), stop_confirmed: false }) => {
            notices.push((
                NoticeKind::StopFailed,
                format!(
                    "the run has given up stopping pod {pod}{}; IT MAY STILL BILL: stop it in the RunPod console",
                    last_error()
                ),
            ));
        }
        (_, State::Over { end: None, .. }) => notices.push((
            NoticeKind::StopFailed,
            format!(
                "supervise was told to leave at once; pod {pod} was not stopped and bills: podtether stop --vehicle {}",
                summary.spec.vehicle
            ),
        )),
        _ => {}
    }
    notices
}

fn of_end(end: &End, summary: &Summary, is_link: bool) -> (NoticeKind, String) {
    let name = &summary.spec.name;
    let code = summary.exit_code.map_or_else(String::new, |code| format!(", exit code {code}"));
    let metrics = summary.metrics.latest().map_or_else(String::new, |metrics| {
        let reward = metrics.mean_reward.map(|reward| format!(", reward {reward:.2}"));
        format!("; iteration {}{}", metrics.iteration, reward.unwrap_or_default())
    });
    let next = match summary.spec.no_stop {
        _ if is_link => "the campaign tells what comes next",
        true => "the pod is left running and bills",
        false => "results are brought home, then the pod is stopped",
    };
    let (kind, what) = match end {
        End::Job(JobState::Succeeded) => (NoticeKind::Ended, format!("{name} succeeded")),
        End::Job(state) => (NoticeKind::Failed, format!("{name} ended as {state}{code}")),
        End::MaxWait => (NoticeKind::Failed, format!("{name} did not end in time")),
        End::Interrupted => (NoticeKind::Ended, format!("{name} was ended by a person")),
        End::LaunchFailed => (NoticeKind::Failed, format!("the launch of {name} failed")),
        End::PodOff(status) => {
            let text = format!(
                "{name}: the pod was found {status} before the job was seen to end; it is off the bill"
            );
            return (NoticeKind::Failed, text);
        }
    };
    (kind, format!("{what}{metrics}; {next}"))
}

/// Keeps an eye on the budget beside a run, when there is one and somebody to tell.
pub(super) struct Spending<'a> {
    tether: &'a Tether,
    notifier: &'a Notifier,
    threshold: Threshold,
    looked_at: Option<Duration>,
}

impl<'a> Spending<'a> {
    pub(super) fn new(tether: &'a Tether, notifier: &'a Notifier) -> Self {
        Self { tether, notifier, threshold: Threshold::default(), looked_at: None }
    }

    fn is_due(&self) -> bool {
        let now = self.tether.clock().monotonic();
        let is_old = |at| now.saturating_sub(at) >= SPEND_EVERY;
        !self.notifier.is_silent()
            && self.tether.config().limits.budget_usd.is_some()
            && self.looked_at.is_none_or(is_old)
    }

    /// Waits as `wait` does, never longer, and looks at what was spent meanwhile when that is due.
    pub(super) async fn beside(&mut self, wait: impl Future<Output = ()>, vehicle: &str) {
        let mut wait = pin!(wait);
        if self.is_due() {
            tokio::select! {
                () = &mut wait => return,
                report = self.tether.spend_report() => {
                    self.looked_at = Some(self.tether.clock().monotonic());
                    match report {
                        Ok(report) => self.saw(&report, vehicle),
                        Err(failure) => tracing::info!(%failure, "what was spent is not known"),
                    }
                }
            }
        }
        wait.await;
    }

    fn saw(&mut self, report: &SpendReport, vehicle: &str) {
        let Some(budget) = report.budget_usd else { return };
        let Some(mark) = self.threshold.reached(report.total_usd, budget) else { return };
        let text = format!(
            "{} of limits.budget_usd {budget} is spent, more than {mark} % ({} window); {} more is promised, and {} an hour is on the bill now",
            report.total_usd,
            report.budget_window.as_str(),
            report.committed_usd,
            report.usd_per_hour_now,
        );
        self.notifier.send(&Notice::of(NoticeKind::AboutToExceed, vehicle, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::CloudName;
    use crate::supervise::summary::Spec;
    use chrono::DateTime;

    fn kinds(before: &State, after: &State) -> Vec<NoticeKind> {
        let spec = Spec {
            vehicle: "rover".to_owned(),
            name: "train".to_owned(),
            command: "true".to_owned(),
            workdir: None,
            max_runtime_sec: None,
            sync_subdir: None,
            no_stop: false,
            training: None,
        };
        let summary = Summary::new(CloudName::Local, spec, DateTime::UNIX_EPOCH);
        of_step(before, after, &summary, false).into_iter().map(|(kind, _)| kind).collect()
    }

    fn stopping(tries: u32) -> State {
        State::Stopping { end: End::MaxWait, tries, since: DateTime::UNIX_EPOCH }
    }

    /// A stop that is not confirmed is told at the first try, not after half an hour of them, and once.
    #[test]
    fn a_stop_that_is_not_confirmed_is_told_at_once_and_again_at_the_end() {
        let given_up = State::Over { end: Some(End::MaxWait), stop_confirmed: false };
        let off = State::Over { end: Some(End::MaxWait), stop_confirmed: true };
        assert_eq!(kinds(&stopping(0), &stopping(1)), [NoticeKind::StopFailed]);
        assert_eq!(kinds(&stopping(1), &stopping(2)), []);
        assert_eq!(kinds(&stopping(4), &given_up), [NoticeKind::StopFailed]);
        assert_eq!(kinds(&stopping(4), &off), [NoticeKind::Stopped]);
        let left = State::Over { end: None, stop_confirmed: false };
        for before in [State::Following, State::Capturing(End::MaxWait), stopping(0)] {
            assert_eq!(kinds(&before, &left), [NoticeKind::StopFailed], "{before:?}");
        }
    }

    #[test]
    fn every_end_is_told_once_when_it_is_seen() {
        for (end, kind) in [
            (End::Job(JobState::Succeeded), NoticeKind::Ended),
            (End::Job(JobState::Failed), NoticeKind::Failed),
            (End::Job(JobState::NotFound), NoticeKind::Failed),
            (End::MaxWait, NoticeKind::Failed),
            (End::Interrupted, NoticeKind::Ended),
            (End::LaunchFailed, NoticeKind::Failed),
        ] {
            let capturing = State::Capturing(end.clone());
            assert_eq!(kinds(&State::Following, &capturing), [kind], "{end:?}");
            assert_eq!(kinds(&capturing, &capturing), [], "{end:?}");
        }
        let off = State::Over { end: Some(End::PodOff("EXITED".into())), stop_confirmed: true };
        assert_eq!(kinds(&State::Following, &off), [NoticeKind::Failed]);
        assert_eq!(kinds(&State::Following, &State::Following), []);
    }
}
