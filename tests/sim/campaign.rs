//! One campaign: a world and its fault script from a seed, sessions that live and die in it, and an end
//! at which everything of ours is off or named.

use super::bad_days::{dies, is_set, sleeps, volume_hangs};
use super::bounds::Figures;
use super::dice::Dice;
use super::ending::end;
use super::faults::{self, Fault, State, What};
use super::laptop::Laptop;
use super::promises::Promises;
use super::session::{Killed, Project, Session};
use super::time::{LaptopClock, TimeLine};
use super::watching::{makes_it_hard_to_watch, watches};
use super::world::{Effect, STRANGER, Shared, World, after};
use chrono::{DateTime, TimeDelta};
use podtether::config::Config;
use podtether::domain::{Usd, UsdPerHour};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How a campaign went.
#[derive(Debug)]
pub struct Outcome {
    /// The promise that was broken.
    pub broken: Option<String>,
    /// The fault script.
    pub script: Vec<String>,
    /// What happened, when it was to be told.
    pub trace: Vec<String>,
    /// How much happened: the same for the same seed.
    pub calls: u64,
    /// How many pods were made.
    pub pods: usize,
    /// What became of the bounds that were told.
    pub figures: Figures,
}

/// What is played beside the rest, from dice of its own: a seed that was worth keeping means the same
/// without what came later.
#[derive(Clone, Copy, Debug)]
pub struct With {
    /// Watches.
    pub watches: bool,
    /// Wall clocks that are set.
    pub clocks: bool,
    /// Volumes that hang.
    pub volumes: bool,
}

impl With {
    /// Everything.
    pub const ALL: Self = Self { watches: true, clocks: true, volumes: true };
    /// Nothing.
    pub const NONE: Self = Self { watches: false, clocks: false, volumes: false };
}

/// What is drawn first.
struct Drawn {
    config: Config,
    faults: Vec<Fault>,
    rate: UsdPerHour,
    bill_lag: Duration,
    promises: Promises,
    wrong_by: TimeDelta,
    sessions: u64,
    has_two: bool,
    sleeps: bool,
}

/// Runs the campaign of one seed. Everything is written below `folder`, which it takes for its own.
pub fn run(seed: u64, with: With, config: &Config, folder: &Path, traced: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(campaign(seed, with, config, folder, traced))
}

async fn campaign(seed: u64, with: With, config: &Config, folder: &Path, traced: bool) -> Outcome {
    let mut dice = Dice::new(seed);
    let length = dice.time(10 * 60_000, 8 * 3_600_000);
    let drawn = draw(&mut dice, config, folder, length);
    let script: Vec<String> = drawn.faults.iter().map(|fault| format!("{fault:?}")).collect();
    let seconds = i64::try_from(dice.between(0, 60 * 86_400)).unwrap();
    let began = DateTime::from_timestamp(1_783_000_000 + seconds, 0).unwrap();
    let line = TimeLine::new(began);
    let clock = Arc::new(LaptopClock::new(Arc::clone(&line), drawn.wrong_by));
    let mut world = World::new(
        Arc::clone(&line),
        dice.split(),
        drawn.faults,
        drawn.rate,
        drawn.bill_lag,
        drawn.promises,
        traced,
    );
    others(&mut dice, &mut world, length, &drawn.config);
    // Those who only watch have dice of their own: what they do shifts nothing of the rest.
    let mut beside = Dice::new(!seed);
    let watchers = if with.watches && beside.percent(20) { beside.between(1, 2) } else { 0 };
    if watchers > 0 {
        makes_it_hard_to_watch(&mut beside, &mut world, length);
    }
    world.laptop_ahead = drawn.wrong_by;
    for vehicle in &drawn.config.vehicles {
        world.folders.insert(vehicle.name.0.clone(), vehicle.local_log_dir.clone());
    }
    for fault in world.faults.clone() {
        let at = |time| after(began, time);
        world.bounds.held_up(at(fault.from), at(fault.until));
    }
    let of_link = [State::ShellDown, State::ShellLost, State::Offline];
    let breaks_it = |fault: &&Fault| of_link.iter().any(|state| fault.what == What::State(*state));
    world.has_good_link = !world.faults.iter().any(|fault| breaks_it(&fault));
    let deaf = world.faults.iter().filter(breaks_it);
    world.deaf = deaf.map(|fault| (after(began, fault.from), after(began, fault.until))).collect();
    let mut volume = Dice::new(seed.rotate_left(32));
    if with.volumes && volume.percent(20) {
        volume_hangs(&mut volume, &mut world, length);
    }
    let world = Shared::new(world);
    let laptop = Laptop::new(world.clone(), Arc::clone(&clock));
    let state = folder.join("state");
    let project = Project { config: drawn.config, world: world.clone(), clock, state, laptop };
    let vehicles = if drawn.has_two { 2 } else { 1 };
    let mut alive = Vec::new();
    for number in 1..=drawn.sessions {
        let dice = dice.split();
        let number = usize::try_from(number).unwrap();
        alive.push(lives(number, project.clone(), dice, vehicles, length));
    }
    let watching: Vec<_> = (0..watchers)
        .map(|at| {
            let number = 4 + usize::try_from(at).unwrap();
            watches(number, project.clone(), beside.split(), length)
        })
        .collect();
    let mut set = Dice::new(seed.rotate_left(16));
    let is_set_at_all = with.clocks && set.percent(20);
    let set = async {
        if is_set_at_all {
            is_set(set, project.clone(), length).await;
        }
    };
    let sleep = sleeps(dice.split(), world.clone(), length, drawn.sleeps);
    let death = dies(dice.split(), project.laptop.clone(), length);
    let works = async {
        tokio::join!(futures_util::future::join_all(alive), sleep, death, set);
        if world.now().promises.broken().is_none() {
            end(&mut dice, &project, vehicles).await;
        }
        project.laptop.boots();
    };
    // A watch outlives whoever works: it ends with the job or the pod.
    tokio::join!(works, futures_util::future::join_all(watching));
    let mut world = world.now();
    let (figures, broken) = world.bounds.judged(&world.pods, world.truth());
    if let Some(broken) = broken {
        world.promises.break_one(broken);
    }
    Outcome {
        figures,
        broken: world.promises.broken().map(str::to_owned),
        script,
        trace: world.trace().to_vec(),
        calls: world.calls(),
        pods: world.pods.len() + world.deleted.len(),
    }
}

fn draw(dice: &mut Dice, config: &Config, folder: &Path, length: Duration) -> Drawn {
    let mut config = config.clone();
    for vehicle in &mut config.vehicles {
        vehicle.local_log_dir = folder.join("logs").join(&vehicle.name.0);
    }
    let rate = UsdPerHour::new(Usd::from_micros(dice.pick(&[190_000, 690_000, 2_890_000])));
    let max_rate = dice.percent(50).then(|| UsdPerHour::new(Usd::from_micros(2_000_000)));
    let budget = dice
        .percent(40)
        .then(|| Usd::from_micros(i64::try_from(dice.between(500_000, 12_000_000)).unwrap()));
    config.limits.max_usd_per_hour = max_rate;
    config.limits.budget_usd = budget;
    let faults = faults::draw(dice, length);
    let has_two = dice.percent(30);
    let is_prompt = dice.percent(60);
    // What the provider shows wrongly about money nobody can hold against a budget.
    let misleads = |fault: &Fault| {
        matches!(fault.what, What::State(State::BillHoles | State::BillLag(_) | State::Price(_)))
    };
    let is_checked = is_prompt && !faults.iter().any(misleads);
    let promises = Promises::new(budget.filter(|_| is_checked), max_rate);
    let wrong_by = TimeDelta::seconds(dice.pick(&[0, 0, 0, -90, 45, 300]));
    let sleeps = dice.percent(15);
    Drawn {
        config,
        faults,
        rate,
        bill_lag: Duration::from_secs(if is_prompt { 0 } else { 3600 }),
        promises,
        wrong_by,
        sessions: dice.pick(&[1, 1, 2, 2, 3]),
        has_two,
        sleeps,
    }
}

/// What other people do to the account.
fn others(dice: &mut Dice, world: &mut World, length: Duration, config: &Config) {
    let minutes = length.as_secs() / 60;
    let at = |dice: &mut Dice, world: &World| {
        after(world.truth(), Duration::from_secs(60 * dice.between(0, minutes)))
    };
    if dice.percent(8) {
        let when = at(dice, world);
        world.schedule(when, Effect::Stranger(STRANGER.to_owned()));
    }
    if dice.percent(4) {
        let when = at(dice, world);
        world.schedule(when, Effect::Stranger(config.vehicles[0].pod_name.clone()));
    }
    if dice.percent(6) {
        let when = at(dice, world);
        world.schedule(when, Effect::Deleted);
    }
    if dice.percent(15) {
        let when = at(dice, world);
        world.schedule(when, Effect::Reboot);
    }
}

/// A session after another, each until it is done or killed.
async fn lives(number: usize, project: Project, mut dice: Dice, vehicles: usize, length: Duration) {
    tokio::time::sleep(Duration::from_millis(dice.between(0, 60_000))).await;
    let began = tokio::time::Instant::now();
    for life in 0..dice.between(1, 3) {
        if began.elapsed() > length || project.world.now().promises.broken().is_some() {
            return;
        }
        project.laptop.is_on().await;
        let polls =
            if dice.percent(50) { u32::try_from(dice.between(1, 300)).unwrap() } else { u32::MAX };
        let inner = Box::pin(asks((number, life), &project, dice.split(), vehicles));
        let ended = tokio::select! {
            biased;
            () = project.laptop.death() => None,
            ended = (Killed { inner, polls }) => ended,
        };
        if ended.is_none() {
            project.world.now().say(|| format!("s{number} IS KILLED"));
        }
        tokio::time::sleep(dice.time(500, 30 * 60_000)).await;
    }
}

async fn asks((number, life): (usize, u64), project: &Project, mut dice: Dice, vehicles: usize) {
    let mut session = Session::new(number, project);
    // Whoever comes back after a kill takes up what was begun.
    if life > 0 && dice.percent(50) {
        session.resume(&project.config.vehicles[0].name.0).await;
    }
    // Half of them want a pod first, since everything else needs one.
    if dice.percent(50) {
        let vehicle = project.config.vehicles[0].name.0.clone();
        session.ensure(&vehicle, Duration::from_secs(dice.pick(&[5, 45, 300])), false).await;
        if dice.percent(30) {
            session.supervise(&vehicle, &mut dice).await;
        }
    }
    for _ in 0..dice.between(2, 10) {
        if project.world.now().promises.broken().is_some() {
            return;
        }
        let at = usize::try_from(dice.between(0, vehicles as u64 - 1)).unwrap();
        let vehicle = project.config.vehicles[at].name.0.clone();
        match dice.between(0, 99) {
            0..35 => {
                let wait = Duration::from_secs(dice.pick(&[0, 5, 45, 45, 300]));
                session.ensure(&vehicle, wait, false).await;
            }
            35..40 => session.ensure(&vehicle, Duration::ZERO, true).await,
            40..58 => session.launch(&vehicle, &mut dice, false).await,
            58..60 => session.launch(&vehicle, &mut dice, true).await,
            60..67 => session.job_status().await,
            67..75 => session.pod_status(&vehicle).await,
            75..78 => session.spend().await,
            78..85 => session.supervise(&vehicle, &mut dice).await,
            85..89 => session.resume(&vehicle).await,
            89..98 => {
                session.stop(&vehicle).await;
            }
            _ => {
                session.stop_all().await;
            }
        }
        if dice.percent(60) {
            tokio::time::sleep(dice.time(500, 3_600_000)).await;
        }
    }
}
