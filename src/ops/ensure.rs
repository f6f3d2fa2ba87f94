//! ensure_pod: from nothing, or from a stopped pod, to one that was proven usable.

use super::boot::{self, Boot};
use super::gather::Needs;
use super::usable::Reached;
use super::view::created_pod;
use super::view::sentence;
use super::watchdog::Guarded;
use super::{CloudName, PodView, StepView, Tether};
use crate::apply::{self, StepError, StepOutcome};
use crate::cloud::CloudErrorKind;
use crate::config;
use crate::domain::{
    FuseReport, JobsSeen, Pod, PodStatus, Price, UnattendedBill, Vehicle, Volume, Watchdog,
};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::plan::{self, Draft, EnsureInputs, Facts};
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
    /// No machine with the allowed GPU is free, or the pod came up without one; the message says
    /// whether anything bills.
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
    /// Dry run: the most it can cost, line by line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub worst_case: Vec<String>,
    /// Ways out when there is no usable pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recovery: Vec<String>,
    /// What stops this pod without being asked, as in pod_status.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub fuses: Vec<FuseReport>,
    /// What it costs at most when nobody looks after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Value")]
    pub unattended: Option<UnattendedBill>,
    /// What the config leaves open, and what it sets that this version does not act on yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Tether {
    /// Has the vehicle's pod running, or says how far it is.
    ///
    /// # Errors
    /// Refusals, and everything that keeps the pod from being created, started or read. A failure
    /// after something may have been started says that it may bill.
    pub async fn ensure_pod(&self, request: &EnsureRequest) -> Result<EnsureAnswer, Failure> {
        let vehicle = self.vehicle(request.vehicle.as_deref())?;
        let started = self.clock.monotonic();
        let turn = match request.dry_run {
            true => None,
            false => self.turn(request.wait).await?,
        };
        if !request.dry_run {
            // A22: what is being stopped is not started.
            self.until_no_stop_is_under_way(&vehicle, request.wait).await?;
            self.not_during_a_drill(&vehicle)?;
        }
        let (draft, facts) = self.draft_ensure(&vehicle, request.vehicle.is_some()).await?;
        let adds = draft.adds;
        let existing = facts.pods_named(&vehicle.pod_name).next().cloned();
        let approved = self.review_spend(draft, facts).await?;
        let answer = |status, message: String| EnsureAnswer {
            cloud: self.cloud_name(),
            vehicle: vehicle.name.0.clone(),
            status,
            message,
            pod: None,
            driver_version: None,
            plan: None,
            worst_case: Vec::new(),
            recovery: Vec::new(),
            fuses: Vec::new(),
            unattended: None,
            warnings: self.warnings(),
        };
        // What is said of a pod that is on the bill, or must be taken to be.
        let watched = |answer: EnsureAnswer, pod: &Pod, (jobs, watchdog): &Guarded| {
            let (fuses, unattended) = self.fuses(&vehicle, pod, jobs, watchdog);
            let message = format!("{} {}.", answer.message, sentence(&unattended.text));
            EnsureAnswer {
                message,
                pod: Some(PodView::from(pod)),
                fuses,
                unattended: Some(unattended),
                ..answer
            }
        };
        if request.dry_run {
            let mut message = match (&existing, approved.steps().is_empty()) {
                (Some(pod), true) => format!("Nothing to do: pod {} is {}.", pod.id, pod.status),
                _ => "This is what the call would send; nothing was changed.".to_owned(),
            };
            if let Some(told) = self.receipts_told(&vehicle) {
                message.push_str(&format!(" {told}"));
            }
            return Ok(EnsureAnswer {
                pod: existing.as_ref().map(PodView::from),
                plan: Some(StepView::all(approved.steps(), &*self.cloud)),
                worst_case: approved.worst_case().told(),
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
        let (price, starts) = (adds.unwrap_or(Price::Unknown), !approved.steps().is_empty());
        self.arm_before_a_start(&vehicle, existing.as_ref(), price, starts).await?;
        let (pod, adopted) = match apply::apply(&approved, &self.ports(&vehicle, None, adds)).await
        {
            Ok(outcomes) => match (created_pod(&outcomes), existing) {
                (Some((pod, adopted)), _) => {
                    // Whoever is next in turn must see it in the list.
                    self.wait_until_listed(&pod.id).await;
                    (pod.clone(), adopted)
                }
                (None, Some(pod)) => (pod, false),
                (None, None) => return Err(no_place(&vehicle)),
            },
            Err(error) => match no_capacity(&error.error) {
                Some(text) => {
                    return Ok(EnsureAnswer {
                        recovery: recovery(&vehicle, existing.as_ref()),
                        ..answer(
                            Some(EnsureStatus::StartFailedNoGpu),
                            format!(
                                "No machine is free: {text}. No pod was started.{}",
                                created_volume(&error.done)
                            ),
                        )
                    });
                }
                None => {
                    let mut failure = start_failure(error.error);
                    failure.message.push_str(&created_volume(&error.done));
                    return Err(failure);
                }
            },
        };
        if !approved.steps().is_empty() {
            boot::note(&vehicle, &Boot { pod: pod.id.clone(), asked_at: self.clock.now() });
        }
        drop(turn);
        let wait = request.wait.saturating_sub(self.clock.monotonic().saturating_sub(started));
        let reached = self.wait_until_usable(&vehicle, pod, wait).await?;
        let guarded = match &reached {
            Reached::Usable(pod, _) | Reached::DriverTooOld(pod, _) | Reached::NoGpu(pod) => {
                let took = self.clock.monotonic().saturating_sub(started);
                self.guard_pod(&vehicle, pod, request.wait, took).await
            }
            Reached::NotYet(..) => {
                let why = "the pod is not usable yet";
                (JobsSeen::Unknown(why.to_owned()), Watchdog::Unknown(format!("not armed: {why}")))
            }
        };
        Ok(match reached {
            Reached::Usable(pod, probe) => {
                let status = if adopted { EnsureStatus::Adopted } else { EnsureStatus::Running };
                let found = if adopted {
                    " Its create answer was lost; it was found by its marker."
                } else {
                    ""
                };
                let usable = EnsureAnswer {
                    driver_version: probe.driver,
                    ..answer(Some(status), format!("Pod {} is usable over SSH.{found}", pod.id))
                };
                watched(usable, &pod, &guarded)
            }
            Reached::DriverTooOld(pod, driver) => {
                let old = EnsureAnswer {
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
                };
                watched(old, &pod, &guarded)
            }
            Reached::NoGpu(pod) => {
                let without = EnsureAnswer {
                    recovery: recovery(&vehicle, Some(&pod)),
                    ..answer(
                        Some(EnsureStatus::StartFailedNoGpu),
                        format!(
                            "Pod {} is up AND BILLS, but nvidia-smi shows no GPU on it: stop_pod.",
                            pod.id
                        ),
                    )
                };
                watched(without, &pod, &guarded)
            }
            Reached::NotYet(pod, why) => {
                // It was asked to start: a status that says otherwise may be an old one.
                let bill = if pod.status.bills_compute() { "is" } else { "may be" };
                let message = format!(
                    "Pod {} is {} and {bill} on the bill, not usable yet: {why}. Call ensure_pod again to go on waiting.",
                    pod.id, pod.status
                );
                watched(answer(Some(EnsureStatus::StillInitializing), message), &pod, &guarded)
            }
        })
    }
}

impl Tether {
    /// Drafts what has the vehicle's pod running, with the facts that it is drafted from.
    pub(super) async fn draft_ensure(
        &self,
        vehicle: &Vehicle,
        named: bool,
    ) -> Result<(Draft, Facts), Failure> {
        let needs = Needs { volumes: true, offers_for: Some(vehicle.gpu_count) };
        let mut facts = self.gather(needs).await?;
        self.see(vehicle, &mut facts).await;
        self.reconcile(&mut facts).await?;
        facts.spend.fuse = self.fuse_of_a_start(vehicle);
        // Looked at only now, so that the failure can say what bills all the same.
        let public_key = public_key(vehicle)
            .map_err(|failure| failure.billing(super::bills(&vehicle.pod_name, &facts.pods)))?;
        let nonce = format!("{:016x}", rand::rng().random::<u64>());
        let draft = plan::ensure(vehicle, named, &facts, EnsureInputs { public_key, nonce });
        Ok((draft, facts))
    }
}

/// The public half of the vehicle's key, once both halves were found usable.
fn public_key(vehicle: &Vehicle) -> Result<String, Failure> {
    config::check_identity(vehicle).map_err(|error| {
        Failure::new(FailureKind::Config, error, "mend the config; nothing was changed")
    })?;
    Ok(crate::pod::ssh::identity::public_key_text(&vehicle.ssh_identity)?)
}

/// What an earlier step of a plan that failed has put on the bill.
fn created_volume(done: &[StepOutcome]) -> String {
    done.iter()
        .filter_map(|outcome| match outcome {
            StepOutcome::VolumeCreated(volume) => Some(format!(
                " Network volume {:?} was created in {} before and bills {} a month.",
                volume.name,
                volume.data_center,
                Volume::usd_per_month(volume.size_gb)
            )),
            _ => None,
        })
        .collect()
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
            // A start that is refused as not valid any more may have been made already.
            let is_conflict = error.kind == CloudErrorKind::Conflict;
            let billing = if error.may_have_taken_effect() || is_conflict {
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
        StepError::NotNoted(_) => Failure::new(
            FailureKind::Config,
            message,
            "mend the state folder or free the disk; nothing is started without a journal, stop_pod works all the same",
        )
        .billing(StillBilling::No),
        StepError::NoShell => {
            Failure::new(FailureKind::Internal, message, "this is a mistake in podtether")
                .billing(StillBilling::Yes)
        }
    }
}
