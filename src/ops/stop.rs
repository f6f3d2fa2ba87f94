//! stop_pod: off the bill, as far as it was read back.

use super::gather::Needs;
use super::grade::{Evidence, Grade};
use super::{CloudName, PodView, Tether, boot, unaccounted};
use crate::apply::{self, OffOutcome, StepOutcome};
use crate::cloud::{CloudError, CloudErrorKind};
use crate::domain::{Pod, PodId, PodStatus, Usd, Vehicle, Volume};
use crate::error::{Failure, StillBilling};
use crate::ledger::{Action, Noted};
use crate::plan::{self, Facts};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

/// How far a stop is known to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopStatus {
    /// EXITED was read back after it was asked, or the pod went from the provider's lists.
    Stopped,
    /// It was EXITED before.
    AlreadyStopped,
    /// The account has no pod of this name.
    NoPod,
    /// It was asked and not seen to take effect, or a create is neither found nor proven absent: a
    /// pod may still bill.
    StopUnconfirmed,
}

/// The answer of stop_pod.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StopAnswer {
    /// Which cloud answered.
    pub cloud: CloudName,
    /// For which vehicle.
    pub vehicle: String,
    /// How far it is.
    pub status: StopStatus,
    /// How much is known. The bill is about an hour late: pod_status says later when it is flat.
    pub grade: Grade,
    /// Every field with its source, time and age.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub evidence: Vec<Evidence>,
    /// What is so and what to do next.
    pub message: String,
    /// The provider's last word for the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<String>,
    /// When that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<DateTime<Utc>>,
    /// How often the provider was asked to stop it.
    pub asked: u32,
    /// Price of the pod for one hour before the stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_usd_per_hour: Option<Usd>,
    /// What goes on billing each month: the network volume. Missing when it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub still_bills_usd_per_month: Option<Usd>,
    /// The pods that were acted on, or found stopped.
    pub pods: Vec<PodView>,
    /// Whether only a person can go on: what was refused will be refused again.
    #[serde(skip)]
    pub needs_a_person: bool,
}

impl StopAnswer {
    /// Whether no compute of this vehicle bills, as read from the provider.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        !matches!(self.status, StopStatus::StopUnconfirmed)
    }
}

impl Tether {
    /// Stops the vehicle's pod and reads it back.
    ///
    /// # Errors
    /// Only when the vehicle is unknown or the pods cannot be listed; then nothing is known and the
    /// failure says so. A stop that was not confirmed is an answer.
    pub async fn stop_pod(&self, vehicle: &str) -> Result<StopAnswer, Failure> {
        self.stop_known_pod(vehicle, None).await
    }

    /// The same for a caller who knows the vehicle's pod by its id, else by the id in the journal: that
    /// pod is stopped also when the list of all pods cannot be read or does not show it.
    ///
    /// # Errors
    /// As [`Self::stop_pod`], when the pod cannot be read by its id either.
    pub(crate) async fn stop_known_pod(
        &self,
        vehicle: &str,
        known: Option<&PodId>,
    ) -> Result<StopAnswer, Failure> {
        let (vehicle, former) = match self.vehicle(Some(vehicle)) {
            Ok(vehicle) => (vehicle, None),
            Err(slip) => match self.former(vehicle).await {
                Some((vehicle, pods)) => (vehicle, Some(pods)),
                None => return Err(slip),
            },
        };
        let last = self.last_pod(&vehicle);
        let (asked_for, known) = (known, known.or(last.as_ref()));
        let mut facts = self.facts_for_a_stop(&vehicle, known).await.map_err(unknown)?;
        if let Some(pods) = &former {
            // Its name is nobody's any more: only what the journal knows by its id is its pod.
            facts.pods.retain(|pod| pods.contains(&pod.id));
        }
        let listed_at = self.clock.now();
        let _under_way = self.stop_under_way(&vehicle);
        let approved = self.review(plan::stop(&vehicle, true, &facts), &facts)?;
        let outcomes = match apply::apply(&approved, &self.ports(&vehicle, None, None)).await {
            Ok(outcomes) => outcomes,
            Err(error) => {
                return Err(
                    super::ensure::start_failure(error.error).billing(StillBilling::Unknown)
                );
            }
        };
        if outcomes.iter().filter_map(StepOutcome::off).all(|off| off.confirmed) {
            boot::over(&vehicle);
        }
        let volume = self.volume_of(&vehicle).await;
        self.note_off(&facts.pods);
        let mut answer =
            self.stop_answer(&vehicle, (&facts, listed_at), &outcomes, volume.as_ref());
        if let Some(pod) = asked_for.and_then(|id| renamed(&facts, &vehicle, id))
            && answer.status == StopStatus::NoPod
        {
            (answer.status, answer.grade) = (StopStatus::StopUnconfirmed, Grade::Asked);
            answer.needs_a_person = true;
            answer.message = format!(
                "Pod {} MAY STILL BILL: it is named {:?} now, which is not vehicle {}'s, so it was left alone; it is {}. Stop it in the RunPod console.",
                pod.id, pod.name, vehicle.name, pod.status
            );
        }
        if former.is_some() {
            answer.message = format!(
                "Vehicle {} is not declared any more; its pod is known by the journal. {}",
                vehicle.name, answer.message
            );
        }
        Ok(answer)
    }

    /// A05: one list without the pod is no proof that there is none.
    async fn facts_for_a_stop(
        &self,
        vehicle: &Vehicle,
        known: Option<&PodId>,
    ) -> Result<Facts, Failure> {
        let shows_none = |facts: &Facts| facts.pods_named(&vehicle.pod_name).next().is_none();
        let mut facts = self.gather(Needs::default()).await;
        for _ in 1..LOOKS_FOR_A_POD {
            if !facts.as_ref().is_ok_and(shows_none) {
                break;
            }
            tokio::time::sleep(self.settings.off.read_every).await;
            facts = self.gather(Needs::default()).await;
        }
        // A list that shows another pod of the name may still miss this one.
        if let Some(id) = known
            && !facts.as_ref().is_ok_and(|facts| facts.pods.iter().any(|pod| pod.id == *id))
            && let Ok(Some(pod)) = self.cloud.pod(id).await
        {
            match facts.as_mut() {
                // One of another name is nobody's to stop, and not to be forgotten.
                Ok(facts) if !shows_none(facts) || pod.name != vehicle.pod_name => {
                    facts.pods.push(pod);
                }
                _ if pod.name == vehicle.pod_name => return Ok(self.facts(vec![pod])),
                _ => {}
            }
        }
        let mut facts = facts?;
        let unread = self.see(vehicle, &mut facts).await;
        // Doubt means yes: what only an old list may call off is asked to stop.
        for pod in facts.pods.iter_mut().filter(|pod| unread.contains(&pod.id)) {
            pod.status = PodStatus::Other(UNREAD.to_owned());
        }
        Ok(facts)
    }

    /// A start of one of these pods whose outcome is not known, in words: EXITED may have been read before
    /// it takes effect (A05). Once its request can no longer be on its way, it is none.
    fn start_on_its_way(&self, pods: &[&Pod]) -> Option<String> {
        let book = self.ledger.as_ref()?.book().ok()?;
        let now = Noted::now(&*self.clock);
        book.open_intents().iter().find_map(|intent| {
            let Action::StartPod { pod } = &intent.action else { return None };
            let age = intent.last_noted.age(&now);
            let is_open = age < self.settings.absent_after && pods.iter().any(|its| its.id == *pod);
            let at = intent.at.format("%Y-%m-%d %H:%M:%S UTC");
            is_open.then(|| {
                format!(
                    "EXITED was read, but a start of pod {pod} was sent at {at} and its outcome is not known: it MAY BILL all the same. Call again in two minutes; by then the start has taken effect or never will."
                )
            })
        })
    }

    pub(super) async fn volume_of(&self, vehicle: &Vehicle) -> Option<Volume> {
        let volumes = self.cloud.volumes().await.ok()?;
        volumes.into_iter().find(|volume| volume.name == vehicle.network_volume_name)
    }

    fn stop_answer(
        &self,
        vehicle: &Vehicle,
        (facts, listed_at): (&Facts, DateTime<Utc>),
        outcomes: &[StepOutcome],
        volume: Option<&Volume>,
    ) -> StopAnswer {
        let ours: Vec<&Pod> = facts.pods_named(&vehicle.pod_name).collect();
        let offs: Vec<&OffOutcome> = outcomes.iter().filter_map(StepOutcome::off).collect();
        let monthly = volume.map(|volume| Volume::usd_per_month(volume.size_gb));
        let rest = monthly.map_or_else(String::new, |usd| {
            format!(" Its network volume goes on billing {usd} a month.")
        });
        let unconfirmed = offs.iter().find(|off| !off.confirmed);
        let unknown = || self.unaccounted(vehicle, &facts.pods);
        let (status, message) = match (ours.is_empty(), offs.is_empty(), unconfirmed) {
            (true, _, _) if let Some(create) = unknown() => {
                (StopStatus::StopUnconfirmed, unaccounted::told(&create))
            }
            (true, _, _) => (
                StopStatus::NoPod,
                format!(
                    "The account has no pod named {:?}; nothing of this vehicle computes.{rest}",
                    vehicle.pod_name
                ),
            ),
            (false, true, None) if let Some(why) = self.start_on_its_way(&ours) => {
                (StopStatus::StopUnconfirmed, why)
            }
            (false, true, _) => (
                StopStatus::AlreadyStopped,
                format!("It was stopped before: EXITED was read.{rest}"),
            ),
            (false, false, None) if offs.iter().all(|off| off.was_off) => (
                StopStatus::AlreadyStopped,
                format!(
                    "It was stopped before: the provider refused the request as not valid any more (409), and EXITED was read.{rest}"
                ),
            ),
            (false, false, None) if offs.iter().any(|off| off.observed.is_none()) => (
                StopStatus::Stopped,
                format!(
                    "Off the bill: asked to stop, the pod went from the provider's lists.{rest}"
                ),
            ),
            (false, false, None) => (
                StopStatus::Stopped,
                format!("Stopped: EXITED was read back after the request.{rest}"),
            ),
            (false, false, Some(off)) => (StopStatus::StopUnconfirmed, unconfirmed_message(off)),
        };
        let last = unconfirmed.copied().or_else(|| offs.last().copied());
        // What was read before the request is not what came of it.
        let observed = match last {
            Some(off) => off.observed.as_ref(),
            None => ours.first().map(|pod| &pod.status),
        };
        let now = self.clock.now();
        let mut evidence: Vec<Evidence> =
            ours.iter().flat_map(|pod| of_stop(pod, &offs, listed_at, now)).collect();
        if ours.is_empty() {
            let value = format!("no pod named {:?}", vehicle.pod_name);
            evidence.push(Evidence::new("status", value, LIST, listed_at, now));
        }
        if let Some(volume) = volume {
            evidence.push(of_volume(volume, now));
        }
        StopAnswer {
            cloud: self.cloud_name(),
            vehicle: vehicle.name.0.clone(),
            status,
            grade: match status {
                StopStatus::StopUnconfirmed => Grade::Asked,
                _ => Grade::ApiSays,
            },
            evidence,
            message,
            observed: observed.map(ToString::to_string),
            observed_at: last.map_or(Some(listed_at), |off| off.observed_at),
            asked: offs.iter().map(|off| off.asked).sum(),
            last_usd_per_hour: ours
                .iter()
                .find_map(|pod| pod.price.known())
                .map(crate::domain::UsdPerHour::per_hour),
            still_bills_usd_per_month: monthly,
            pods: ours.into_iter().map(PodView::from).collect(),
            needs_a_person: offs.iter().any(|off| off.blocked.is_some()),
        }
    }
}

/// The pod that the caller runs on, when somebody gave it another name and it bills.
fn renamed<'a>(facts: &'a Facts, vehicle: &Vehicle, id: &PodId) -> Option<&'a Pod> {
    let is_it = |pod: &&Pod| pod.id == *id && pod.name != vehicle.pod_name;
    facts.pods.iter().find(is_it).filter(|pod| pod.status.bills_compute())
}

const LIST: &str = "GET /v2/pods";

/// What is known of one pod after a stop, each thing with where and when it was read.
pub(super) fn of_stop(
    pod: &Pod,
    offs: &[&OffOutcome],
    listed_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Vec<Evidence> {
    let off = offs.iter().find(|off| off.pod == pod.id);
    let status = match off {
        // What was read before the request is not what came of it.
        Some(off) => off.observed_at.map(|at| {
            let source = format!("GET /v2/pods/{}", pod.id);
            let value =
                off.observed.as_ref().map_or_else(|| "not there".to_owned(), ToString::to_string);
            Evidence::new("status", value, source, at, now)
        }),
        None => Some(Evidence::new("status", &pod.status, LIST, listed_at, now)),
    };
    let rate = pod.price.known().map(|rate| {
        let source = format!("{LIST}, before the stop");
        Evidence::new("rate", rate, source, listed_at, now)
    });
    status.into_iter().chain(rate).collect()
}

fn of_volume(volume: &Volume, now: DateTime<Utc>) -> Evidence {
    let value = format!("{} a month", Volume::usd_per_month(volume.size_gb));
    let source = "GET /v2/network-volumes, at the list price of standard storage";
    Evidence::new("volume", value, source, now, now)
}

/// Nothing could be read, so nothing was asked: whoever wants the pod off the bill has another way.
fn unknown(mut failure: Failure) -> Failure {
    if !failure.hint.contains("RunPod console") {
        failure.hint.push_str("; until then look in the RunPod console, the pod may bill");
    }
    failure.billing(StillBilling::Unknown)
}

/// The status of a pod that a list shows off and whose own page could not be read.
pub(super) const UNREAD: &str = "UNREAD";

/// How many lists without the pod it takes to say that there is none.
const LOOKS_FOR_A_POD: u32 = 3;

/// Says in words what was asked, what was seen and what stands in the way.
pub(super) fn unconfirmed_message(off: &OffOutcome) -> String {
    let seen = match (&off.observed, off.observed_at) {
        (Some(status), Some(at)) => format!("last read {status} at {}", at.format("%H:%M:%S UTC")),
        (None, Some(at)) => format!("not listed at {}", at.format("%H:%M:%S UTC")),
        (_, None) => "never read back".to_owned(),
    };
    let times = if off.asked == 1 { "once".to_owned() } else { format!("{} times", off.asked) };
    let why = match (&off.blocked, &off.error) {
        (Some(why), Some(error)) => format!(": {why} (it said: {})", error.detail),
        (Some(why), None) => format!(": {why}"),
        (None, Some(error)) => format!("; {}", in_words(error)),
        (None, None) => String::new(),
    };
    format!(
        "Pod {} MAY STILL BILL: it was asked {times} and is {seen}{why}. Call again, and look in the RunPod console.",
        off.pod
    )
}

/// What a failure says about the stop, and what it does not.
fn in_words(error: &CloudError) -> String {
    use CloudErrorKind as Kind;
    match &error.kind {
        Kind::RateLimited(Some(wait)) => format!(
            "the provider asks to wait {} s before the next request, so nothing more was sent; call again after that",
            wait.as_secs()
        ),
        Kind::RateLimited(None) => {
            "the provider asks to slow down and does not say for how long; call again in a minute"
                .to_owned()
        }
        Kind::Network { .. } => format!("the provider could not be reached ({error})"),
        Kind::Edge => format!(
            "the edge in front of the API answered, which says nothing about the key or the pod ({error})"
        ),
        Kind::Server => format!("the provider is in trouble ({error})"),
        Kind::NotFound => {
            format!(
                "the provider does not know the pod, which is no proof that it is gone ({error})"
            )
        }
        _ => format!("last error: {error}"),
    }
}
