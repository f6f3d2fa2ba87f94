//! What the links of a campaign need of the verbs: their jobs, checked before anything is asked of the
//! provider, and the review of all of them together.

use super::gather::Needs;
use super::set_up::SetUpRequest;
use super::sweep::SweepRequest;
use super::{JobKind, RunJobRequest, Tether, TrainingChoice};
use crate::digest::sha256_hex;
use crate::domain::{Ceiling, JobEnd, Link, Pod, Price, Usd, Vehicle, Work};
use crate::error::{Failure, StillBilling};
use crate::guard;
use crate::plan::{self, Intent};
use crate::training;
use std::time::Duration;

/// A job of a link that makes sense. Its files were read, nothing was asked.
#[derive(Clone, Debug)]
pub(crate) struct LinkJob {
    /// What is asked of supervise.
    pub request: RunJobRequest,
    /// The longest it may run.
    pub ceiling: Ceiling,
    /// How long it is expected to take, when anybody knows.
    pub expected: Option<Duration>,
    /// How many iterations it is expected to have.
    pub iterations: Option<u32>,
    /// What it comes to: equal texts are the same job.
    pub essence: String,
}

/// What the rules say to all links together.
#[derive(Clone, Debug)]
pub(crate) struct CampaignReview {
    /// What counts against the budget, line by line, with the links among it.
    pub counted: Vec<(String, Usd)>,
    /// What stands against it.
    pub refusal: Option<Failure>,
}

impl Tether {
    /// The job that a link is; `None` for a link that is none.
    ///
    /// # Errors
    /// Bad input with the nearest value, and files of the config that cannot be read.
    pub(crate) fn link_job(
        &self,
        vehicle: &Vehicle,
        link: &Link,
    ) -> Result<Option<LinkJob>, Failure> {
        let named = Some(vehicle.name.0.clone());
        let request = match &link.work {
            Work::SetUp => {
                self.set_up_job(&SetUpRequest { vehicle: named, ..SetUpRequest::default() })?
            }
            Work::Sweep => self.sweep_job(SweepRequest::default())?.1,
            Work::Training { training, level, seed, extra_args } => RunJobRequest {
                vehicle: named,
                kind: JobKind::Training(TrainingChoice {
                    training: training.clone(),
                    dr_level: level.clone(),
                    seed: seed.clone(),
                    extra_args: extra_args.clone(),
                }),
                ..RunJobRequest::default()
            },
            Work::Command { command, workdir } => RunJobRequest {
                name: link.name.clone(),
                command: command.clone(),
                workdir: workdir.clone(),
                vehicle: named,
                ..RunJobRequest::default()
            },
            Work::Patches | Work::Sync { .. } | Work::Nothing => return Ok(None),
        };
        let max_runtime_sec = link.max_runtime_sec.map(i64::from);
        let request = RunJobRequest { max_runtime_sec, ..request };
        let wanted = self.wanted(&request)?;
        let recipe = wanted.training.as_ref().map(|prepared| {
            let iterations = prepared.run.iterations;
            (
                iterations,
                training::expected_time(&prepared.recipe, iterations),
                prepared.recipe.sha256.clone(),
            )
        });
        let script = wanted.script.as_ref().map(|parts| parts.essence());
        let essence = serde_json::json!({
            "name": wanted.name.as_str(), "command": wanted.command, "workdir": wanted.workdir,
            "ceiling_sec": wanted.ceiling.as_secs(), "script": script,
            "recipe": recipe.as_ref().map(|(.., sha256)| sha256),
        });
        let (iterations, expected, _) = recipe.unwrap_or_default();
        let ceiling = wanted.ceiling;
        let essence = essence.to_string();
        Ok(Some(LinkJob { request, ceiling, expected, iterations, essence }))
    }

    /// What the files of a link that are sent to the pod come to, apart from its job: those of patches.
    ///
    /// # Errors
    /// When one cannot be read.
    pub(crate) fn patches_essence(&self) -> Result<String, Failure> {
        let (_, script, files) = self.patch_files()?;
        let all = std::iter::once(&script).chain(&files);
        Ok(all.map(|file| format!("{} {}\n", file.name, sha256_hex(&file.bytes))).collect())
    }

    /// Has the rules look at all links together, for `links` in all and with this end. Nothing is
    /// changed; each launch is reviewed again by itself.
    ///
    /// # Errors
    /// When the provider cannot be asked. What the rules have against it is in the answer.
    pub(crate) async fn review_campaign(
        &self,
        vehicle: &Vehicle,
        (links, longest): (Duration, Ceiling),
        end: JobEnd,
    ) -> Result<CampaignReview, Failure> {
        let mut facts = self.gather(Needs { volumes: true, offers_for: None }).await?;
        let mut pod = match self.pick(vehicle, &mut facts).await {
            Ok(pod) => pod,
            Err(failure) => {
                return Ok(CampaignReview { counted: Vec::new(), refusal: Some(failure) });
            }
        };
        self.reconcile(&mut facts).await.map_err(|failure| failure.billing(StillBilling::Yes))?;
        if pod.price.known().is_none() {
            pod.price = self.catalog_price(&pod).await;
        }
        let seen = self.before_a_job(vehicle, &pod).await;
        let watchdog = seen.watchdog.as_deref();
        let unproven = facts.spend.fuse;
        let fuse = self.fuse_of_a_plan(vehicle, &pod, &seen.jobs, watchdog, true, unproven);
        facts.spend.fuse = self.once_extended_over(fuse, links, end);
        (facts.live_jobs, facts.volume_health) = (seen.live_jobs, seen.health);
        let intent = Intent::Campaign { pod: pod.id.clone(), links, longest, end };
        let draft = plan::on_pod(vehicle, true, intent, Vec::new(), Some(pod.price));
        let facts = self.with_spend(&draft, facts).await;
        let limits = self.config.limits_for(&vehicle.name);
        let counted = guard::everything_counted(&draft, &facts, &limits);
        let refusal = self.review(draft, &facts).err();
        Ok(CampaignReview { counted: counted.map(|sum| sum.lines).unwrap_or_default(), refusal })
    }

    /// How long the job of a link is expected to take on this pod, by earlier runs or else by its recipe;
    /// `None` when nobody knows.
    pub(crate) fn link_expected(&self, request: &RunJobRequest, pod: &Pod) -> Option<Duration> {
        let wanted = self.wanted(request).ok()?;
        let estimate = self.estimate(wanted.training.as_ref()?, pod)?;
        Some(Duration::from_secs(estimate.sec))
    }

    /// The vehicle's running pod, with its price.
    ///
    /// # Errors
    /// When none runs, or the provider cannot be asked.
    pub(crate) async fn pod_of_links(&self, vehicle: &Vehicle) -> Result<Pod, Failure> {
        let mut pod = self.running_pod(vehicle).await?;
        if pod.price.known().is_none() {
            pod.price = self.catalog_price(&pod).await;
        }
        Ok(pod)
    }

    /// Whether the rules would let this job begin now. Changes nothing.
    ///
    /// # Errors
    /// What they have against it.
    pub(crate) async fn would_launch(
        &self,
        request: &RunJobRequest,
        end: JobEnd,
    ) -> Result<(), Failure> {
        let request = RunJobRequest { dry_run: true, ..request.clone() };
        self.plan_job(&request, end).await.map(|_| ())
    }

    /// The pod's price as the rules know it; the limit on it when no pod runs.
    pub(crate) fn rate_at_most(&self, vehicle: &Vehicle, pod: Option<&Pod>) -> Price {
        match pod {
            Some(pod) => pod.price,
            None => {
                let limits = self.config.limits_for(&vehicle.name);
                limits.max_usd_per_hour.map_or(Price::Unknown, Price::Known)
            }
        }
    }
}
