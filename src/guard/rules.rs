//! The rules: small named functions, all of which run. For what creates, spends or deletes, doubt
//! means no; for a stop of our own pod, doubt means yes.

use super::Refusal;
use super::money_rules::{
    a_job_stays_within_max_usd_per_job, a_launch_stays_within_the_budget,
    boots_are_limited_per_hour,
};
use crate::domain::{CloudTier, Limits, Pod, PodId, Price};
use crate::plan::{
    Change, Draft, Facts, Gates, Intent, LiveJobs, NewPod, Step, UnknownCreate, VolumeHealth,
    VolumeRef,
};

/// A rule answers with a refusal or with nothing.
pub type Rule = fn(&Draft, &Facts, &Limits) -> Option<Refusal>;

/// Every rule, by name.
pub const RULES: &[(&str, Rule)] = &[
    ("the_account_has_no_unknown_pod", the_account_has_no_unknown_pod),
    ("a_declared_name_has_one_pod", a_declared_name_has_one_pod),
    ("a_vehicle_has_one_pod", a_vehicle_has_one_pod),
    ("no_create_is_unaccounted_for", no_create_is_unaccounted_for),
    ("a_volume_name_is_unique", a_volume_name_is_unique),
    ("acts_only_on_the_vehicles_pod", acts_only_on_the_vehicles_pod),
    ("the_gpu_type_is_allowed", the_gpu_type_is_allowed),
    ("the_gpu_count_is_within_the_limit", the_gpu_count_is_within_the_limit),
    ("the_cloud_is_secure", the_cloud_is_secure),
    ("the_pod_is_not_spot", the_pod_is_not_spot),
    ("the_own_volume_is_attached", the_own_volume_is_attached),
    ("the_pod_is_where_its_volume_is", the_pod_is_where_its_volume_is),
    ("the_mount_path_is_the_declared_one", the_mount_path_is_the_declared_one),
    ("the_price_is_known_and_under_the_ceiling", the_price_is_known_and_under_the_ceiling),
    ("a_launch_stays_within_the_budget", a_launch_stays_within_the_budget),
    ("a_job_stays_within_max_usd_per_job", a_job_stays_within_max_usd_per_job),
    ("boots_are_limited_per_hour", boots_are_limited_per_hour),
    ("enough_fuses_are_proven_by_a_drill", enough_fuses_are_proven_by_a_drill),
    ("one_live_job_per_pod", one_live_job_per_pod),
    ("the_volume_is_healthy", the_volume_is_healthy),
    ("the_gates_of_the_training_hold", the_gates_of_the_training_hold),
    ("stop_and_terminate_name_their_vehicle", stop_and_terminate_name_their_vehicle),
    ("terminate_is_confirmed_verbatim", terminate_is_confirmed_verbatim),
];

/// Whether the draft puts work or money on a pod, so that the pod's shape matters.
const fn uses_the_pod(draft: &Draft) -> bool {
    matches!(draft.intent, Intent::EnsurePod | Intent::Launch { .. } | Intent::Campaign { .. })
}

const fn is_stop(draft: &Draft) -> bool {
    matches!(draft.intent, Intent::StopPod)
}

fn creates(draft: &Draft) -> impl Iterator<Item = &NewPod> {
    draft.steps.iter().filter_map(|step| match step {
        Step::Cloud(Change::CreatePod(pod)) => Some(pod),
        _ => None,
    })
}

/// The vehicle's existing pods, when the draft uses them.
fn used_pods<'a>(draft: &'a Draft, facts: &'a Facts) -> impl Iterator<Item = &'a Pod> {
    facts.pods_named(&draft.vehicle.pod_name).filter(|_| uses_the_pod(draft))
}

fn touched_pods(draft: &Draft) -> impl Iterator<Item = &PodId> {
    draft.steps.iter().filter_map(|step| match step {
        Step::Cloud(Change::StartPod(id) | Change::StopPod(id) | Change::TerminatePod(id)) => {
            Some(id)
        }
        Step::Cloud(Change::CreateVolume(_) | Change::CreatePod(_)) => None,
        Step::Pod(step) => Some(&step.pod),
    })
}

fn the_account_has_no_unknown_pod(draft: &Draft, facts: &Facts, _: &Limits) -> Option<Refusal> {
    let is_ours = |pod: &Pod| facts.declared.iter().any(|(_, name)| *name == pod.name);
    let is_tolerated = |pod: &Pod| facts.tolerated.contains(&pod.name);
    let strangers: Vec<String> = facts
        .pods
        .iter()
        .filter(|pod| !pod.is_deleted() && !is_ours(pod) && !is_tolerated(pod))
        .map(|pod| {
            // Of a vehicle that was renamed or removed, or of another project.
            let made = if pod.env.contains_key(NewPod::NONCE_ENV) {
                ", created by podtether for a vehicle that is not declared here"
            } else {
                ""
            };
            format!("{:?} ({}, {}{made})", pod.name, pod.id, pod.status)
        })
        .collect();
    (!is_stop(draft) && !strangers.is_empty()).then_some(Refusal::UnknownPods(strangers))
}

fn a_declared_name_has_one_pod(draft: &Draft, facts: &Facts, _: &Limits) -> Option<Refusal> {
    if is_stop(draft) {
        return None;
    }
    facts.declared.iter().find_map(|(_, name)| {
        let ids: Vec<PodId> = facts.pods_named(name).map(|pod| pod.id.clone()).collect();
        (ids.len() > 1).then(|| Refusal::DuplicatePods { name: name.clone(), ids })
    })
}

fn a_vehicle_has_one_pod(draft: &Draft, facts: &Facts, _: &Limits) -> Option<Refusal> {
    let created = creates(draft).next()?;
    let existing = facts.pods_named(&draft.vehicle.pod_name).next()?;
    Some(Refusal::PodExists { name: created.name.clone(), pod: existing.id.clone() })
}

/// B02: while the outcome of a create is unknown, a second one could make two pods, or two volumes.
fn no_create_is_unaccounted_for(draft: &Draft, facts: &Facts, _: &Limits) -> Option<Refusal> {
    creates(draft).next()?;
    let unknown =
        facts.unknown_creates.iter().find(|create| create.vehicle == draft.vehicle.name.0)?;
    let UnknownCreate { what, since, rate, .. } = *unknown;
    Some(Refusal::CreateUnaccounted { what, since, rate })
}

fn a_volume_name_is_unique(draft: &Draft, facts: &Facts, _: &Limits) -> Option<Refusal> {
    let name = &draft.vehicle.network_volume_name;
    let ids: Vec<_> = facts.volumes_named(name).map(|volume| volume.id.clone()).collect();
    (uses_the_pod(draft) && ids.len() > 1)
        .then(|| Refusal::DuplicateVolumes { name: name.clone(), ids })
}

/// B08: an id whose pod cannot be told to be the vehicle's is never touched, not even stopped.
fn acts_only_on_the_vehicles_pod(draft: &Draft, facts: &Facts, _: &Limits) -> Option<Refusal> {
    let name = &draft.vehicle.pod_name;
    let is_ours = |id: &PodId| facts.pods.iter().any(|pod| &pod.id == id && &pod.name == name);
    let stranger = touched_pods(draft).find(|id| !is_ours(id))?;
    Some(Refusal::NotOurPod { pod: stranger.clone(), name: name.clone() })
}

fn the_gpu_type_is_allowed(draft: &Draft, facts: &Facts, _: &Limits) -> Option<Refusal> {
    let allowed = &draft.vehicle.gpu_type_ids;
    let planned = creates(draft).map(|pod| Some(&pod.gpu_type));
    let existing =
        used_pods(draft, facts).map(|pod| pod.gpu.as_ref().map(|(gpu_type, _)| gpu_type));
    let is_allowed = |found: &Option<_>| found.is_some_and(|gpu_type| allowed.contains(gpu_type));
    let found = planned.chain(existing).find(|found| !is_allowed(found))?;
    Some(Refusal::GpuTypeNotAllowed { found: found.cloned(), allowed: allowed.clone() })
}

fn the_gpu_count_is_within_the_limit(draft: &Draft, facts: &Facts, _: &Limits) -> Option<Refusal> {
    let allowed = draft.vehicle.gpu_count;
    let existing =
        used_pods(draft, facts).filter_map(|pod| pod.gpu.as_ref().map(|(_, count)| *count));
    let found =
        creates(draft).map(|pod| pod.gpu_count).chain(existing).find(|count| *count > allowed)?;
    Some(Refusal::TooManyGpus { found, allowed })
}

fn the_cloud_is_secure(draft: &Draft, facts: &Facts, _: &Limits) -> Option<Refusal> {
    let existing = used_pods(draft, facts).map(|pod| &pod.cloud);
    let tier = creates(draft)
        .map(|pod| &pod.cloud)
        .chain(existing)
        .find(|tier| **tier != CloudTier::Secure)?;
    Some(Refusal::NotSecure { tier: tier.to_string() })
}

fn the_pod_is_not_spot(draft: &Draft, facts: &Facts, _: &Limits) -> Option<Refusal> {
    let spot = used_pods(draft, facts).find(|pod| pod.interruptible)?;
    Some(Refusal::Spot(spot.id.clone()))
}

fn the_own_volume_is_attached(draft: &Draft, facts: &Facts, _: &Limits) -> Option<Refusal> {
    let name = &draft.vehicle.network_volume_name;
    let is_own = |id| facts.volumes_named(name).any(|volume| &volume.id == id);
    let refuse = |detail: String| Some(Refusal::NotOnOwnVolume { volume: name.clone(), detail });
    for pod in creates(draft) {
        match &pod.volume {
            VolumeRef::Existing(id) if !is_own(id) => {
                return refuse(format!("the plan names {id}"));
            }
            VolumeRef::Planned(planned) if planned != name => {
                return refuse(format!("the plan creates {planned:?}"));
            }
            _ => {}
        }
    }
    for pod in used_pods(draft, facts) {
        if !pod.mounts.iter().any(|mount| is_own(&mount.volume_id)) {
            let found: Vec<_> = pod.mounts.iter().map(|mount| mount.volume_id.0.as_str()).collect();
            let found =
                if found.is_empty() { "no network volume".to_owned() } else { found.join(", ") };
            return refuse(format!("pod {} has {found}", pod.id));
        }
    }
    None
}

fn the_pod_is_where_its_volume_is(draft: &Draft, facts: &Facts, _: &Limits) -> Option<Refusal> {
    creates(draft).find_map(|pod| {
        let VolumeRef::Existing(id) = &pod.volume else { return None };
        let volume = facts.volumes.iter().find(|volume| &volume.id == id)?;
        (volume.data_center != pod.data_center).then(|| Refusal::NotInVolumesDataCenter {
            pod: pod.data_center.clone(),
            volume: volume.data_center.clone(),
        })
    })
}

fn the_mount_path_is_the_declared_one(draft: &Draft, facts: &Facts, _: &Limits) -> Option<Refusal> {
    let declared = &draft.vehicle.volume_mount_path;
    let existing =
        used_pods(draft, facts).flat_map(|pod| pod.mounts.iter().map(|mount| &mount.path));
    let found =
        creates(draft).map(|pod| &pod.mount_path).chain(existing).find(|path| *path != declared)?;
    Some(Refusal::WrongMountPath { found: found.clone(), declared: declared.clone() })
}

/// Unknown refuses even when no ceiling is set: a spend that nobody can put a number on is not made.
///
/// A launch adds no rate, but keeps a pod on the bill that may cost more than the ceiling allows:
/// one that somebody else created, or from before the ceiling was lowered.
fn the_price_is_known_and_under_the_ceiling(
    draft: &Draft,
    facts: &Facts,
    limits: &Limits,
) -> Option<Refusal> {
    let ceiling = limits.max_usd_per_hour;
    let keeps = matches!(draft.intent, Intent::Launch { .. } | Intent::Campaign { .. });
    let is_kept = keeps && ceiling.is_some();
    let kept = used_pods(draft, facts).filter(|_| is_kept).map(|pod| pod.price);
    draft.adds.into_iter().chain(kept).find_map(|price| match (price, ceiling) {
        (Price::Unknown, _) => Some(Refusal::PriceUnknown),
        (Price::Known(price), Some(limit)) if price > limit => {
            Some(Refusal::TooExpensive { price, limit })
        }
        _ => None,
    })
}

/// A fuse that nobody has seen strike is a promise. What starts or keeps a bill needs as many domains
/// with a fresh receipt as the owner asks for; a drill, which makes the receipts, needs none.
fn enough_fuses_are_proven_by_a_drill(
    draft: &Draft,
    facts: &Facts,
    limits: &Limits,
) -> Option<Refusal> {
    let needed = limits.require_proven_fuses.filter(|_| draft.adds.is_some())?;
    let proven = &facts.proven_fuses;
    let has_enough = usize::try_from(needed).is_ok_and(|needed| proven.domains.len() >= needed);
    (!has_enough && !proven.is_a_drill).then(|| Refusal::FusesNotProven {
        needed,
        proven: proven.domains.len(),
        told: proven.told.clone(),
        vehicle: draft.vehicle.name.clone(),
    })
}

fn one_live_job_per_pod(draft: &Draft, facts: &Facts, _: &Limits) -> Option<Refusal> {
    let is_asked = matches!(
        draft.intent,
        Intent::Launch { force: false, .. }
            | Intent::Campaign { .. }
            | Intent::Patch { force: false }
    );
    if !is_asked {
        return None;
    }
    match &facts.live_jobs {
        LiveJobs::Known(jobs) if jobs.is_empty() => None,
        LiveJobs::Known(jobs) => Some(Refusal::JobIsLive(jobs.clone())),
        LiveJobs::Unknown(why) => Some(Refusal::LiveJobsUnknown(why.clone())),
    }
}

/// D11, E14: a job on a volume that is not there, hangs or is full loses what it writes. `force` does
/// not help: it allows a second job, not a lost one.
fn the_volume_is_healthy(draft: &Draft, facts: &Facts, _: &Limits) -> Option<Refusal> {
    if !matches!(draft.intent, Intent::Launch { .. } | Intent::Campaign { .. }) {
        return None;
    }
    let why = match &facts.volume_health {
        VolumeHealth::NotAsked => "nobody looked at it".to_owned(),
        VolumeHealth::Unknown(why) => why.clone(),
        VolumeHealth::Seen { no_volume: Some(why), .. } => why.clone(),
        VolumeHealth::Seen { no_write: Some(why), .. } => {
            format!("a small file could not be written to it: {why}")
        }
        VolumeHealth::Seen { free: Some(free), .. } if *free < LEAST_FREE => {
            format!("it has {} MB free, and a job needs at least {}", free >> 20, LEAST_FREE >> 20)
        }
        VolumeHealth::Seen { .. } => return None,
    };
    Some(Refusal::VolumeUnhealthy { path: draft.vehicle.volume_mount_path.clone(), why })
}

/// The least that must be free on the volume for a job, in bytes: one checkpoint.
const LEAST_FREE: u64 = 1 << 30;

/// A training on a file or a pod that is not as its recipe knows it gives numbers that mean something
/// else. `force` does not help: it allows a second job, not a wrong one.
fn the_gates_of_the_training_hold(draft: &Draft, facts: &Facts, _: &Limits) -> Option<Refusal> {
    if !matches!(draft.intent, Intent::Launch { .. }) {
        return None;
    }
    match &facts.gates {
        Gates::NotAsked => None,
        Gates::Unknown(why) => Some(Refusal::GatesUnknown(why.clone())),
        Gates::Seen(gates) => {
            let faults: Vec<String> = gates.iter().filter_map(|gate| gate.fault.clone()).collect();
            (!faults.is_empty()).then_some(Refusal::GatesClosed(faults))
        }
    }
}

fn stop_and_terminate_name_their_vehicle(draft: &Draft, _: &Facts, _: &Limits) -> Option<Refusal> {
    let must_name = matches!(draft.intent, Intent::StopPod | Intent::TerminatePod { .. });
    (must_name && !draft.vehicle_was_named)
        .then(|| Refusal::VehicleNotNamed { default: draft.vehicle.name.clone() })
}

fn terminate_is_confirmed_verbatim(draft: &Draft, _: &Facts, _: &Limits) -> Option<Refusal> {
    let Intent::TerminatePod { confirm } = &draft.intent else { return None };
    let expected = format!("terminate {}", draft.vehicle.pod_name);
    (*confirm != expected).then(|| Refusal::NotConfirmed { expected, given: confirm.clone() })
}
