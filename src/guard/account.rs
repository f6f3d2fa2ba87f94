//! The account of a review: every rule with what it compared, not only those that refuse. The same
//! rules over the same draft and facts, so that an account never says other than [`super::review`].

use super::Refusal;
use super::money_rules::{
    a_job_stays_within_max_usd_per_job, a_launch_stays_within_the_budget, everything,
};
use super::rules::{RULES, Rule};
use super::sum::Sum;
use super::worst_case::WorstCase;
use crate::domain::{Ceiling, GpuOffer, JobEnd, Limits, Pod, Price, Usd, UsdPerHour, Vehicle};
use crate::plan::{
    Change, Draft, Facts, Gates, Intent, LiveJobs, NewPod, Spent, Step, VolumeHealth, VolumeRef,
};

/// What one rule made of a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleAccount {
    /// The rule.
    pub name: &'static str,
    /// What it has against the draft; `None` when it passes.
    pub refusal: Option<Refusal>,
    /// What it compared, in words and numbers.
    pub looked_at: String,
}

impl RuleAccount {
    /// The one change that this rule would let pass.
    #[must_use]
    pub fn way_out(&self) -> Option<String> {
        self.refusal.as_ref().map(Refusal::way_out)
    }
}

/// Asks every rule, and tells what each of them compared.
#[must_use]
pub fn explain(draft: &Draft, facts: &Facts, limits: &Limits) -> Vec<RuleAccount> {
    RULES
        .iter()
        .map(|(name, rule)| RuleAccount {
            name,
            refusal: rule(draft, facts, limits),
            looked_at: looked_at(name, draft, facts, limits).unwrap_or_else(|| NOTHING.to_owned()),
        })
        .collect()
}

/// What a rule says that this draft gives nothing to look at.
pub(super) const NOTHING: &str = "nothing of it in this plan";

/// Everything that counts against `limits.budget_usd`, line by line: spent, committed, and the worst
/// case of the draft. `None` when the draft spends nothing or an amount in it is not known.
#[must_use]
pub fn everything_counted(draft: &Draft, facts: &Facts, limits: &Limits) -> Option<Sum> {
    draft.adds?;
    let spent = match &facts.spend.spent {
        Spent::Known(spent) => Some(*spent),
        Spent::Unknown(_) if limits.budget_usd.is_some() => return None,
        Spent::Unknown(_) => None,
    };
    everything(draft, facts, limits, spent)
}

/// The rules on sums, which alone depend on how long a job is.
const MONEY: [Rule; 2] = [a_launch_stays_within_the_budget, a_job_stays_within_max_usd_per_job];

/// The longest ceiling that the limits on money let a launch have, with this end; `None` when the
/// draft is no launch, or when not even one second passes.
#[must_use]
pub fn longest_ceiling(
    draft: &Draft,
    facts: &Facts,
    limits: &Limits,
    end: JobEnd,
) -> Option<Ceiling> {
    let Intent::Launch { force, .. } = draft.intent else { return None };
    let passes = |seconds: u32| {
        let ceiling = Ceiling::from_secs(seconds)?;
        let draft = Draft { intent: Intent::Launch { force, ceiling, end }, ..draft.clone() };
        let refused = MONEY.iter().any(|rule| rule(&draft, facts, limits).is_some());
        (!refused).then_some(ceiling)
    };
    if let Some(longest) = passes(Ceiling::MAX_SEC) {
        return Some(longest);
    }
    // The longer the job, the dearer it is.
    let (mut best, mut low, mut high) = (passes(1)?, 1, Ceiling::MAX_SEC);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match passes(middle) {
            Some(ceiling) => (best, low) = (ceiling, middle),
            None => high = middle,
        }
    }
    Some(best)
}

/// The cheapest GPU type that the vehicle allows and the catalog prices, with its price for the whole
/// pod and whether `limits.max_usd_per_hour` lets it pass.
#[must_use]
pub fn cheapest<'a>(
    vehicle: &Vehicle,
    facts: &'a Facts,
    limits: &Limits,
) -> Option<(&'a GpuOffer, UsdPerHour, bool)> {
    let allowed = facts.offers.iter().filter(|offer| vehicle.gpu_type_ids.contains(&offer.id));
    let priced = allowed
        .filter_map(|offer| Some((offer, facts.price_of(&offer.id, vehicle.gpu_count).known()?)));
    let (offer, price) = priced.min_by_key(|(_, price)| *price)?;
    Some((offer, price, limits.max_usd_per_hour.is_none_or(|limit| price <= limit)))
}

/// What a rule compared; `None` when there is nothing of it in this draft.
pub(super) fn looked_at(
    name: &str,
    draft: &Draft,
    facts: &Facts,
    limits: &Limits,
) -> Option<String> {
    let vehicle = &draft.vehicle;
    let uses_the_pod =
        matches!(draft.intent, Intent::EnsurePod | Intent::Launch { .. } | Intent::Campaign { .. });
    let created = draft.steps.iter().find_map(|step| match step {
        Step::Cloud(Change::CreatePod(pod)) => Some(pod),
        _ => None,
    });
    let ours: Vec<&Pod> = facts.pods_named(&vehicle.pod_name).collect();
    let used: &[&Pod] = if uses_the_pod { &ours } else { &[] };
    let of_pods = |of_new: &dyn Fn(&NewPod) -> String, of_old: &dyn Fn(&Pod) -> String| {
        let all: Vec<String> =
            created.map(of_new).into_iter().chain(used.iter().map(|pod| of_old(pod))).collect();
        (!all.is_empty()).then(|| all.join(", "))
    };
    match name {
        "the_account_has_no_unknown_pod" => Some(format!(
            "{} pods; declared: {}; tolerated: {}",
            facts.pods.iter().filter(|pod| !pod.is_deleted()).count(),
            list(facts.declared.iter().map(|(_, name)| name)),
            list(&facts.tolerated),
        )),
        "a_declared_name_has_one_pod" => Some(list(
            facts
                .declared
                .iter()
                .map(|(_, name)| format!("{name}: {}", facts.pods_named(name).count())),
        )),
        "a_vehicle_has_one_pod" => {
            created.map(|pod| format!("creates {}, there are {}", pod.name, ours.len()))
        }
        "no_create_is_unaccounted_for" => {
            let of_vehicle =
                |create: &&crate::plan::UnknownCreate| create.vehicle == vehicle.name.0;
            let count = facts.unknown_creates.iter().filter(of_vehicle).count();
            created.map(|_| format!("{count} creates of this vehicle whose outcome is not known"))
        }
        "a_volume_name_is_unique" => {
            let volume = &vehicle.network_volume_name;
            let count = facts.volumes_named(volume).count();
            uses_the_pod.then(|| format!("{count} network volumes are named {volume}"))
        }
        "acts_only_on_the_vehicles_pod" => {
            Some(format!("the steps may touch {}", list(ours.iter().map(|pod| &pod.id))))
        }
        "the_gpu_type_is_allowed" => {
            let gpu = |pod: &Pod| {
                pod.gpu.as_ref().map_or_else(|| "unknown".to_owned(), |(gpu, _)| gpu.0.clone())
            };
            let found = of_pods(&|new| new.gpu_type.0.clone(), &gpu)?;
            Some(format!("{found}; gpu_type_ids: {}", list(&vehicle.gpu_type_ids)))
        }
        "the_gpu_count_is_within_the_limit" => {
            let count = |pod: &Pod| {
                pod.gpu
                    .as_ref()
                    .map_or_else(|| "unknown".to_owned(), |(_, count)| count.to_string())
            };
            let found = of_pods(&|new| new.gpu_count.to_string(), &count)?;
            Some(format!("{found}; gpu_count: {}", vehicle.gpu_count))
        }
        "the_cloud_is_secure" => {
            of_pods(&|new| new.cloud.to_string(), &|pod| pod.cloud.to_string())
        }
        "the_pod_is_not_spot" => of_pods(&|_| "never asked for".to_owned(), &|pod| {
            if pod.interruptible { "spot".to_owned() } else { "not spot".to_owned() }
        }),
        "the_own_volume_is_attached" => {
            let planned = |new: &NewPod| match &new.volume {
                VolumeRef::Existing(id) => id.to_string(),
                VolumeRef::Planned(name) => format!("{name}, created before"),
            };
            let mounts = |pod: &Pod| list(pod.mounts.iter().map(|mount| &mount.volume_id));
            let own =
                list(facts.volumes_named(&vehicle.network_volume_name).map(|volume| &volume.id));
            Some(format!("{}; the vehicle's: {own}", of_pods(&planned, &mounts)?))
        }
        "the_pod_is_where_its_volume_is" => created.map(|pod| {
            let volumes = facts.volumes_named(&vehicle.network_volume_name);
            format!(
                "pod in {}; volume in {}",
                pod.data_center,
                list(volumes.map(|volume| &volume.data_center))
            )
        }),
        "the_mount_path_is_the_declared_one" => {
            let paths = |pod: &Pod| list(pod.mounts.iter().map(|mount| &mount.path));
            let found = of_pods(&|new| new.mount_path.clone(), &paths)?;
            Some(format!("{found}; volume_mount_path: {}", vehicle.volume_mount_path))
        }
        "the_price_is_known_and_under_the_ceiling" => {
            let limit = limits
                .max_usd_per_hour
                .map_or_else(|| "not set".to_owned(), |limit| limit.to_string());
            draft.adds.map(|price| format!("{price}; limits.max_usd_per_hour: {limit}"))
        }
        "a_launch_stays_within_the_budget" => budget(draft, facts, limits),
        "boots_are_limited_per_hour" => {
            let boots = draft.steps.iter().any(|step| {
                matches!(step, Step::Cloud(Change::CreatePod(_) | Change::StartPod(_)))
            });
            let limit = limits.max_boots_per_hour.map_or("not set".to_owned(), |n| n.to_string());
            let made = facts.spend.boots.started.len();
            boots.then(|| {
                format!("{made} starts in the last hour; limits.max_boots_per_hour: {limit}")
            })
        }
        "a_job_stays_within_max_usd_per_job" => {
            draft.adds?;
            let limit = told(limits.max_usd_per_job);
            let worst = WorstCase::of(draft, facts).map(|worst| worst.of_the_job().total());
            let worst = worst
                .map_or_else(|| "not known".to_owned(), |usd| format!("${}", usd.to_decimal()));
            Some(format!("worst case of the job {worst}; limits.max_usd_per_job: {limit}"))
        }
        "enough_fuses_are_proven_by_a_drill" => {
            draft.adds?;
            let limit = limits.require_proven_fuses.unwrap_or(0);
            let proven = facts.proven_fuses.domains.len();
            Some(format!("{proven} domains proven; limits.require_proven_fuses: {limit}"))
        }
        "one_live_job_per_pod" => match (&draft.intent, &facts.live_jobs) {
            (Intent::Launch { force: true, .. } | Intent::Patch { force: true }, _) => {
                Some("force=true: not asked".to_owned())
            }
            (
                Intent::Launch { .. } | Intent::Campaign { .. } | Intent::Patch { .. },
                LiveJobs::Known(jobs),
            ) => Some(format!("live jobs: {}", list(jobs))),
            (
                Intent::Launch { .. } | Intent::Campaign { .. } | Intent::Patch { .. },
                LiveJobs::Unknown(why),
            ) => Some(format!("not known: {why}")),
            _ => None,
        },
        "the_volume_is_healthy" => {
            let path = &vehicle.volume_mount_path;
            let told = match &facts.volume_health {
                VolumeHealth::NotAsked => "not looked at".to_owned(),
                VolumeHealth::Unknown(why) => format!("not known: {why}"),
                VolumeHealth::Seen { no_volume: Some(why), .. }
                | VolumeHealth::Seen { no_write: Some(why), .. } => why.clone(),
                VolumeHealth::Seen { free: Some(free), .. } => format!("{} MB free", free >> 20),
                VolumeHealth::Seen { .. } => "looked at when a pod is there".to_owned(),
            };
            let looks = matches!(draft.intent, Intent::Launch { .. } | Intent::Campaign { .. });
            looks.then(|| format!("{path}: {told}"))
        }
        "the_gates_of_the_training_hold" => match &facts.gates {
            Gates::NotAsked => None,
            Gates::Unknown(why) => Some(format!("not known: {why}")),
            Gates::Seen(gates) => Some(list(gates.iter().map(|gate| {
                format!("{}{}", gate.what, if gate.fault.is_none() { "" } else { ": NO" })
            }))),
        },
        "stop_and_terminate_name_their_vehicle" => {
            let must = matches!(draft.intent, Intent::StopPod | Intent::TerminatePod { .. });
            let named = if draft.vehicle_was_named { "named" } else { "not named" };
            must.then(|| format!("the vehicle was {named}"))
        }
        "terminate_is_confirmed_verbatim" => match &draft.intent {
            Intent::TerminatePod { confirm } => Some(format!("confirm is {confirm:?}")),
            _ => None,
        },
        _ => None,
    }
}

fn budget(draft: &Draft, facts: &Facts, limits: &Limits) -> Option<String> {
    let price = draft.adds?;
    let limit = told(limits.budget_usd);
    let sum = match (everything_counted(draft, facts, limits), &facts.spend.spent, price) {
        (Some(sum), ..) => format!("${}", sum.total().to_decimal()),
        (None, _, Price::Unknown) => "not known, since the price is not".to_owned(),
        (None, Spent::Unknown(why), _) => format!("not known: {why}"),
        (None, ..) => "not known".to_owned(),
    };
    Some(format!("everything counted {sum}; limits.budget_usd: {limit}"))
}

fn told(limit: Option<Usd>) -> String {
    limit.map_or_else(|| "not set".to_owned(), |usd| format!("${}", usd.to_decimal()))
}

fn list<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let all: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

#[cfg(test)]
mod tests;
