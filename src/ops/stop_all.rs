//! `podtether stop`: off the bill with the fewest dependencies. It needs the provider and a key, and
//! knows our pods without a config by the marker that every create of podtether leaves on them.

mod look;
pub(super) mod ours;

use super::former::former_pods;
use super::grade::{Evidence, Grade};
use super::stop::{of_stop, unconfirmed_message};
use super::{CloudName, unaccounted};
use crate::apply::{self, OffOutcome, Ports, Settings, StepOutcome};
use crate::clock::SharedClock;
use crate::cloud::Cloud;
use crate::config::{Config, ConfigError};
use crate::domain::{Limits, Pod, PodId, Usd, UsdPerHour};
use crate::error::{Failure, StillBilling};
use crate::guard::review;
use crate::ledger::Ledger;
use crate::plan::{self, UnknownCreate};
use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use ours::{Group, is_marked, of_former_pod, of_marked_pod, of_vehicle};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;

/// What is known about one of our pods after the stop.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Confirmation {
    /// The vehicle that it belongs to, or did before it was renamed or removed; missing when no config
    /// could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vehicle: Option<String>,
    /// The provider's id.
    pub pod: PodId,
    /// Its name.
    pub name: String,
    /// Whether the provider was seen to have it off the bill.
    pub off: bool,
    /// How much is known of that.
    pub grade: Grade,
    /// Every field with its source, time and age.
    pub evidence: Vec<Evidence>,
    /// The status that was read back; missing when the pod was not in the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// When that was read, UTC; missing when no read succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_at: Option<DateTime<Utc>>,
    /// How often the provider was asked to stop it; 0 when it was off before.
    pub asked: u32,
    /// Price of the pod for one hour before the stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_usd_per_hour: Option<Usd>,
    /// The same in words.
    pub message: String,
}

/// A pod of the account that was not touched.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LeftAlone {
    /// The provider's id.
    pub pod: PodId,
    /// Its name.
    pub name: String,
    /// The provider's word for its status.
    pub status: String,
    /// Whether its compute is, or must be taken to be, on the bill.
    pub bills: bool,
    /// Why it was left alone.
    pub why: String,
}

/// The answer of `podtether stop`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StopAllAnswer {
    /// Which cloud answered.
    pub cloud: CloudName,
    /// What is wrong with the config, when the pods had to be told by their marker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_config: Option<String>,
    /// Why the account's pods could not be listed. Then only those that the journal knows were stopped,
    /// and nobody can say what else bills.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_listed: Option<String>,
    /// Our pods.
    pub pods: Vec<Confirmation>,
    /// Vehicles of which the account has no pod.
    pub no_pod: Vec<String>,
    /// Creates of vehicles without a pod that are neither found nor proven absent, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unaccounted: Vec<String>,
    /// Everything else in the account; missing when one vehicle was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_alone: Option<Vec<LeftAlone>>,
    /// Whether something of ours may still bill. Without a config a pod that bills and was left
    /// alone counts: nobody can say that no vehicle owns it.
    pub may_still_bill: bool,
}

impl StopAllAnswer {
    /// The same when the account's pods could not be listed.
    fn but(self, not_listed: Option<Failure>) -> Self {
        let Some(failure) = not_listed else { return self };
        let left_alone = None;
        Self { not_listed: Some(failure.message), left_alone, may_still_bill: true, ..self }
    }
}

/// Which pods are ours.
enum Ours {
    /// Those of the names that a config declares.
    Declared(Box<Config>),
    /// The config could not be read: those with podtether's marker.
    Marked { because: String },
}

/// A stop that is ready to be asked for.
pub struct StopAll {
    cloud: Arc<dyn Cloud>,
    clock: SharedClock,
    settings: Settings,
    ours: Ours,
    /// Only read, and only for what it says of a vehicle without a pod.
    ledger: Option<Ledger>,
}

impl StopAll {
    /// For a config that could be read, or with what is wrong with it.
    #[must_use]
    pub fn new(
        config: Result<Config, ConfigError>,
        cloud: Arc<dyn Cloud>,
        clock: SharedClock,
    ) -> Self {
        let ours = match config {
            Ok(config) => Ours::Declared(Box::new(config)),
            Err(error) => Ours::Marked { because: error.to_string() },
        };
        Self { cloud, clock, settings: Settings::default(), ours, ledger: None }
    }

    /// The same with other waits for effects.
    #[must_use]
    pub const fn with_settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// The same with the project's journal, which knows of creates that no list shows yet.
    #[must_use]
    pub fn with_ledger(self, ledger: Option<Ledger>) -> Self {
        Self { ledger, ..self }
    }

    /// Stops every pod that is ours, all at once, and reads each back.
    ///
    /// # Errors
    /// When the account's pods cannot be listed: then nothing was asked and nothing is known.
    pub async fn run(&self) -> Result<StopAllAnswer, Failure> {
        let (pods, not_listed) = self.look().await?;
        let (groups, without_config, why) = match &self.ours {
            Ours::Declared(config) => {
                let of_each = config.vehicles.iter().map(|vehicle| of_vehicle(vehicle, &pods));
                let former = former_pods(self.ledger.as_ref(), config, &pods).into_iter();
                let of_former = former.map(|(pod, name)| of_former_pod(pod, &name));
                (of_each.chain(of_former).collect(), None, UNDECLARED)
            }
            Ours::Marked { because } => {
                let marked = pods.iter().filter(|pod| is_marked(pod));
                (marked.map(of_marked_pod).collect(), Some(because.clone()), UNMARKED)
            }
        };
        let groups: Vec<Group> = groups;
        let is_ours = |pod: &Pod| {
            groups.iter().any(|group| group.facts.pods.iter().any(|ours| ours.id == pod.id))
        };
        let left: Vec<LeftAlone> = pods
            .iter()
            .filter(|pod| !pod.is_deleted() && !is_ours(pod))
            .map(|pod| left_alone(pod, why))
            .collect();
        // Without a config nobody can say that a pod without the marker is no vehicle's.
        let unclear = without_config.is_some() && left.iter().any(|pod| pod.bills);
        let answer = self.stopped(&groups, without_config, Some(left), unclear).await;
        Ok(answer.but(not_listed))
    }

    /// Stops the pods of one vehicle and reads them back.
    ///
    /// # Errors
    /// Bad input when the config, which alone knows vehicles, is broken or does not declare it; and
    /// as [`Self::run`].
    pub async fn run_one(&self, name: &str) -> Result<StopAllAnswer, Failure> {
        let config = match &self.ours {
            Ours::Declared(config) => config,
            Ours::Marked { because } => {
                return Err(Failure::bad_input(format!(
                    "which pod is vehicle {name}'s stands in the config, and that cannot be read: {because}; `podtether stop --all` does without it"
                ))
                .billing(StillBilling::Unknown));
            }
        };
        let (pods, not_listed) = self.look().await?;
        let groups: Vec<Group> = match config.vehicle(Some(name)) {
            Ok(vehicle) => vec![of_vehicle(vehicle, &pods)],
            Err(error) => {
                let former = former_pods(self.ledger.as_ref(), config, &pods).into_iter();
                let groups: Vec<Group> = former
                    .filter(|(_, vehicle)| vehicle == name)
                    .map(|(pod, vehicle)| of_former_pod(pod, &vehicle))
                    .collect();
                if groups.is_empty() {
                    return Err(Failure::bad_input(error).billing(StillBilling::Unknown));
                }
                groups
            }
        };
        Ok(self.stopped(&groups, None, None, false).await.but(not_listed))
    }

    async fn stopped(
        &self,
        groups: &[Group],
        without_config: Option<String>,
        left_alone: Option<Vec<LeftAlone>>,
        unclear: bool,
    ) -> StopAllAnswer {
        let told = join_all(groups.iter().map(|group| self.stop(group))).await;
        let pods: Vec<Confirmation> = told.into_iter().flatten().collect();
        let (mut no_pod, mut unaccounted) = (Vec::new(), Vec::new());
        for group in groups.iter().filter(|group| group.facts.pods.is_empty()) {
            let name = &group.vehicle.name.0;
            match self.unaccounted(name) {
                Some(create) => unaccounted.push(format!("{name}: {}", unaccounted::told(&create))),
                None => no_pod.push(name.clone()),
            }
        }
        let not_off = pods.iter().any(|pod| !pod.off);
        StopAllAnswer {
            cloud: CloudName::of(&*self.cloud),
            without_config,
            not_listed: None,
            may_still_bill: unclear || not_off || !unaccounted.is_empty(),
            pods,
            no_pod,
            unaccounted,
            left_alone,
        }
    }

    fn unaccounted(&self, vehicle: &str) -> Option<UnknownCreate> {
        let (ledger, absent_after) = (self.ledger.as_ref(), self.settings.absent_after);
        unaccounted::unaccounted_create(ledger, vehicle, &[], &*self.clock, absent_after)
    }

    /// Plan, guard, apply, for one vehicle.
    async fn stop(&self, group: &Group) -> Vec<Confirmation> {
        let facts = &group.facts;
        let ports = Ports {
            cloud: &*self.cloud,
            shell: None,
            clock: &*self.clock,
            // With the fewest dependencies: a stop needs no journal.
            notes: None,
            settings: self.settings,
        };
        let listed_at = self.clock.now();
        let draft = plan::stop(&group.vehicle, true, facts);
        let result = match review(draft, facts, &Limits::default()) {
            Ok(approved) => apply::apply(&approved, &ports).await.map_err(|error| {
                (error.done.clone(), format!("the stop was not carried out: {error}"))
            }),
            Err(refusals) => Err((Vec::new(), Failure::from(refusals).to_string())),
        };
        let (outcomes, trouble) = match result {
            Ok(outcomes) => (outcomes, None),
            Err((done, trouble)) => (done, Some(trouble)),
        };
        let vehicle = group.is_known.then(|| group.vehicle.name.0.clone());
        facts
            .pods
            .iter()
            .map(|pod| {
                let off = outcomes.iter().find_map(|outcome| match outcome {
                    StepOutcome::Off(off) if off.pod == pod.id => Some(off),
                    _ => None,
                });
                confirmation(
                    vehicle.clone(),
                    pod,
                    off,
                    trouble.as_deref(),
                    (listed_at, self.clock.now()),
                )
            })
            .collect()
    }
}

const UNDECLARED: &str = "no vehicle of the config declares its name";
const UNMARKED: &str = "it does not carry podtether's marker, and without a config nobody can say that it is a vehicle's";

fn left_alone(pod: &Pod, why: &str) -> LeftAlone {
    let marked = if is_marked(pod) {
        ", though podtether created it: for another config, or under a name that this one no longer has"
    } else {
        ""
    };
    // Only a person knows, and only the console is left.
    let hint = if why == UNMARKED && pod.status.bills_compute() {
        "; if it is yours, stop it in the RunPod console"
    } else {
        ""
    };
    LeftAlone {
        pod: pod.id.clone(),
        name: pod.name.clone(),
        status: pod.status.to_string(),
        bills: pod.status.bills_compute(),
        why: format!("{why}{marked}{hint}"),
    }
}

fn confirmation(
    vehicle: Option<String>,
    pod: &Pod,
    off: Option<&OffOutcome>,
    trouble: Option<&str>,
    (listed_at, now): (DateTime<Utc>, DateTime<Utc>),
) -> Confirmation {
    let was_off = !pod.status.bills_compute();
    let (is_off, message) = match (off, trouble) {
        (None, _) if was_off => (true, "it was stopped before".to_owned()),
        (Some(off), _) if off.confirmed && off.observed.is_none() => {
            (true, "asked to stop, it went from the provider's lists".to_owned())
        }
        (Some(off), _) if off.confirmed => {
            (true, "stopped: its status was read back after the request".to_owned())
        }
        (Some(off), _) => (false, unconfirmed_message(off)),
        (None, trouble) => {
            (false, format!("IT MAY STILL BILL: {}", trouble.unwrap_or("it was not asked to stop")))
        }
    };
    // What was read before the request is not what came of it.
    let status = match off {
        Some(off) => off.observed.as_ref(),
        None => Some(&pod.status),
    };
    Confirmation {
        vehicle,
        pod: pod.id.clone(),
        name: pod.name.clone(),
        off: is_off,
        grade: if is_off { Grade::ApiSays } else { Grade::Asked },
        evidence: of_stop(pod, off.as_slice(), listed_at, now),
        status: status.map(ToString::to_string),
        read_at: off.map_or(Some(listed_at), |off| off.observed_at),
        asked: off.map_or(0, |off| off.asked),
        last_usd_per_hour: pod.price.known().map(UsdPerHour::per_hour),
        message,
    }
}

#[cfg(test)]
mod tests;
