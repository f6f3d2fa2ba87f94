//! The provider as one session meets it: the client's retries and the faults of the script between
//! podtether and the world.

use super::bill::hours;
use super::faults::{Kind, On, State};
use super::pods::{GPU, SimPod};
use super::promises::Doing;
use super::world::{Effect, Shared, World, after};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use podtether::cloud::{
    Balance, BilledSpan, Changed, Cloud, CloudError, CloudErrorKind, DataCenter, RequestView,
    StopRight,
};
use podtether::domain::{
    GpuOffer, GpuTypeId, Pod, PodId, PodStatus, Price, Stock, Volume, VolumeId,
};
use podtether::guard::ApprovedChange;
use podtether::plan::Change;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// When the client gives up on one request, and on asking again.
const TIMEOUT: Duration = Duration::from_secs(30);
const RETRY_BUDGET: Duration = Duration::from_secs(20);

/// What a session is doing, as its provider sees it.
pub type SharedDoing = Arc<Mutex<Doing>>;

/// The provider.
pub struct SimCloud {
    pub world: Shared,
    pub session: usize,
    pub doing: SharedDoing,
}

/// How one request went.
enum Went {
    /// It got through.
    Through,
    /// It did not, or its answer did not.
    Failed(CloudErrorKind),
}

const LOST: CloudErrorKind = CloudErrorKind::Network { never_sent: false };

impl SimCloud {
    fn note(&self, what: &str, how: &str) {
        let session = self.session;
        self.world.now().say(|| format!("s{session} {what}: {how}"));
    }

    fn latency(&self) -> Duration {
        Duration::from_millis(self.world.now().dice.between(40, 400))
    }

    fn error(kind: CloudErrorKind, what: &str) -> CloudError {
        let detail = format!("simulated {kind:?}");
        CloudError { kind, tried: what.to_owned(), status: None, detail, request_id: None }
    }

    /// A read with the client's retries.
    async fn read<T>(
        &self,
        on: On,
        what: &str,
        take: impl Fn(&World) -> Result<T, CloudErrorKind>,
    ) -> Result<T, CloudError> {
        let started = tokio::time::Instant::now();
        let mut pause = Duration::from_millis(300);
        loop {
            let outcome = match self.read_once(on).await {
                Went::Through => take(&self.world.now()),
                Went::Failed(kind) => Err(kind),
            };
            let kind = match outcome {
                Ok(value) => {
                    self.note(what, "ok");
                    return Ok(value);
                }
                Err(kind) => kind,
            };
            self.note(what, &format!("{kind:?}"));
            let error = Self::error(kind, what);
            let wait = match error.kind {
                CloudErrorKind::RateLimited(Some(wait)) => wait,
                CloudErrorKind::RateLimited(None) => pause.max(Duration::from_secs(2)),
                _ => pause,
            };
            if !error.is_transient() || started.elapsed() + wait >= RETRY_BUDGET {
                return Err(error);
            }
            tokio::time::sleep(wait).await;
            pause = (pause * 2).min(Duration::from_secs(8));
        }
    }

    fn fault(&self, on: On) -> Option<Kind> {
        let mut world = self.world.now();
        if world.is_wrong(State::Offline) {
            return Some(Kind::NoConnection);
        }
        world.call_fault(on)
    }

    async fn read_once(&self, on: On) -> Went {
        let latency = self.latency();
        let fault = self.fault(on);
        let after = |time: Duration, kind| (time, Went::Failed(kind));
        let (time, went) = match fault {
            None | Some(Kind::NoEffect | Kind::NoCapacity) => (latency, Went::Through),
            Some(Kind::Slow(seconds)) => (Duration::from_secs(seconds), Went::Through),
            Some(Kind::LostRequest | Kind::LostReply | Kind::LateEffect(_)) => after(TIMEOUT, LOST),
            Some(kind) => after(latency, failure(kind)),
        };
        tokio::time::sleep(time).await;
        went
    }

    /// A change, sent once but for a 429.
    async fn send(&self, on: On, effect: Effect, what: &str) -> Result<Changed, CloudError> {
        let started = tokio::time::Instant::now();
        loop {
            let kind = match self.send_once(on, &effect).await {
                Ok(changed) => {
                    self.note(what, "ok");
                    return Ok(changed);
                }
                Err(kind) => kind,
            };
            self.note(what, &format!("{kind:?}"));
            let wait = match kind {
                CloudErrorKind::RateLimited(wait) => wait.unwrap_or(Duration::from_secs(2)),
                _ => return Err(Self::error(kind, what)),
            };
            if started.elapsed() + wait >= RETRY_BUDGET {
                return Err(Self::error(kind, what));
            }
            tokio::time::sleep(wait).await;
        }
    }

    async fn send_once(&self, on: On, effect: &Effect) -> Result<Changed, CloudErrorKind> {
        let latency = self.latency();
        let fault = self.fault(on);
        // A session that dies on the way out has sent nothing, on the way back it has.
        tokio::time::sleep(latency / 2).await;
        let act = || {
            let mut world = self.world.now();
            let now = world.truth();
            world.apply(effect.clone(), now)
        };
        let refused = |kind| async move {
            tokio::time::sleep(latency / 2).await;
            Err(kind)
        };
        match fault {
            None => {
                let outcome = act();
                tokio::time::sleep(latency / 2).await;
                outcome
            }
            Some(Kind::Slow(seconds)) => {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                act()
            }
            Some(Kind::LostRequest) => {
                tokio::time::sleep(TIMEOUT).await;
                Err(LOST)
            }
            Some(Kind::LostReply) => {
                let outcome = act();
                tokio::time::sleep(TIMEOUT).await;
                outcome.and(Err(LOST))
            }
            Some(Kind::LateEffect(seconds)) => {
                {
                    let mut world = self.world.now();
                    let at = after(world.truth(), Duration::from_secs(seconds));
                    world.schedule(at, effect.clone());
                }
                tokio::time::sleep(TIMEOUT).await;
                Err(LOST)
            }
            Some(Kind::ErrorAfter) => {
                let outcome = act();
                refused(outcome.err().unwrap_or(CloudErrorKind::Server)).await
            }
            Some(Kind::HtmlAfter) => {
                let outcome = act();
                refused(outcome.err().unwrap_or(CloudErrorKind::Edge)).await
            }
            // A create must name what it made; of a start or stop no answer is expected (G14).
            Some(Kind::Empty) => match (act(), on) {
                (Ok(_), On::Create) => refused(CloudErrorKind::Malformed).await,
                (Ok(_), _) => Ok(Changed::Accepted),
                (Err(kind), _) => refused(kind).await,
            },
            Some(Kind::NoEffect) if on != On::Create => Ok(Changed::Accepted),
            Some(Kind::NoEffect) => refused(CloudErrorKind::Server).await,
            Some(Kind::NoCapacity) => refused(CloudErrorKind::NoCapacity).await,
            Some(kind) => refused(failure(kind)).await,
        }
    }
}

/// What a request that was refused looks like.
fn failure(kind: Kind) -> CloudErrorKind {
    match kind {
        Kind::NoConnection => CloudErrorKind::Network { never_sent: true },
        Kind::Error | Kind::ErrorAfter => CloudErrorKind::Server,
        Kind::Empty | Kind::Html | Kind::HtmlAfter | Kind::Edge1010 => CloudErrorKind::Edge,
        Kind::Auth => CloudErrorKind::Auth,
        Kind::Forbidden => CloudErrorKind::Forbidden,
        Kind::Retired => CloudErrorKind::Retired,
        Kind::Limited(wait) => CloudErrorKind::RateLimited(wait.map(Duration::from_secs)),
        Kind::NotFound => CloudErrorKind::NotFound,
        Kind::NoCapacity => CloudErrorKind::NoCapacity,
        Kind::LostRequest
        | Kind::LostReply
        | Kind::LateEffect(_)
        | Kind::Slow(_)
        | Kind::NoEffect => LOST,
    }
}

/// A pod as reads show it now, with what is wrong.
fn shown(world: &World, pod: &SimPod, at: DateTime<Utc>) -> Option<Pod> {
    if pod.hidden_until > world.truth() {
        return None;
    }
    let mut shown = pod.shown_at(at)?;
    for wrong in world.wrong() {
        match wrong {
            State::Locked => shown.locked = true,
            State::ShownError if shown.status != PodStatus::Exited => {
                shown.status = PodStatus::Error;
            }
            State::ShownUnknown if shown.status != PodStatus::Exited => {
                shown.status = PodStatus::Other("MIGRATING".into());
            }
            State::NoPrice => shown.price = Price::Unknown,
            State::NoEnvironment => shown.env.clear(),
            _ => {}
        }
    }
    Some(shown)
}

/// The list as it is shown now: perhaps an old one.
fn listed(world: &World) -> Vec<Pod> {
    let lag = world.wrong().find_map(|wrong| match wrong {
        State::ListLag(seconds) => Some(seconds),
        _ => None,
    });
    let at = world.truth() - TimeDelta::seconds(i64::try_from(lag.unwrap_or(0)).unwrap());
    let gone = world.deleted.iter().filter(|(_, gone)| *gone > at).map(|(pod, _)| pod);
    world.pods.iter().chain(gone).filter_map(|pod| shown(world, pod, at)).collect()
}

#[async_trait]
impl Cloud for SimCloud {
    fn is_local(&self) -> bool {
        false
    }

    fn preview(&self, change: &Change) -> RequestView {
        RequestView { method: "POST".to_owned(), path: format!("{change:?}"), body: None }
    }

    async fn pods(&self) -> Result<Vec<Pod>, CloudError> {
        self.read(On::List, "list", |world| Ok(listed(world))).await
    }

    async fn pod(&self, id: &PodId) -> Result<Option<Pod>, CloudError> {
        let what = format!("get {id}");
        let read = self.read(On::Get, &what, |world| {
            let pod = world.pods.iter().find(|pod| pod.id == *id);
            Ok(pod.and_then(|pod| shown(world, pod, world.truth())))
        });
        match read.await {
            Err(error) if error.kind == CloudErrorKind::NotFound => Ok(None),
            other => other,
        }
    }

    async fn volumes(&self) -> Result<Vec<Volume>, CloudError> {
        let take = |world: &World| Ok(world.volumes.iter().map(|v| v.volume.clone()).collect());
        self.read(On::Rest, "volumes", take).await
    }

    async fn gpu_offers(&self, _: u32) -> Result<Vec<GpuOffer>, CloudError> {
        let offers = self
            .read(On::Rest, "catalog", |world| {
                let known = !world.is_wrong(State::NoPrice);
                let price = if known { Price::Known(world.price()) } else { Price::Unknown };
                Ok(vec![GpuOffer {
                    id: GpuTypeId(GPU.into()),
                    memory_gb: Some(24),
                    price,
                    stock: Stock::High,
                    data_centers: vec![(World::data_center(), Stock::High)],
                }])
            })
            .await?;
        let mut doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner);
        doing.price_shown = offers[0].price;
        Ok(offers)
    }

    async fn data_centers(&self) -> Result<Vec<DataCenter>, CloudError> {
        Ok(Vec::new())
    }

    async fn pod_billing(&self, since: DateTime<Utc>) -> Result<Vec<BilledSpan>, CloudError> {
        self.read(On::Rest, "pod bill", |world| {
            let all = world.pods.iter().chain(world.deleted.iter().map(|(pod, _)| pod));
            let of = |pod: &SimPod| {
                hours(world, &pod.id.0, pod.created(), since, |from, to| pod.cost_between(from, to))
            };
            Ok(all.flat_map(of).collect())
        })
        .await
    }

    async fn volume_billing(&self, since: DateTime<Utc>) -> Result<Vec<BilledSpan>, CloudError> {
        self.read(On::Rest, "volume bill", |world| {
            let of = |volume: &super::pods::SimVolume| {
                let cost = |from, to| volume.cost_until(to).saturating_sub(volume.cost_until(from));
                hours(world, &volume.volume.id.0, volume.made, since, cost)
            };
            Ok(world.volumes.iter().flat_map(of).collect())
        })
        .await
    }

    async fn balance(&self) -> Balance {
        Balance::Unknown("not simulated".to_owned())
    }

    async fn stop_right(&self) -> StopRight {
        tokio::time::sleep(self.latency()).await;
        match self.fault(On::Stop) {
            None | Some(Kind::Slow(5)) => StopRight::Proven,
            Some(Kind::Auth | Kind::Forbidden) => StopRight::Denied("simulated".to_owned()),
            Some(kind) => StopRight::Unproven(format!("simulated {kind:?}")),
        }
    }

    async fn change(
        &self,
        change: ApprovedChange<'_>,
        created: Option<&VolumeId>,
    ) -> Result<Changed, CloudError> {
        let change = change.get();
        {
            let doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut world = self.world.now();
            super::promises::a_change_is_sent(&mut world, &doing, change);
        }
        match change {
            Change::CreatePod(wanted) => {
                let effect = Effect::CreatePod(Box::new(wanted.clone()), created.cloned());
                self.send(On::Create, effect, "CREATE").await
            }
            Change::CreateVolume(wanted) => {
                self.send(On::Create, Effect::CreateVolume(wanted.clone()), "CREATE VOLUME").await
            }
            Change::StartPod(id) => {
                self.send(On::Start, Effect::Start(id.clone()), &format!("START {id}")).await
            }
            Change::StopPod(id) => {
                self.send(On::Stop, Effect::Stop(id.clone()), &format!("STOP {id}")).await
            }
            Change::TerminatePod(_) => Ok(Changed::Accepted),
        }
    }
}
