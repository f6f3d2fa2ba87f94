use super::*;
use crate::domain::{Price, Usd};
use FuseState::{Armed, Dead, Off, Unproven};

fn now() -> DateTime<Utc> {
    DateTime::parse_from_rfc3339("2026-07-03T13:00:00Z").unwrap().to_utc()
}

fn minutes(count: i64) -> TimeDelta {
    TimeDelta::minutes(count)
}

fn pod() -> PodId {
    PodId("pod1".into())
}

fn job(auto_stop: Option<bool>) -> LiveJob {
    LiveJob {
        id: JobId::parse("20260703-125000_train_00ab").unwrap(),
        auto_stop,
        started_at: Some(now() - minutes(10)),
        ceiling_sec: Some(3600),
        wrapper_is_lost: false,
    }
}

fn proof() -> Proof {
    Proof { what: "a stop was refused with 404, not 403".into(), at: now() - minutes(5) }
}

fn auto_stop(jobs: Vec<LiveJob>) -> Vec<FuseReport> {
    FuseReport::auto_stop(&JobsSeen::Known(jobs), None, now())
}

fn vigil(lives: Option<bool>, stops_by: Option<DateTime<Utc>>) -> VigilSeen {
    let started_at = now() - minutes(10);
    let vigil = Vigil { job_id: "j1".into(), pod: pod(), pid: 4711, started_at, stops_by };
    VigilSeen { vigil, lives }
}

fn supervise(
    seen: &[VigilSeen],
    booted_at: Option<DateTime<Utc>>,
) -> Vec<(FuseState, Option<u64>)> {
    let reports = FuseReport::supervise(seen, &pod(), booted_at, now());
    reports.iter().map(|fuse| (fuse.state, fuse.stops_within_sec)).collect()
}

fn armed(within_sec: u64) -> FuseReport {
    FuseReport::proven(FuseName::Watchdog, &proof(), Some(within_sec), String::new(), now())
}

fn price() -> Price {
    Price::from_decimal("0.69")
}

/// The words of the promise, to the letter.
#[test]
fn the_longest_unattended_bill_is_that_of_the_slowest_proven_fuse() {
    let bill =
        longest_unattended(price(), &[armed(60), armed(47 * 60), FuseReport::deadman(None, now())]);
    assert_eq!(bill.text, "if everything but the slowest proven fuse fails: 47 min, $0.54");
    assert_eq!((bill.seconds, bill.usd.map(Usd::micros)), (Some(2820), Some(540_500)));
    let long = longest_unattended(price(), &[armed(2 * 3600 + 61)]);
    assert!(long.text.ends_with("2 h 2 min, $1.39"), "{}", long.text);
    let unpriced = longest_unattended(Price::Unknown, &[armed(3600)]);
    assert!(unpriced.text.ends_with("1 h, at a price that is not known"), "{}", unpriced.text);
    assert_eq!(unpriced.usd, None);
}

/// C03: asleep, the laptop's own fuses do nothing; what runs on the pod does.
#[test]
fn asleep_only_what_is_on_the_pod_bounds_the_bill() {
    let laptops = FuseReport { name: FuseName::Deadman, ..armed(60) };
    let told = |fuses: &[FuseReport]| longest_asleep(price(), fuses, now()).text;
    assert_eq!(
        told(&[laptops.clone(), armed(47 * 60)]),
        "if this laptop sleeps: the pod's own fuses stop it by 2026-07-03 13:47 UTC, at most $0.54 from now"
    );
    let open = "if this laptop sleeps: nothing on the pod is proven to stop it, it bills $0.69 for every hour until this laptop wakes";
    assert_eq!(told(&[laptops]), open);
    assert_eq!(told(&[FuseReport { state: Unproven, ..armed(60) }]), open);
}

/// What is only promised bounds nothing: neither an unproven fuse nor a proof without an end.
#[test]
fn a_bill_without_a_proven_fuse_is_open_ended() {
    let none = longest_unattended(price(), &[]);
    assert_eq!(none.text, "no fuse is proven: the bill is open-ended, $0.69 for every hour");
    assert_eq!((none.seconds, none.usd), (None, None));
    let promised = longest_unattended(price(), &auto_stop(vec![job(Some(true))]));
    let told = "no fuse is proven: the bill is open-ended, $0.69 for every hour (unproven: auto_stop promises 1 h 55 min, $1.31)";
    assert_eq!(promised.text, told);
    let endless = FuseReport { stops_within_sec: None, ..armed(1) };
    assert_eq!(longest_unattended(price(), &[endless]).seconds, None);
}

#[test]
fn an_auto_stop_is_unproven_until_the_pods_own_way_to_stop_was_proven() {
    let [fuse] = &auto_stop(vec![job(Some(true))])[..] else { panic!() };
    // 3600 + 60 + 3800 since the launch, of which ten minutes are over.
    assert_eq!((fuse.state, fuse.stops_within_sec), (Unproven, Some(6_860)));
    let jobs = JobsSeen::Known(vec![job(Some(true))]);
    let [fuse] = &FuseReport::auto_stop(&jobs, Some(&proof()), now())[..] else { panic!() };
    assert_eq!((fuse.state, fuse.age_sec, fuse.stops_within_sec), (Armed, Some(300), Some(6_860)));
    assert_eq!((fuse.proof.as_ref(), fuse.proven_at), (Some(&proof().what), Some(proof().at)));
}

/// A16, A17: a job whose wrapper is gone stops nothing, and what nobody knows is not called off.
#[test]
fn a_lost_wrapper_is_dead_and_unknown_is_not_off() {
    let states = |jobs| auto_stop(jobs).iter().map(|fuse| fuse.state).collect::<Vec<_>>();
    assert_eq!(states(vec![LiveJob { wrapper_is_lost: true, ..job(Some(true)) }]), [Dead]);
    assert_eq!(states(vec![job(None), job(Some(true)), job(Some(false))]), [Unproven, Unproven]);
    assert_eq!((states(vec![]), states(vec![job(Some(false))])), (vec![Off], vec![Off]));
    let unknown = JobsSeen::Unknown("no answer".into());
    let [fuse] = &FuseReport::auto_stop(&unknown, Some(&proof()), now())[..] else { panic!() };
    assert!(fuse.state == Unproven && fuse.why.contains("no answer"), "{fuse:?}");
}

/// A14: a launch that another clock puts into the future is not later than its longest.
#[test]
fn a_clock_that_is_off_neither_lengthens_nor_wraps_a_bound() {
    for (started_at, within) in [
        (Some(now() + minutes(600)), 7_460),
        (Some(now() - minutes(100_000)), 0),
        (Some(DateTime::<Utc>::MAX_UTC), 7_460),
        (None, 7_460),
    ] {
        let [fuse] = &auto_stop(vec![LiveJob { started_at, ..job(Some(true)) }])[..] else {
            panic!()
        };
        assert_eq!(fuse.stops_within_sec, Some(within), "{started_at:?}");
    }
}

/// A17: only a process that holds its lock is armed, and only up to its own bound.
#[test]
fn a_supervise_is_armed_while_its_process_lives_and_until_its_own_bound() {
    let by = Some(now() + minutes(47));
    assert_eq!(supervise(&[vigil(Some(true), by)], None), [(Armed, Some(2_820))]);
    assert_eq!(supervise(&[vigil(Some(false), by)], None), [(Dead, None)]);
    assert_eq!(supervise(&[vigil(None, by)], None), [(Unproven, None)]);
    assert_eq!(supervise(&[vigil(Some(true), Some(now()))], None), [(Unproven, None)]);
    assert_eq!(supervise(&[vigil(Some(true), None)], None), [(Off, None)], "--no-stop");
    assert_eq!(supervise(&[], None), [(Off, None)]);
}

#[test]
fn a_supervise_of_another_pod_or_an_earlier_boot_is_no_fuse_of_this_one() {
    let by = Some(now() + minutes(47));
    let mut foreign = vigil(Some(true), by);
    foreign.vigil.pod = PodId("pod2".into());
    assert_eq!(supervise(&[foreign], None), [(Off, None)]);
    let dead = vigil(Some(false), by);
    assert_eq!(supervise(std::slice::from_ref(&dead), Some(now() - minutes(20))), [(Dead, None)]);
    assert_eq!(supervise(&[dead], Some(now() - minutes(5))), [(Off, None)]);
}

#[test]
fn a_watchdog_is_armed_only_with_a_proven_way_to_stop() {
    let seen = |lives, stop_path| WatchdogSeen {
        lives,
        stop_path,
        stops_within: Some(Duration::from_secs(3900)),
        said: "heard of 20 s ago".into(),
    };
    let told = |watchdog: &Watchdog| FuseReport::watchdog(watchdog, now());
    let state = |lives, stop_path| told(&Watchdog::Seen(seen(lives, stop_path))).state;
    assert_eq!(told(&Watchdog::Off).state, Off);
    assert_eq!(state(true, Some(proof())), Armed);
    assert_eq!(state(false, Some(proof())), Dead);
    let unproven = told(&Watchdog::Seen(seen(true, None)));
    assert!(unproven.why.starts_with("armed (stop path unverified)"), "{unproven:?}");
    assert_eq!((unproven.state, unproven.stops_within_sec), (Unproven, Some(3900)));
    let unknown = told(&Watchdog::Unknown("no answer".into()));
    assert_eq!((unknown.state, unknown.why.as_str()), (Unproven, "no answer"));
}

fn deadman() -> DeadmanSeen {
    DeadmanSeen {
        lives: Some(true),
        pid: 4711,
        fire_at: now() + minutes(45),
        last_tick: now(),
        may_stop: Some(proof()),
        unproven: None,
        firing_since: None,
    }
}

fn of_deadman(seen: &DeadmanSeen) -> (FuseState, Option<u64>) {
    let report = FuseReport::deadman(Some(seen), now());
    (report.state, report.stops_within_sec)
}

/// A07, C05: the laptop's fuse is armed only while its process lives, looks at the clock and has a
/// key that was proven.
#[test]
fn the_laptops_fuse_is_armed_only_for_what_was_proven() {
    assert_eq!(FuseReport::deadman(None, now()).state, Off);
    assert_eq!(of_deadman(&deadman()), (Armed, Some(47 * 60)));
    let unproven = DeadmanSeen { may_stop: None, ..deadman() };
    assert_eq!(of_deadman(&unproven), (Unproven, Some(47 * 60)));
    assert!(
        FuseReport::deadman(Some(&unproven), now())
            .why
            .starts_with("armed (stop permission unproven)")
    );
    assert_eq!(of_deadman(&DeadmanSeen { lives: Some(false), ..deadman() }), (Dead, None));
    assert_eq!(of_deadman(&DeadmanSeen { lives: None, ..deadman() }), (Unproven, None));
    let hung = DeadmanSeen { last_tick: now() - minutes(3), ..deadman() };
    assert_eq!(of_deadman(&hung), (Unproven, None));
    let firing = DeadmanSeen { firing_since: Some(now()), ..deadman() };
    assert_eq!(of_deadman(&firing), (Unproven, None));
    let overdue = DeadmanSeen { fire_at: now() - minutes(1), ..deadman() };
    assert_eq!(of_deadman(&overdue), (Armed, Some(120)));
}
