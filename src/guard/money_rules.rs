//! The rules on sums: what a plan may cost at worst, beside what was spent and is promised already.

use super::Refusal;
use super::sum::Sum;
use super::worst_case::WorstCase;
use crate::domain::{Ceiling, JobEnd, Limits, PodId, Usd};
use crate::plan::{Change, Draft, Facts, Fuse, Intent, Spent, Step};
use chrono::TimeDelta;
use std::time::Duration;

/// Exactly the budget passes. What is not known refuses a spend, and nothing but a spend. An unknown
/// price has no worst case; `the_price_is_known_and_under_the_ceiling` refuses it.
pub(super) fn a_launch_stays_within_the_budget(
    draft: &Draft,
    facts: &Facts,
    limits: &Limits,
) -> Option<Refusal> {
    let limit = limits.budget_usd.filter(|_| draft.adds.is_some())?;
    let spent = match &facts.spend.spent {
        Spent::Known(spent) => *spent,
        Spent::Unknown(why) => return Some(Refusal::SpentUnknown(why.clone())),
    };
    let sum_of = |draft: &Draft| everything(draft, facts, limits, Some(spent));
    let sum = sum_of(draft)?;
    let total = sum.total();
    (total > limit).then(|| {
        let fits = |draft: &Draft| sum_of(draft).is_some_and(|sum| sum.total() <= limit);
        let raise = format!("limits.budget_usd = {} would pass", total.to_decimal());
        Refusal::OverBudget { limit, way_out: way_out(draft, facts, &fits, raise), sum }
    })
}

/// Everything that counts against a budget, line by line: spent, committed, and the worst case of the
/// draft; `None` when that is not known.
pub(super) fn everything(
    draft: &Draft,
    facts: &Facts,
    limits: &Limits,
    spent: Option<Usd>,
) -> Option<Sum> {
    let worst_case = WorstCase::of(draft, facts)?;
    let mut sum = Sum::default();
    if let Some(spent) = spent {
        sum.add(format!("spent so far (budget_window {})", limits.budget_window), spent);
    }
    sum.add_committed(&facts.spend.committed, pod_of(draft), &worst_case);
    sum.add_worst_case(&worst_case);
    Some(sum)
}

/// The pod that a draft puts or keeps on the bill; `None` for one that is yet to be created.
fn pod_of(draft: &Draft) -> Option<&PodId> {
    if let Intent::Campaign { pod, .. } = &draft.intent {
        return Some(pod);
    }
    draft.steps.iter().find_map(|step| match step {
        Step::Pod(step) => Some(&step.pod),
        Step::Cloud(Change::StartPod(pod)) => Some(pod),
        Step::Cloud(_) => None,
    })
}

/// I05: a pod that never comes up bills all the same, and so does each next try.
pub(super) fn boots_are_limited_per_hour(
    draft: &Draft,
    facts: &Facts,
    limits: &Limits,
) -> Option<Refusal> {
    let is_boot =
        |step: &Step| matches!(step, Step::Cloud(Change::CreatePod(_) | Change::StartPod(_)));
    let limit = limits.max_boots_per_hour.filter(|_| draft.steps.iter().any(is_boot))?;
    let boots = &facts.spend.boots;
    let recent: Vec<_> = boots.started.iter().filter(|boot| boot.ago < HOUR).collect();
    let too_many = recent.len().checked_sub(usize::try_from(limit).unwrap_or(usize::MAX))?;
    // Once that many have passed out of the hour, one more fits. A limit is 1 or more.
    let last = recent.get(too_many).or(recent.last())?;
    Some(Refusal::TooManyBoots {
        limit,
        made: recent.len(),
        next_at: last.at.checked_add_signed(TimeDelta::hours(1)).unwrap_or(last.at),
        wait: HOUR.saturating_sub(last.ago),
        failed: boots.failed,
        failed_usd: boots.failed_usd,
    })
}

const HOUR: Duration = Duration::from_secs(3600);

/// Exactly the limit passes.
pub(super) fn a_job_stays_within_max_usd_per_job(
    draft: &Draft,
    facts: &Facts,
    limits: &Limits,
) -> Option<Refusal> {
    let limit = limits.max_usd_per_job.filter(|_| draft.adds.is_some())?;
    // Of a campaign each job is one: the longest is the dearest.
    let longest = match draft.intent {
        Intent::Campaign { longest, end, .. } => {
            let intent = Intent::Launch { force: false, ceiling: longest, end };
            Some(Draft { intent, ..draft.clone() })
        }
        _ => None,
    };
    let draft = longest.as_ref().unwrap_or(draft);
    let sum_of = |draft: &Draft| {
        let mut sum = Sum::default();
        sum.add_worst_case(&WorstCase::of(draft, facts)?.of_the_job());
        Some(sum)
    };
    let sum = sum_of(draft)?;
    let total = sum.total();
    (total > limit).then(|| {
        let fits = |draft: &Draft| sum_of(draft).is_some_and(|sum| sum.total() <= limit);
        let raise = format!("limits.max_usd_per_job = {} would pass", total.to_decimal());
        Refusal::JobTooDear { limit, way_out: way_out(draft, facts, &fits, raise), sum }
    })
}

/// The one change that would pass, the mildest first: an end of its own for a job that has none, a
/// shorter job, both, a shorter time without a watch; else only a higher limit.
fn way_out(draft: &Draft, facts: &Facts, fits: &dyn Fn(&Draft) -> bool, raise: String) -> String {
    let Intent::Launch { force, ceiling, end } = draft.intent else { return raise };
    let launch =
        |ceiling, end| Draft { intent: Intent::Launch { force, ceiling, end }, ..draft.clone() };
    let is_unwatched = end == JobEnd::Left && matches!(facts.spend.fuse, Fuse::Unproven { .. });
    if is_unwatched && fits(&launch(ceiling, JobEnd::AutoStop)) {
        return "auto_stop=true would pass".to_owned();
    }
    if let Some(ceiling) = longest(ceiling, &|ceiling| fits(&launch(ceiling, end))) {
        return format!("max_runtime_sec={} would pass", ceiling.as_secs());
    }
    let stopped = |ceiling| fits(&launch(ceiling, JobEnd::AutoStop));
    if let Some(ceiling) = longest(ceiling, &stopped).filter(|_| is_unwatched) {
        return format!("auto_stop=true with max_runtime_sec={} would pass", ceiling.as_secs());
    }
    raise
}

/// The longest ceiling below `below` that fits; the longer the job, the dearer it is.
fn longest(below: Ceiling, fits: &dyn Fn(Ceiling) -> bool) -> Option<Ceiling> {
    let fits = |seconds: u32| Ceiling::from_secs(seconds).filter(|ceiling| fits(*ceiling));
    let mut best = fits(1)?;
    let (mut low, mut high) = (1, below.as_secs());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match fits(middle) {
            Some(ceiling) => (best, low) = (ceiling, middle),
            None => high = middle,
        }
    }
    (best < below).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::super::review;
    use super::super::tests::{
        boots_ago, ensure_draft, launch_of, promised, refusals, spend, with_pod,
    };
    use super::*;
    use crate::domain::{PodStatus, Usd, UsdPerHour};
    use crate::plan::{self, Committed, RecentBoots, Spend};

    fn usd(micros: i64) -> Usd {
        Usd::from_micros(micros)
    }

    fn budget(micros: i64) -> Limits {
        Limits { budget_usd: Some(usd(micros)), ..Limits::default() }
    }

    fn per_job(micros: i64) -> Limits {
        Limits { max_usd_per_job: Some(usd(micros)), ..Limits::default() }
    }

    /// A running pod and no volume, so that sums are those of the pod.
    fn running(spend: Spend) -> Facts {
        Facts { spend, ..with_pod(|_| {}) }
    }

    fn text(draft: &Draft, facts: &Facts, limits: &Limits) -> String {
        let mut refused = refusals(draft.clone(), facts, limits);
        assert_eq!(refused.len(), 1, "{refused:?}");
        refused.remove(0).to_string()
    }

    /// The edge of a limit: exactly there passes, one micro-dollar less refuses.
    #[test]
    fn exactly_the_limit_passes_and_one_micro_dollar_more_does_not() {
        let facts = running(Spend {
            spent: Spent::Known(usd(1_000_000)),
            committed: vec![promised("job j1", 2_000_000), promised("a create", 3)],
            ..spend()
        });
        let start = Facts { pods: vec![], ..facts.clone() };
        for (draft, facts) in
            [(launch_of(false, 3600, JobEnd::Left), &facts), (ensure_draft(&start), &start)]
        {
            let worst = WorstCase::of(&draft, facts).unwrap();
            let total = worst.total().micros() + 3_000_003;
            assert!(refusals(draft.clone(), facts, &budget(total)).is_empty());
            let refused = refusals(draft.clone(), facts, &budget(total - 1));
            assert!(matches!(refused[..], [Refusal::OverBudget { .. }]), "{refused:?}");
            let job = worst.of_the_job().total().micros();
            assert!(refusals(draft.clone(), facts, &per_job(job)).is_empty());
            let refused = refusals(draft, facts, &per_job(job - 1));
            assert!(matches!(refused[..], [Refusal::JobTooDear { .. }]), "{refused:?}");
        }
    }

    #[test]
    fn a_refusal_shows_the_sum_line_by_line_and_the_one_change_that_would_pass() {
        let facts = running(Spend {
            spent: Spent::Known(usd(1_000_000)),
            committed: vec![promised("job j1", 500_000)],
            ..spend()
        });
        let left = launch_of(false, 3600, JobEnd::Left);
        let said = text(&left, &facts, &budget(4_000_000));
        for line in [
            "limits.budget_usd = 4.00: auto_stop=true would pass",
            "\n  $1.00 spent so far (budget_window total)",
            "\n  $0.50 committed: job j1",
            "\n  $0.69 job, up to its ceiling (3600 s)",
            "\n  $0.0115 kill grace (60 s)",
            "\n  $2.07 unwatched: no fuse is proven, so the bill is open-ended",
            "\n  = $4.29",
        ] {
            assert!(said.contains(line), "{line}\n{said}");
        }
    }

    /// What a refusal promises is true: the change passes, and a second more would not.
    #[test]
    fn the_way_out_passes_and_is_the_furthest_that_does() {
        let facts = running(spend());
        let limits = budget(4_000_000);
        let end = JobEnd::AutoStop;
        let said = text(&launch_of(false, 86_400, end), &facts, &limits);
        let seconds: u32 = said
            .split_once("max_runtime_sec=")
            .and_then(|(_, rest)| rest.split_once(' '))
            .and_then(|(seconds, _)| seconds.parse().ok())
            .unwrap_or_else(|| panic!("{said}"));
        assert!(refusals(launch_of(false, seconds, end), &facts, &limits).is_empty());
        assert!(!refusals(launch_of(false, seconds + 1, end), &facts, &limits).is_empty());
        // Both at once where neither will do alone, and only a higher limit where no job will.
        let left = launch_of(false, 86_400, JobEnd::Left);
        let said = text(&left, &facts, &budget(1_500_000));
        assert!(said.contains("auto_stop=true with max_runtime_sec="), "{said}");
        let said = text(&left, &facts, &budget(1));
        let total = WorstCase::of(&left, &facts).unwrap().total();
        assert!(said.contains(&format!("limits.budget_usd = {} would pass", total.to_decimal())));
        assert!(refusals(left.clone(), &facts, &budget(total.micros())).is_empty());
        let said = text(&left, &facts, &per_job(4_000_000));
        assert!(said.contains("max_usd_per_job = 4.00: max_runtime_sec="), "{said}");
    }

    /// I02: what nobody can tell refuses what spends, and nothing else.
    #[test]
    fn an_unknown_bill_refuses_a_spend_and_nothing_else() {
        let facts = running(Spend { spent: Spent::Unknown("HTTP 502".into()), ..spend() });
        let limits = budget(1_000_000_000);
        let launch = launch_of(false, 1, JobEnd::AutoStop);
        let said = text(&launch, &facts, &limits);
        assert!(said.contains("HTTP 502"), "{said}");
        // Without a budget nothing depends on the bill.
        assert!(refusals(launch, &facts, &per_job(1_000_000_000)).is_empty());
        // The pod runs already: nothing is spent that was not before.
        assert!(refusals(ensure_draft(&facts), &facts, &limits).is_empty());
        let exec =
            plan::on_pod(&crate::domain::sample::vehicle(), false, Intent::Exec, vec![], None);
        assert!(refusals(exec, &facts, &limits).is_empty());
    }

    #[test]
    fn a_start_is_held_to_the_budget_as_a_create_is() {
        let stopped = with_pod(|pod| pod.status = PodStatus::Exited);
        let refused = refusals(ensure_draft(&stopped), &stopped, &budget(1_000_000));
        assert!(matches!(refused[..], [Refusal::OverBudget { .. }]), "{refused:?}");
        assert!(refusals(ensure_draft(&stopped), &stopped, &budget(3_000_000)).is_empty());
        // The hours after it are no job's: only the boot is held to the limit of a job.
        assert!(refusals(ensure_draft(&stopped), &stopped, &per_job(172_500)).is_empty());
        assert!(!refusals(ensure_draft(&stopped), &stopped, &per_job(172_499)).is_empty());
    }

    /// Sums end at the largest amount and never wrap to a small one.
    #[test]
    fn no_sum_overflows() {
        let most = usd(i64::MAX);
        let facts = running(Spend {
            spent: Spent::Known(most),
            committed: vec![
                promised("one", i64::MAX),
                Committed { until: Duration::MAX, ..promised("two", i64::MAX) },
            ],
            boots: RecentBoots::default(),
            window_left: Some(Duration::MAX),
            fuse: Fuse::Unproven { allowance: Duration::MAX },
        });
        let supervised = JobEnd::Supervised {
            max_wait: Some(Duration::MAX),
            backstop: Duration::MAX,
            capture: Duration::MAX,
            stop: Duration::MAX,
        };
        for end in [JobEnd::Left, JobEnd::AutoStop, supervised] {
            let draft = launch_of(false, Ceiling::MAX_SEC, end);
            assert!(!refusals(draft.clone(), &facts, &budget(i64::MAX - 1)).is_empty());
            let approved = review(draft, &facts, &Limits::default()).unwrap();
            assert!(approved.worst_case().total() > Usd::ZERO);
        }
    }

    /// A pod bills once: what holds it already is not counted again, only the time beyond.
    #[test]
    fn a_second_job_on_a_pod_adds_only_the_time_beyond() {
        let held = |pod: &str, hours: u64| Committed {
            what: format!("{hours} h of {pod}"),
            pod: Some(PodId(pod.into())),
            rate: UsdPerHour::new(usd(690_000)),
            after: Duration::ZERO,
            until: hours as u32 * HOUR,
        };
        let total = |committed: Vec<Committed>| {
            // A window that is all but over, so that storage costs nothing.
            let window_left = Some(Duration::ZERO);
            let facts = running(Spend { committed, window_left, ..spend() });
            // One hour of job, a minute of grace, three hours without a watch: $2.7715.
            let draft = launch_of(true, 3600, JobEnd::Left);
            let passes = |micros| refusals(draft.clone(), &facts, &budget(micros)).is_empty();
            let (mut low, mut high) = (0, 100_000_000);
            while high - low > 1 {
                let middle = (low + high) / 2;
                if passes(middle) { high = middle } else { low = middle }
            }
            high
        };
        let alone = 2_771_500;
        assert_eq!(total(vec![]), alone);
        assert_eq!(total(vec![held("pod1", 4)]), alone);
        assert_eq!(total(vec![held("pod1", 5)]), 5 * 690_000);
        let later = Committed { after: 5 * HOUR, ..held("pod1", 6) };
        assert_eq!(total(vec![held("pod1", 5), later]), 6 * 690_000);
        assert_eq!(total(vec![held("pod2", 4)]), alone + 4 * 690_000);
        let facts = running(Spend { committed: vec![held("pod1", 5)], ..spend() });
        let said = text(&launch_of(true, 3600, JobEnd::Left), &facts, &budget(3_000_000));
        assert!(said.contains("committed: 5 h of pod1, beyond this plan"), "{said}");
    }

    /// I05: the limit counts the last hour, says when the next is allowed, and what failed ones cost.
    #[test]
    fn starts_are_limited_per_hour_and_a_stop_never_is() {
        let limits = Limits { max_boots_per_hour: Some(3), ..Limits::default() };
        let with = |ago: &[u64]| {
            let mut facts = with_pod(|pod| pod.status = PodStatus::Exited);
            facts.spend.boots =
                RecentBoots { failed: 2, failed_usd: usd(345_000), ..boots_ago(ago) };
            facts
        };
        for ago in [&[][..], &[2, 1], &[3600, 2, 1], &[9000, 4000, 2, 1]] {
            let facts = with(ago);
            assert!(refusals(ensure_draft(&facts), &facts, &limits).is_empty(), "{ago:?}");
        }
        for (ago, words) in [
            (&[3599, 2, 1][..], "allowed at 00:00:01 UTC (in 1 min)"),
            (&[3500, 3000, 2, 1], "allowed at 00:10:00 UTC (in 10 min)"),
        ] {
            let facts = with(ago);
            let said = text(&ensure_draft(&facts), &facts, &limits);
            for words in [words, "max_boots_per_hour = 3", "2 of them never came up and cost $0.35"]
            {
                assert!(said.contains(words), "{words}: {said}");
            }
            // A create is a start as well; a launch and a look are none.
            let none = Facts { pods: vec![], ..facts.clone() };
            assert!(!refusals(ensure_draft(&none), &none, &limits).is_empty());
            let up = Facts { spend: facts.spend.clone(), ..with_pod(|_| {}) };
            assert!(refusals(ensure_draft(&up), &up, &limits).is_empty());
            assert!(refusals(launch_of(false, 1, JobEnd::Left), &up, &limits).is_empty());
            let stop = plan::stop(&crate::domain::sample::vehicle(), true, &up);
            assert!(refusals(stop, &up, &limits).is_empty());
        }
    }
}
