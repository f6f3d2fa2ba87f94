//! Off the bill, and read back: a stop is asked until the provider shows EXITED, a terminate until
//! the pod is gone from every list. The answer to the request proves nothing (A01, A04).

use super::Ports;
use crate::cloud::{CloudError, CloudErrorKind};
use crate::domain::{PodId, PodStatus};
use crate::guard::ApprovedChange;
use chrono::{DateTime, Utc};
use std::time::Duration;

/// How an effect is read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffSettings {
    /// How long in all. In time, not in tries.
    pub budget: Duration,
    /// Between two reads.
    pub read_every: Duration,
    /// How long an accepted request may show no effect before it is asked again.
    pub ask_again_after: Duration,
}

impl Default for OffSettings {
    /// Fits into one MCP call of 50 seconds.
    fn default() -> Self {
        Self {
            budget: Duration::from_secs(40),
            read_every: Duration::from_secs(1),
            ask_again_after: Duration::from_secs(8),
        }
    }
}

/// What is known after a stop or a terminate was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffOutcome {
    /// The pod.
    pub pod: PodId,
    /// Whether the provider was seen to have it off the bill.
    pub confirmed: bool,
    /// The last status that was read; `None` when the pod was not in the last answer.
    pub observed: Option<PodStatus>,
    /// When that was read; `None` when no read succeeded.
    pub observed_at: Option<DateTime<Utc>>,
    /// How often it was asked.
    pub asked: u32,
    /// The last thing that went wrong.
    pub error: Option<CloudError>,
    /// What stands in the way for good, when nothing but a person can go on.
    pub blocked: Option<String>,
    /// Whether the provider refused the first request because the pod was off already (A08).
    pub was_off: bool,
}

/// What the pod was last seen to be.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    /// In the answer, with this status and lock.
    Pod(PodStatus, bool),
    /// 404.
    Absent,
    /// No read has succeeded yet.
    Nothing,
}

/// What to do next about a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Move {
    Confirmed,
    Blocked(String),
    Ask,
    Wait,
}

/// The decision, apart from the loop: what was seen, how the last request ended, how long ago.
fn next_move(
    seen: &Seen,
    last: Option<&CloudErrorKind>,
    since_asked: Duration,
    settings: OffSettings,
    delete: bool,
) -> Move {
    let verb = if delete { "terminate" } else { "stop" };
    match seen {
        Seen::Pod(PodStatus::Terminated, _) => return Move::Confirmed,
        // For a delete only a pod that is gone or TERMINATED is done.
        Seen::Pod(PodStatus::Exited, _) if !delete => return Move::Confirmed,
        Seen::Pod(_, true) if last == Some(&CloudErrorKind::Conflict) => {
            return Move::Blocked(format!(
                "the pod is locked: unlock it in the RunPod console, then {verb} it"
            ));
        }
        Seen::Pod(PodStatus::Error, _) if !delete && last == Some(&CloudErrorKind::Conflict) => {
            return Move::Blocked(
                "the pod is in status ERROR and cannot be stopped, only terminated; it may bill"
                    .to_owned(),
            );
        }
        _ => {}
    }
    match last {
        Some(CloudErrorKind::Auth) => Move::Blocked(format!(
            "the provider does not accept the API key: {verb} the pod in the RunPod console now, and store a valid key"
        )),
        Some(CloudErrorKind::Forbidden) => Move::Blocked(format!(
            "the API key may not {verb} this pod: {verb} it in the RunPod console now"
        )),
        // I09: the same request is refused every time, and a stop is never turned into a terminate.
        Some(CloudErrorKind::Validation) => Move::Blocked(format!(
            "the provider refuses to {verb} this pod: look in the RunPod console now"
        )),
        Some(CloudErrorKind::Retired) => Move::Blocked(format!(
            "this version of the provider's API is gone: {verb} the pod in the RunPod console now"
        )),
        Some(CloudErrorKind::RateLimited(wait)) => {
            let wait = wait.unwrap_or(settings.ask_again_after);
            if since_asked >= wait { Move::Ask } else { Move::Wait }
        }
        // A request that certainly had no effect, or may have had none, is asked again sooner.
        Some(_) if since_asked >= settings.read_every * 2 => Move::Ask,
        None if since_asked >= settings.ask_again_after => Move::Ask,
        _ => Move::Wait,
    }
}

/// How long to wait before the next read. Reads become rarer, so that they never eat the quota that
/// the stop itself needs, and while the provider asks for quiet there are none (A09).
fn pause(settings: OffSettings, reads: u32, limited_for: Duration, left: Duration) -> Duration {
    let stretched = settings.read_every * (1 + reads / READS_AT_ONE_PACE).min(SLOWEST);
    // The last read comes when the budget ends, not after it.
    stretched.max(limited_for).min(left.max(settings.read_every))
}

/// After so many reads the pace is slowed by one more `read_every`.
const READS_AT_ONE_PACE: u32 = 10;
/// The longest pause, in `read_every`.
const SLOWEST: u32 = 5;

/// How long the provider asks to be left alone after this failure.
fn asked_for_quiet(error: &CloudError, settings: OffSettings) -> Duration {
    match error.kind {
        CloudErrorKind::RateLimited(wait) => wait.unwrap_or(settings.ask_again_after),
        _ => Duration::ZERO,
    }
}

pub(super) async fn stop(change: ApprovedChange<'_>, id: &PodId, ports: &Ports<'_>) -> OffOutcome {
    run(change, id, ports, false).await
}

pub(super) async fn terminate(
    change: ApprovedChange<'_>,
    id: &PodId,
    ports: &Ports<'_>,
) -> OffOutcome {
    run(change, id, ports, true).await
}

async fn run(
    change: ApprovedChange<'_>,
    id: &PodId,
    ports: &Ports<'_>,
    delete: bool,
) -> OffOutcome {
    let settings = ports.settings.off;
    let start = ports.clock.monotonic();
    let mut outcome = OffOutcome {
        pod: id.clone(),
        confirmed: false,
        observed: None,
        observed_at: None,
        asked: 0,
        error: None,
        blocked: None,
        was_off: false,
    };
    // How many reads there were, and until when the provider asked for quiet.
    let mut reads = 0_u32;
    let mut quiet_until = start;
    // How the last request ended; a read that fails must not hide a refused request.
    let mut request_error: Option<CloudErrorKind> = None;
    // How often in a row the pod was not there, and since when.
    let mut absences = 0_u32;
    let mut absent_since = start;
    let mut asked_at = start;
    let mut must_ask = true;
    loop {
        if must_ask {
            outcome.asked += 1;
            asked_at = ports.clock.monotonic();
            match ports.cloud.change(change, None).await {
                Ok(_) => {
                    request_error = None;
                    outcome.error = None;
                }
                // Deleting what is not there is what was wanted; the read decides.
                Err(error) if delete && error.kind == CloudErrorKind::NotFound => {
                    request_error = None
                }
                Err(error) => {
                    quiet_until = ports.clock.monotonic() + asked_for_quiet(&error, settings);
                    request_error = Some(error.kind.clone());
                    outcome.error = Some(error);
                }
            }
        }
        reads = reads.saturating_add(1);
        let seen = match ports.cloud.pod(id).await {
            Ok(Some(pod)) => {
                absences = 0;
                outcome.observed = Some(pod.status.clone());
                outcome.observed_at = Some(ports.clock.now());
                Seen::Pod(pod.status, pod.locked)
            }
            Ok(None) => {
                if absences == 0 {
                    absent_since = ports.clock.monotonic();
                }
                absences += 1;
                outcome.observed = None;
                outcome.observed_at = Some(ports.clock.now());
                Seen::Absent
            }
            Err(error) => {
                let quiet = ports.clock.monotonic() + asked_for_quiet(&error, settings);
                quiet_until = quiet_until.max(quiet);
                // Why the request failed says more than why its effect could not be read.
                if request_error.is_none() {
                    outcome.error = Some(error);
                }
                Seen::Nothing
            }
        };
        // A 404 is no proof (A05): it takes several, and the full list without the id. A stop does not
        // make a pod vanish, so there it takes time as well: a new pod is hidden from both for a while.
        let absent_for = ports.clock.monotonic().saturating_sub(absent_since);
        let is_gone = absences >= 3
            && (delete || absent_for >= settings.ask_again_after)
            && is_absent_from_the_list(id, ports).await;
        let step = if is_gone {
            Move::Confirmed
        } else {
            next_move(
                &seen,
                request_error.as_ref(),
                ports.clock.monotonic().saturating_sub(asked_at),
                settings,
                delete,
            )
        };
        match step {
            Move::Confirmed => {
                outcome.confirmed = true;
                let refused = request_error == Some(CloudErrorKind::Conflict);
                outcome.was_off = refused && outcome.asked == 1 && outcome.observed.is_some();
                return outcome;
            }
            Move::Blocked(why) => {
                outcome.blocked = Some(why);
                return outcome;
            }
            Move::Ask => must_ask = true,
            Move::Wait => must_ask = false,
        }
        let now = ports.clock.monotonic();
        let left = settings.budget.saturating_sub(now.saturating_sub(start));
        if left.is_zero() {
            return outcome;
        }
        let limited_for = quiet_until.saturating_sub(now);
        tokio::time::sleep(pause(settings, reads, limited_for, left)).await;
    }
}

async fn is_absent_from_the_list(id: &PodId, ports: &Ports<'_>) -> bool {
    matches!(ports.cloud.pods().await, Ok(pods) if pods.iter().all(|pod| &pod.id != id || pod.is_deleted()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::scripted::Scripted;
    use crate::domain::sample;

    const SETTINGS: OffSettings = OffSettings {
        budget: Duration::from_secs(40),
        read_every: Duration::from_secs(1),
        ask_again_after: Duration::from_secs(8),
    };

    fn decide(status: &str, locked: bool, last: Option<CloudErrorKind>, since_sec: u64) -> Move {
        let seen = Seen::Pod(PodStatus::from(status), locked);
        next_move(&seen, last.as_ref(), Duration::from_secs(since_sec), SETTINGS, false)
    }

    fn decide_delete(status: &str, locked: bool, last: Option<CloudErrorKind>) -> Move {
        let seen = Seen::Pod(PodStatus::from(status), locked);
        next_move(&seen, last.as_ref(), Duration::from_secs(8), SETTINGS, true)
    }

    async fn stop_of(cloud: &Scripted, settings: OffSettings) -> OffOutcome {
        let vehicle = sample::vehicle();
        let facts = crate::plan::Facts {
            pods: vec![sample::pod()],
            volumes: vec![],
            offers: vec![],
            declared: vec![(vehicle.name.clone(), vehicle.pod_name.clone())],
            tolerated: vec![],
            unknown_creates: Vec::new(),
            live_jobs: crate::plan::LiveJobs::Known(vec![]),
            volume_health: crate::plan::VolumeHealth::NotAsked,
            gates: crate::plan::Gates::NotAsked,
            spend: crate::plan::Spend::not_asked(),
            proven_fuses: crate::domain::ProvenFuses::default(),
        };
        let draft = crate::plan::stop(&vehicle, true, &facts);
        let approved = crate::guard::review(draft, &facts, &crate::domain::Limits::default());
        let clock = crate::clock::SystemClock::new();
        let settings = crate::apply::Settings { off: settings, ..Default::default() };
        let ports = Ports { cloud, shell: None, clock: &clock, notes: None, settings };
        let outcomes = crate::apply::apply(&approved.unwrap(), &ports).await.unwrap();
        let [crate::apply::StepOutcome::Off(off)] = &outcomes[..] else { panic!("{outcomes:?}") };
        off.clone()
    }

    /// A05: a pod that list and look hide for a while and show again was never off the bill.
    #[tokio::test]
    async fn a_pod_that_is_hidden_for_a_moment_is_not_taken_for_stopped() {
        let mut looks = vec![Ok(vec![]); 5];
        looks.push(Ok(vec![sample::pod()]));
        let mut lists = vec![Ok(vec![]); 2];
        lists.push(Ok(vec![sample::pod()]));
        let settings = OffSettings {
            budget: Duration::from_millis(400),
            read_every: Duration::from_millis(2),
            ask_again_after: Duration::from_millis(150),
        };
        let off = stop_of(&Scripted::new(lists, looks), settings).await;
        assert!(!off.confirmed, "{off:?}");
        assert_eq!(off.observed, Some(PodStatus::Running));
        // One that stays away is gone.
        let off = stop_of(&Scripted::new(vec![], vec![]), settings).await;
        assert!(off.confirmed && off.observed.is_none(), "{off:?}");
    }

    /// A02, A08, A09: a stopped pod is what a terminate mostly meets; what stands in its way is told.
    #[test]
    fn a_terminate_of_a_stopped_pod_says_what_stands_in_its_way() {
        for (locked, last, word) in [
            (false, CloudErrorKind::Forbidden, "terminate it in the RunPod console"),
            (true, CloudErrorKind::Conflict, "then terminate it"),
        ] {
            let step = decide_delete("EXITED", locked, Some(last));
            assert!(matches!(&step, Move::Blocked(why) if why.contains(word)), "{step:?}");
        }
        let limited = CloudErrorKind::RateLimited(Some(Duration::from_secs(12)));
        assert_eq!(decide_delete("EXITED", false, Some(limited)), Move::Wait);
        assert_eq!(decide_delete("EXITED", false, None), Move::Ask);
        assert_eq!(decide_delete("TERMINATED", false, None), Move::Confirmed);
        // ERROR can be terminated; a conflict there is no dead end.
        assert_eq!(decide_delete("ERROR", false, Some(CloudErrorKind::Conflict)), Move::Ask);
    }

    /// A01, A12, E16: whatever the request said, only a status that was read ends it.
    #[test]
    fn only_a_status_that_was_read_confirms_a_stop() {
        for last in [
            None,
            Some(CloudErrorKind::Server),
            Some(CloudErrorKind::Conflict),
            Some(CloudErrorKind::Auth),
        ] {
            assert_eq!(decide("EXITED", false, last, 0), Move::Confirmed);
        }
        for status in ["RUNNING", "STARTING", "PROVISIONING", "ERROR", "MIGRATING"] {
            assert_eq!(decide(status, false, None, 1), Move::Wait, "{status}");
            assert_eq!(decide(status, false, None, 8), Move::Ask, "{status}");
        }
        for seen in [Seen::Absent, Seen::Nothing] {
            let step = next_move(&seen, None, Duration::from_secs(8), SETTINGS, false);
            assert_eq!(step, Move::Ask);
        }
    }

    /// A08: the three causes of a 409 are told apart, and none loops silently.
    #[test]
    fn a_conflict_is_told_apart_by_what_the_pod_is() {
        let conflict = || Some(CloudErrorKind::Conflict);
        assert_eq!(decide("EXITED", false, conflict(), 0), Move::Confirmed);
        assert!(
            matches!(decide("ERROR", false, conflict(), 0), Move::Blocked(why) if why.contains("terminated"))
        );
        assert!(
            matches!(decide("RUNNING", true, conflict(), 0), Move::Blocked(why) if why.contains("locked"))
        );
        assert_eq!(decide("RUNNING", false, conflict(), 2), Move::Ask);
    }

    /// A02, A07: a key that may not write ends the wait loudly, not after 40 seconds of silence.
    #[test]
    fn a_key_that_may_not_stop_is_said_at_once() {
        for kind in [CloudErrorKind::Auth, CloudErrorKind::Forbidden, CloudErrorKind::Retired] {
            assert!(
                matches!(decide("RUNNING", false, Some(kind), 0), Move::Blocked(why) if why.contains("console"))
            );
        }
    }

    /// A09: reads do not use up the minute's 60 requests, and none is made while quiet is asked for.
    #[test]
    fn reads_become_rarer_and_leave_the_stop_its_quota() {
        let ample = Duration::from_secs(600);
        let mut at = Duration::ZERO;
        let mut reads = 0;
        while at < Duration::from_secs(60) {
            reads += 1;
            at += pause(SETTINGS, reads, Duration::ZERO, ample);
        }
        // At least half of the quota is left.
        assert!(reads <= 30, "{reads} in a minute");
        let minute = Duration::from_secs(60);
        assert_eq!(pause(SETTINGS, 1, minute, ample), minute);
        assert_eq!(pause(SETTINGS, 1, minute, Duration::from_secs(9)), Duration::from_secs(9));
        assert_eq!(pause(SETTINGS, 1, minute, Duration::ZERO), SETTINGS.read_every);
    }

    /// I09, G13: what the provider refuses as such is said at once, never repeated to the end.
    #[test]
    fn a_refused_stop_is_not_repeated() {
        let step = decide("RUNNING", false, Some(CloudErrorKind::Validation), 0);
        assert!(matches!(&step, Move::Blocked(why) if why.contains("refuses to stop")), "{step:?}");
    }

    /// A09: a rate limit delays the next ask by what it says, and no header never means zero.
    #[test]
    fn a_rate_limit_is_waited_out_and_the_stop_is_not_abandoned() {
        let limited = |sec| Some(CloudErrorKind::RateLimited(sec));
        let twelve = Some(Duration::from_secs(12));
        assert_eq!(decide("RUNNING", false, limited(twelve), 11), Move::Wait);
        assert_eq!(decide("RUNNING", false, limited(twelve), 12), Move::Ask);
        assert_eq!(decide("RUNNING", false, limited(None), 7), Move::Wait);
        assert_eq!(decide("RUNNING", false, limited(None), 8), Move::Ask);
    }
}
