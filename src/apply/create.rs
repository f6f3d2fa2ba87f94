//! Creating a pod: sent once, and looked up by its marker when the answer was lost.

use super::{Ports, StepError, StepOutcome};
use crate::cloud::{Changed, CloudError};
use crate::domain::{Pod, PodId, VolumeId};
use crate::guard::ApprovedChange;
use crate::plan::NewPod;
use std::time::Duration;

/// How often a lost create is looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) async fn create(
    change: ApprovedChange<'_>,
    wanted: &NewPod,
    created: Option<&VolumeId>,
    ports: &Ports<'_>,
) -> Result<StepOutcome, StepError> {
    match ports.cloud.change(change, created).await {
        Ok(Changed::Pod(pod)) => Ok(StepOutcome::PodCreated { pod, adopted: false }),
        Ok(Changed::Accepted | Changed::Volume(_)) => {
            look_up(wanted, lost(wanted, "the answer does not name the pod"), ports).await
        }
        Err(error) if error.may_have_taken_effect() => look_up(wanted, error, ports).await,
        Err(error) => Err(error.into()),
    }
}

/// B01, B02: never a second create. The pod is the one with our name and the marker of this create.
async fn look_up(
    wanted: &NewPod,
    source: CloudError,
    ports: &Ports<'_>,
) -> Result<StepOutcome, StepError> {
    let start = ports.clock.monotonic();
    loop {
        // A list that fails is as good as one that shows nothing yet: the window decides.
        if let Ok(pods) = ports.cloud.pods().await {
            let mut found: Vec<Pod> = pods.into_iter().filter(|pod| is_it(pod, wanted)).collect();
            if found.len() > 1 {
                let ids: Vec<PodId> = found.into_iter().map(|pod| pod.id).collect();
                return Err(StepError::CreatedTwice(ids));
            }
            if let Some(pod) = found.pop() {
                return Ok(StepOutcome::PodCreated { pod: Box::new(pod), adopted: true });
            }
        }
        let waited = ports.clock.monotonic().saturating_sub(start);
        if waited >= ports.settings.settle {
            return Err(StepError::CreateLost { name: wanted.name.clone(), source, waited });
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn is_it(pod: &Pod, wanted: &NewPod) -> bool {
    let marker = pod.env.get(NewPod::NONCE_ENV).map(String::as_str);
    pod.name == wanted.name && marker.is_some() && marker == wanted.nonce()
}

fn lost(wanted: &NewPod, detail: &str) -> CloudError {
    CloudError {
        kind: crate::cloud::CloudErrorKind::Malformed,
        tried: format!("creating pod {:?}", wanted.name),
        status: None,
        detail: detail.to_owned(),
        request_id: None,
    }
}
