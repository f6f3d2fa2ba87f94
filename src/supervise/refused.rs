//! A run that did not begin: its summary says what stood in the way, and nothing is stopped.

use super::options::Options;
use super::summary::Summary;
use crate::error::{Failure, FailureKind, StillBilling};
use crate::ops::Tether;

/// A refusal, or facts that could not be read: nothing was started, so nothing is stopped.
pub(super) fn refused(
    mut summary: Summary,
    tether: &Tether,
    options: &Options,
    failure: Failure,
) -> Summary {
    let is_refusal = matches!(
        failure.kind,
        FailureKind::Refused | FailureKind::BadInput | FailureKind::NoPod | FailureKind::Config
    );
    summary.refused = is_refusal;
    summary.pod_may_still_be_running =
        failure.kind != FailureKind::NoPod || failure.still_billing != StillBilling::No;
    summary.reason = Some(failure.message.clone());
    summary.hint = Some(failure.hint.clone()).filter(|hint| !hint.is_empty());
    summary.trouble("dry_run", failure.apart_from_the_bill());
    summary.process_exit_code = Some(if is_refusal { 2 } else { 1 });
    write(summary, tether, options)
}

/// A run that was ended by a signal before anything was launched. A pod that was `seen` ran before and runs
/// on; else nobody knows.
pub(super) fn ended_before(
    mut summary: Summary,
    tether: &Tether,
    options: &Options,
    seen: bool,
) -> Summary {
    let reason = match seen {
        true => "it was ended before anything was launched; the pod was running before and runs on",
        false => "it was ended before anything was launched, and before the pod was seen",
    };
    summary.reason = Some(reason.to_owned());
    summary.process_exit_code = Some(6);
    write(summary, tether, options)
}

fn write(mut summary: Summary, tether: &Tether, options: &Options) -> Summary {
    summary.ended_at = Some(tether.clock().now());
    if summary.summary_path.is_none()
        && let Ok(vehicle) = tether.vehicle(options.job.vehicle.as_deref())
    {
        let stamp = summary.started_at.format("%Y%m%d-%H%M%S%.3f");
        let name = format!("supervise-refused-{stamp}.json").replacen('.', "", 1);
        summary.summary_path = Some(vehicle.local_log_dir.join(name));
    }
    let written = summary.write();
    if let Some(Err(why)) = summary.unwritten.note("the summary", written) {
        summary.trouble("summary", why);
    }
    summary
}
