//! What is known when a plan is made.

use super::Spend;
use crate::domain::{
    GpuOffer, GpuTypeId, JobId, Pod, Price, ProvenFuses, Usd, UsdPerHour, VehicleName, Volume,
};
use chrono::{DateTime, Utc};

/// Live jobs of a pod, or why they could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveJobs {
    /// The pod was asked and these jobs live; empty means none.
    Known(Vec<JobId>),
    /// Nobody could say. Never taken for "none".
    Unknown(String),
}

/// How the volume looked from the pod just before a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeHealth {
    /// Nobody looked: the plan does not need it.
    NotAsked,
    /// It answered.
    Seen {
        /// Why what lies at the mount path is no volume; `None` when it is one.
        no_volume: Option<String>,
        /// Why it took no small file; `None` when it did.
        no_write: Option<String>,
        /// Free bytes, as far as they are told. The provider's file system shows its pool, not the
        /// quota of the volume: much says little, little says enough.
        free: Option<u64>,
    },
    /// It did not answer, or nobody could ask. Never taken for healthy.
    Unknown(String),
}

/// One condition of a training's launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// What must hold.
    pub what: String,
    /// Why it does not, and what to do; `None` when it holds.
    pub fault: Option<String>,
}

/// What a training's recipe demands, and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gates {
    /// The plan is for no training.
    NotAsked,
    /// All of them, in the recipe's order.
    Seen(Vec<Gate>),
    /// Nobody could look. Never taken for "all hold".
    Unknown(String),
}

/// What a create makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// A vehicle's pod.
    Pod,
    /// A vehicle's network volume.
    Volume,
}

impl std::fmt::Display for Created {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pod => "pod",
            Self::Volume => "network volume",
        })
    }
}

/// A create that was sent, was not answered, and has neither been found nor proven absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCreate {
    /// What was to be made.
    pub what: Created,
    /// The vehicle that it was for.
    pub vehicle: String,
    /// When it was sent.
    pub since: DateTime<Utc>,
    /// What it may bill for an hour, when the price was known.
    pub rate: Option<Usd>,
}

/// What the provider and the pod said. Reality may have moved on since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Every pod of the account: all pages, cluster pods too.
    pub pods: Vec<Pod>,
    /// Every network volume of the account; only asked for when a plan needs it.
    pub volumes: Vec<Volume>,
    /// The catalog; only asked for when a plan needs it.
    pub offers: Vec<GpuOffer>,
    /// Every declared vehicle with the name of its pod.
    pub declared: Vec<(VehicleName, String)>,
    /// Names of pods that are not ours and are put up with.
    pub tolerated: Vec<String>,
    /// Creates whose outcome nobody knows yet.
    pub unknown_creates: Vec<UnknownCreate>,
    /// Live jobs of the vehicle's pod; only asked for when a plan needs it.
    pub live_jobs: LiveJobs,
    /// The volume as the pod sees it; only asked for when a plan needs it.
    pub volume_health: VolumeHealth,
    /// What the recipe of a training demands; only asked for when a plan launches one.
    pub gates: Gates,
    /// Money; only asked for when a budget is set and the plan spends.
    pub spend: Spend,
    /// What drills have proven of the vehicle's fuses; only looked at when a plan needs it.
    pub proven_fuses: ProvenFuses,
}

impl Facts {
    /// Facts of nothing but these pods: enough for a stop, too little to spend.
    #[must_use]
    pub fn of_pods(pods: Vec<Pod>, declared: Vec<(VehicleName, String)>) -> Self {
        Self {
            pods,
            volumes: Vec::new(),
            offers: Vec::new(),
            declared,
            tolerated: Vec::new(),
            unknown_creates: Vec::new(),
            spend: Spend::not_asked(),
            live_jobs: LiveJobs::Unknown("the pod was not asked".to_owned()),
            volume_health: VolumeHealth::NotAsked,
            proven_fuses: ProvenFuses::default(),
            gates: Gates::NotAsked,
        }
    }

    /// The pods that carry `name` and are not deleted.
    pub fn pods_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Pod> {
        self.pods.iter().filter(move |pod| pod.name == name && !pod.is_deleted())
    }

    /// The volumes that carry `name`.
    pub fn volumes_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Volume> {
        self.volumes.iter().filter(move |volume| volume.name == name)
    }

    /// What a pod of `count` GPUs of one type bills for an hour by the catalog; unknown for one that
    /// shows no GPU, which bills all the same.
    #[must_use]
    pub fn price_of(&self, gpu_type: &GpuTypeId, count: u32) -> Price {
        let offer = self.offers.iter().find(|offer| &offer.id == gpu_type && count > 0);
        let Some(rate) = offer.and_then(|offer| offer.price.known()) else { return Price::Unknown };
        Price::Known(UsdPerHour::new(rate.per_hour().saturating_mul(i64::from(count))))
    }
}
