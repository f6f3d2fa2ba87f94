//! Gathers the facts that a plan needs; what a plan does not need is not asked for.

use super::Tether;
use crate::domain::{Pod, Price};
use crate::error::Failure;
use crate::plan::{Facts, LiveJobs};

/// What a plan needs to know beyond the pods of the account.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs {
    /// Volumes and, for a create or a start, the catalog.
    pub volumes: bool,
    /// The catalog, for this many GPUs.
    pub offers_for: Option<u32>,
}

impl Tether {
    /// What the catalog asks for a pod like this one. The provider may report a running pod at 0
    /// (runpod-python #438), which is no price.
    pub(super) async fn catalog_price(&self, pod: &Pod) -> Price {
        let Some((gpu_type, count)) = &pod.gpu else { return Price::Unknown };
        let needs = Needs { volumes: false, offers_for: Some(*count) };
        match self.gather(needs).await {
            Ok(facts) => facts.price_of(gpu_type, *count),
            Err(_) => Price::Unknown,
        }
    }

    pub(super) async fn gather(&self, needs: Needs) -> Result<Facts, Failure> {
        let volumes =
            async { if needs.volumes { self.cloud.volumes().await } else { Ok(Vec::new()) } };
        let offers = async {
            match needs.offers_for {
                Some(count) => self.cloud.gpu_offers(count).await,
                None => Ok(Vec::new()),
            }
        };
        let (pods, volumes, offers) = tokio::join!(self.cloud.pods(), volumes, offers);
        // A catalog that fails leaves every price unknown, and unknown refuses the spend by itself.
        let offers = offers.unwrap_or_else(|error| {
            tracing::warn!(%error, "the catalog did not answer");
            Vec::new()
        });
        Ok(Facts { volumes: volumes?, offers, ..self.facts(pods?) })
    }

    /// Facts of nothing but these pods.
    pub(super) fn facts(&self, pods: Vec<Pod>) -> Facts {
        Facts {
            pods,
            volumes: Vec::new(),
            offers: Vec::new(),
            declared: self
                .config
                .vehicles
                .iter()
                .map(|vehicle| (vehicle.name.clone(), vehicle.pod_name.clone()))
                .collect(),
            tolerated: self.config.tolerated_pods.clone(),
            unknown_creates: Vec::new(),
            live_jobs: LiveJobs::Unknown("the pod was not asked".to_owned()),
        }
    }
}
