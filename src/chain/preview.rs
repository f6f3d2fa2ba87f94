//! A campaign before it is run: each link with what it may cost, all of them beside the budget, and
//! everything that stands against it. What a dry run prints and what a run begins with is this.

use super::before;
use super::bill::{self, LinkBill};
use super::prepared::{Prepared, prepare};
use super::record::{self, Record};
use super::standing::Unchanged;
use super::state::Standing;
use crate::domain::{
    Campaign, Ceiling, ExpectedReward, JobEnd, LinkEnd, Pod, RewardLines, Usd, UsdPerHour, Vehicle,
    Work,
};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::ops::campaign::CampaignReview;
use crate::ops::{CloudName, Tether};
use crate::supervise::{CAPTURE_MAX, longest_stop};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// A link before it is run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkPreview {
    /// What it takes and costs.
    #[serde(flatten)]
    pub bill: LinkBill,
    /// `done` (it is skipped), `in_flight` (it is taken up), `to_run`, or `end` of a link that only stops.
    pub standing: &'static str,
    /// Why.
    pub why: String,
    /// What must hold before it.
    pub before: Vec<String>,
    /// What must hold after it.
    pub after: Vec<String>,
    /// What comes after it.
    pub then: String,
}

/// An amount that counts against the budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CountedLine {
    /// What it is for.
    pub what: String,
    /// How much.
    pub usd: Usd,
}

/// A campaign before it is run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// Which cloud answered.
    pub cloud: CloudName,
    /// Its name.
    pub campaign: String,
    /// Its file.
    pub file: PathBuf,
    /// The vehicle.
    pub vehicle: String,
    /// The pod that it would run on; null when none runs.
    pub pod_id: Option<String>,
    /// What the pod costs an hour; without a pod the most that the limits let one cost.
    pub usd_per_hour: Option<Usd>,
    /// The links.
    pub links: Vec<LinkPreview>,
    /// What the links that are to be run can cost at worst, without what ends them.
    pub worst_case_usd: Option<Usd>,
    /// What is expected of those whose time anybody knows.
    pub expected_usd: Option<Usd>,
    /// How many of the jobs to be run nobody knows the time of.
    pub not_expected: usize,
    /// Everything that counts against the budget, with the links and their one end among it.
    pub counted: Vec<CountedLine>,
    /// The sum of it.
    pub counted_usd: Option<Usd>,
    /// `limits.budget_usd`.
    pub budget_usd: Option<Usd>,
    /// What stands against it: a run would be refused, and change nothing.
    pub refusals: Vec<String>,
    /// Where its record is, or would be.
    pub record_path: PathBuf,
}

/// The campaign as it would be run now. Changes nothing.
///
/// # Errors
/// A file that makes no sense, a record that cannot be used, a provider that cannot be asked. What
/// would be refused is in the answer.
pub async fn preview(
    tether: &Tether,
    campaign: &Campaign,
    again: &[String],
) -> Result<Preview, Failure> {
    Ok(survey(tether, campaign, again).await?.preview)
}

/// The same with what a run needs of it.
pub(super) struct Survey {
    pub vehicle: Vehicle,
    pub links: Vec<Prepared>,
    pub record: Record,
    pub rate: Option<UsdPerHour>,
    /// Whether the rules have seen all links together.
    pub is_reviewed: bool,
    /// What links have left and was read by this look.
    pub unchanged: Unchanged,
    pub preview: Preview,
    refusals: Vec<Failure>,
}

impl Survey {
    /// Everything that stands against it, as one failure.
    pub(super) fn refusal(&self) -> Option<Failure> {
        let first = self.refusals.first()?;
        let told: Vec<&str> =
            self.refusals.iter().map(|failure| failure.message.as_str()).collect();
        let mut failure = Failure { message: told.join("\n"), ..first.clone() };
        // One kind that is no refusal would hide that nothing was changed.
        if !matches!(failure.kind, FailureKind::NoPod | FailureKind::BadInput | FailureKind::Config)
        {
            failure.kind = FailureKind::Refused;
        }
        Some(failure)
    }
}

/// Looks at everything that is known before the first link. `again` are links whose records do not
/// count.
pub(super) async fn survey(
    tether: &Tether,
    campaign: &Campaign,
    again: &[String],
) -> Result<Survey, Failure> {
    let vehicle = tether.vehicle(Some(&campaign.vehicle.0))?;
    let mut links = prepare(tether, campaign, &vehicle)?;
    let now = tether.clock().now();
    let mut record = Record::open(campaign, &vehicle, tether.cloud_name(), now)?;
    forget(campaign, &mut record, again)?;
    let (pod, no_pod) = match tether.pod_of_links(&vehicle).await {
        Ok(pod) => (Some(pod), None),
        Err(failure) if failure.kind == FailureKind::NoPod => (None, Some(failure)),
        Err(failure) => return Err(failure),
    };
    for job in links.iter_mut().filter_map(|link| link.job.as_mut()) {
        let known = pod.as_ref().and_then(|pod| tether.link_expected(&job.request, pod));
        job.expected = known.or(job.expected);
    }
    let unchanged = Unchanged::default();
    let standings = unchanged.standings(&links, &record, pod.as_ref()).await;
    let rate = tether.rate_at_most(&vehicle, pod.as_ref()).known();
    let bills: Vec<LinkBill> =
        links.iter().map(|link| bill::of(&link.link, link.job.as_ref(), rate)).collect();
    let is_to_run = |i: usize| standings.get(i).is_some_and(|(s, _)| *s == Standing::ToRun);
    let is_in_flight = standings.iter().any(|(standing, _)| *standing == Standing::InFlight);
    let to_run: Vec<usize> = (0..links.len()).filter(|i| is_to_run(*i)).collect();
    let mut refusals: Vec<Failure> = Vec::new();
    for i in &to_run {
        let (Some(link), Some(bill)) = (links.get(*i), bills.get(*i)) else { continue };
        refusals.extend(bill.beyond_envelope().map(refused));
        let pins = before::pins_here(&link.link).into_iter();
        refusals.extend(pins.map(|fault| refused(format!("link {}: {fault}", link.link.name))));
    }
    let mut review: Option<CampaignReview> = None;
    if !to_run.is_empty() || is_in_flight {
        refusals.extend(no_pod);
    }
    if let (Some(pod), Some(first)) = (&pod, to_run.first().and_then(|i| links.get(*i)))
        && !is_in_flight
    {
        let reviewed = review_all(tether, &vehicle, &links, &standings).await?;
        refusals.extend(reviewed.refusal.clone());
        refusals.extend(first_link(tether, &vehicle, pod, first, refusals.is_empty()).await);
        review = Some(reviewed);
    }
    let preview = Preview {
        cloud: tether.cloud_name(),
        campaign: campaign.name.clone(),
        file: campaign.path.clone(),
        vehicle: vehicle.name.0.clone(),
        pod_id: pod.map(|pod| pod.id.0),
        usd_per_hour: rate.map(UsdPerHour::per_hour),
        worst_case_usd: sum(to_run.iter().map(|i| bills.get(*i)?.worst_case_usd)),
        expected_usd: sum(to_run
            .iter()
            .filter_map(|i| bills.get(*i))
            .filter(|bill| bill.expected_sec.is_some())
            .map(|bill| bill.expected_usd)),
        not_expected: to_run
            .iter()
            .filter_map(|i| bills.get(*i))
            .filter(|bill| bill.ceiling_sec.is_some() && bill.expected_sec.is_none())
            .count(),
        links: links
            .iter()
            .zip(bills)
            .zip(&standings)
            .map(|((link, bill), known)| told(link, bill, known))
            .collect(),
        counted: review
            .iter()
            .flat_map(|review| review.counted.clone())
            .filter(|(_, usd)| *usd > Usd::ZERO)
            .map(|(what, usd)| CountedLine { what, usd })
            .collect(),
        counted_usd: review
            .as_ref()
            .filter(|review| !review.counted.is_empty())
            .map(|review| review.counted.iter().map(|(_, usd)| *usd).sum()),
        budget_usd: tether.config().limits_for(&vehicle.name).budget_usd,
        refusals: refusals.iter().map(in_words).collect(),
        record_path: record::path(campaign, &vehicle),
    };
    let is_reviewed = review.is_some();
    Ok(Survey { vehicle, links, record, rate, is_reviewed, unchanged, preview, refusals })
}

/// Has the rules look at the links that are to be run, all together.
pub(super) async fn review_all(
    tether: &Tether,
    vehicle: &Vehicle,
    links: &[Prepared],
    standings: &[(Standing, String)],
) -> Result<CampaignReview, Failure> {
    let to_run = || {
        let both = links.iter().zip(standings);
        both.filter(|(_, (standing, _))| *standing == Standing::ToRun).map(|(link, _)| link)
    };
    let ceiling = |link: &Prepared| link.job.as_ref().map(|job| job.ceiling);
    let time = to_run().map(|link| bill::worst_time(&link.link, ceiling(link))).sum::<Duration>();
    let longest = to_run().filter_map(ceiling).max().or_else(|| Ceiling::from_secs(1));
    let Some(longest) = longest else { return Err(Failure::bad_input("no job has a ceiling")) };
    tether.review_campaign(vehicle, (time, longest), end(tether)).await
}

/// What ends a campaign: each of its links counts its own capture.
fn end(tether: &Tether) -> JobEnd {
    JobEnd::Supervised {
        max_wait: None,
        backstop: Duration::ZERO,
        capture: Duration::ZERO,
        stop: longest_stop(tether.settings().off),
    }
}

/// What stands against the first link: it is the one of which everything can be known.
async fn first_link(
    tether: &Tether,
    vehicle: &Vehicle,
    pod: &Pod,
    first: &Prepared,
    plans: bool,
) -> Vec<Failure> {
    let name = &first.link.name;
    let mut refusals = Vec::new();
    match before::faults(tether, vehicle, pod, &first.link).await {
        // Those of this computer were told before.
        Ok(faults) => {
            let here = before::pins_here(&first.link);
            let new = faults.into_iter().filter(|fault| !here.contains(fault));
            refusals.extend(new.map(|fault| refused(format!("link {name}: {fault}"))));
        }
        Err(failure) => refusals.push(failure),
    }
    if first.link.work == Work::Sweep {
        refusals.extend(tether.check_patched(vehicle).await.err());
    }
    if let Some(job) = first.job.as_ref().filter(|_| plans && refusals.is_empty()) {
        let end = JobEnd::Supervised {
            max_wait: None,
            backstop: bill::BACKSTOP,
            capture: CAPTURE_MAX,
            stop: longest_stop(tether.settings().off),
        };
        refusals.extend(tether.would_launch(&job.request, end).await.err());
    }
    refusals
}

/// A refusal, with what to do where that is not said in it.
fn in_words(failure: &Failure) -> String {
    match failure.kind {
        FailureKind::NoPod => format!("{}; {}", failure.message, failure.hint),
        _ => failure.message.clone(),
    }
}

fn refused(message: String) -> Failure {
    Failure::new(FailureKind::Refused, message, "nothing was changed; the pod is as it was")
        .billing(StillBilling::Unknown)
}

/// Drops what is recorded of links that are to be run again.
fn forget(campaign: &Campaign, record: &mut Record, again: &[String]) -> Result<(), Failure> {
    for name in again {
        if !campaign.links.iter().any(|link| link.name == *name) {
            let known = campaign.links.iter().map(|link| link.name.as_str());
            let fix = crate::domain::nearest(name, known);
            return Err(Failure::bad_input(format!(
                "--again {name}: there is no such link; {fix}"
            )));
        }
        record.links.retain(|link| link.name != *name);
    }
    Ok(())
}

fn sum(amounts: impl Iterator<Item = Option<Usd>>) -> Option<Usd> {
    let all = amounts.collect::<Option<Vec<Usd>>>()?;
    (!all.is_empty()).then(|| all.into_iter().sum())
}

fn told(prepared: &Prepared, bill: LinkBill, known: &(Standing, String)) -> LinkPreview {
    let link = &prepared.link;
    let expect = &link.expect;
    let mut after: Vec<String> = link.after.iter().map(before::told_of).collect();
    after.extend(expect.artifacts.iter().map(|pattern| format!("{pattern} is home")));
    after.extend(expect.reward_lines.map(|lines| match lines {
        RewardLines::Iterations => "one mean reward for each iteration".to_owned(),
        RewardLines::Count(count) => format!("{count} mean rewards"),
    }));
    after.extend(expect.reward.as_ref().map(|reward| match reward {
        ExpectedReward::OfRecipe => "the last mean reward within the recipe's".to_owned(),
        ExpectedReward::Between(low, high) => format!("the last mean reward from {low} to {high}"),
    }));
    let then = match link.end {
        LinkEnd::Next => "the next link",
        LinkEnd::Pause { stops: true } => "a stop point: the pod is stopped",
        LinkEnd::Pause { stops: false } => "a stop point: the pod is left running, and bills",
        LinkEnd::Stop => "the pod is stopped and read back",
    };
    let standing = match known.0 {
        _ if link.work == Work::Nothing => "end",
        Standing::Holds { .. } => "done",
        Standing::InFlight => "in_flight",
        Standing::ToRun => "to_run",
    };
    let (why, before, then) = (known.1.clone(), before::told(link), then.to_owned());
    LinkPreview { bill, standing, why, before, after, then }
}
