//! What is promised and not billed yet, from the journal: launches, starts, and creates whose outcome
//! is unknown, each for what is left of its worst case. Pure.

use crate::domain::{PodId, Usd, UsdPerHour};
use crate::ledger::{Action, Book};
use crate::plan::{Committed, RecentBoot, RecentBoots};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;
use std::time::Duration;

/// One reason why a pod may bill until then.
struct Hold {
    what: String,
    rate: Usd,
    until: DateTime<Utc>,
}

/// Every promise that is alive, one line each. `unwatched` is how long a pod may bill from its start
/// on when nothing follows: its boot and the time that it may be left to itself, by vehicle. `fuse_until`
/// is when the laptop's fuse of a vehicle has stopped its pod, where one lives: an earlier job may have set
/// it later than that, and a start does not shorten it.
///
/// A pod bills once, however many promises hold it: the lines of one pod follow each other, each
/// from the end of the one before.
pub(super) fn committed(
    book: &Book,
    now: DateTime<Utc>,
    unwatched: impl Fn(&str) -> Duration,
    fuse_until: impl Fn(&str) -> Option<DateTime<Utc>>,
) -> Vec<Committed> {
    let mut holds: BTreeMap<&PodId, Vec<Hold>> = BTreeMap::new();
    for promise in book.promises() {
        let job = if promise.has_ended { "the time after job" } else { "job" };
        holds.entry(&promise.pod).or_default().push(Hold {
            what: format!("{job} {} of {}", promise.job, promise.vehicle),
            rate: promise.rate,
            until: promise.until,
        });
    }
    for run in book.runs().iter().filter(|run| run.off.is_none()) {
        if run.is_ours {
            holds.entry(&run.pod).or_default().push(Hold {
                what: format!("{}, started at {}, unwatched", run.vehicle, clock(run.from)),
                rate: run.rate.unwrap_or(Usd::ZERO),
                until: later(run.from, unwatched(&run.vehicle)),
            });
        }
        // Also of a pod that somebody else started and that was taken over.
        if let Some(until) = fuse_until(&run.vehicle) {
            holds.entry(&run.pod).or_default().push(Hold {
                what: format!("{}, until its laptop's fuse fires", run.vehicle),
                rate: run.rate.unwrap_or(Usd::ZERO),
                until,
            });
        }
    }
    let mut lines: Vec<Committed> =
        holds.into_iter().flat_map(|(pod, holds)| of_pod(pod, holds, now)).collect();
    for intent in book.open_intents() {
        // A start that was asked for and has no end yet is no run yet.
        let pod = match &intent.action {
            Action::CreatePod { .. } => None,
            Action::StartPod { pod } => Some(pod.clone()),
            _ => continue,
        };
        let what = match pod {
            None => "create",
            Some(_) => "start",
        };
        lines.push(Committed {
            what: format!(
                "{what} of {} sent at {}, outcome unknown",
                intent.vehicle,
                clock(intent.at)
            ),
            pod,
            rate: UsdPerHour::new(intent.rate.unwrap_or(Usd::ZERO)),
            after: Duration::ZERO,
            until: fuse_until(&intent.vehicle)
                .and_then(|until| (until - now).to_std().ok())
                .unwrap_or_default()
                .max(unwatched(&intent.vehicle)),
        });
    }
    lines
}

fn of_pod(pod: &PodId, mut holds: Vec<Hold>, now: DateTime<Utc>) -> Vec<Committed> {
    holds.sort_by_key(|hold| hold.until);
    // A price that was read anew holds for everything on this pod.
    let rate = holds.iter().map(|hold| hold.rate).max().unwrap_or(Usd::ZERO);
    let mut after = Duration::ZERO;
    let mut lines = Vec::new();
    for hold in holds {
        let until = (hold.until - now).to_std().unwrap_or_default();
        if until > after {
            lines.push(Committed {
                what: format!("pod {pod} until {}: {}", clock(hold.until), hold.what),
                pod: Some(pod.clone()),
                rate: UsdPerHour::new(rate),
                after,
                until,
            });
            after = until;
        }
    }
    lines
}

/// The starts of the last hour, and what those cost that came to nothing.
pub(super) fn recent_boots(book: &Book, now: DateTime<Utc>) -> RecentBoots {
    let hour_ago = now - TimeDelta::hours(1);
    let started = book.boots().iter().filter(|boot| boot.at > hour_ago);
    let failed: Vec<_> = book.failed_boots().iter().filter(|boot| boot.at > hour_ago).collect();
    RecentBoots {
        started: started
            .map(|boot| RecentBoot {
                at: boot.at,
                ago: (now - boot.at).to_std().unwrap_or_default(),
            })
            .collect(),
        failed: failed.len(),
        failed_usd: failed.iter().filter_map(|boot| boot.usd).sum(),
    }
}

fn clock(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn later(at: DateTime<Utc>, by: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(by)
        .ok()
        .and_then(|by| at.checked_add_signed(by))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Ceiling, JobEnd, Limits, Pod, PodStatus, RemoteCommand, Vehicle, sample};
    use crate::guard::review;
    use crate::ledger::{Entry, Event};
    use crate::plan::{
        self, Draft, EnsureInputs, Facts, Fuse, Intent, LiveJobs, PodStep, VolumeHealth,
    };
    use crate::plan::{Spend, Spent};

    const RATE: i64 = 600_000;
    const ALONE: Duration = Duration::from_secs(1800);
    const BOOT: Duration = Duration::from_secs(600);

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(1) + TimeDelta::minutes(minute)
    }

    fn start(id: u64, pod: &str, minute: i64) -> [Entry; 2] {
        let pod = PodId(pod.into());
        let (vehicle, action) = (pod.0.clone(), Action::StartPod { pod: pod.clone() });
        let intent = Event::Intend { id, vehicle, action, micros_per_hour: Some(RATE) };
        let done = Event::Done { id, pod: Some(pod), observed: "start accepted".into() };
        [
            Entry { at: at(minute), up: None, event: intent },
            Entry { at: at(minute), up: None, event: done },
        ]
    }

    fn launch(id: u64, pod: &str, minute: i64, until: i64) -> Entry {
        let action = Action::LaunchJob {
            pod: PodId(pod.into()),
            job: format!("job{id}"),
            ceiling_sec: 60,
            tail_sec: 600,
            until: at(until),
            provenance: Default::default(),
        };
        let vehicle = pod.to_owned();
        let event = Event::Intend { id, vehicle, action, micros_per_hour: Some(RATE) };
        Entry { at: at(minute), up: None, event }
    }

    fn lines(entries: &[Entry], minute: i64) -> Vec<(Option<String>, u64, u64)> {
        let all = committed(&Book::of(entries), at(minute), |_| BOOT + ALONE, |_| None);
        let seconds = |line: &Committed| (line.after.as_secs() / 60, line.until.as_secs() / 60);
        all.iter()
            .map(|line| {
                let (after, until) = seconds(line);
                (line.pod.as_ref().map(|pod| pod.0.clone()), after, until)
            })
            .collect()
    }

    #[test]
    fn each_pod_is_held_for_its_longest_promise_and_less_as_time_passes() {
        let a = || Some("a".to_owned());
        let up = start(1, "a", 0);
        assert_eq!(lines(&up, 0), [(a(), 0, 40)]);
        assert_eq!(lines(&up, 30), [(a(), 0, 10)]);
        assert_eq!(lines(&up, 40), []);
        let jobs = [&up[..], &[launch(2, "a", 10, 90), launch(3, "a", 10, 60)]].concat();
        assert_eq!(lines(&jobs, 10), [(a(), 0, 30), (a(), 30, 50), (a(), 50, 80)]);
        assert_eq!(lines(&jobs, 60), [(a(), 0, 30)]);
        let two = [&jobs[..], &start(4, "b", 60)].concat();
        assert_eq!(lines(&two, 60), [(a(), 0, 30), (Some("b".to_owned()), 0, 40)]);
        // An outcome that nobody knows holds the whole of it until it is known.
        let unknown = &start(1, "a", 0)[..1];
        assert_eq!(lines(unknown, 500), [(a(), 0, 40)]);
    }

    /// A fuse that an earlier job has set for later is not shortened by a start: until then the pod may bill.
    #[test]
    fn a_pod_is_held_until_the_fuse_that_lives_fires() {
        let until = |minute| {
            let up = start(1, "a", 0);
            let held = |entries: &[Entry]| {
                let unwatched = |_: &str| BOOT + ALONE;
                let all = committed(&Book::of(entries), at(10), unwatched, |_| Some(at(minute)));
                all.iter().map(|line| line.until.as_secs() / 60).max()
            };
            (held(&up), held(&up[..1]))
        };
        assert_eq!(until(90), (Some(80), Some(80)));
        assert_eq!(until(20), (Some(30), Some(40)), "the allowance is no less for it");
        assert_eq!(until(5), (Some(30), Some(40)));
    }

    /// A pod that somebody else started has no boot of ours, but the fuse that it was given when it was
    /// taken over says until when it may bill.
    #[test]
    fn a_pod_that_was_taken_over_is_held_until_its_fuse_fires() {
        let seen = Entry {
            at: at(0),
            up: None,
            event: Event::PodSeen {
                vehicle: "a".into(),
                pod: PodId("a".into()),
                status: "RUNNING".into(),
                micros_per_hour: Some(RATE),
                started_at: None,
            },
        };
        let held = |fuse: Option<DateTime<Utc>>| {
            let all = committed(&Book::of([&seen]), at(10), |_| BOOT + ALONE, |_| fuse);
            all.iter().map(Committed::usd).sum::<Usd>().micros()
        };
        assert_eq!(held(Some(at(190))), 3 * RATE);
        assert_eq!(held(None), 0);
    }

    /// A second start of a pod makes no second pod: what the first one held, whose answer was lost, is
    /// held by the run.
    #[test]
    fn a_start_that_was_made_again_is_held_once() {
        let a = || Some("a".to_owned());
        let both = [&start(1, "a", 0)[..1], &start(2, "a", 1)].concat();
        assert_eq!(lines(&both, 1), [(a(), 0, 40)]);
    }

    #[test]
    fn the_starts_of_the_last_hour_are_counted_and_no_others() {
        let entries: Vec<Entry> =
            (0..4_u64).flat_map(|id| start(id, "a", i64::try_from(id).unwrap() * 30)).collect();
        let boots = recent_boots(&Book::of(&entries), at(90));
        let ago: Vec<u64> = boots.started.iter().map(|boot| boot.ago.as_secs() / 60).collect();
        assert_eq!(ago, [30, 0]);
    }

    /// Two vehicles in one account, their journal, and what they have really cost.
    #[derive(Clone)]
    struct World {
        entries: Vec<Entry>,
        minute: i64,
        up: [bool; 2],
        /// Jobs that run: vehicle, id.
        jobs: Vec<(usize, u64)>,
        minutes_billed: i64,
        next: u64,
    }

    #[derive(Clone, Copy, Debug)]
    enum Move {
        Start(usize),
        Launch(usize),
        JobEnds,
        Off(usize),
        Wait,
    }

    const MOVES: [Move; 8] = [
        Move::Start(0),
        Move::Start(1),
        Move::Launch(0),
        Move::Launch(1),
        Move::JobEnds,
        Move::Off(0),
        Move::Off(1),
        Move::Wait,
    ];
    const STEP_MINUTES: i64 = 10;

    impl World {
        fn pods(&self) -> Vec<Pod> {
            let status = |up| if up { PodStatus::Running } else { PodStatus::Exited };
            (0..2)
                .map(|of| Pod {
                    id: pod_id(of),
                    name: vehicle(of).pod_name,
                    status: status(self.up[of]),
                    price: crate::domain::Price::Known(rate()),
                    ..sample::pod()
                })
                .collect()
        }

        fn spent(&self) -> Usd {
            rate().cost_of(Duration::from_secs(60 * u64::try_from(self.minutes_billed).unwrap()))
        }

        fn facts(&self) -> Facts {
            let offers = sample::offers().into_iter();
            let priced = |mut offer: crate::domain::GpuOffer| {
                offer.price = crate::domain::Price::Known(rate());
                offer
            };
            Facts {
                pods: self.pods(),
                volumes: vec![sample::volume()],
                offers: offers.map(priced).collect(),
                declared: (0..2).map(|of| (vehicle(of).name, vehicle(of).pod_name)).collect(),
                tolerated: vec![],
                unknown_creates: vec![],
                live_jobs: LiveJobs::Known(vec![]),
                gates: crate::plan::Gates::NotAsked,
                volume_health: VolumeHealth::Seen {
                    no_volume: None,
                    no_write: None,
                    free: Some(1 << 40),
                },
                spend: Spend {
                    spent: Spent::Known(self.spent()),
                    committed: committed(
                        &Book::of(&self.entries),
                        at(self.minute),
                        |_| BOOT + ALONE,
                        |_| None,
                    ),
                    boots: RecentBoots::default(),
                    window_left: None,
                    fuse: Fuse::Unproven { allowance: ALONE },
                },
                proven_fuses: crate::domain::ProvenFuses::default(),
            }
        }

        fn note(&mut self, event: Event) {
            self.entries.push(Entry { at: at(self.minute), up: None, event });
        }

        /// Makes a move when it is possible and approved; says whether it was.
        fn make(&mut self, step: Move, limits: &Limits) -> bool {
            match step {
                Move::Start(of) if !self.up[of] => {
                    let facts = self.facts();
                    let draft = plan::ensure(&vehicle(of), true, &facts, inputs());
                    if review(draft, &facts, limits).is_err() {
                        return false;
                    }
                    self.entries.extend(start(self.next, &pod_id(of).0, self.minute));
                    self.next += 1;
                    self.up[of] = true;
                }
                Move::Launch(of) if self.up[of] => {
                    let facts = self.facts();
                    let Ok(approved) = review(launch_draft(of), &facts, limits) else {
                        return false;
                    };
                    let minutes =
                        i64::try_from(approved.worst_case().pod_time().as_secs()).unwrap() / 60;
                    let until = self.minute + minutes;
                    self.entries.push(launch(self.next, &pod_id(of).0, self.minute, until));
                    self.jobs.push((of, self.next));
                    self.next += 1;
                }
                Move::JobEnds if !self.jobs.is_empty() => {
                    let (of, id) = self.jobs.remove(0);
                    let (vehicle, state) = (pod_id(of).0, "succeeded".to_owned());
                    let job = format!("job{id}");
                    self.note(Event::JobEnded { vehicle, pod: pod_id(of), job, state });
                }
                Move::Off(of) if self.up[of] => {
                    self.up[of] = false;
                    self.jobs.retain(|job| job.0 != of);
                    self.note(Event::PodSeen {
                        vehicle: pod_id(of).0,
                        pod: pod_id(of),
                        status: "EXITED".into(),
                        micros_per_hour: None,
                        started_at: None,
                    });
                }
                Move::Wait => {
                    // As the worst case has it: a pod bills for as long as it was allowed to.
                    for of in 0..2 {
                        let held = committed(
                            &Book::of(&self.entries),
                            at(self.minute),
                            |_| BOOT + ALONE,
                            |_| None,
                        );
                        let of_pod = held.iter().filter(|line| line.pod == Some(pod_id(of)));
                        let left = of_pod.map(|line| line.until.as_secs() / 60).max().unwrap_or(0);
                        let left = i64::try_from(left).unwrap();
                        if self.up[of] {
                            self.minutes_billed += STEP_MINUTES.min(left);
                            if left <= STEP_MINUTES {
                                self.up[of] = false;
                                self.jobs.retain(|job| job.0 != of);
                            }
                        }
                    }
                    self.minute += STEP_MINUTES;
                }
                _ => return false,
            }
            true
        }
    }

    fn rate() -> UsdPerHour {
        UsdPerHour::new(Usd::from_micros(RATE))
    }

    fn pod_id(of: usize) -> PodId {
        PodId(["a", "b"][of].to_owned())
    }

    fn vehicle(of: usize) -> Vehicle {
        let name = crate::domain::VehicleName(pod_id(of).0);
        let pod_name = format!("pod-{of}");
        Vehicle { name, pod_name, boot_max: BOOT, ..sample::vehicle() }
    }

    fn inputs() -> EnsureInputs {
        EnsureInputs { public_key: "k".into(), nonce: "n".into() }
    }

    fn launch_draft(of: usize) -> Draft {
        let step = PodStep {
            pod: pod_id(of),
            label: "launch".into(),
            command: RemoteCommand::new(["true"]),
            timeout: Duration::from_secs(1),
        };
        let ceiling = Ceiling::from_secs(1740).unwrap();
        let intent = Intent::Launch { force: true, ceiling, end: JobEnd::Left };
        let price = crate::domain::Price::Known(rate());
        plan::on_pod(&vehicle(of), true, intent, vec![step], Some(price))
    }

    /// Every order of eight moves of two vehicles: what was spent and what is promised, together,
    /// never exceed the budget, and neither does what is really billed. Storage is left out of the
    /// sum, which makes the guard stricter, not laxer.
    #[test]
    fn no_order_of_moves_of_two_vehicles_exceeds_the_budget() {
        let budget = Usd::from_micros(1_250_000);
        let limits = Limits { budget_usd: Some(budget), ..Limits::default() };
        let mut launches = 0_u32;
        let mut refused = 0_u32;
        let mut worlds = vec![World {
            entries: vec![],
            minute: 0,
            up: [false; 2],
            jobs: vec![],
            minutes_billed: 0,
            next: 1,
        }];
        for _ in 0..6 {
            let mut after = Vec::new();
            for world in &worlds {
                for step in MOVES {
                    let mut next = world.clone();
                    if next.make(step, &limits) {
                        launches += u32::from(matches!(step, Move::Launch(_)));
                        let facts = next.facts();
                        let promised: Usd = facts.spend.committed.iter().map(Committed::usd).sum();
                        let total = next.spent() + promised;
                        assert!(total <= budget, "{step:?}: {total} {:?}", next.entries);
                        after.push(next);
                    } else {
                        refused += u32::from(matches!(step, Move::Launch(of) if world.up[of]));
                    }
                }
            }
            worlds = after;
        }
        // Both kinds were met, else this shows nothing.
        assert!(launches > 100 && refused > 100, "{launches} {refused}");
    }
}
