//! Files on a pod, looked at for a recipe, a gate or a pin, all in one round trip.

use super::Tether;
use crate::domain::{Pod, Vehicle};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::pod::{
    Ask, ExecLimits, Told, parse_recipe_look, recipe_answer_bytes, recipe_look_command,
};
use std::time::Duration;

impl Tether {
    /// Looks at files on the vehicle's pod; the volume is waited for as long as `patience`.
    ///
    /// # Errors
    /// When the pod or its volume does not answer.
    pub(crate) async fn look_at_files(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        patience: Duration,
        asks: &[Ask],
    ) -> Result<Vec<Told>, Failure> {
        if asks.is_empty() {
            return Ok(Vec::new());
        }
        let limits = ExecLimits {
            timeout: patience + Duration::from_secs(10),
            stdout_bytes: recipe_answer_bytes(asks),
            stderr_bytes: 8 * 1024,
        };
        let shell = self.shell(vehicle, pod)?;
        let output = shell.run(&recipe_look_command(patience, asks), limits).await?;
        let told = parse_recipe_look(&output, asks)
            .map_err(|error| super::probe::pod_failure(&error).billing(StillBilling::Yes))?;
        told.ok_or_else(|| {
            Failure::new(
                FailureKind::Timeout,
                format!("the volume did not answer within {} s", patience.as_secs()),
                "try again; a volume that hangs makes jobs hang",
            )
            .billing(StillBilling::Yes)
            .retryable()
        })
    }
}
