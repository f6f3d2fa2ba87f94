use super::super::review;
use super::super::tests::{ensure_draft, facts, launch_of, promised, refusals, spend, with_pod};
use super::*;
use crate::domain::{PodId, PodStatus, sample};
use crate::plan::{self, Gate, Spend};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::BTreeSet;

fn usd(micros: i64) -> Usd {
    Usd::from_micros(micros)
}

/// One of many accounts, requests and limits, by chance.
fn scene(random: &mut StdRng) -> (Draft, Facts, Limits) {
    let mut one_in = |count: u32| random.random_range(0..count) == 0;
    let mut facts = facts();
    if !one_in(3) {
        let mut pod = sample::pod();
        if one_in(3) {
            pod.status = PodStatus::Exited;
        }
        if one_in(4) {
            pod.price = Price::Unknown;
        }
        if one_in(4) {
            pod.interruptible = true;
        }
        if one_in(4) {
            pod.mounts.clear();
        }
        if one_in(4) {
            pod.gpu = None;
        }
        if one_in(5) {
            facts.pods.push(Pod { id: PodId("pod2".into()), ..pod.clone() });
        }
        facts.pods.push(pod);
    }
    if one_in(4) {
        facts.pods.push(Pod { name: "stranger".into(), ..sample::pod() });
    }
    if one_in(4) {
        facts.offers.clear();
    }
    if one_in(4) {
        facts.live_jobs = LiveJobs::Unknown("no answer".into());
    }
    if one_in(3) {
        let fault = one_in(2).then(|| "m is missing".to_owned());
        facts.gates = Gates::Seen(vec![Gate { what: "m is there".into(), fault }]);
    } else if one_in(4) {
        facts.gates = Gates::Unknown("no answer".into());
    }
    if one_in(4) {
        facts.spend.spent = Spent::Unknown("HTTP 502".into());
    }
    if one_in(3) {
        facts.spend.committed.push(promised("job j1", 1_000_000));
    }
    let limits = Limits {
        budget_usd: one_in(2).then(|| usd(2_500_000)),
        max_usd_per_job: one_in(3).then(|| usd(1_000_000)),
        max_usd_per_hour: one_in(3).then(|| UsdPerHour::new(usd(500_000))),
        require_proven_fuses: one_in(4).then_some(1),
        ..Limits::default()
    };
    let end = if one_in(2) { JobEnd::Left } else { JobEnd::AutoStop };
    let ceiling = if one_in(2) { 600 } else { 36_000 };
    let draft = match (one_in(3), one_in(3)) {
        (true, _) => ensure_draft(&facts),
        (false, true) => plan::terminate(&sample::vehicle(), one_in(2), "yes", &facts),
        (false, false) => launch_of(one_in(2), ceiling, end),
    };
    (draft, facts, limits)
}

/// An account never says other than the review that decides; and no rule is without words.
#[test]
fn an_account_refuses_exactly_what_the_review_refuses() {
    let mut with_words = BTreeSet::new();
    for seed in 0..3_000 {
        let (draft, facts, limits) = scene(&mut StdRng::seed_from_u64(seed));
        let account = explain(&draft, &facts, &limits);
        let told: Vec<Refusal> = account.iter().filter_map(|rule| rule.refusal.clone()).collect();
        assert_eq!(told, refusals(draft.clone(), &facts, &limits), "seed {seed}");
        let names: Vec<&str> = account.iter().map(|rule| rule.name).collect();
        assert_eq!(names, RULES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        for rule in account {
            if rule.looked_at != NOTHING {
                with_words.insert(rule.name);
            }
            assert!(rule.way_out().is_none_or(|way| !way.is_empty()), "seed {seed}");
        }
        // The sum that is shown is the sum that was refused.
        let over = told.iter().find_map(|refusal| match refusal {
            Refusal::OverBudget { sum, .. } => Some(sum.clone()),
            _ => None,
        });
        if let Some(sum) = over {
            assert_eq!(everything_counted(&draft, &facts, &limits), Some(sum), "seed {seed}");
        }
    }
    let all: BTreeSet<&str> = RULES.iter().map(|(name, _)| *name).collect();
    assert_eq!(with_words, all, "a rule without words for what it compared");
}

#[test]
fn an_account_tells_the_numbers_and_the_one_change_that_would_pass() {
    let facts = with_pod(|_| {});
    let limits = Limits { budget_usd: Some(usd(1_000_000)), ..Limits::default() };
    let draft = launch_of(false, 3600, JobEnd::AutoStop);
    let account = explain(&draft, &facts, &limits);
    let budget = account.iter().find(|rule| rule.refusal.is_some()).unwrap();
    assert_eq!(budget.name, "a_launch_stays_within_the_budget");
    let total = everything_counted(&draft, &facts, &limits).unwrap().total().to_decimal();
    let told = format!("everything counted ${total}; limits.budget_usd: $1.00");
    assert_eq!(budget.looked_at, told);
    let way = budget.way_out().unwrap();
    let seconds: u32 = way.strip_prefix("max_runtime_sec=").unwrap().parse().unwrap();
    let longest = longest_ceiling(&draft, &facts, &limits, JobEnd::AutoStop).unwrap();
    assert_eq!(longest.as_secs(), seconds, "both say the same");
}

/// What is promised as the most is the most: it passes, and a second more does not.
#[test]
fn the_longest_ceiling_passes_and_a_second_more_does_not() {
    let facts = with_pod(|_| {});
    for (budget, end) in [
        (2_000_000, JobEnd::AutoStop),
        (2_500_000, JobEnd::Left),
        (1_000_000_000, JobEnd::Left),
        (1, JobEnd::AutoStop),
    ] {
        let limits = Limits { budget_usd: Some(usd(budget)), ..Limits::default() };
        let passes = |seconds| review(launch_of(false, seconds, end), &facts, &limits).is_ok();
        match longest_ceiling(&launch_of(false, 60, end), &facts, &limits, end) {
            Some(longest) => {
                let seconds = longest.as_secs();
                assert!(passes(seconds), "{budget} {end:?}");
                assert!(seconds == Ceiling::MAX_SEC || !passes(seconds + 1), "{budget} {end:?}");
            }
            None => assert!(!passes(1), "{budget} {end:?}"),
        }
    }
    let ensure = ensure_draft(&facts);
    assert_eq!(longest_ceiling(&ensure, &facts, &Limits::default(), JobEnd::Left), None);
}

/// An unknown bill makes no sum, and without a budget nobody needs it.
#[test]
fn a_sum_with_an_unknown_part_is_not_shown_as_the_sum() {
    let unknown = Spend { spent: Spent::Unknown("HTTP 502".into()), ..spend() };
    let facts = Facts { spend: unknown, ..with_pod(|_| {}) };
    let draft = launch_of(false, 3600, JobEnd::AutoStop);
    let budget = Limits { budget_usd: Some(usd(5_000_000)), ..Limits::default() };
    assert_eq!(everything_counted(&draft, &facts, &budget), None);
    assert!(everything_counted(&draft, &facts, &Limits::default()).is_some());
    let unpriced = Draft { adds: Some(Price::Unknown), ..draft };
    assert_eq!(everything_counted(&unpriced, &facts, &Limits::default()), None);
}

#[test]
fn the_cheapest_allowed_gpu_is_told_with_the_limit_on_its_price() {
    let mut facts = facts();
    let [dear, cheap, foreign] =
        [("A", "0.80"), ("B", "0.40"), ("C", "0.10")].map(|(id, price)| GpuOffer {
            id: crate::domain::GpuTypeId(id.into()),
            price: Price::from_decimal(price),
            ..sample::offers().remove(0)
        });
    let allowed = vec![dear.id.clone(), cheap.id.clone()];
    let vehicle = Vehicle { gpu_type_ids: allowed, gpu_count: 2, ..sample::vehicle() };
    facts.offers = vec![dear, cheap, foreign];
    let limit = |micros| Limits {
        max_usd_per_hour: Some(UsdPerHour::new(usd(micros))),
        ..Limits::default()
    };
    let told = |limits| {
        let found = cheapest(&vehicle, &facts, &limits).unwrap();
        (found.0.id.0.clone(), found.1.per_hour().micros(), found.2)
    };
    assert_eq!(told(limit(800_000)), ("B".to_owned(), 800_000, true));
    assert_eq!(told(limit(799_999)), ("B".to_owned(), 800_000, false));
    facts.offers.clear();
    assert_eq!(cheapest(&vehicle, &facts, &Limits::default()), None);
}
