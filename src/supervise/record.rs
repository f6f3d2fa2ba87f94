//! What a run that is over adds to the record of its job.

use super::summary::Summary;
use crate::domain::{JobId, Vehicle};
use crate::ops::{RunOver, Tether};
use crate::runs::Supervised;

/// Adds the end of the run to the job's record.
pub(super) async fn over(tether: &Tether, vehicle: &Vehicle, id: &JobId, summary: &Summary) {
    let over = RunOver {
        state: summary.state.clone(),
        exit_code: summary.exit_code,
        metrics: summary.metrics.latest().cloned(),
        supervised: Supervised {
            exit_code: summary.process_exit_code.unwrap_or(1),
            summary: summary.summary_path.as_ref().map(|path| path.display().to_string()),
            stop: summary.stop.as_ref().map(|stop| stop.message.clone()),
        },
    };
    tether.run_over(vehicle, id, over).await;
}
