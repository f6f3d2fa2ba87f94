//! What a pod told of its watchdog, as a fuse: what is proven of it, and by when it surely has stopped
//! the pod. The times are those of `remote/idle_watchdog.sh`.

use crate::domain::{Ceiling, JobsSeen, LiveJob, Proof, Watchdog, WatchdogSeen};
use crate::plan;
use crate::pod::watchdog::{StopProof, WatchdogReport, WatchdogState, WatchdogTerms};
use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;

/// How long it waits for the end of a job beyond ceiling and kill grace.
const BEYOND_CEILING: Duration = Duration::from_secs(600);
/// How long it lets a pod be after its last job, so that its results can be pulled.
const AFTER_A_JOB: Duration = Duration::from_secs(900);
/// The same while somebody holds a lease.
const AFTER_A_JOB_WITH_LEASE: Duration = Duration::from_secs(4_500);
/// One look on a volume that hangs (70 s), and a stop by each way, the last of which works (205 s).
const LOOK_AND_STOP: Duration = Duration::from_secs(300);
/// From the time that a job's id was made to the start of its wrapper.
const LAUNCH: Duration = Duration::from_secs(120);
const KILL_GRACE: Duration = Duration::from_secs(Ceiling::KILL_GRACE_SEC as u64);

/// What a look told of the watchdog, as a fuse of a pod with these jobs. `None` is a look that came
/// without it.
pub(super) fn watchdog_fuse(
    report: Option<&WatchdogReport>,
    jobs: &JobsSeen,
    now: DateTime<Utc>,
) -> Watchdog {
    let Some(report) = report else {
        return Watchdog::Unknown("what the pod says of its watchdog makes no sense".to_owned());
    };
    if report.state == WatchdogState::Absent {
        return Watchdog::Off;
    }
    Watchdog::Seen(WatchdogSeen {
        lives: report.state != WatchdogState::Dead,
        stop_path: stop_path(report, now),
        stops_within: stops_within(report, jobs, now),
        said: report.to_string(),
    })
}

/// The proof that the pod may stop itself. A stop that was tried in vain says more than any proof.
fn stop_path(report: &WatchdogReport, now: DateTime<Utc>) -> Option<Proof> {
    if report.proof < StopProof::Write || report.failed_stops.is_some() {
        return None;
    }
    let age = TimeDelta::from_std(Duration::from_secs(report.probed_age_sec?)).ok()?;
    let at = now.checked_sub_signed(age)?;
    Some(Proof { what: report.proof.told()?.to_owned(), at })
}

/// By when it surely has stopped the pod: at its deadline, which waits for the jobs that live. Not
/// after the idle time: a process that is no job may keep the pod from being idle until then.
fn stops_within(report: &WatchdogReport, jobs: &JobsSeen, now: DateTime<Utc>) -> Option<Duration> {
    let jobs_end = match jobs {
        JobsSeen::Known(jobs) => jobs.iter().map(|job| left(job, now)).max().unwrap_or_default(),
        JobsSeen::Unknown(_) => longest(Ceiling::MAX_SEC),
    };
    // A job that has just ended counts too, and may be in no list any more.
    let after_jobs = jobs_end.saturating_add(grace(report.lease_in_sec > Some(0)));
    Some(deadline(report)?.max(after_jobs).saturating_add(tail(report)))
}

fn deadline(report: &WatchdogReport) -> Option<Duration> {
    Some(Duration::from_secs(u64::try_from(report.deadline_in_sec?).unwrap_or(0)))
}

const fn grace(has_lease: bool) -> Duration {
    if has_lease { AFTER_A_JOB_WITH_LEASE } else { AFTER_A_JOB }
}

/// From the moment at which it is to stop the pod until it has: it only looks now and then.
fn tail(report: &WatchdogReport) -> Duration {
    let tick = report.tick_sec.map_or(WatchdogTerms::TICK, Duration::from_secs);
    tick.saturating_add(LOOK_AND_STOP)
}

/// The longest that it waits for a job from its launch on.
fn longest(ceiling_sec: u32) -> Duration {
    Duration::from_secs(ceiling_sec.into()) + KILL_GRACE + BEYOND_CEILING + LAUNCH
}

/// How much longer it waits for a job. What is not known of it is taken for the longest.
fn left(job: &LiveJob, now: DateTime<Utc>) -> Duration {
    let since = job.started_at.and_then(|at| (now - at).to_std().ok()).unwrap_or_default();
    longest(job.ceiling_sec.unwrap_or(Ceiling::MAX_SEC)).saturating_sub(since)
}

/// What the worst case of a launch takes for its fuse: the pod's watchdog, when it lives, can prove
/// that it may stop the pod, and knows a deadline. It waits for the job and a while after it, and at
/// least until what it would wait for without the job.
pub(super) fn plan_fuse(
    report: Option<&WatchdogReport>,
    others: &JobsSeen,
    is_supervised: bool,
    now: DateTime<Utc>,
) -> Option<plan::Fuse> {
    let report = report.filter(|report| report.state == WatchdogState::Armed)?;
    stop_path(report, now)?;
    let grace = grace(is_supervised || report.lease_in_sec > Some(0));
    // A plan counts from the end of the job's kill grace.
    let within = LAUNCH + BEYOND_CEILING + grace + tail(report);
    let not_before = stops_within(report, others, now)?;
    Some(plan::Fuse::Proven { what: "watchdog".to_owned(), within, not_before })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{FuseReport, FuseState, JobId, scripts};

    const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn report() -> WatchdogReport {
        WatchdogReport {
            state: WatchdogState::Armed,
            proof: StopProof::Write,
            why: None,
            heartbeat_age_sec: Some(20),
            ticks: Some(3),
            idle_sec: Some(3_600),
            tick_sec: Some(300),
            quiet_sec: Some(60),
            probed_age_sec: Some(90),
            deadline_in_sec: Some(10_000),
            lease_in_sec: None,
            failed_stops: None,
            last_decision: None,
        }
    }

    fn jobs(ages_and_ceilings: &[(i64, u32)]) -> JobsSeen {
        let job = |&(age, ceiling): &(i64, u32)| LiveJob {
            id: JobId::parse("20260703-125000_train_00ab").unwrap(),
            auto_stop: Some(false),
            started_at: Some(NOW - TimeDelta::seconds(age)),
            ceiling_sec: Some(ceiling),
            wrapper_is_lost: false,
        };
        JobsSeen::Known(ages_and_ceilings.iter().map(job).collect())
    }

    fn fuse(report: &WatchdogReport, jobs: &JobsSeen) -> FuseReport {
        FuseReport::watchdog(&watchdog_fuse(Some(report), jobs, NOW), NOW)
    }

    fn within(report: &WatchdogReport, jobs: &JobsSeen) -> u64 {
        fuse(report, jobs).stops_within_sec.unwrap()
    }

    /// A07, A03: nothing less than a stop that passed or happened, and none that was tried in vain.
    #[test]
    fn a_watchdog_is_armed_only_when_it_lives_and_its_stop_path_was_proven() {
        let of = |report: WatchdogReport| fuse(&report, &jobs(&[])).state;
        let unverified = WatchdogState::ArmedUnverified;
        let cases = [
            (of(report()), FuseState::Armed),
            (of(WatchdogReport { proof: StopProof::Fired, ..report() }), FuseState::Armed),
            (
                of(WatchdogReport { proof: StopProof::Read, state: unverified, ..report() }),
                FuseState::Unproven,
            ),
            (of(WatchdogReport { failed_stops: Some(1), ..report() }), FuseState::Unproven),
            (of(WatchdogReport { probed_age_sec: None, ..report() }), FuseState::Unproven),
            (of(WatchdogReport { state: WatchdogState::Dead, ..report() }), FuseState::Dead),
            (of(WatchdogReport { state: WatchdogState::Absent, ..report() }), FuseState::Off),
        ];
        for (number, (found, expected)) in cases.into_iter().enumerate() {
            assert_eq!(found, expected, "case {number}");
        }
        let armed = fuse(&report(), &jobs(&[]));
        assert_eq!(
            (armed.age_sec, armed.proven_at),
            (Some(90), Some(NOW - TimeDelta::seconds(90)))
        );
        assert!(armed.proof.unwrap().contains("passed a trial stop"));
        let senseless = FuseReport::watchdog(&watchdog_fuse(None, &jobs(&[]), NOW), NOW);
        assert_eq!(senseless.state, FuseState::Unproven);
    }

    /// The deadline, and what it waits for: the job, and a while for its results.
    #[test]
    fn the_bound_is_the_deadline_or_the_end_of_the_longest_job() {
        let tail = 300 + 300;
        assert_eq!(within(&report(), &jobs(&[])), 10_000 + tail);
        assert_eq!(within(&report(), &jobs(&[(600, 3_600)])), 10_000 + tail);
        let long = 36_000 + 60 + 600 + 120 - 600 + 900;
        assert_eq!(within(&report(), &jobs(&[(0, 60), (600, 36_000)])), long + tail);
        let passed = WatchdogReport { deadline_in_sec: Some(-50), ..report() };
        assert_eq!(within(&passed, &jobs(&[])), 900 + tail, "a job may have ended just now");
        let leased = WatchdogReport { lease_in_sec: Some(800), ..passed };
        assert_eq!(within(&leased, &jobs(&[])), 4_500 + tail);
        let unknown = JobsSeen::Unknown("no answer".into());
        assert_eq!(within(&report(), &unknown), 604_800 + 780 + 900 + tail);
        // A14: a job from the future is not longer than it can be.
        assert_eq!(within(&report(), &jobs(&[(-90_000, 36_000)])), 36_000 + 780 + 900 + tail);
    }

    /// A proof without a deadline bounds nothing, and what is not proven is left to the allowance.
    #[test]
    fn only_a_proven_watchdog_with_a_deadline_is_the_fuse_of_a_plan() {
        let plan = |report: WatchdogReport| plan_fuse(Some(&report), &jobs(&[]), false, NOW);
        assert_eq!(
            plan(report()),
            Some(plan::Fuse::Proven {
                what: "watchdog".into(),
                within: Duration::from_secs(120 + 600 + 900 + 600),
                not_before: Duration::from_secs(10_600),
            })
        );
        for unproven in [
            WatchdogReport { deadline_in_sec: None, ..report() },
            WatchdogReport { failed_stops: Some(2), ..report() },
            WatchdogReport { state: WatchdogState::ArmedUnverified, ..report() },
            WatchdogReport { state: WatchdogState::Dead, proof: StopProof::Fired, ..report() },
            WatchdogReport { state: WatchdogState::Absent, ..report() },
        ] {
            assert_eq!(plan(unproven.clone()), None, "{unproven:?}");
        }
        assert_eq!(plan_fuse(None, &jobs(&[]), false, NOW), None);
        let Some(plan::Fuse::Proven { within, .. }) =
            plan_fuse(Some(&report()), &jobs(&[]), true, NOW)
        else {
            panic!()
        };
        assert_eq!(within.as_secs(), 120 + 600 + 4_500 + 600, "supervise holds a lease");
    }

    /// What the bounds are made of.
    #[test]
    fn the_watchdog_waits_as_long_as_the_bounds_say() {
        let text = scripts::IDLE_WATCHDOG.text;
        for part in [
            "d=$((c + (b + 60 + 600) * 100))",
            "grace=900",
            "grace=4500",
            "on_volume 60 look",
            "on_volume 5 notice",
            "on_volume 5 beat_on_volume",
            "PODTETHER_STOP_TRIES=4",
        ] {
            assert!(text.contains(part), "{part}");
        }
    }
}
