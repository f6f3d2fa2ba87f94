//! Refusals: what a rule says, with the numbers in it and the way out.

use super::Sum;
use crate::domain::{
    DataCenterId, GpuTypeId, JobId, PodId, Usd, UsdPerHour, VehicleName, VolumeId,
};
use crate::plan::Created;
use chrono::{DateTime, Utc};

/// Why a draft may not be carried out. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A pod of a name that no vehicle declares.
    #[error("the account has pods that no vehicle declares: {}. Stop or terminate them in the RunPod console, declare a vehicle for them, or list their names under strangers.tolerate", list(.0))]
    UnknownPods(Vec<String>),
    /// Several pods of one declared name.
    #[error("{count} pods are named {name:?}: {ids}. Terminate all but one in the RunPod console; stop_pod stops every one of them", count = .ids.len(), ids = list(.ids))]
    DuplicatePods {
        /// The name.
        name: String,
        /// Their ids.
        ids: Vec<PodId>,
    },
    /// Several volumes of the vehicle's volume name.
    #[error("{count} network volumes are named {name:?}: {ids}. Rename or delete all but one in the RunPod console", count = .ids.len(), ids = list(.ids))]
    DuplicateVolumes {
        /// The name.
        name: String,
        /// Their ids.
        ids: Vec<VolumeId>,
    },
    /// A GPU type outside the allow-list, or none that could be read.
    #[error("GPU type {} is not allowed for this vehicle; gpu_type_ids lists {}", .found.as_ref().map_or("unknown", |gpu| gpu.0.as_str()), list(.allowed))]
    GpuTypeNotAllowed {
        /// What the pod has or would have.
        found: Option<GpuTypeId>,
        /// What the vehicle allows.
        allowed: Vec<GpuTypeId>,
    },
    /// More GPUs than the vehicle declares.
    #[error("{found} GPUs are more than the {allowed} that gpu_count allows")]
    TooManyGpus {
        /// What the pod has or would have.
        found: u32,
        /// What the vehicle allows.
        allowed: u32,
    },
    /// Another cloud than SECURE.
    #[error("the {tier} cloud is not allowed; only SECURE is: network volumes exist nowhere else")]
    NotSecure {
        /// The tier.
        tier: String,
    },
    /// A spot pod.
    #[error("pod {0} is a spot pod, which can vanish with its work; spot is never used")]
    Spot(PodId),
    /// The volume does not carry a job.
    #[error(
        "the volume at {path} is not fit for a job: {why}. Look with exec_on_pod command=\"df -h {path}; ls -la {path}\"; free room, or stop_pod and ensure_pod to mount it anew"
    )]
    VolumeUnhealthy {
        /// Where it is mounted.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The pod does not hang on the vehicle's own volume.
    #[error(
        "the pod is not attached to the vehicle's network volume {volume:?}: {detail}. A volume is attached only at create: terminate the pod and let ensure_pod create it again"
    )]
    NotOnOwnVolume {
        /// The volume's declared name.
        volume: String,
        /// What was found instead.
        detail: String,
    },
    /// The pod would be elsewhere than its volume.
    #[error("the pod would be in {pod}, its network volume is in {volume}")]
    NotInVolumesDataCenter {
        /// Where the pod would be.
        pod: DataCenterId,
        /// Where the volume is.
        volume: DataCenterId,
    },
    /// Another mount path than the declared one.
    #[error(
        "the network volume is mounted at {found:?}, volume_mount_path says {declared:?}; what jobs write elsewhere is lost at the first stop"
    )]
    WrongMountPath {
        /// Where it is.
        found: String,
        /// Where it has to be.
        declared: String,
    },
    /// The price is missing.
    #[error(
        "the price of this pod is unknown, so the spend is refused; ask gpu_availability, or try again when the catalog answers"
    )]
    PriceUnknown,
    /// The price is above the ceiling.
    #[error("{price} is more than limits.max_usd_per_hour = {limit}")]
    TooExpensive {
        /// What it costs.
        price: UsdPerHour,
        /// The ceiling.
        limit: UsdPerHour,
    },
    /// What was spent so far cannot be told.
    #[error(
        "what was spent so far is unknown, so nothing more is spent under limits.budget_usd: {0}. Try again when the bill can be read, or look at spend_report"
    )]
    SpentUnknown(String),
    /// The worst case breaks the budget.
    #[error("the worst case breaks limits.budget_usd = {}: {way_out}. Counted:{sum}", .limit.to_decimal())]
    OverBudget {
        /// The budget.
        limit: Usd,
        /// Everything that counts.
        sum: Sum,
        /// The one change that would pass.
        way_out: String,
    },
    /// The worst case of one job is above its limit.
    #[error("the worst case breaks limits.max_usd_per_job = {}: {way_out}. Counted:{sum}", .limit.to_decimal())]
    JobTooDear {
        /// The limit.
        limit: Usd,
        /// Everything that counts.
        sum: Sum,
        /// The one change that would pass.
        way_out: String,
    },
    /// Pods were started as often as an hour allows.
    #[error("{made} pods were created or started within the last hour, and limits.max_boots_per_hour = {limit}: the next is allowed at {} (in {} min){}. Look at why the others did not do before another is tried", .next_at.format("%H:%M:%S UTC"), .wait.as_secs().div_ceil(60), failed_boots(*.failed, *.failed_usd))]
    TooManyBoots {
        /// The limit.
        limit: u32,
        /// How many there were.
        made: usize,
        /// When the next is allowed.
        next_at: DateTime<Utc>,
        /// How long until then.
        wait: std::time::Duration,
        /// How many of them were given up.
        failed: usize,
        /// What those have cost.
        failed_usd: Usd,
    },
    /// Too few fuses were seen to strike.
    #[error("limits.require_proven_fuses = {needed}, and drills have freshly proven fuses in {proven} failure domains ({}). Run: podtether drill --vehicle {vehicle}", if .told.is_empty() { "no receipt was looked at" } else { .told })]
    FusesNotProven {
        /// How many domains are asked for.
        needed: u32,
        /// In how many there is a fresh proof.
        proven: usize,
        /// What the receipts say.
        told: String,
        /// The vehicle.
        vehicle: VehicleName,
    },
    /// A job lives on the pod.
    #[error("{} still running on this pod: {}. Wait for it, or pass force=true to run beside it", if .0.len() == 1 { "a job is" } else { "jobs are" }, list(.0))]
    JobIsLive(Vec<JobId>),
    /// Nobody could say whether a job lives on the pod.
    #[error(
        "it is not known whether a job is running on this pod: {0}. Try again, or pass force=true"
    )]
    LiveJobsUnknown(String),
    /// What a training's recipe demands does not hold.
    #[error("the training's gates do not hold: {}", .0.join("; "))]
    GatesClosed(Vec<String>),
    /// Nobody could look at what a training's recipe demands.
    #[error("it is not known whether the training's gates hold: {0}. Try again")]
    GatesUnknown(String),
    /// The vehicle was not named.
    #[error("this call must name its vehicle; the default is {default:?}")]
    VehicleNotNamed {
        /// The default vehicle.
        default: VehicleName,
    },
    /// The confirmation is not the verbatim words.
    #[error(
        "confirm must be exactly {expected:?}, it was {given:?}. The pod and its container disk are deleted; the network volume stays"
    )]
    NotConfirmed {
        /// The words that would do.
        expected: String,
        /// The words that were given.
        given: String,
    },
    /// A pod that is not the vehicle's.
    #[error("pod {pod} is not named {name:?}; only the vehicle's own pod is touched")]
    NotOurPod {
        /// The pod.
        pod: PodId,
        /// The declared name.
        name: String,
    },
    /// An earlier create of this vehicle is neither found nor proven absent.
    #[error("a create of this vehicle's {what} was sent at {since} and its outcome is not known; it may bill{}. Call again in two minutes: by then it is found or proven absent", .rate.map_or_else(String::new, |rate| format!(" {rate}/h")))]
    CreateUnaccounted {
        /// What was to be made.
        what: Created,
        /// When it was sent.
        since: DateTime<Utc>,
        /// What it may bill for an hour.
        rate: Option<Usd>,
    },
    /// Two creates of pods in one plan, or a create beside a pod that exists.
    #[error("a pod named {name:?} exists already ({pod}); a vehicle has exactly one")]
    PodExists {
        /// The declared name.
        name: String,
        /// The pod that exists.
        pod: PodId,
    },
}

fn failed_boots(failed: usize, usd: Usd) -> String {
    match failed {
        0 => String::new(),
        _ => format!("; {failed} of them never came up and cost {usd}"),
    }
}

impl Refusal {
    /// The one change that would take this refusal away, in a few words.
    #[must_use]
    pub fn way_out(&self) -> String {
        match self {
            Self::UnknownPods(_) => {
                "stop or terminate them, declare a vehicle for them, or list their names under strangers.tolerate".to_owned()
            }
            Self::DuplicatePods { .. } => "terminate all but one of the pods".to_owned(),
            Self::DuplicateVolumes { .. } => "rename or delete all but one of the volumes".to_owned(),
            Self::GpuTypeNotAllowed { found: Some(found), .. } => {
                format!("add {found:?} to gpu_type_ids", found = found.0)
            }
            Self::TooManyGpus { found, .. } => format!("gpu_count = {found}"),
            Self::PriceUnknown => "try again when the catalog tells the price".to_owned(),
            Self::TooExpensive { price, .. } => {
                format!("limits.max_usd_per_hour = {}", price.per_hour().to_decimal())
            }
            Self::SpentUnknown(_) => "try again when the bill can be read".to_owned(),
            Self::OverBudget { way_out, .. } | Self::JobTooDear { way_out, .. } => {
                way_out.strip_suffix(" would pass").unwrap_or(way_out).to_owned()
            }
            Self::TooManyBoots { next_at, .. } => {
                format!("wait until {}", next_at.format("%H:%M:%S UTC"))
            }
            Self::VolumeUnhealthy { path, .. } => format!("have a healthy volume at {path}"),
            Self::FusesNotProven { vehicle, .. } => format!("podtether drill --vehicle {vehicle}"),
            Self::JobIsLive(_) => "wait for it, or force=true".to_owned(),
            Self::LiveJobsUnknown(_) => "try again, or force=true".to_owned(),
            Self::GatesClosed(faults) => faults.join("; "),
            Self::GatesUnknown(_) => "try again".to_owned(),
            Self::VehicleNotNamed { default } => format!("vehicle={default}"),
            Self::NotConfirmed { expected, .. } => format!("confirm={expected:?}"),
            Self::CreateUnaccounted { .. } => {
                "wait two minutes: by then it is found or proven absent".to_owned()
            }
            // Nothing that a call could change: the pod has to be made anew, as the refusal says.
            _ => "terminate the pod, and have ensure_pod create one as declared".to_owned(),
        }
    }
}

fn list<T: std::fmt::Display>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
