use super::rules::RULES;
use super::*;
use crate::domain::sample::{gpu, offers, pod, vehicle, volume};
use crate::domain::*;
use crate::plan::{
    self, Change, Committed, EnsureInputs, Fuse, Gate, Gates, Intent, LiveJobs, PodStep,
    RecentBoot, RecentBoots, Spend, Spent, Step, VolumeHealth, VolumeRef,
};
use std::time::Duration;

/// An account whose bill is known and empty, without a proven fuse.
pub(super) fn spend() -> Spend {
    Spend {
        spent: Spent::Known(Usd::ZERO),
        committed: vec![],
        boots: RecentBoots::default(),
        window_left: None,
        fuse: Fuse::Unproven { allowance: Duration::from_secs(3 * 3600) },
    }
}

/// An amount that is promised for an hour from now on, to no pod that is known.
pub(super) fn promised(what: &str, micros: i64) -> Committed {
    Committed {
        what: what.into(),
        pod: None,
        rate: UsdPerHour::new(Usd::from_micros(micros)),
        after: Duration::ZERO,
        until: Duration::from_secs(3600),
    }
}

/// Starts so many seconds ago, oldest first, a day after the epoch.
pub(super) fn boots_ago(seconds: &[u64]) -> RecentBoots {
    let now = chrono::DateTime::UNIX_EPOCH + Duration::from_secs(86_400);
    let boot = |ago: &u64| {
        let ago = Duration::from_secs(*ago);
        RecentBoot { at: now - ago, ago }
    };
    let started = seconds.iter().map(boot).collect();
    RecentBoots { started, failed: 0, failed_usd: Usd::ZERO }
}

pub(super) fn facts() -> Facts {
    Facts {
        pods: vec![],
        volumes: vec![volume()],
        offers: offers(),
        declared: vec![(VehicleName("hippocampus".into()), "lts-replication".into())],
        tolerated: vec![],
        unknown_creates: vec![],
        live_jobs: LiveJobs::Known(vec![]),
        volume_health: healthy(),
        gates: Gates::NotAsked,
        spend: spend(),
        proven_fuses: ProvenFuses::default(),
    }
}

fn healthy() -> VolumeHealth {
    VolumeHealth::Seen { no_volume: None, no_write: None, free: None }
}

fn unknown_create() -> plan::UnknownCreate {
    plan::UnknownCreate {
        what: plan::Created::Pod,
        vehicle: "hippocampus".into(),
        since: chrono::DateTime::UNIX_EPOCH,
        rate: Some(Usd::from_micros(690_000)),
    }
}

pub(super) fn with_pod(change: impl FnOnce(&mut Pod)) -> Facts {
    let mut pod = pod();
    change(&mut pod);
    Facts { pods: vec![pod], ..facts() }
}

fn inputs() -> EnsureInputs {
    EnsureInputs { public_key: "ssh-ed25519 AAAA".into(), nonce: "n1".into() }
}

pub(super) fn ensure_draft(facts: &Facts) -> plan::Draft {
    plan::ensure(&vehicle(), false, facts, inputs())
}

pub(super) fn refusals(draft: plan::Draft, facts: &Facts, limits: &Limits) -> Vec<Refusal> {
    review(draft, facts, limits).err().unwrap_or_default()
}

fn ensure_refusals(facts: &Facts) -> Vec<Refusal> {
    refusals(ensure_draft(facts), facts, &Limits::default())
}

fn launch(force: bool) -> plan::Draft {
    launch_of(force, 3600, JobEnd::Left)
}

pub(super) fn launch_of(force: bool, ceiling_sec: u32, end: JobEnd) -> plan::Draft {
    let ceiling = Ceiling::from_secs(ceiling_sec).unwrap();
    let step = PodStep {
        pod: PodId("pod1".into()),
        label: "run".into(),
        command: RemoteCommand::new(["true"]),
        timeout: Duration::from_secs(1),
    };
    let intent = Intent::Launch { force, ceiling, end };
    plan::on_pod(&vehicle(), false, intent, vec![step], Some(pod().price))
}

fn limit(usd: &str) -> Limits {
    Limits { max_usd_per_hour: Price::from_decimal(usd).known(), ..Limits::default() }
}

/// Facts and limits that every rule has something against.
fn worst() -> (Facts, Limits) {
    let ours = Pod {
        gpu: Some((GpuTypeId("NVIDIA H100 80GB HBM3".into()), 8)),
        cloud: CloudTier::Community,
        interruptible: true,
        price: Price::Unknown,
        mounts: vec![NetworkMount { volume_id: VolumeId("other".into()), path: "/mnt".into() }],
        ..pod()
    };
    let twin = Pod { id: PodId("pod2".into()), ..ours.clone() };
    let stranger = Pod { id: PodId("pod3".into()), name: "stranger".into(), ..pod() };
    let facts = Facts {
        pods: vec![ours, twin, stranger],
        volumes: vec![volume(), Volume { id: VolumeId("vol2".into()), ..volume() }],
        offers: vec![],
        live_jobs: LiveJobs::Unknown("no answer".into()),
        volume_health: VolumeHealth::Unknown("no answer".into()),
        gates: Gates::Unknown("no answer".into()),
        unknown_creates: vec![unknown_create()],
        spend: Spend { boots: boots_ago(&[1]), ..Spend::not_asked() },
        ..facts()
    };
    let least = Usd::from_micros(1);
    let limits = limit("0.000001");
    let limits = Limits { budget_usd: Some(least), max_usd_per_job: Some(least), ..limits };
    (facts, Limits { max_boots_per_hour: Some(1), require_proven_fuses: Some(2), ..limits })
}

/// The one promise that no rule may break.
#[test]
fn no_rule_blocks_a_stop_of_our_own_pod() {
    let (facts, limits) = worst();
    let stop = plan::stop(&vehicle(), true, &facts);
    assert_eq!(stop.steps.len(), 2, "both pods of our name are stopped");
    let blown = Spend {
        spent: Spent::Known(Usd::from_micros(i64::MAX)),
        committed: vec![promised("a create without an answer", i64::MAX)],
        boots: boots_ago(&[1; 99]),
        ..facts.spend.clone()
    };
    for facts in [facts.clone(), Facts { spend: blown, ..facts }] {
        for (name, rule) in RULES {
            let said = rule(&stop, &facts, &limits);
            assert_eq!(said, None, "{name} stands in the way of a stop");
        }
        assert!(review(stop.clone(), &facts, &limits).is_ok());
    }
}

/// The same facts let nothing through that spends, works or deletes; and each rule that can speak does.
#[test]
fn every_rule_speaks_and_all_refusals_come_at_once() {
    let (facts, limits) = worst();
    let mut spoke = std::collections::BTreeSet::new();
    let create_beside = {
        let mut draft = ensure_draft(&super::tests::facts());
        if let Some(Step::Cloud(Change::CreatePod(pod))) = draft.steps.first_mut() {
            pod.data_center = DataCenterId("US-TX-3".into());
        }
        draft
    };
    let terminate = plan::terminate(&vehicle(), false, "yes", &facts);
    let foreign = Facts { pods: vec![], ..facts.clone() };
    for (draft, facts) in [
        (ensure_draft(&facts), &facts),
        (create_beside, &facts),
        (launch(false), &facts),
        (launch(false), &foreign),
        (terminate, &facts),
    ] {
        let spoken: Vec<_> =
            RULES.iter().filter(|(_, rule)| rule(&draft, facts, &limits).is_some()).collect();
        assert_eq!(refusals(draft, facts, &limits).len(), spoken.len());
        spoke.extend(spoken.iter().map(|(name, _)| *name));
    }
    let silent: Vec<_> =
        RULES.iter().map(|(name, _)| *name).filter(|name| !spoke.contains(name)).collect();
    assert_eq!(silent, Vec::<&str>::new(), "rules that no test makes speak");
}

/// What nobody saw strike starts nothing where the owner asks for proof; the drill itself needs none.
#[test]
fn enough_fuses_are_proven_by_a_drill() {
    use FailureDomain::{Laptop, Pod};
    let limits = |needed| Limits { require_proven_fuses: Some(needed), ..Limits::default() };
    let refused = |domains: &[FailureDomain], is_a_drill, needed, on: &Facts| {
        let told = "pod: never drilled".to_owned();
        let proven_fuses =
            ProvenFuses { is_a_drill, domains: domains.to_vec(), told, rows: vec![] };
        let facts = Facts { proven_fuses, ..on.clone() };
        let drafts = [ensure_draft(&facts), launch(false)];
        drafts.map(|draft| {
            let all = refusals(draft, &facts, &limits(needed));
            all.iter().any(|refusal| matches!(refusal, Refusal::FusesNotProven { .. }))
        })
    };
    let none = facts();
    assert_eq!(refused(&[], false, 0, &none), [false, false]);
    assert_eq!(refused(&[], false, 1, &none), [true, true]);
    assert_eq!(refused(&[Pod], false, 1, &none), [false, false]);
    assert_eq!(refused(&[Pod], false, 2, &none), [true, true]);
    assert_eq!(refused(&[Pod, Laptop], false, 2, &none), [false, false]);
    assert_eq!(refused(&[], true, 2, &none), [false, false]);
    // A pod that runs already is looked at, not started.
    assert_eq!(refused(&[], false, 2, &with_pod(|_| {})), [false, true]);
    let said = refusals(launch(false), &none, &limits(1));
    let said = said.iter().find(|one| matches!(one, Refusal::FusesNotProven { .. })).unwrap();
    assert_eq!(said.way_out(), "podtether drill --vehicle hippocampus");
    assert!(said.to_string().contains("no receipt was looked at"), "{said}");
}

#[test]
fn a_training_is_launched_only_when_all_its_gates_are_known_to_hold() {
    let gate = |what: &str, fault: Option<&str>| Gate {
        what: what.into(),
        fault: fault.map(str::to_owned),
    };
    let told = |gates: Gates, force: bool| {
        let facts = Facts { gates, ..with_pod(|_| {}) };
        refusals(launch(force), &facts, &Limits::default())
    };
    let (open, shut) = (gate("a", None), gate("b", Some("b is missing")));
    assert!(told(Gates::Seen(vec![open.clone()]), false).is_empty());
    for force in [false, true] {
        let closed = told(Gates::Seen(vec![open.clone(), shut.clone()]), force);
        assert_eq!(closed, [Refusal::GatesClosed(vec!["b is missing".into()])]);
        let unknown = told(Gates::Unknown("it hangs".into()), force);
        assert!(unknown[0].to_string().contains("it hangs. Try again"), "{unknown:?}");
    }
}

#[test]
fn a_plain_create_is_approved_with_the_very_steps_of_the_draft() {
    let facts = facts();
    let draft = ensure_draft(&facts);
    let steps = draft.steps.clone();
    let approved = review(draft, &facts, &limit("0.69")).unwrap();
    assert_eq!(approved.steps(), steps);
    let [Step::Cloud(Change::CreatePod(pod))] = approved.steps() else { panic!("{steps:?}") };
    assert_eq!(pod.data_center.0, "EU-RO-1", "the volume pins the data centre, whatever the stock");
    assert_eq!(pod.volume, VolumeRef::Existing(VolumeId("vol1".into())));
    assert_eq!(pod.nonce(), Some("n1"));
}

#[test]
fn a_missing_volume_is_created_in_the_first_preferred_data_centre_with_stock() {
    let facts = Facts { volumes: vec![], ..facts() };
    let approved = review(ensure_draft(&facts), &facts, &Limits::default()).unwrap();
    let [Step::Cloud(Change::CreateVolume(volume)), Step::Cloud(Change::CreatePod(pod))] =
        approved.steps()
    else {
        panic!("{:?}", approved.steps())
    };
    assert_eq!((volume.data_center.0.as_str(), pod.data_center.0.as_str()), ("US-TX-3", "US-TX-3"));
    assert_eq!(pod.volume, VolumeRef::Planned("lts-volume".into()));
}

/// B06, B07: a pod of an undeclared name, wherever in the list, refuses; a tolerated name does not.
#[test]
fn a_pod_of_an_undeclared_name_refuses_everything_but_a_stop() {
    let stranger = Pod { name: "stranger".into(), cluster: true, ..pod() };
    let facts = Facts { pods: vec![stranger], ..facts() };
    assert!(matches!(ensure_refusals(&facts)[..], [Refusal::UnknownPods(_)]));
    let facts = Facts { tolerated: vec!["stranger".into()], ..facts };
    assert!(ensure_refusals(&facts).is_empty());
    let gone = Pod { name: "stranger".into(), status: PodStatus::Terminated, ..pod() };
    assert!(ensure_refusals(&Facts { pods: vec![gone], ..super::tests::facts() }).is_empty());
}

/// B02: two matches refuse and list both ids.
#[test]
fn two_pods_of_one_declared_name_refuse_and_list_both_ids() {
    let second = Pod { id: PodId("pod2".into()), ..pod() };
    let facts = Facts { pods: vec![pod(), second], ..facts() };
    let text = ensure_refusals(&facts)[0].to_string();
    assert!(text.contains("pod1, pod2"), "{text}");
}

#[test]
fn the_ceiling_on_the_price_is_inclusive_and_an_unknown_price_refuses() {
    let facts = facts();
    assert!(refusals(ensure_draft(&facts), &facts, &limit("0.69")).is_empty());
    let text = refusals(ensure_draft(&facts), &facts, &limit("0.68"))[0].to_string();
    assert!(text.contains("$0.69/h") && text.contains("$0.68/h"), "{text}");
    let unpriced = Facts { offers: vec![], ..facts };
    assert_eq!(ensure_refusals(&unpriced), [Refusal::PriceUnknown]);
}

/// A job would keep a pod on the bill that a create could not have put there.
#[test]
fn no_job_is_launched_on_a_pod_above_the_ceiling() {
    let facts = with_pod(|_| {});
    assert!(refusals(launch(true), &facts, &limit("0.69")).is_empty());
    let refused = refusals(launch(true), &facts, &limit("0.68"));
    assert!(matches!(refused[..], [Refusal::TooExpensive { .. }]), "{refused:?}");
    let unread = with_pod(|pod| pod.price = Price::Unknown);
    assert_eq!(refusals(launch(true), &unread, &limit("0.69")), [Refusal::PriceUnknown]);
    assert!(refusals(launch(true), &unread, &Limits::default()).is_empty());
}

#[test]
fn starting_a_stopped_pod_is_priced_by_the_catalog_and_held_to_the_same_rules() {
    let facts = with_pod(|pod| pod.status = PodStatus::Exited);
    assert!(matches!(ensure_draft(&facts).steps[..], [Step::Cloud(Change::StartPod(_))]));
    assert!(ensure_refusals(&facts).is_empty());
    let big = with_pod(|pod| {
        pod.status = PodStatus::Exited;
        pod.gpu = Some((gpu(), 4));
    });
    assert!(matches!(ensure_refusals(&big)[..], [Refusal::TooManyGpus { found: 4, allowed: 1 }]));
    let unread = with_pod(|pod| {
        pod.status = PodStatus::Exited;
        pod.gpu = None;
    });
    assert!(ensure_refusals(&unread).contains(&Refusal::PriceUnknown));
    // One that lost its GPUs shows none, and may come back with all of them at their price.
    let bare = with_pod(|pod| {
        pod.status = PodStatus::Exited;
        pod.gpu = Some((gpu(), 0));
    });
    assert_eq!(ensure_draft(&bare).adds, ensure_draft(&facts).adds);
}

/// A22: a pod that is running, on its way or in ERROR is never started.
#[test]
fn only_a_stopped_pod_is_ever_started() {
    for word in ["RUNNING", "STARTING", "PROVISIONING", "ERROR", "MIGRATING"] {
        let facts = with_pod(|pod| pod.status = PodStatus::from(word));
        assert_eq!(ensure_draft(&facts).steps, [], "{word}");
    }
}

/// A launch keeps a pod on the bill, so it is held to the same price as a create.
#[test]
fn a_launch_on_a_pod_that_is_too_dear_or_has_no_price_is_refused() {
    let facts = with_pod(|_| {});
    assert!(refusals(launch(false), &facts, &limit("0.69")).is_empty());
    let dear = refusals(launch(false), &facts, &limit("0.5"));
    assert!(matches!(dear[..], [Refusal::TooExpensive { .. }]));
    let unpriced = Draft { adds: Some(Price::Unknown), ..launch(false) };
    assert_eq!(refusals(unpriced, &facts, &Limits::default()), [Refusal::PriceUnknown]);
}

/// D11: a pod whose volume is not ours, or is mounted elsewhere, loses results at the first stop.
#[test]
fn a_pod_off_its_volume_is_not_used() {
    let off = with_pod(|pod| pod.mounts.clear());
    assert!(matches!(
        refusals(launch(false), &off, &Limits::default())[..],
        [Refusal::NotOnOwnVolume { .. }]
    ));
    let elsewhere = with_pod(|pod| pod.mounts[0].path = "/mnt".into());
    assert!(matches!(
        refusals(launch(false), &elsewhere, &Limits::default())[..],
        [Refusal::WrongMountPath { .. }]
    ));
}

#[test]
fn a_second_job_is_refused_unless_forced_and_unknown_is_not_none() {
    let job = JobId::parse("20260703-132525_train_00ab").unwrap();
    for live_jobs in [LiveJobs::Known(vec![job]), LiveJobs::Unknown("no answer".into())] {
        let facts = Facts { live_jobs, ..with_pod(|_| {}) };
        assert_eq!(refusals(launch(false), &facts, &Limits::default()).len(), 1);
        assert!(refusals(launch(true), &facts, &Limits::default()).is_empty());
        // What a job imports must not change under it.
        let patch =
            |force| plan::on_pod(&vehicle(), true, Intent::Patch { force }, Vec::new(), None);
        assert_eq!(refusals(patch(false), &facts, &Limits::default()).len(), 1);
        assert!(refusals(patch(true), &facts, &Limits::default()).is_empty());
    }
}

/// D11, E14: what a job would write must stay. Doubt refuses the launch, forced or not, and only it.
#[test]
fn no_job_is_launched_on_a_volume_that_is_not_healthy() {
    let seen = |no_volume: Option<&str>, no_write: Option<&str>, free| VolumeHealth::Seen {
        no_volume: no_volume.map(str::to_owned),
        no_write: no_write.map(str::to_owned),
        free,
    };
    for (health, says) in [
        (VolumeHealth::NotAsked, "nobody looked"),
        (VolumeHealth::Unknown("it is unresponsive".into()), "unresponsive"),
        (seen(Some("there is none"), None, None), "there is none"),
        (seen(None, Some("Disk quota exceeded"), Some(1 << 40)), "quota exceeded"),
        (seen(None, None, Some((1 << 30) - 1)), "1023 MB free"),
    ] {
        let facts = Facts { volume_health: health, ..with_pod(|_| {}) };
        for force in [false, true] {
            let refused = refusals(launch(force), &facts, &Limits::default());
            let [refusal @ Refusal::VolumeUnhealthy { .. }] = &refused[..] else {
                panic!("{refused:?}")
            };
            let text = refusal.to_string();
            assert!(text.contains(says) && text.contains("exec_on_pod"), "{text}");
        }
        assert!(ensure_refusals(&facts).is_empty());
        assert!(review(plan::stop(&vehicle(), true, &facts), &facts, &Limits::default()).is_ok());
    }
    let roomy = Facts { volume_health: seen(None, None, Some(1 << 30)), ..with_pod(|_| {}) };
    assert!(refusals(launch(false), &roomy, &Limits::default()).is_empty());
}

#[test]
fn terminate_needs_the_vehicle_and_the_verbatim_words() {
    let facts = with_pod(|pod| pod.status = PodStatus::Exited);
    for words in ["", "yes", "Terminate lts-replication", "terminate lts-replication ", "terminate"]
    {
        let draft = plan::terminate(&vehicle(), true, words, &facts);
        assert!(
            matches!(
                refusals(draft, &facts, &Limits::default())[..],
                [Refusal::NotConfirmed { .. }]
            ),
            "{words}"
        );
    }
    let words = "terminate lts-replication";
    let unnamed = plan::terminate(&vehicle(), false, words, &facts);
    assert!(matches!(
        refusals(unnamed, &facts, &Limits::default())[..],
        [Refusal::VehicleNotNamed { .. }]
    ));
    let named = plan::terminate(&vehicle(), true, words, &facts);
    assert!(refusals(named, &facts, &Limits::default()).is_empty());
}

/// A campaign is held to what a launch is, as one plan: the sum of its links, its longest job, the job
/// that lives.
#[test]
fn a_campaign_is_reviewed_as_one_plan() {
    let campaign = |links_sec: u64, longest_sec: u32| {
        let intent = Intent::Campaign {
            pod: PodId("pod1".into()),
            links: Duration::from_secs(links_sec),
            longest: Ceiling::from_secs(longest_sec).unwrap(),
            end: JobEnd::Supervised {
                max_wait: None,
                backstop: Duration::ZERO,
                capture: Duration::ZERO,
                stop: Duration::from_secs(600),
            },
        };
        plan::on_pod(&vehicle(), true, intent, Vec::new(), Some(pod().price))
    };
    let facts = with_pod(|_| {});
    let worst = |links_sec| WorstCase::of(&campaign(links_sec, 60), &facts).unwrap().total();
    let limits = Limits { budget_usd: Some(worst(7_200)), ..Limits::default() };
    assert_eq!(refusals(campaign(7_200, 60), &facts, &limits), []);
    let over = refusals(campaign(7_201, 60), &facts, &limits);
    assert!(matches!(over[..], [Refusal::OverBudget { .. }]), "{over:?}");
    // Each job counts against max_usd_per_job, not all of them together.
    let rate = pod().price.known().unwrap();
    let an_hour = rate.cost_of(Duration::from_secs(3_600));
    let limits = Limits { max_usd_per_job: Some(an_hour), ..Limits::default() };
    assert_eq!(refusals(campaign(72_000, 60), &facts, &limits), []);
    let dear = refusals(campaign(72_000, 3_600), &facts, &limits);
    assert!(matches!(dear[..], [Refusal::JobTooDear { .. }]), "{dear:?}");
    let job = JobId::parse("20260703-132525_train_00ab").unwrap();
    let busy = Facts { live_jobs: LiveJobs::Known(vec![job]), ..with_pod(|_| {}) };
    let live = refusals(campaign(60, 60), &busy, &Limits::default());
    assert!(matches!(live[..], [Refusal::JobIsLive(_)]), "{live:?}");
}
