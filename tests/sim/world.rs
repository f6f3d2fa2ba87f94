//! The world of a campaign: what is so at the provider and on its pods, what is going wrong, and the
//! promises that break when something happens that must not.

use super::bounds::Bounds;
use super::dice::Dice;
pub use super::effects::Effect;
use super::faults::{Fault, Kind, On, State, What};
use super::pods::{DATA_CENTER, SimJob, SimPod, SimVolume};
use super::promises::Promises;
use super::time::TimeLine;
use chrono::{DateTime, TimeDelta, Utc};
use podtether::domain::{DataCenterId, PodId, UsdPerHour};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The name of a stranger's pod.
pub const STRANGER: &str = "somebody-elses";

/// Everything.
pub struct World {
    pub line: Arc<TimeLine>,
    pub dice: Dice,
    pub faults: Vec<Fault>,
    pub pods: Vec<SimPod>,
    pub deleted: Vec<(SimPod, DateTime<Utc>)>,
    pub volumes: Vec<SimVolume>,
    pub jobs: Vec<SimJob>,
    pub placed: BTreeSet<String>,
    /// Folders of jobs whose launch was called off.
    pub called_off: BTreeSet<String>,
    /// Folders of jobs that came home whole, after their job had ended.
    pub home: BTreeSet<String>,
    /// Where each vehicle's results and fuse have their place.
    pub folders: BTreeMap<String, PathBuf>,
    /// How far the laptop's clock is ahead.
    pub laptop_ahead: TimeDelta,
    /// Whether the laptop's clock was ever set forward: what is due by it comes early.
    pub was_set_forward: bool,
    /// By how much it was ever set back: the journal's dates may lie ahead for as long.
    pub was_set_back: Duration,
    /// Whether the laptop has not slept.
    pub is_awake: bool,
    /// Whether nothing is ever wrong with the way to the pods.
    pub has_good_link: bool,
    /// When nobody on the laptop could hear a pod, from when to when.
    pub deaf: Vec<(DateTime<Utc>, DateTime<Utc>)>,
    pub bounds: Bounds,
    pub rate: UsdPerHour,
    pub bill_lag: Duration,
    pub promises: Promises,
    later: Vec<(DateTime<Utc>, Effect)>,
    pub made: u32,
    trace: Option<Vec<String>>,
    calls: u64,
}

/// The world, shared by everybody in it.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<World>>);

impl Shared {
    /// Shares a world.
    pub fn new(world: World) -> Self {
        Self(Arc::new(Mutex::new(world)))
    }

    /// The world as it is now: what was to happen until now has happened.
    pub fn now(&self) -> MutexGuard<'_, World> {
        let mut world = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        world.settle();
        world
    }
}

impl World {
    /// An empty account.
    pub fn new(
        line: Arc<TimeLine>,
        dice: Dice,
        faults: Vec<Fault>,
        rate: UsdPerHour,
        bill_lag: Duration,
        promises: Promises,
        traced: bool,
    ) -> Self {
        Self {
            line,
            dice,
            faults,
            pods: Vec::new(),
            deleted: Vec::new(),
            volumes: Vec::new(),
            jobs: Vec::new(),
            placed: BTreeSet::new(),
            called_off: BTreeSet::new(),
            home: BTreeSet::new(),
            folders: BTreeMap::new(),
            laptop_ahead: TimeDelta::zero(),
            was_set_forward: false,
            was_set_back: Duration::ZERO,
            is_awake: true,
            has_good_link: true,
            deaf: Vec::new(),
            bounds: Bounds::default(),
            rate,
            bill_lag,
            promises,
            later: Vec::new(),
            made: 0,
            trace: traced.then(Vec::new),
            calls: 0,
        }
    }

    /// What the time truly is.
    pub fn truth(&self) -> DateTime<Utc> {
        self.line.truth()
    }

    /// Notes what happened, when somebody wants to read it.
    pub fn say(&mut self, what: impl FnOnce() -> String) {
        self.calls += 1;
        let at = self.line.since_start();
        if let Some(trace) = &mut self.trace {
            let (all, ms) = (at.as_secs(), at.subsec_millis());
            let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
            trace.push(format!("{hours:02}:{minutes:02}:{seconds:02}.{ms:03} {}", what()));
        }
    }

    /// What was noted.
    pub fn trace(&self) -> &[String] {
        self.trace.as_deref().unwrap_or_default()
    }

    /// How much happened.
    pub const fn calls(&self) -> u64 {
        self.calls
    }

    /// Does later what is due now.
    pub fn schedule(&mut self, at: DateTime<Utc>, effect: Effect) {
        self.later.push((at, effect));
    }

    fn settle(&mut self) {
        let now = self.truth();
        while let Some(next) = (0..self.later.len())
            .filter(|at| self.later[*at].0 <= now)
            .min_by_key(|at| self.later[*at].0)
        {
            let (at, effect) = self.later.remove(next);
            if !matches!(effect, Effect::Watch(..)) {
                self.say(|| format!("          late: {}", effect.name()));
            }
            let _ = self.apply(effect, at);
        }
    }

    /// No fault from now on.
    pub fn faults_cease(&mut self) {
        // What a volume does is no matter of the provider: a stop has to come all the same.
        self.faults.retain(|fault| fault.what == What::State(State::VolumeHangs));
        // A pod that boots anew has no watchdog until somebody looks after it.
        self.later.retain(|(_, effect)| !matches!(effect, Effect::Reboot));
    }

    /// The fault that this call meets, which is used up by it.
    pub fn call_fault(&mut self, call: On) -> Option<Kind> {
        let at = self.line.since_start();
        let met = |fault: &&mut Fault| match fault.what {
            What::Call(_, on) => on.meets(call) && fault.is_on(at),
            What::State(_) => false,
        };
        let fault = self.faults.iter_mut().find(met)?;
        fault.left = fault.left.saturating_sub(1);
        match fault.what {
            What::Call(kind, _) => Some(kind),
            What::State(_) => None,
        }
    }

    /// Where a vehicle's results and fuse have their place.
    pub fn folder_of(&self, vehicle: &str) -> PathBuf {
        self.folders.get(vehicle).cloned().unwrap_or_default()
    }

    /// What is wrong with the state of things now.
    pub fn wrong(&self) -> impl Iterator<Item = State> {
        let at = self.line.since_start();
        self.faults.iter().filter(move |fault| fault.is_on(at)).filter_map(|fault| {
            match fault.what {
                What::State(state) => Some(state),
                What::Call(..) => None,
            }
        })
    }

    /// Whether that is wrong now.
    pub fn is_wrong(&self, state: State) -> bool {
        self.wrong().any(|wrong| wrong == state)
    }

    /// For how long volumes still hang; zero when they do not.
    pub fn hangs_for(&self) -> Duration {
        let at = self.line.since_start();
        let hangs =
            |fault: &&Fault| fault.what == What::State(State::VolumeHangs) && fault.is_on(at);
        self.faults.iter().filter(hangs).map(|fault| fault.until - at).max().unwrap_or_default()
    }

    /// The catalog's price now.
    pub fn price(&self) -> UsdPerHour {
        let percent = self.wrong().find_map(|wrong| match wrong {
            State::Price(percent) => Some(percent),
            _ => None,
        });
        let micros = self.rate.per_hour().micros();
        let percent = i64::try_from(percent.unwrap_or(100)).unwrap();
        UsdPerHour::new(podtether::domain::Usd::from_micros(micros * percent / 100))
    }

    /// What was spent until now, as the bill will say one day.
    pub fn spent(&self) -> podtether::domain::Usd {
        let now = self.truth();
        let pods = self.pods.iter().chain(self.deleted.iter().map(|(pod, _)| pod));
        let pods: podtether::domain::Usd = pods.map(|pod| pod.cost_until(now)).sum();
        let volumes = self.volumes.iter().map(|volume| volume.cost_until(now));
        pods + volumes.sum::<podtether::domain::Usd>()
    }

    /// What may run up beyond that on other pods, by what was approved for them.
    pub fn promised(&self, but_for: Option<&PodId>) -> podtether::domain::Usd {
        let now = self.truth();
        let others = self.pods.iter().filter(|pod| pod.is_ours && Some(&pod.id) != but_for);
        let left = |pod: &SimPod| {
            pod.rate.cost_of((pod.promised_until - now).to_std().unwrap_or_default())
        };
        others.filter(|pod| pod.bills_at(now)).map(left).sum()
    }

    /// When a job of this pod that is in this run ends at the latest: with the run.
    pub fn job_end(&self, job: &SimJob) -> DateTime<Utc> {
        let pod = self.pods.iter().chain(self.deleted.iter().map(|(pod, _)| pod));
        let run = pod.filter(|pod| pod.id == job.pod).find_map(|pod| pod.runs.get(job.run));
        run.and_then(|run| run.ends).map_or(job.ends, |end| end.min(job.ends))
    }

    /// When a pod was last off the bill; `None` while it bills.
    pub fn pod_end(&self, pod: &PodId) -> Option<DateTime<Utc>> {
        if let Some((_, gone)) = self.deleted.iter().find(|(one, _)| one.id == *pod) {
            return Some(*gone);
        }
        self.pods.iter().find(|one| one.id == *pod)?.runs.last()?.ends
    }

    /// Whether anything stood between the laptop and the pods in that time.
    pub fn was_deaf(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> bool {
        self.deaf.iter().any(|(begins, ends)| *begins <= to && from <= *ends)
    }

    /// The one data centre.
    pub fn data_center() -> DataCenterId {
        DataCenterId(DATA_CENTER.into())
    }
}

/// A time that is so long after another one.
pub fn after(at: DateTime<Utc>, by: Duration) -> DateTime<Utc> {
    at + TimeDelta::from_std(by).unwrap()
}
