//! Gathers the facts that a plan needs; what a plan does not need is not asked for.

use super::Tether;
use crate::clock::Clock;
use crate::config::FuseHours;
use crate::domain::{BudgetWindow, Ceiling, Pod, Price, ProvenFuses};
use crate::error::Failure;
use crate::guard::Approved;
use crate::plan::{Draft, Facts, Fuse, Gates, LiveJobs, Spend, Spent, VolumeHealth};
use std::time::Duration;

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
            volume_health: VolumeHealth::NotAsked,
            gates: Gates::NotAsked,
            spend: Spend { fuse: self.fuse(), ..Spend::not_asked() },
            proven_fuses: ProvenFuses::default(),
        }
    }

    /// Reviews a draft that may spend: the bill is asked for when a budget is set and it does.
    pub(super) async fn review_spend(
        &self,
        draft: Draft,
        facts: Facts,
    ) -> Result<Approved, Failure> {
        let facts = self.with_spend(&draft, facts).await;
        self.review(draft, &facts)
    }

    /// The facts with what is known of money, as far as the draft spends any.
    pub(super) async fn with_spend(&self, draft: &Draft, mut facts: Facts) -> Facts {
        facts.proven_fuses = self.proven_fuses(&draft.vehicle);
        if draft.adds.is_some() {
            facts.spend.window_left = window_left(self.config.limits.budget_window, &*self.clock);
            if self.config.limits.budget_usd.is_some() {
                facts.spend.spent = match self.bill(&facts.pods).await {
                    Ok(bill) => bill.spent(),
                    Err(error) => Spent::Unknown(error.to_string()),
                };
            }
        }
        facts
    }

    /// Of a pod that was not asked no fuse is proven, so the config's time is taken for how long it may
    /// be left to itself. `off` counts as the longest that could be set: see `guard::WorstCase`.
    pub(super) fn fuse(&self) -> Fuse {
        let allowance = match self.config.auto_arm {
            FuseHours::After(time) => time,
            FuseHours::Off => Duration::from_secs(u64::from(Ceiling::MAX_SEC)),
        };
        Fuse::Unproven { allowance }
    }
}

fn window_left(window: BudgetWindow, clock: &dyn Clock) -> Option<Duration> {
    let now = clock.now();
    window.end(now).map(|end| (end - now).to_std().unwrap_or_default())
}
