//! pod_status: what is so, what it costs, and what would stop it.

use super::gather::Needs;
use super::grade::{Evidence, Grade};
use super::view::sentence;
use super::watchdog_fuse::watchdog_fuse;
use super::{CloudName, PodView, Tether, unaccounted};
use crate::domain::{FuseReport, JobsSeen, PodStatus, UnattendedBill, Usd, Volume, Watchdog};
use crate::error::Failure;
use crate::plan::LiveJobs;
use crate::pod::PodProbe;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// How the vehicle's pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PodState {
    /// The account has no pod of this name.
    NoPod,
    /// EXITED: no compute on the bill.
    Stopped,
    /// Running and usable over SSH.
    Running,
    /// On the bill and not usable over SSH (yet).
    RunningSshPending,
    /// The provider gave up on it.
    Error,
    /// A status that is not known here, or a create whose outcome is not known; it counts as billing.
    Unknown,
}

/// What a look at the pod saw of its machine. A field is missing when the pod did not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Seen {
    /// GPU use in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_util_percent: Option<u32>,
    /// GPU memory in use, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_memory_mib: Option<u64>,
    /// NVIDIA driver of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<String>,
    /// Memory in use, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_percent: Option<u64>,
    /// Free on the volume, in GB; the provider shows its pool, not the quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_free_gb: Option<u64>,
    /// Free on the container disk, in GB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_free_gb: Option<u64>,
}

impl Seen {
    pub(super) fn of(pod: &PodProbe) -> Self {
        let gpu = pod.gpus.first();
        let gb = |bytes: u64| bytes / 1_000_000_000;
        Self {
            gpu_util_percent: gpu.and_then(|gpu| gpu.percent),
            gpu_memory_mib: gpu.and_then(|gpu| gpu.used_mib),
            driver_version: pod.driver.clone(),
            memory_percent: pod
                .memory
                .and_then(|(used, total)| used.saturating_mul(100).checked_div(total)),
            volume_free_gb: pod.mount_free.map(gb),
            disk_free_gb: pod.disk_free.map(gb),
        }
    }
}

/// The answer of pod_status.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PodStatusAnswer {
    /// Which cloud answered.
    pub cloud: CloudName,
    /// For which vehicle.
    pub vehicle: String,
    /// How the pod is.
    pub status: PodState,
    /// What is so and what to do next.
    pub message: String,
    /// The pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodView>,
    /// Seconds since its container was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uptime_sec: Option<u64>,
    /// What this boot has cost so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_since_start: Option<Usd>,
    /// Live jobs, when they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_jobs: Option<Vec<String>>,
    /// Why they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_jobs_unknown: Option<String>,
    /// What the pod says of its machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<Seen>,
    /// What stops this pod without being asked, each with its proof. Empty when nothing bills.
    pub fuses: Vec<FuseReport>,
    /// What it costs at most when nobody looks after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unattended: Option<UnattendedBill>,
    /// Of a stopped pod: how much is known of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade: Option<Grade>,
    /// What that rests on, with source, time and age.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub evidence: Vec<Evidence>,
    /// What the network volume bills each month; missing when it does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_usd_per_month: Option<Usd>,
    /// Other pods that no vehicle declares; they make every change but a stop refuse.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_pods: Vec<PodView>,
}

/// What the provider says must be told in time also when the pod's shell hangs: a read is cut off
/// after 5 s, and then nothing would be told at all.
const ANSWER_IN: Duration = Duration::from_millis(3_900);
/// The least that the shell is given.
const LEAST: Duration = Duration::from_millis(400);

impl Tether {
    /// Looks at the vehicle's pod; changes nothing.
    ///
    /// # Errors
    /// When the vehicle is unknown or the pods cannot be listed.
    pub async fn pod_status(&self, vehicle: Option<&str>) -> Result<PodStatusAnswer, Failure> {
        let vehicle = self.vehicle(vehicle)?;
        let started = self.clock.monotonic();
        let left =
            || ANSWER_IN.saturating_sub(self.clock.monotonic().saturating_sub(started)).max(LEAST);
        let mut facts = self.gather(Needs { volumes: true, offers_for: None }).await?;
        // A list can be old; what it says must not wait for longer than a read may take.
        let _ = tokio::time::timeout(left(), self.see(&vehicle, &mut facts)).await;
        let listed_at = self.clock.now();
        let ours: Vec<_> = facts.pods_named(&vehicle.pod_name).collect();
        let unknown_pods = facts
            .pods
            .iter()
            .filter(|pod| !pod.is_deleted() && !facts.tolerated.contains(&pod.name))
            .filter(|pod| facts.declared.iter().all(|(_, name)| *name != pod.name))
            .map(PodView::from)
            .collect();
        let mut answer = PodStatusAnswer {
            cloud: self.cloud_name(),
            vehicle: vehicle.name.0.clone(),
            status: PodState::NoPod,
            message: format!(
                "The account has no pod named {:?}; ensure_pod creates it.",
                vehicle.pod_name
            ),
            pod: None,
            uptime_sec: None,
            usd_since_start: None,
            live_jobs: None,
            live_jobs_unknown: None,
            machine: None,
            fuses: Vec::new(),
            unattended: None,
            grade: None,
            evidence: Vec::new(),
            volume_usd_per_month: facts
                .volumes_named(&vehicle.network_volume_name)
                .next()
                .map(|volume| Volume::usd_per_month(volume.size_gb)),
            unknown_pods,
        };
        // With two pods of one name the one on the bill is shown, and the message says that there are two.
        let Some(pod) = ours
            .iter()
            .copied()
            .find(|pod| pod.status.bills_compute())
            .or_else(|| ours.first().copied())
        else {
            if let Some(create) = self.unaccounted(&vehicle, &facts.pods) {
                answer.status = PodState::Unknown;
                answer.message = unaccounted::told(&create);
            }
            if let Some(aside) = self.set_aside() {
                answer.message.push_str(&format!(" Note that {aside}."));
            }
            return Ok(answer);
        };
        answer.pod = Some(PodView::from(pod));
        if pod.status.bills_compute() {
            let up = pod.started_at.and_then(|at| (self.clock.now() - at).to_std().ok());
            answer.uptime_sec = up.map(|up| up.as_secs());
            answer.usd_since_start = up.and_then(|up| Some(pod.price.known()?.cost_of(up)));
        }
        (answer.status, answer.message) = match &pod.status {
            PodStatus::Exited => (PodState::Stopped, "Stopped; no compute on the bill. ensure_pod starts it.".to_owned()),
            PodStatus::Error => (PodState::Error, "Status ERROR; it may bill. Look in the RunPod console; terminate_pod deletes it, its volume stays.".to_owned()),
            PodStatus::Provisioning | PodStatus::Starting => (PodState::RunningSshPending, format!("{}; on the bill, not usable yet. ensure_pod waits for it.", pod.status)),
            PodStatus::Running => (PodState::Running, "Running and usable over SSH.".to_owned()),
            PodStatus::Terminated | PodStatus::Other(_) => (PodState::Unknown, format!("Status {:?} is not known here; it counts as billing. Look in the RunPod console.", pod.status.as_str())),
        };
        let mut jobs_seen = JobsSeen::Unknown(format!("the pod is {}", pod.status));
        let mut watchdog = Watchdog::Unknown(format!("the pod is {}", pod.status));
        if pod.status == PodStatus::Running {
            // Volume and GPU are given a little less than the answer has, so that the rest is told.
            let patience =
                left().saturating_sub(Duration::from_millis(500)).min(super::probe::SHORT);
            let look = self.look(&vehicle, pod, patience, false, None);
            let look = tokio::time::timeout(left(), look).await;
            match look.unwrap_or_else(|_| Err(super::usable::slow_shell(pod))) {
                Ok(look) => {
                    let live = super::probe::live_jobs(&look);
                    jobs_seen = look.jobs_seen();
                    let report = look.pod.watchdog.as_deref();
                    watchdog = watchdog_fuse(report, &jobs_seen, self.clock.now());
                    match live {
                        LiveJobs::Known(jobs) => {
                            answer.live_jobs = Some(jobs.iter().map(ToString::to_string).collect())
                        }
                        LiveJobs::Unknown(why) => answer.live_jobs_unknown = Some(why),
                    }
                    if !look.pod.volume_answers {
                        answer.message = format!(
                            "Running and usable over SSH, but its volume at {} is unresponsive.",
                            vehicle.volume_mount_path
                        );
                    }
                    answer.machine = Some(Seen::of(&look.pod));
                }
                Err(failure) => {
                    answer.status = PodState::RunningSshPending;
                    answer.message = format!(
                        "RUNNING and on the bill, but its shell does not answer: {}",
                        failure.message
                    );
                    jobs_seen = JobsSeen::Unknown(failure.message.clone());
                    watchdog = Watchdog::Unknown(failure.message.clone());
                    answer.live_jobs_unknown = Some(failure.message);
                }
            }
        }
        if ours.len() > 1 {
            let ids: Vec<_> =
                ours.iter().map(|pod| format!("{} ({})", pod.id, pod.status)).collect();
            answer.message = format!(
                "{} pods have this name: {}. {}",
                ours.len(),
                ids.join(", "),
                answer.message
            );
        }
        if pod.status.bills_compute() {
            let (fuses, unattended) = self.fuses(&vehicle, pod, &jobs_seen, &watchdog);
            answer.message.push_str(&format!(" {}.", sentence(&unattended.text)));
            answer.fuses = fuses;
            answer.unattended = Some(unattended);
        } else {
            let (grade, evidence) = self.grade_of_stopped(pod, listed_at, left()).await;
            for about_the_bill in evidence.iter().filter(|known| known.field == "billing") {
                answer.message.push_str(&format!(" The bill: {}.", about_the_bill.value));
            }
            answer.grade = Some(grade);
            answer.evidence = evidence;
        }
        Ok(answer)
    }
}
