//! What changes in the world, at once or later, whoever asked for it.

use super::faults::State;
use super::pods::{Run, SimPod, SimVolume, boot_time};
use super::promises::{BOOT_MAX, UNWATCHED};
use super::world::{World, after};
use chrono::{DateTime, Utc};
use podtether::cloud::{Changed, CloudErrorKind};
use podtether::domain::{PodId, Volume, VolumeId};
use podtether::plan::{NewPod, NewVolume};

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
    /// A pod of ours boots anew, on the bill all the while.
    Reboot,
    /// The watchdog of a pod looks, in the boot that it was armed in.
    Watch(PodId, usize),
}

impl Effect {
    /// In a few words, without markers, which come from no seed.
    pub fn name(&self) -> String {
        match self {
            Self::CreatePod(pod, _) => format!("create {:?}", pod.name),
            Self::CreateVolume(volume) => format!("create volume {:?}", volume.name),
            other => format!("{other:?}"),
        }
    }
}

impl World {
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
            Effect::Reboot => {
                self.reboot(at);
                Ok(Changed::Accepted)
            }
            Effect::Watch(id, run) => {
                super::watchdog::tick(self, &id, run, at);
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
            was_stopped_by_its_own: false,
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
            is_in_use: self.dice.percent(20),
            watchdog: None,
        }
    }

    fn reboot(&mut self, at: DateTime<Utc>) {
        let next = self.run(at);
        let is_up = |pod: &&mut SimPod| {
            let last = pod.runs.last();
            let is_up = |run: &Run| run.ends.is_none() && run.up.is_some_and(|up| up <= at);
            pod.is_ours && last.is_some_and(is_up)
        };
        if let Some(pod) = self.pods.iter_mut().find(is_up) {
            let last = pod.runs.last_mut();
            last.into_iter().for_each(|run| run.ends = Some(at));
            pod.runs.push(next);
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

    /// A stop, as the provider takes it.
    pub fn stop(&mut self, id: &PodId, at: DateTime<Utc>) -> Result<Changed, CloudErrorKind> {
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
}
