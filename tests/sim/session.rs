//! A session: somebody with a podtether of their own over the project's one journal, who asks for this
//! and that, and may be killed in the middle of anything.

use super::captures::SimPulls;
use super::dice::Dice;
use super::laptop::Laptop;
use super::promises::{Doing, Op, off_was_said};
use super::provider::{SharedDoing, SimCloud};
use super::shell::SimShells;
use super::time::LaptopClock;
use super::world::Shared;
use chrono::{DateTime, Utc};
use podtether::clock::SharedClock;
use podtether::config::Config;
use podtether::deadman::{Access, Arming, Telling};
use podtether::domain::{FuseName, FuseReport, FuseState, Price, UnattendedBill, Usd};
use podtether::error::{Failure, FailureKind, StillBilling};
use podtether::ledger::Ledger;
use podtether::ops::{EnsureRequest, PodView, RunJobRequest, StopAll, Surroundings, Tether};
use podtether::secret::Secret;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

/// What every session of a campaign shares.
#[derive(Clone)]
pub struct Project {
    pub config: Config,
    pub world: Shared,
    pub clock: Arc<LaptopClock>,
    pub state: PathBuf,
    pub laptop: Laptop,
}

impl Project {
    /// What a fuse is armed with here; it reaches the provider as the sessions do.
    fn arming(&self) -> Arming {
        Arming {
            starts: Arc::new(self.laptop.clone()),
            config: self.config.path.clone(),
            access: Access {
                base_url: "https://simulated.invalid".to_owned(),
                key: Secret::new("a simulated key").unwrap(),
                is_local: false,
                allow_loopback_http: false,
                local_state: None,
            },
            telling: Telling::default(),
        }
    }

    /// The journal, opened anew as by a process that starts.
    pub fn ledger(&self) -> Ledger {
        let clock: SharedClock = Arc::clone(&self.clock) as SharedClock;
        Ledger::new(self.state.clone(), &self.config.path, clock)
    }
}

/// One session.
pub struct Session {
    pub number: usize,
    tether: Tether,
    project: Project,
    doing: SharedDoing,
    jobs: Vec<(String, String)>,
}

/// The longest that calls may take, whatever goes wrong. Reads are asked again for 20 s and may then
/// take 30 s more.
const LOOK_BOUND: Duration = Duration::from_secs(300);
const CHANGE_BOUND: Duration = Duration::from_secs(900);

impl Session {
    /// A process that starts.
    pub fn new(number: usize, project: &Project) -> Self {
        let doing = Arc::new(Mutex::new(Doing { op: Op::Idle, price_shown: Price::Unknown }));
        let world = project.world.clone();
        let cloud = SimCloud { world, session: number, doing: Arc::clone(&doing) };
        let shells =
            SimShells { world: project.world.clone(), doing: Arc::clone(&doing), session: number };
        let surroundings =
            Surroundings { program: "podtether".into(), path: None, ssh_auth_sock: None };
        let clock: SharedClock = Arc::clone(&project.clock) as SharedClock;
        let dice = Mutex::new(project.world.now().dice.split());
        let pulls = SimPulls { world: project.world.clone(), dice };
        let tether = Tether::new(project.config.clone(), Arc::new(cloud), clock, surroundings)
            .with_ledger(project.ledger())
            .with_shells(Arc::new(shells))
            .with_pulls(Arc::new(pulls))
            .with_arming(project.arming())
            .arming_fuses();
        Self { number, tether, project: project.clone(), doing, jobs: Vec::new() }
    }

    /// Notes what is asked for now, and returns when.
    pub fn begin(&self, op: Op, what: &str) -> DateTime<Utc> {
        let mut doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner);
        *doing = Doing { op, price_shown: Price::Unknown };
        let number = self.number;
        let mut world = self.project.world.now();
        world.say(|| format!("s{number} > {what}"));
        world.truth()
    }

    /// Notes it.
    pub fn say(&self, what: &str) {
        let number = self.number;
        self.project.world.now().say(|| format!("s{number} < {what}"));
    }

    /// Waits for a call, which must not take longer than `bound`.
    pub async fn within<T>(
        &self,
        bound: Duration,
        what: &str,
        call: impl Future<Output = T>,
    ) -> Option<T> {
        let answer = tokio::time::timeout(bound, call).await.ok();
        if answer.is_none() {
            let broken = format!("s{}: {what} took longer than {bound:?}", self.number);
            self.project.world.now().promises.break_one(broken);
        }
        answer
    }

    /// podtether itself.
    pub const fn tether(&self) -> &Tether {
        &self.tether
    }

    /// Where it works.
    pub const fn project(&self) -> &Project {
        &self.project
    }

    /// From now on what was said of the vehicle's bounds before counts no more.
    pub fn void(&self, vehicle: &str) {
        let name = self.pod_name(vehicle);
        let mut world = self.project.world.now();
        let world = &mut *world;
        world.bounds.void(&world.pods, &name);
    }

    /// An answer told a bound.
    fn bound(&self, pod: Option<&PodView>, bill: Option<&UnattendedBill>, fuses: &[FuseReport]) {
        let (Some(pod), Some(bill)) = (pod, bill) else { return };
        let mut world = self.project.world.now();
        let now = world.truth();
        let found = world.pods.iter().find(|one| one.id.0 == pod.id.0);
        let Some(run) = found.and_then(|pod| Some((pod.id.clone(), pod.run_at(now)?.0))) else {
            return;
        };
        world.bounds.said(run.clone(), now, bill, fuses);
        let is_dog =
            |fuse: &&FuseReport| fuse.name == FuseName::Watchdog && fuse.state == FuseState::Armed;
        if let Some(within) = fuses.iter().find(is_dog).and_then(|fuse| fuse.stops_within_sec) {
            super::watchdog::was_told(&mut world, &run.0, run.1, within);
        }
    }

    /// The name of its pod.
    pub fn pod_name(&self, vehicle: &str) -> String {
        let vehicles = &self.project.config.vehicles;
        let found = vehicles.iter().find(|one| one.name.0 == vehicle);
        found.map(|one| one.pod_name.clone()).unwrap_or_default()
    }

    /// An answer said that nothing of the vehicle bills.
    pub fn off(&self, vehicle: &str, asked: DateTime<Utc>, what: &str) {
        let who = format!("s{} ({what})", self.number);
        let pod_name = self.pod_name(vehicle);
        off_was_said(&mut self.project.world.now(), &pod_name, asked, &who);
    }

    /// A failure that says "nothing bills" is a promise as well, unless nothing was asked for.
    fn failed(&self, vehicle: &str, asked: DateTime<Utc>, what: &str, failure: &Failure) {
        self.say(&format!("{what} failed: {failure}"));
        let is_input = matches!(failure.kind, FailureKind::BadInput | FailureKind::Config);
        if failure.still_billing == StillBilling::No && !is_input {
            self.off(vehicle, asked, &format!("{what}, {:?}", failure.kind));
        }
        if failure.kind == FailureKind::Internal {
            let broken = format!("s{}: {failure}", self.number);
            self.project.world.now().promises.break_one(broken);
        }
    }

    /// ensure_pod.
    pub async fn ensure(&self, vehicle: &str, wait: Duration, dry_run: bool) {
        let asked = self.begin(
            if dry_run { Op::Look } else { Op::Ensure },
            &format!("ensure {vehicle} {wait:?}"),
        );
        let request = EnsureRequest { vehicle: Some(vehicle.to_owned()), dry_run, wait };
        if !dry_run {
            self.void(vehicle);
        }
        let call = self.tether.ensure_pod(&request);
        let answer = self.within(CHANGE_BOUND + wait * 2, "ensure_pod", call).await;
        if !dry_run {
            self.void(vehicle);
        }
        match answer {
            Some(Ok(answer)) => {
                self.say(&format!("{:?}: {}", answer.status, answer.message));
                if !dry_run {
                    self.bound(answer.pod.as_ref(), answer.unattended.as_ref(), &answer.fuses);
                }
            }
            Some(Err(failure)) => self.failed(vehicle, asked, "ensure_pod", &failure),
            None => {}
        }
    }

    /// stop_pod; whether it said that the vehicle is off.
    pub async fn stop(&self, vehicle: &str) -> bool {
        let asked = self.begin(Op::Stop, &format!("stop {vehicle}"));
        match self.within(CHANGE_BOUND, "stop_pod", self.tether.stop_pod(vehicle)).await {
            Some(Ok(answer)) => {
                self.say(&format!("{:?}: {}", answer.status, answer.message));
                if answer.is_off() {
                    self.off(vehicle, asked, &format!("stop_pod, {:?}", answer.status));
                }
                answer.is_off()
            }
            Some(Err(failure)) => {
                self.failed(vehicle, asked, "stop_pod", &failure);
                false
            }
            None => false,
        }
    }

    /// `podtether stop --all`; whether it said that nothing of ours may bill.
    pub async fn stop_all(&self) -> bool {
        let asked = self.begin(Op::Stop, "stop --all");
        let cloud = SimCloud {
            world: self.project.world.clone(),
            session: self.number,
            doing: Arc::clone(&self.doing),
        };
        let clock: SharedClock = Arc::clone(&self.project.clock) as SharedClock;
        let stop = StopAll::new(Ok(self.project.config.clone()), Arc::new(cloud), clock);
        match self.within(CHANGE_BOUND, "stop --all", stop.run()).await {
            Some(Ok(answer)) => {
                self.say(&format!("may still bill: {}", answer.may_still_bill));
                // It knows no journal, so of a vehicle without a pod it can say no more than that.
                for pod in answer.pods.iter().filter(|pod| pod.off) {
                    let vehicle = pod.vehicle.clone().unwrap_or_default();
                    let others = answer.pods.iter().filter(|one| one.vehicle == pod.vehicle);
                    if others.clone().all(|one| one.off) {
                        self.off(&vehicle, asked, "stop --all");
                    }
                }
                !answer.may_still_bill
            }
            Some(Err(failure)) => {
                self.say(&format!("failed: {failure}"));
                false
            }
            None => false,
        }
    }

    /// run_job.
    pub async fn launch(&mut self, vehicle: &str, dice: &mut Dice, dry_run: bool) {
        let request = job(vehicle, dice, dry_run);
        let op = if dry_run { Op::Look } else { Op::Launch { is_forced: request.force } };
        let asked = self.begin(op, &format!("run_job {vehicle} {:?}", request.max_runtime_sec));
        if !dry_run {
            self.void(vehicle);
        }
        let answer = self.within(CHANGE_BOUND, "run_job", self.tether.run_job(&request)).await;
        if !dry_run {
            self.void(vehicle);
        }
        match answer {
            Some(Ok(answer)) => {
                self.say(&format!(
                    "launched {}",
                    answer.job_id.split('_').next().unwrap_or_default()
                ));
                self.jobs.push((vehicle.to_owned(), answer.job_id));
            }
            Some(Err(failure)) => self.failed(vehicle, asked, "run_job", &failure),
            None => {}
        }
    }

    /// job_status of the last job.
    pub async fn job_status(&self) {
        let Some((vehicle, job)) = self.jobs.last() else { return };
        self.begin(Op::Look, "job_status");
        let call = self.tether.job_status(job, 5, Some(vehicle));
        match self.within(LOOK_BOUND, "job_status", call).await {
            Some(Ok(answer)) => self.say(answer.state.as_str()),
            Some(Err(failure)) => self.say(&format!("failed: {failure}")),
            None => {}
        }
    }

    /// pod_status.
    pub async fn pod_status(&self, vehicle: &str) {
        self.begin(Op::Look, &format!("pod_status {vehicle}"));
        let call = self.tether.pod_status(Some(vehicle));
        match self.within(LOOK_BOUND, "pod_status", call).await {
            Some(Ok(answer)) => {
                self.say(&format!("{:?}: {}", answer.status, answer.message));
                self.bound(answer.pod.as_ref(), answer.unattended.as_ref(), &answer.fuses);
            }
            Some(Err(failure)) => self.say(&format!("failed: {failure}")),
            None => {}
        }
    }

    /// What spend_report says may still be spent.
    pub async fn committed(&self) -> Option<Usd> {
        self.begin(Op::Look, "spend_report");
        let report = self.within(LOOK_BOUND, "spend_report", self.tether.spend_report()).await?;
        report.ok().map(|report| report.committed_usd)
    }

    /// spend_report.
    pub async fn spend(&self) {
        self.begin(Op::Look, "spend_report");
        match self.within(LOOK_BOUND, "spend_report", self.tether.spend_report()).await {
            Some(Ok(report)) => self.say(&format!("{} spent", report.total_usd)),
            Some(Err(failure)) => self.say(&format!("failed: {failure}")),
            None => {}
        }
    }
}

/// A job of this kind or that.
pub fn job(vehicle: &str, dice: &mut Dice, dry_run: bool) -> RunJobRequest {
    let seconds = i64::try_from(dice.time(30_000, 5 * 3_600_000).as_secs()).unwrap();
    RunJobRequest {
        name: "sim".to_owned(),
        command: "true".to_owned(),
        workdir: None,
        auto_stop: dice.percent(50),
        force: dice.percent(10),
        dry_run,
        max_runtime_sec: Some(seconds),
        vehicle: Some(vehicle.to_owned()),
        ..RunJobRequest::default()
    }
}

/// A future that is dropped in the middle, as by a kill: after so many polls.
pub struct Killed<F> {
    pub inner: Pin<Box<F>>,
    pub polls: u32,
}

impl<F: Future> Future for Killed<F> {
    /// `None` when it was killed.
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls == 0 {
            return Poll::Ready(None);
        }
        self.polls -= 1;
        self.inner.as_mut().poll(context).map(Some)
    }
}
