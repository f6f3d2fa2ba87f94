//! ensure_pod: from nothing, or from a stopped pod, to one that was proven usable.

use super::gather::Needs;
use super::view::created_pod;
use super::{CloudName, PodView, StepView, Tether};
use crate::apply::{self, StepError};
use crate::cloud::CloudErrorKind;
use crate::domain::{Pod, PodStatus, Vehicle};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::guard::review;
use crate::plan::{self, EnsureInputs};
use crate::pod::PodProbe;
use chrono::{DateTime, Utc};
use rand::RngExt as _;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// What is asked of ensure_pod.
#[derive(Clone, Debug, Default)]
pub struct EnsureRequest {
    /// The vehicle; the default one when `None`.
    pub vehicle: Option<String>,
    /// Only show the plan.
    pub dry_run: bool,
    /// How long to wait for a usable pod.
    pub wait: Duration,
}

/// How far the pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnsureStatus {
    /// Usable: a probe over SSH proved that it is our pod and that its driver is new enough.
    Running,
    /// Usable, and found by its marker after the answer to its create was lost.
    Adopted,
    /// On its way and on the bill; call again to go on waiting.
    StillInitializing,
    /// Up, but the host's NVIDIA driver is older than min_driver_version.
    DriverTooOld,
    /// No machine with the allowed GPU is free; nothing was started.
    StartFailedNoGpu,
}

/// The answer of ensure_pod.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EnsureAnswer {
    /// Which cloud answered.
    pub cloud: CloudName,
    /// For which vehicle.
    pub vehicle: String,
    /// How far the pod is; missing in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<EnsureStatus>,
    /// What is so and what to do next, in a sentence or two.
    pub message: String,
    /// The pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodView>,
    /// The host's NVIDIA driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<String>,
    /// Dry run: the very requests that the real call sends. Empty when nothing is left to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Vec<StepView>>,
    /// Ways out when there is no usable pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recovery: Vec<String>,
    /// What stops this pod without being asked.
    pub fuses: Vec<String>,
}

const NO_FUSE: &str = "none yet: nothing stops this pod by itself; call stop_pod when done, or use `podtether supervise`, which stops it at the end of a job";

impl Tether {
    /// Has the vehicle's pod running, or says how far it is.
    ///
    /// # Errors
    /// Refusals, and everything that keeps the pod from being created, started or read. A failure
    /// after something may have been started says that it may bill.
    pub async fn ensure_pod(&self, request: &EnsureRequest) -> Result<EnsureAnswer, Failure> {
        let vehicle = self.vehicle(request.vehicle.as_deref())?;
        // Before the provider was asked anything, so nothing is known of the bill.
        let public_key = crate::pod::ssh::identity::public_key_text(&vehicle.ssh_identity)
            .map_err(|error| Failure::from(error).billing(StillBilling::Unknown))?;
        let needs = Needs { volumes: true, offers_for: Some(vehicle.gpu_count) };
        let facts = self.gather(needs).await?;
        let nonce = format!("{:016x}", rand::rng().random::<u64>());
        let named = request.vehicle.is_some();
        let draft = plan::ensure(&vehicle, named, &facts, EnsureInputs { public_key, nonce });
        let approved = review(draft, &facts, &self.config.limits_for(&vehicle.name))?;
        let answer = |status, message: String| EnsureAnswer {
            cloud: self.cloud_name(),
            vehicle: vehicle.name.0.clone(),
            status,
            message,
            pod: None,
            driver_version: None,
            plan: None,
            recovery: Vec::new(),
            fuses: vec![NO_FUSE.to_owned()],
        };
        let existing = facts.pods_named(&vehicle.pod_name).next().cloned();
        if request.dry_run {
            let message = match (&existing, approved.steps().is_empty()) {
                (Some(pod), true) => format!("Nothing to do: pod {} is {}.", pod.id, pod.status),
                _ => "This is what the call would send; nothing was changed.".to_owned(),
            };
            return Ok(EnsureAnswer {
                pod: existing.as_ref().map(PodView::from),
                plan: Some(StepView::all(approved.steps(), &*self.cloud)),
                ..answer(None, message)
            });
        }
        if let Some(pod) = existing.as_ref().filter(|pod| pod.status == PodStatus::Error) {
            return Err(Failure::new(
                FailureKind::Conflict,
                format!("pod {} is in status ERROR", pod.id),
                format!("look at it in the RunPod console; terminate_pod with confirm=\"terminate {}\" deletes it, its volume stays", vehicle.pod_name),
            )
            .billing(StillBilling::Unknown));
        }
        let started = self.clock.monotonic();
        let (pod, adopted) = match apply::apply(&approved, &self.ports(None)).await {
            Ok(outcomes) => match (created_pod(&outcomes), existing) {
                (Some((pod, adopted)), _) => (pod.clone(), adopted),
                (None, Some(pod)) => (pod, false),
                (None, None) => return Err(no_place(&vehicle)),
            },
            Err(error) => match no_capacity(&error.error) {
                Some(text) => {
                    return Ok(EnsureAnswer {
                        recovery: recovery(&vehicle, existing.as_ref()),
                        fuses: Vec::new(),
                        ..answer(
                            Some(EnsureStatus::StartFailedNoGpu),
                            format!("No machine is free: {text}. Nothing was started."),
                        )
                    });
                }
                None => return Err(start_failure(error.error)),
            },
        };
        let wait = request.wait.saturating_sub(self.clock.monotonic().saturating_sub(started));
        let reached = self.wait_until_usable(&vehicle, pod, wait).await?;
        Ok(match reached {
            Reached::Usable(pod, probe) => {
                let status = if adopted { EnsureStatus::Adopted } else { EnsureStatus::Running };
                let found = if adopted {
                    " Its create answer was lost; it was found by its marker."
                } else {
                    ""
                };
                EnsureAnswer {
                    pod: Some(PodView::from(&pod)),
                    driver_version: probe.driver,
                    ..answer(Some(status), format!("Pod {} is usable over SSH.{found}", pod.id))
                }
            }
            Reached::DriverTooOld(pod, driver) => EnsureAnswer {
                pod: Some(PodView::from(&pod)),
                driver_version: Some(driver.clone()),
                recovery: vec![format!(
                    "terminate_pod vehicle={} confirm=\"terminate {}\", then ensure_pod: another host is drawn",
                    vehicle.name, vehicle.pod_name
                )],
                ..answer(
                    Some(EnsureStatus::DriverTooOld),
                    format!(
                        "Pod {} is up and bills, but its driver {driver} is older than {}.",
                        pod.id, vehicle.min_driver_version
                    ),
                )
            },
            Reached::NotYet(pod, why) => EnsureAnswer {
                pod: Some(PodView::from(&pod)),
                ..answer(
                    Some(EnsureStatus::StillInitializing),
                    format!(
                        "Pod {} is {} and on the bill, not usable yet: {why}. Call ensure_pod again to go on waiting.",
                        pod.id, pod.status
                    ),
                )
            },
        })
    }

    /// Reads the endpoint anew every round and believes only a probe (F01, F06).
    async fn wait_until_usable(
        &self,
        vehicle: &Vehicle,
        mut pod: Pod,
        wait: Duration,
    ) -> Result<Reached, Failure> {
        let id = pod.id.clone();
        let start = self.clock.monotonic();
        loop {
            let mut why = "the provider has not started its container".to_owned();
            match self.cloud.pod(&id).await {
                Ok(Some(now)) => pod = now,
                Ok(None) => why = "the provider does not list it yet".to_owned(),
                Err(error) => why = error.to_string(),
            }
            if pod.status == PodStatus::Running {
                match self.probe(vehicle, &pod).await {
                    Ok(probe) if probe.pod_id.as_ref() != Some(&pod.id) => {
                        why = format!(
                            "another machine answers at its address ({})",
                            probe.pod_id.map_or_else(|| "it names no pod".to_owned(), |id| id.0)
                        );
                    }
                    Ok(probe) => {
                        return Ok(match probe.driver.clone() {
                            Some(driver) if is_older(&driver, &vehicle.min_driver_version) => {
                                Reached::DriverTooOld(pod, driver)
                            }
                            _ => Reached::Usable(pod, probe),
                        });
                    }
                    Err(failure) if failure.retryable => why = failure.message,
                    Err(failure) => return Err(failure),
                }
            }
            if let Some(age) =
                boot_age(&pod, self.clock.now()).filter(|age| *age > vehicle.boot_max)
            {
                return Err(self.give_up_on_boot(vehicle, &pod, age, &why).await);
            }
            if self.clock.monotonic().saturating_sub(start) >= wait {
                return Ok(Reached::NotYet(pod, why));
            }
            tokio::time::sleep(vehicle.poll_interval.min(Duration::from_secs(3))).await;
        }
    }

    /// I05: a boot that never becomes usable is stopped, read back, and its cost is said.
    async fn give_up_on_boot(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        age: Duration,
        why: &str,
    ) -> Failure {
        let cost = pod
            .price
            .known()
            .map_or_else(|| "unknown".to_owned(), |rate| rate.cost_of(age).to_string());
        let message = format!(
            "pod {} was not usable {} s after its start (boot_max_sec {}), which cost {cost}: {why}",
            pod.id,
            age.as_secs(),
            vehicle.boot_max.as_secs()
        );
        match self.stop_pod(&vehicle.name.0).await {
            Ok(stop) if stop.is_off() => Failure::new(
                FailureKind::Timeout,
                format!("{message}. It was stopped and EXITED was read back"),
                "call ensure_pod again, or terminate the pod first to draw another host",
            ),
            Ok(stop) => Failure::new(
                FailureKind::Unconfirmed,
                format!("{message}. {}", stop.message),
                "stop it in the RunPod console",
            )
            .billing(StillBilling::Unknown),
            Err(failure) => Failure::new(
                FailureKind::Unconfirmed,
                format!("{message}. Stopping it failed: {}", failure.message),
                "stop it in the RunPod console",
            )
            .billing(StillBilling::Unknown),
        }
    }
}

enum Reached {
    Usable(Pod, PodProbe),
    DriverTooOld(Pod, String),
    NotYet(Pod, String),
}

fn boot_age(pod: &Pod, now: DateTime<Utc>) -> Option<Duration> {
    (now - pod.started_at.or(pod.created_at)?).to_std().ok()
}

/// Compares driver versions number by number; what cannot be read is not older.
fn is_older(found: &str, wanted: &str) -> bool {
    let numbers = |text: &str| {
        text.trim().split('.').map(|part| part.parse::<u32>().ok()).collect::<Option<Vec<_>>>()
    };
    match (numbers(found), numbers(wanted)) {
        (Some(found), Some(wanted)) => found < wanted,
        _ => false,
    }
}

fn no_capacity(error: &StepError) -> Option<String> {
    match error {
        StepError::Cloud(error) if error.kind == CloudErrorKind::NoCapacity => {
            Some(error.detail.clone())
        }
        _ => None,
    }
}

fn recovery(vehicle: &Vehicle, existing: Option<&Pod>) -> Vec<String> {
    let mut ways = vec![
        format!("gpu_availability vehicle={}: see where an allowed GPU is in stock", vehicle.name),
        "wait a few minutes and call ensure_pod again".to_owned(),
        "allow another GPU type in gpu_type_ids".to_owned(),
    ];
    if existing.is_some() {
        ways.push(format!(
            "the stopped pod is tied to its host: terminate_pod vehicle={} confirm=\"terminate {}\", then ensure_pod draws another host on the same volume",
            vehicle.name, vehicle.pod_name
        ));
    }
    ways
}

fn no_place(vehicle: &Vehicle) -> Failure {
    Failure::new(
        FailureKind::Config,
        format!("vehicle {} names no data centre or no GPU type", vehicle.name),
        "set datacenter_preference and gpu_type_ids",
    )
}

/// A failure while something was being started. What may have taken effect may bill.
pub(super) fn start_failure(error: StepError) -> Failure {
    let message = error.to_string();
    match error {
        StepError::Cloud(error) => {
            let billing = if error.may_have_taken_effect() {
                StillBilling::Unknown
            } else {
                StillBilling::No
            };
            Failure::from(error).billing(billing)
        }
        StepError::CreateLost { .. } => Failure::new(
            FailureKind::Unconfirmed,
            message,
            "call pod_status in a minute; if a pod appears there, ensure_pod goes on with it",
        )
        .billing(StillBilling::Unknown)
        .retryable(),
        StepError::CreatedTwice(_) => Failure::new(
            FailureKind::Unconfirmed,
            message,
            "stop_pod stops every pod of this name; terminate all but one in the RunPod console",
        )
        .billing(StillBilling::Yes),
        StepError::Shell(error) => error.into(),
        StepError::CommandFailed { .. } => Failure::new(
            FailureKind::PodCommand,
            message,
            "read the message; pod_status shows disk and mounts",
        )
        .billing(StillBilling::Yes),
        StepError::NoShell => {
            Failure::new(FailureKind::Internal, message, "this is a mistake in podtether")
                .billing(StillBilling::Yes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_versions_are_compared_number_by_number() {
        assert!(is_older("525.60.13", "535.129.03"));
        assert!(is_older("535.54", "535.129.03"));
        assert!(!is_older("535.129.03", "535.129.03"));
        assert!(!is_older("550.127.05", "535.129.03"));
        assert!(!is_older("N/A", "535.129.03"));
    }
}
