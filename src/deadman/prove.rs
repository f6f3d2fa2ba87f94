//! What the key of a fuse can do, found out when it is armed and without changing anything.

use super::record::{Proof, Record, Word};
use crate::clock::SharedClock;
use crate::cloud::{Cloud, StopRight};
use std::time::Duration;

/// How long the proof of the key may take, each half of it.
const PROOF: Duration = Duration::from_secs(8);

/// What the key can do, without changing anything (A07). A pod that is there already is noted.
pub(super) async fn prove(cloud: &dyn Cloud, clock: &SharedClock, record: &mut Record) -> Proof {
    let late = || "no answer in time".to_owned();
    let (list, right) = tokio::join!(
        tokio::time::timeout(PROOF, cloud.pods()),
        tokio::time::timeout(PROOF, cloud.stop_right()),
    );
    let (read, mut why) = match list {
        Ok(Ok(pods)) => {
            let ours = pods.iter().find(|pod| pod.name == record.pod_name && !pod.is_deleted());
            if let Some(pod) = ours {
                record.pod_id.get_or_insert_with(|| pod.id.clone());
                let rate = pod.price.known().map(|rate| rate.per_hour().micros());
                record.micros_per_hour = rate.or(record.micros_per_hour);
            }
            (Word::Proven, None)
        }
        Ok(Err(error)) => (Word::Unproven, Some(error.to_string())),
        Err(_) => (Word::Unproven, Some(late())),
    };
    let stop = match right {
        Ok(StopRight::Proven) => Word::Proven,
        Ok(StopRight::Denied(words)) => {
            why = Some(words);
            Word::Denied
        }
        Ok(StopRight::Unproven(words)) => {
            why.get_or_insert(words);
            Word::Unproven
        }
        Err(_) => {
            why.get_or_insert_with(late);
            Word::Unproven
        }
    };
    Proof { at: clock.now(), read, stop, why }
}
