//! Which fuse it was. A pod that is off proves nothing about who stopped it; what the one that struck
//! left behind does. Pure.

use crate::deadman::Summary;
use crate::deadman::state::Outcome;
use crate::domain::{DrillFuse, PodId};
use crate::ops::StopStatus;
use crate::pod::drill::DrillEvidence;
use crate::supervise;

/// What a fuse on the pod has left, read by the next boot. `before` is how many notices there were.
///
/// # Errors
/// In words, why it does not tell that this fuse struck.
pub(super) fn of_pod(
    fuse: DrillFuse,
    pod: &PodId,
    before: u64,
    found: &DrillEvidence,
) -> Result<String, String> {
    let notice = found.notice.as_deref().filter(|_| found.notices > before);
    let notice = notice.filter(|notice| notice.contains(&format!(" pod {pod}: stop, ")));
    if fuse == DrillFuse::AutoStop {
        return match (notice, &found.exit_code, found.stop_lines) {
            (Some(notice), ..) => Err(format!("the watchdog struck instead: {}", cut(notice))),
            (None, Some(code), lines @ 1..) => {
                Ok(format!("the job left exit code {code} and {lines} lines of its stop"))
            }
            (None, None, _) => Err("the job left no exit code".to_owned()),
            (None, Some(_), 0) => Err("the job ended and left no try to stop the pod".to_owned()),
        };
    }
    let Some(notice) = notice else {
        return Err("the watchdog left no notice, so something else stopped the pod".to_owned());
    };
    // The words are those of `decide` in remote/idle_watchdog.sh.
    let has_lease = notice.contains(", lease ");
    let struck = match () {
        () if notice.contains("stop, nobody uses it: ") && has_lease => Some(DrillFuse::Lease),
        () if notice.contains("stop, nobody uses it: ") => Some(DrillFuse::WatchdogIdle),
        () if notice.contains("stop, the deadline has passed: ") => {
            Some(DrillFuse::WatchdogDeadline)
        }
        () => None,
    };
    if struck == Some(fuse) {
        return Ok(format!("the watchdog's notice: {}", cut(notice)));
    }
    Err(format!("the watchdog struck for another reason: {}", cut(notice)))
}

/// What the laptop's fuse has left.
///
/// # Errors
/// In words, why it does not tell that it struck.
pub(super) fn of_deadman(summary: &Summary) -> Result<String, String> {
    let asked: u32 = summary.record.attempts.iter().map(|attempt| attempt.asked).sum();
    match (summary.outcome, asked) {
        (Outcome::Stopped, 1..) => Ok(format!("the fuse asked {asked} times: {}", summary.message)),
        (Outcome::Stopped, 0) => Err(format!("the fuse found the pod off: {}", summary.message)),
        (outcome, _) => Err(format!("the fuse ended as {}: {}", outcome.as_str(), summary.message)),
    }
}

/// What supervise has left.
///
/// # Errors
/// In words, why it does not tell that its cap struck.
pub(super) fn of_supervise(summary: &supervise::Summary) -> Result<String, String> {
    let stop = summary.stop.as_ref();
    let is_stopped = stop.is_some_and(|stop| stop.status == StopStatus::Stopped);
    if summary.force_stopped && is_stopped && !summary.pod_may_still_be_running {
        return Ok(
            "supervise gave up on its job at max_wait, stopped the pod and read it back".into()
        );
    }
    let said = stop.map_or_else(String::new, |stop| format!(": {}", stop.message));
    let error = summary.errors.last().map_or_else(String::new, |last| format!(" ({})", last.error));
    Err(format!(
        "supervise ended with the job {}, force_stopped={}{said}{error}",
        summary.state.as_deref().unwrap_or("unknown"),
        summary.force_stopped
    ))
}

fn cut(text: &str) -> String {
    text.chars().take(240).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> PodId {
        PodId("p1".into())
    }

    fn left(notice: &str, stop_lines: u64, exit_code: Option<&str>) -> DrillEvidence {
        DrillEvidence {
            notices: 4,
            notice: Some(format!("2026-07-03T13:26:01Z pod {notice}")),
            exit_code: exit_code.map(str::to_owned),
            stop_lines,
        }
    }

    const IDLE: &str = "p1: stop, nobody uses it: idle 0 of 0 min: jobs 0, deadline in 59 min";
    const LEASE: &str =
        "p1: stop, nobody uses it: idle 0 of 0 min: jobs 0, deadline in 59 min, lease -1 s";
    const DEADLINE: &str = "p1: stop, the deadline has passed: idle 0 of 60 min: jobs 0";
    const FOREIGN: &str = "p2: stop, nobody uses it: idle 0 of 0 min: jobs 0";

    #[test]
    fn a_notice_proves_the_one_fuse_that_wrote_it() {
        use DrillFuse::{AutoStop, Lease, WatchdogDeadline, WatchdogIdle};
        for (notice, writer) in [
            (IDLE, Some(WatchdogIdle)),
            (LEASE, Some(Lease)),
            (DEADLINE, Some(WatchdogDeadline)),
            (FOREIGN, None),
        ] {
            for fuse in [WatchdogIdle, Lease, WatchdogDeadline] {
                let found = of_pod(fuse, &pod(), 3, &left(notice, 0, None));
                assert_eq!(found.is_ok(), Some(fuse) == writer, "{fuse:?}: {found:?}");
            }
        }
        let old = of_pod(WatchdogIdle, &pod(), 4, &left(IDLE, 0, None));
        assert!(old.unwrap_err().contains("something else"), "a notice of before proves nothing");
        let stopped =
            |before, lines, code| of_pod(AutoStop, &pod(), before, &left(IDLE, lines, code));
        assert!(stopped(4, 1, Some("0")).is_ok());
        for (before, lines, code) in [(3, 1, Some("0")), (4, 0, Some("0")), (4, 1, None)] {
            assert!(stopped(before, lines, code).is_err(), "{before} {lines} {code:?}");
        }
    }
}
