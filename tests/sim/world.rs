//! The world of a campaign: what is so at the provider and on its pods, what is going wrong, and the
//! promises that break when something happens that must not.

use super::dice::Dice;
use super::faults::{Fault, Kind, On, State, What};
use super::pods::{DATA_CENTER, Run, SimJob, SimPod, SimVolume, boot_time};
use super::promises::{BOOT_MAX, Promises, UNWATCHED};
use super::time::TimeLine;
use chrono::{DateTime, TimeDelta, Utc};
use podtether::cloud::{Changed, CloudErrorKind};
use podtether::domain::{DataCenterId, PodId, UsdPerHour, Volume, VolumeId};
use podtether::plan::{NewPod, NewVolume};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The name of a stranger's pod.
pub const STRANGER: &str = "somebody-elses";

/// A change, on its way.
#[derive(Clone, Debug)]
pub enum Effect {
    CreatePod(Box<NewPod>, Option<VolumeId>),
    CreateVolume(NewVolume),
    Start(PodId),
    Stop(PodId),
    /// A job asks for the stop of its own pod, in the run it was started in.
    StopSelf(PodId, usize),
    /// Somebody else makes a pod, of this name.
    Stranger(String),
    /// Somebody deletes a pod of ours in the console.
    Deleted,
}

impl Effect {
    /// In a few words, without markers, which come from no seed.
    fn name(&self) -> String {
        match self {
            Self::CreatePod(pod, _) => format!("create {:?}", pod.name),
            Self::CreateVolume(volume) => format!("create volume {:?}", volume.name),
            other => format!("{other:?}"),
        }
    }
}

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
    pub rate: UsdPerHour,
    pub bill_lag: Duration,
    pub promises: Promises,
    later: Vec<(DateTime<Utc>, Effect)>,
    made: u32,
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
            self.say(|| format!("          late: {}", effect.name()));
            let _ = self.apply(effect, at);
        }
    }

    /// No fault from now on.
    pub fn faults_cease(&mut self) {
        self.faults.clear();
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

    /// Carries out a change, as the provider would at that moment.
    pub fn apply(&mut self, effect: Effect, at: DateTime<Utc>) -> Result<Changed, CloudErrorKind> {
        match effect {
            Effect::CreatePod(wanted, created) => Ok(self.create(*wanted, created, at)),
            Effect::CreateVolume(wanted) => {
                self.made += 1;
                let volume = Volume {
                    id: VolumeId(format!("vol{}", self.made)),
                    name: wanted.name,
                    size_gb: wanted.size_gb,
                    data_center: wanted.data_center,
                };
                if self.volumes.iter().any(|one| one.volume.name == volume.name) {
                    let name = &volume.name;
                    self.promises.break_one(format!("a second volume {name:?} was made"));
                }
                self.volumes.push(SimVolume { volume: volume.clone(), made: at });
                Ok(Changed::Volume(volume))
            }
            Effect::Start(id) => self.start(&id, at),
            Effect::Stop(id) => self.stop(&id, at),
            Effect::StopSelf(id, run) => {
                let is_on = |pod: &&mut SimPod| pod.id == id;
                let ended = self.pods.iter_mut().find(is_on).and_then(|pod| pod.runs.get_mut(run));
                if let Some(run) = ended.filter(|run| run.ends.is_none()) {
                    run.ends = Some(at);
                }
                Ok(Changed::Accepted)
            }
            Effect::Stranger(name) => {
                self.insert(name, false, [].into(), None, at);
                Ok(Changed::Accepted)
            }
            Effect::Deleted => {
                if let Some(index) = self.pods.iter().position(|pod| pod.is_ours) {
                    let mut pod = self.pods.remove(index);
                    for run in pod.runs.iter_mut().filter(|run| run.ends.is_none()) {
                        run.ends = Some(at);
                    }
                    self.deleted.push((pod, at));
                }
                Ok(Changed::Accepted)
            }
        }
    }

    fn create(&mut self, wanted: NewPod, created: Option<VolumeId>, at: DateTime<Utc>) -> Changed {
        let others: Vec<PodId> = self
            .pods
            .iter()
            .filter(|pod| pod.is_ours && pod.name == wanted.name)
            .map(|pod| pod.id.clone())
            .collect();
        let volume = match &wanted.volume {
            podtether::plan::VolumeRef::Existing(id) => Some(id.clone()),
            podtether::plan::VolumeRef::Planned(_) => created,
        };
        let nonce = wanted.nonce().map(str::to_owned);
        let id = self.insert(wanted.name.clone(), true, wanted.env, volume, at);
        self.promises.a_pod_was_made(&wanted.name, &id, nonce.as_ref(), &others, at);
        let pod = self.pods.iter().find(|pod| pod.id == id).and_then(|pod| pod.shown_at(at));
        pod.map_or(Changed::Accepted, |pod| Changed::Pod(Box::new(pod)))
    }

    fn insert(
        &mut self,
        name: String,
        is_ours: bool,
        env: std::collections::BTreeMap<String, String>,
        volume: Option<VolumeId>,
        at: DateTime<Utc>,
    ) -> PodId {
        self.made += 1;
        let id = PodId(format!("pod{}", self.made));
        let hidden = self.wrong().find_map(|wrong| match wrong {
            State::Hidden(seconds) => Some(seconds),
            _ => None,
        });
        let hidden_until = at + boot_time(hidden.unwrap_or(0));
        let run = self.run(at);
        let rate = self.price();
        let promised_until = after(at, BOOT_MAX + UNWATCHED);
        let runs = vec![run];
        self.pods.push(SimPod {
            id: id.clone(),
            name,
            is_ours,
            env,
            volume,
            rate,
            hidden_until,
            runs,
            promised_until,
        });
        id
    }

    fn run(&mut self, at: DateTime<Utc>) -> Run {
        let boot = boot_time(self.dice.between(8, 90));
        let never = self.is_wrong(State::NeverBoots);
        self.made += 1;
        Run {
            from: at,
            up: (!never).then_some(at + boot),
            ends: None,
            zero_gpus: self.is_wrong(State::ZeroGpus),
            port: u16::try_from(10_000 + self.made % 50_000).unwrap(),
        }
    }

    fn start(&mut self, id: &PodId, at: DateTime<Utc>) -> Result<Changed, CloudErrorKind> {
        let run = self.run(at);
        let pod = self.visible(id, at).ok_or(CloudErrorKind::NotFound)?;
        if pod.bills_at(at) {
            return Err(CloudErrorKind::Conflict);
        }
        // A stop that is under way is over before the next start.
        pod.runs.push(run);
        Ok(Changed::Accepted)
    }

    fn stop(&mut self, id: &PodId, at: DateTime<Utc>) -> Result<Changed, CloudErrorKind> {
        let takes = boot_time(self.dice.between(0, 6));
        let blocked = self.is_wrong(State::Locked) || self.is_wrong(State::ShownError);
        let pod = self.visible(id, at).ok_or(CloudErrorKind::NotFound)?;
        if !pod.bills_at(at) || blocked {
            return Err(CloudErrorKind::Conflict);
        }
        let run = pod.runs.iter_mut().rev().find(|run| run.ends.is_none());
        if let Some(run) = run {
            run.ends = Some(at + takes);
        }
        let pod = self.pods.iter().find(|pod| pod.id == *id).and_then(|pod| pod.shown_at(at));
        Ok(pod.map_or(Changed::Accepted, |pod| Changed::Pod(Box::new(pod))))
    }

    fn visible(&mut self, id: &PodId, at: DateTime<Utc>) -> Option<&mut SimPod> {
        self.pods.iter_mut().find(|pod| pod.id == *id && pod.hidden_until <= at)
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

    /// The one data centre.
    pub fn data_center() -> DataCenterId {
        DataCenterId(DATA_CENTER.into())
    }
}

/// A time that is so long after another one.
pub fn after(at: DateTime<Utc>, by: Duration) -> DateTime<Utc> {
    at + TimeDelta::from_std(by).unwrap()
}
