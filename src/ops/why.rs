//! why: the account of what a call would come to. Every rule with what it compared, the sum line by
//! line, the one change that would pass, and the most that the limits allow now. Changes nothing.

use super::recipe_facts::checks;
use super::run_job::DraftedJob;
use super::wanted::Wanted;
use super::why_training::{self, TrainingTold};
use super::{CloudName, JobKind, RunJobRequest, Tether};
use crate::domain::{JobEnd, Limits, PodStatus, Price, Usd};
use crate::error::{Failure, FailureKind};
use crate::guard::{self, RuleAccount};
use crate::plan::{self, Committed, Draft, Facts, Gates, Intent, LiveJobs, Spent, VolumeHealth};
use schemars::JsonSchema;
use serde::Serialize;

/// Which call is asked about.
#[derive(Clone, Debug)]
pub enum WhyRequest {
    /// ensure_pod.
    Ensure {
        /// The vehicle; the default one when `None`.
        vehicle: Option<String>,
    },
    /// run_job, or launch_training by the request's kind.
    Run(Box<RunJobRequest>),
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It has nothing against it.
    Pass,
    /// It refuses.
    Refuse,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RuleTold {
    /// The rule.
    pub name: &'static str,
    /// What it says.
    pub verdict: Verdict,
    /// What it compared.
    pub looked_at: String,
    /// Its refusal, in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The one change that it would let pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way_out: Option<String>,
}

/// One line of the sum.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Counted {
    /// What it is for.
    pub what: String,
    /// How much.
    pub usd: Usd,
}

/// The most that the limits allow now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Most {
    /// What is left of limits.budget_usd once everything spent and promised is taken off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_left_usd: Option<Usd>,
    /// The longest ceiling of this job, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_runtime_sec: Option<u32>,
    /// The longest with auto_stop=true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_runtime_sec_with_auto_stop: Option<u32>,
    /// The cheapest GPU type that the vehicle allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cheapest_gpu: Option<String>,
    /// What a pod of it costs for an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cheapest_usd_per_hour: Option<Usd>,
    /// Whether limits.max_usd_per_hour lets that pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cheapest_passes: Option<bool>,
}

/// The answer of `podtether why`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WhyAnswer {
    /// Which cloud answered.
    pub cloud: CloudName,
    /// For which vehicle.
    pub vehicle: String,
    /// The call: ensure_pod, run_job or launch_training.
    pub call: &'static str,
    /// Whether the call would be made now.
    pub would_pass: bool,
    /// What stands in its way beside the rules.
    pub not_met: Vec<String>,
    /// Every rule.
    pub rules: Vec<RuleTold>,
    /// What counts against limits.budget_usd; empty when the call spends nothing or the sum is unknown.
    pub sum: Vec<Counted>,
    /// All of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_usd: Option<Usd>,
    /// limits.budget_usd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Usd>,
    /// What would pass: one change, or several that are all needed.
    pub to_pass: Vec<String>,
    /// The most that the limits allow now.
    pub most: Most,
    /// Of launch_training: the training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingTold>,
}

/// A call as the rules see it, and what stands in its way beside them.
struct Asked {
    call: &'static str,
    draft: Draft,
    facts: Facts,
    not_met: Vec<String>,
    training: Option<TrainingTold>,
}

impl Tether {
    /// Explains what a call would come to.
    ///
    /// # Errors
    /// Bad input, a config that is wrong, and facts that cannot be read. A refusal is an answer.
    pub async fn why(&self, request: &WhyRequest) -> Result<WhyAnswer, Failure> {
        let Asked { call, draft, facts, not_met, training } = match request {
            WhyRequest::Ensure { vehicle } => self.asked_ensure(vehicle.as_deref()).await?,
            WhyRequest::Run(request) => self.asked_run(request).await?,
        };
        let mut facts = self.with_spend(&draft, facts).await;
        if facts.offers.is_empty() {
            // Only for the most that is allowed; without it the rest is told all the same.
            let offers = self.cloud.gpu_offers(draft.vehicle.gpu_count).await;
            facts.offers = offers.unwrap_or_default();
        }
        let limits = self.config.limits_for(&draft.vehicle.name);
        let account = guard::explain(&draft, &facts, &limits);
        let sum = guard::everything_counted(&draft, &facts, &limits);
        let ways = account.iter().filter_map(RuleAccount::way_out);
        Ok(WhyAnswer {
            cloud: self.cloud_name(),
            vehicle: draft.vehicle.name.0.clone(),
            call,
            would_pass: not_met.is_empty() && account.iter().all(|rule| rule.refusal.is_none()),
            to_pass: not_met.iter().cloned().chain(ways).collect(),
            not_met,
            total_usd: sum.as_ref().map(guard::Sum::total),
            sum: sum
                .map(|sum| sum.lines.into_iter().map(|(what, usd)| Counted { what, usd }).collect())
                .unwrap_or_default(),
            budget_usd: limits.budget_usd,
            most: most(&draft, &facts, &limits),
            rules: account.into_iter().map(told).collect(),
            training,
        })
    }

    async fn asked_ensure(&self, vehicle: Option<&str>) -> Result<Asked, Failure> {
        let named = vehicle.is_some();
        let vehicle = self.vehicle(vehicle)?;
        let (draft, facts) = self.draft_ensure(&vehicle, named).await?;
        let mut not_met = Vec::new();
        match facts.pods_named(&vehicle.pod_name).next() {
            Some(pod) if pod.status == PodStatus::Error => not_met.push(format!(
                "pod {} is in status ERROR: terminate_pod deletes it, its volume stays",
                pod.id
            )),
            None if draft.steps.is_empty() => not_met.push(format!(
                "vehicle {} names no data centre or no GPU type: set datacenter_preference and gpu_type_ids",
                vehicle.name
            )),
            _ => {}
        }
        Ok(Asked { call: "ensure_pod", draft, facts, not_met, training: None })
    }

    async fn asked_run(&self, request: &RunJobRequest) -> Result<Asked, Failure> {
        let request = RunJobRequest { dry_run: true, ..request.clone() };
        let end = if request.auto_stop { JobEnd::AutoStop } else { JobEnd::Left };
        let call = match request.kind {
            JobKind::Command => "run_job",
            JobKind::Training(_) => "launch_training",
            JobKind::Script(_) => "run_pod_setup",
        };
        match self.draft_job(&request, end).await {
            Ok(DraftedJob { draft, facts, details, .. }) => {
                let training = details.training.as_ref().map(|(prepared, found)| {
                    let estimate = self.estimate(prepared, &details.pod);
                    why_training::told(prepared, &details.vehicle, Some(found), estimate)
                });
                Ok(Asked { call, draft, facts, not_met: Vec::new(), training })
            }
            // Whether it would be affordable can be told without a pod.
            Err(failure) if failure.kind == FailureKind::NoPod => {
                let wanted = self.wanted(&request)?;
                let (draft, mut facts) = self.launch_on_no_pod(&wanted, &request, end).await?;
                let not_met = vec![format!("{}: {}", failure.message, failure.hint)];
                let training = wanted.training.as_ref().map(|prepared| {
                    // What this computer's own files hold is known all the same.
                    facts.gates = Gates::Seen(checks(prepared));
                    let estimate = self.estimate_without_pod(prepared, &wanted.vehicle, &facts);
                    why_training::told(prepared, &wanted.vehicle, None, estimate)
                });
                Ok(Asked { call, draft, facts, not_met, training })
            }
            Err(failure) => Err(failure),
        }
    }

    /// A launch as it would be on a pod that ensure_pod would have running, at its price.
    async fn launch_on_no_pod(
        &self,
        wanted: &Wanted,
        request: &RunJobRequest,
        end: JobEnd,
    ) -> Result<(Draft, Facts), Failure> {
        let Wanted { vehicle, ceiling, .. } = wanted;
        let needs = super::gather::Needs { volumes: true, offers_for: Some(vehicle.gpu_count) };
        let facts = self.gather(needs).await?;
        let first = vehicle.gpu_type_ids.first();
        let price = first.map_or(Price::Unknown, |gpu| facts.price_of(gpu, vehicle.gpu_count));
        // The pod has no job yet, and a stopped one is not looked at for what it had.
        let pods = facts.pods.iter().filter(|pod| pod.name != vehicle.pod_name).cloned().collect();
        // A pod that is not there has no volume to look at; the launch itself looks.
        let volume_health = VolumeHealth::Seen { no_volume: None, no_write: None, free: None };
        let live_jobs = LiveJobs::Known(Vec::new());
        let facts = Facts { pods, live_jobs, volume_health, ..facts };
        let intent = Intent::Launch { force: request.force, ceiling: *ceiling, end };
        let named = request.vehicle.is_some();
        Ok((plan::on_pod(vehicle, named, intent, Vec::new(), Some(price)), facts))
    }
}

fn told(account: RuleAccount) -> RuleTold {
    RuleTold {
        name: account.name,
        verdict: if account.refusal.is_some() { Verdict::Refuse } else { Verdict::Pass },
        way_out: account.way_out(),
        refusal: account.refusal.as_ref().map(ToString::to_string),
        looked_at: account.looked_at,
    }
}

fn most(draft: &Draft, facts: &Facts, limits: &Limits) -> Most {
    let committed: Usd = facts.spend.committed.iter().map(Committed::usd).sum();
    let budget_left_usd = match (&facts.spend.spent, limits.budget_usd) {
        (Spent::Known(spent), Some(budget)) => {
            Some(budget.saturating_sub(*spent).saturating_sub(committed).max(Usd::ZERO))
        }
        _ => None,
    };
    let longest = |end| {
        guard::longest_ceiling(draft, facts, limits, end).map(crate::domain::Ceiling::as_secs)
    };
    let own_end = match draft.intent {
        Intent::Launch { end, .. } => Some(end),
        _ => None,
    };
    let cheapest = guard::cheapest(&draft.vehicle, facts, limits);
    Most {
        budget_left_usd,
        max_runtime_sec: own_end.and_then(longest),
        max_runtime_sec_with_auto_stop: own_end.and_then(|_| longest(JobEnd::AutoStop)),
        cheapest_gpu: cheapest.map(|(offer, ..)| offer.id.0.clone()),
        cheapest_usd_per_hour: cheapest.map(|(_, price, _)| price.per_hour()),
        cheapest_passes: cheapest.map(|(.., passes)| passes),
    }
}
