//! From "the provider calls it RUNNING" to "usable": a probe over SSH that proves which pod answers,
//! that its volume is mounted, and that its driver is new enough.

use super::Tether;
use super::boot::{self, Boot};
use crate::domain::{Pod, PodId, PodStatus, Usd, Vehicle};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::ledger::Event;
use crate::pod::{MountKind, PodProbe};
use std::time::Duration;

/// Shortest time for a probe, when the wait is all but over.
const LAST_PROBE: Duration = Duration::from_secs(4);

/// How far a wait came.
pub(super) enum Reached {
    /// Proven.
    Usable(Pod, PodProbe),
    /// Up, on a host whose driver is too old.
    DriverTooOld(Pod, String),
    /// Up, without a GPU: a stopped pod can come back with none (RunPod's "zero GPU" page).
    NoGpu(Pod),
    /// Not yet, and why.
    NotYet(Pod, String),
}

impl Tether {
    /// Reads the endpoint anew every round and believes only a probe (F01, F06).
    pub(super) async fn wait_until_usable(
        &self,
        vehicle: &Vehicle,
        mut pod: Pod,
        wait: Duration,
    ) -> Result<Reached, Failure> {
        let id = pod.id.clone();
        let start = self.clock.monotonic();
        loop {
            let mut has_no_gpu = false;
            let mut why = "the provider has not started its container".to_owned();
            match self.cloud.pod(&id).await {
                Ok(Some(now)) => pod = now,
                Ok(None) => why = "the provider does not list it yet".to_owned(),
                Err(error) => why = error.to_string(),
            }
            if pod.status == PodStatus::Running {
                // Bounded by what is left, so that the answer comes in the time that was given.
                let left = wait.saturating_sub(self.clock.monotonic().saturating_sub(start));
                let probe =
                    tokio::time::timeout(left.max(LAST_PROBE), self.probe(vehicle, &pod)).await;
                match probe.unwrap_or_else(|_| Err(slow_shell(&pod))) {
                    Ok(probe) if probe.pod_id.as_ref() != Some(&pod.id) => {
                        why = format!(
                            "another machine answers at its address ({})",
                            probe.pod_id.map_or_else(|| "it names no pod".to_owned(), |id| id.0)
                        );
                    }
                    // The provider says so too: there is nothing to wait for.
                    Ok(probe) if probe.gpus.is_empty() && has_zero_gpus(&pod) => {
                        return Ok(Reached::NoGpu(pod));
                    }
                    // Looked at again until the wait is over: the driver may come up late.
                    Ok(probe) if probe.gpus.is_empty() && !probe.gpu_answers => {
                        why = "nvidia-smi does not answer".to_owned();
                    }
                    Ok(probe) if probe.gpus.is_empty() => {
                        has_no_gpu = true;
                        why = "nvidia-smi shows no GPU".to_owned();
                    }
                    // Looked at again until the wait is over, like a driver.
                    Ok(probe) if !probe.volume_answers => {
                        why =
                            format!("its volume at {} is unresponsive", vehicle.volume_mount_path);
                    }
                    Ok(probe) => {
                        boot::over(vehicle);
                        self.check_mount(vehicle, &pod, &probe)?;
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
            let pending = boot::pending(vehicle, &id);
            let age = pending.and_then(|boot| (self.clock.now() - boot.asked_at).to_std().ok());
            if let Some(age) = age.filter(|age| *age > vehicle.boot_max) {
                return Err(self.give_up_on_boot(vehicle, &pod, age, &why).await);
            }
            if self.clock.monotonic().saturating_sub(start) >= wait {
                let reached =
                    if has_no_gpu { Reached::NoGpu(pod) } else { Reached::NotYet(pod, why) };
                return Ok(reached);
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
        let usd = pod.price.known().map(|rate| rate.cost_of(age));
        let cost = usd.map_or_else(|| "unknown".to_owned(), |usd| usd.to_string());
        let message = format!(
            "pod {} was not usable {} s after its start (boot_max_sec {}), which cost {cost}: {why}",
            pod.id,
            age.as_secs(),
            vehicle.boot_max.as_secs()
        );
        // Read before the stop, which ends it.
        let boot = boot::pending(vehicle, &pod.id);
        let stopped = self.stop_known_pod(&vehicle.name.0, Some(&pod.id)).await;
        self.note_failed_boot(vehicle, boot, age, usd);
        match stopped {
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

    fn note_failed_boot(
        &self,
        vehicle: &Vehicle,
        boot: Option<Boot>,
        age: Duration,
        usd: Option<Usd>,
    ) {
        let (Some(ledger), Some(boot)) = (&self.ledger, boot) else { return };
        let noted = ledger.append(Event::BootFailed {
            vehicle: vehicle.name.0.clone(),
            pod: boot.pod,
            asked_at: boot.asked_at,
            seconds: age.as_secs(),
            micros: usd.map(Usd::micros),
        });
        if let Err(error) = noted {
            tracing::warn!(%error, vehicle = %vehicle.name, "a boot that was given up could not be noted");
        }
    }

    /// A05: a new pod may be hidden for a while.
    pub(super) async fn wait_until_listed(&self, id: &PodId) {
        let start = self.clock.monotonic();
        while self.clock.monotonic().saturating_sub(start) < self.settings.settle {
            if self.cloud.pods().await.is_ok_and(|pods| pods.iter().any(|pod| &pod.id == id)) {
                return;
            }
            tokio::time::sleep(self.settings.off.read_every).await;
        }
    }

    /// D11: what jobs write to a mount path without a volume is lost at the first stop.
    fn check_mount(&self, vehicle: &Vehicle, pod: &Pod, probe: &PodProbe) -> Result<(), Failure> {
        let path = &vehicle.volume_mount_path;
        let own = pod.mounts.first().map(|mount| mount.volume_id.0.as_str());
        let what = match (probe.mount, probe.identity.as_deref()) {
            (MountKind::Missing, _) => format!("there is no {path} on it"),
            // A local pod is no container: its mount is a link, or a folder of this machine.
            (MountKind::SameDevice, _) if !self.cloud.is_local() => {
                format!("{path} is on its container disk, not on a volume")
            }
            (_, Some(found)) if own.is_some_and(|own| own != found) => {
                format!("{path} carries the identity of another volume ({found})")
            }
            _ => return Ok(()),
        };
        Err(Failure::new(
            FailureKind::Conflict,
            format!("pod {} is up and bills, but {what}", pod.id),
            format!(
                "stop_pod vehicle={}; then look at the pod in the RunPod console",
                vehicle.name
            ),
        )
        .billing(StillBilling::Yes))
    }
}

/// Whether the provider itself shows a pod that came back from a stop with no GPU.
fn has_zero_gpus(pod: &Pod) -> bool {
    matches!(pod.gpu, Some((_, 0)))
}

pub(super) fn slow_shell(pod: &Pod) -> Failure {
    let message = format!("the shell of pod {} did not answer in time", pod.id);
    Failure::new(FailureKind::SshUnreachable, message, "call ensure_pod again")
        .billing(StillBilling::Yes)
        .retryable()
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
