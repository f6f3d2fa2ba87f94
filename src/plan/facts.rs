//! What is known when a plan is made.

use crate::domain::{JobId, Pod, Price, VehicleName, Volume};

/// Live jobs of a pod, or why they could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveJobs {
    /// The pod was asked and these jobs live; empty means none.
    Known(Vec<JobId>),
    /// Nobody could say. Never taken for "none".
    Unknown(String),
}

/// What the provider and the pod said. Reality may have moved on since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Every pod of the account: all pages, cluster pods too.
    pub pods: Vec<Pod>,
    /// Every network volume of the account.
    pub volumes: Vec<Volume>,
    /// Every declared vehicle with the name of its pod.
    pub declared: Vec<(VehicleName, String)>,
    /// Names of pods that are not ours and are put up with.
    pub tolerated: Vec<String>,
    /// Price of the whole pod for one hour that a create or start would bill.
    pub price: Price,
    /// Live jobs of the vehicle's pod; only asked for when a plan needs it.
    pub live_jobs: LiveJobs,
}

impl Facts {
    /// The pods that carry `name`.
    pub fn pods_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Pod> {
        self.pods.iter().filter(move |pod| pod.name == name)
    }
}
