//! What asking the provider for a stop comes to. Which pods are asked is decided by the real plan and
//! the real guard; the reads around them are told here as `ops/stop.rs` and `deadman/fire.rs` do them.

use crate::world::{ANOTHERS, Pod, Power, RUNS, STRANGERS, World};
use podtether::domain::{
    CloudTier, Limits, Pod as RealPod, PodId, PodStatus, Price, Vehicle, VehicleName,
};
use podtether::guard::review;
use podtether::plan::{self, Change, Facts, Step};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// How the world answers a step of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Truly, and what was asked happens.
    True,
    /// Not at all, and nothing happens: no network, 5xx, an edge page.
    Down,
    /// The provider asks to be left alone for two minutes.
    Limited,
    /// Not at all, but what was asked happens.
    Lost,
    /// A launch whose files were placed, and no more. A capture that is not whole.
    Half,
    /// A stop that is accepted and does nothing.
    NoEffect,
    /// A launch that certainly failed.
    No,
    /// The volume does not answer, so nobody can say what the job does.
    Blind,
    /// The list shows the run's pod with its former status.
    OldList,
    /// The list does not show the run's pod.
    HidingList,
    /// Its own page shows the former status.
    OldPage,
    /// Its own page is a 404.
    NoPage,
    /// SIGINT comes instead of an answer.
    Interrupt,
    /// SIGTERM does.
    Terminate,
}

impl Answer {
    pub const ALL: [Self; 14] = [
        Self::True,
        Self::Down,
        Self::Limited,
        Self::Lost,
        Self::Half,
        Self::NoEffect,
        Self::No,
        Self::Blind,
        Self::OldList,
        Self::HidingList,
        Self::OldPage,
        Self::NoPage,
        Self::Interrupt,
        Self::Terminate,
    ];

    /// Whether the provider says what is not so (any more).
    pub const fn is_a_lie(self) -> bool {
        matches!(self, Self::OldList | Self::HidingList | Self::OldPage | Self::NoPage)
    }
}

/// Who asks, which decides how it is read before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As `stop_known_pod`: the list, and the run's pod by its id when the list does not show it.
    Supervise,
    /// As `fire::by_list`.
    Graceful,
    /// As `fire::by_id`.
    Forced,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Read back as off.
    Off,
    /// No pod of the name, and the known one is not there.
    Absent,
    /// The known pod carries another name now.
    NotOurs,
    Down,
    Limited,
    Refused,
    NoEffect,
}

/// What is shown of one pod.
type Shown = (usize, bool, Power, bool);

/// Asks; `None` where such an answer makes no difference.
pub fn stop(world: &World, answer: Answer, way: Way, mind_names: bool) -> Option<(World, Told)> {
    let mut world = world.clone();
    let known: &[usize] = match world.fuse_knows_anothers && way != Way::Supervise {
        true => &[RUNS, ANOTHERS],
        false => &[RUNS],
    };
    if answer.is_a_lie() {
        world.lies = world.lies.checked_sub(1)?;
    }
    match answer {
        Answer::Down => return Some((world, Told::Down)),
        Answer::Limited => return Some((world, Told::Limited)),
        Answer::True
        | Answer::Lost
        | Answer::NoEffect
        | Answer::OldList
        | Answer::HidingList
        | Answer::OldPage
        | Answer::NoPage => {}
        _ => return None,
    }
    let truth = |id: usize| world.pods[id];
    let page = |id: usize| -> Option<Pod> {
        let pod = truth(id);
        let shown = match (answer, id) {
            (Answer::NoPage, RUNS) => return None,
            (Answer::OldPage, RUNS) => Pod { power: former(pod.power), ..pod },
            _ => pod,
        };
        (shown.power != Power::Gone).then_some(shown)
    };
    let list: Vec<(usize, Pod)> = (0..=STRANGERS)
        .filter_map(|id| {
            let pod = truth(id);
            match (answer, id) {
                (Answer::HidingList, RUNS) => None,
                (Answer::OldList, RUNS) => Some((id, Pod { power: former(pod.power), ..pod })),
                _ => Some((id, pod)),
            }
        })
        .filter(|(_, pod)| pod.power != Power::Gone)
        .collect();
    let is_ours = |pod: &Pod| pod.ours || !mind_names;
    let named: Vec<(usize, Pod)> = list.iter().copied().filter(|(_, pod)| is_ours(pod)).collect();
    let knows = named.iter().any(|(id, _)| *id == ANOTHERS);
    let shown = match way {
        Way::Forced => by_id(known, &list, page, is_ours),
        Way::Graceful if named.is_empty() => by_id(known, &list, page, is_ours),
        Way::Graceful | Way::Supervise => {
            let mut shown: Vec<Shown> = Vec::new();
            for (id, pod) in &named {
                let again = page(*id);
                match (pod.power, again) {
                    (Power::Running, _) => shown.push((*id, true, pod.power, false)),
                    (_, Some(now)) if is_ours(&now) => shown.push((*id, true, now.power, false)),
                    (_, Some(_)) => {}
                    (_, None) => shown.push((*id, true, pod.power, true)),
                }
            }
            for id in known {
                if list.iter().all(|(listed, _)| listed != id)
                    && let Some(pod) = page(*id).filter(is_ours)
                {
                    shown.push((*id, true, pod.power, way == Way::Graceful));
                }
            }
            // Only what the run knows by its id can be told from a pod that is not there.
            let renamed = match (page(RUNS), way) {
                (Some(pod), Way::Supervise) => !is_ours(&pod) && pod.power == Power::Running,
                (Some(pod), _) => !is_ours(&pod),
                (None, _) => false,
            };
            if shown.is_empty() && renamed { Err(Told::NotOurs) } else { Ok(shown) }
        }
    };
    if way == Way::Graceful {
        world.fuse_knows_anothers |= knows;
    }
    let shown = match shown {
        Ok(shown) => shown,
        Err(told) => return Some((world, told)),
    };
    if shown.is_empty() {
        return Some((world, Told::Absent));
    }
    let asked = picks(&shown, &mut world.else_asked);
    if asked.is_empty() {
        return Some((world, Told::Off));
    }
    if world.revoked {
        return Some((world, Told::Refused));
    }
    if answer == Answer::NoEffect {
        let runs = asked.iter().any(|id| world.pods[*id].power == Power::Running);
        return runs.then_some((world, Told::NoEffect));
    }
    for id in asked {
        world.foreign_stopped |= !world.pods[id].ours;
        if world.pods[id].power == Power::Running {
            world.power_off(id, Power::Exited);
        }
    }
    Some((world, if answer == Answer::Lost { Told::Down } else { Told::Off }))
}

fn by_id(
    known: &[usize],
    list: &[(usize, Pod)],
    page: impl Fn(usize) -> Option<Pod>,
    is_ours: impl Fn(&Pod) -> bool,
) -> Result<Vec<Shown>, Told> {
    let mut pods: Vec<(usize, Pod)> =
        known.iter().filter_map(|id| Some((*id, page(*id)?))).collect();
    if !pods.is_empty() {
        let missing = |(id, _): &&(usize, Pod)| known.contains(id) && page(*id).is_none();
        pods.extend(list.iter().filter(missing));
    }
    let ours = pods.iter().filter(|(_, pod)| is_ours(pod));
    let ours: Vec<Shown> = ours.map(|(id, pod)| (*id, true, pod.power, true)).collect();
    if ours.is_empty() && !pods.is_empty() { Err(Told::NotOurs) } else { Ok(ours) }
}

/// What a pod was before it became what it is.
pub const fn former(power: Power) -> Power {
    match power {
        Power::Running => Power::Exited,
        Power::Exited | Power::Gone => Power::Running,
    }
}

thread_local! {
    static PICKS: RefCell<HashMap<Vec<Shown>, Vec<usize>>> = RefCell::new(HashMap::new());
}

/// Which of these the real plan asks to stop and the real guard lets through.
fn picks(shown: &[Shown], else_asked: &mut bool) -> Vec<usize> {
    let known = PICKS.with_borrow(|picks| picks.get(shown).cloned());
    if let Some(known) = known {
        return known;
    }
    const NAME: &str = "lts-replication";
    let vehicle = Vehicle::of_pod_name(VehicleName("hippocampus".to_owned()), NAME.to_owned());
    let pods = shown.iter().map(|(id, ours, power, doubted)| {
        let name = if *ours { NAME } else { "somebody's" };
        let status = match (power, doubted) {
            (Power::Running, _) => PodStatus::Running,
            (_, true) => PodStatus::Other("UNREAD".to_owned()),
            (_, false) => PodStatus::Exited,
        };
        real(*id, name, status)
    });
    let declared = vec![(vehicle.name.clone(), NAME.to_owned())];
    let facts = Facts::of_pods(pods.collect(), declared);
    let draft = plan::stop(&vehicle, true, &facts);
    let approved =
        review(draft, &facts, &Limits::default()).expect("a stop of ours is let through");
    let mut ids = Vec::new();
    for step in approved.steps() {
        match step {
            Step::Cloud(Change::StopPod(id)) => ids.push(id.0.parse().expect("an index")),
            _ => *else_asked = true,
        }
    }
    PICKS.with_borrow_mut(|picks| picks.insert(shown.to_vec(), ids.clone()));
    ids
}

fn real(id: usize, name: &str, status: PodStatus) -> RealPod {
    RealPod {
        id: PodId(id.to_string()),
        name: name.to_owned(),
        status,
        gpu: None,
        cloud: CloudTier::Secure,
        data_center: None,
        mounts: Vec::new(),
        price: Price::Unknown,
        ssh: None,
        env: BTreeMap::new(),
        locked: false,
        cluster: false,
        interruptible: false,
        created_at: None,
        started_at: None,
        cuda_version: None,
    }
}
