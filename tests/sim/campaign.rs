//! One campaign: a world and its fault script from a seed, sessions that live and die in it, and an end
//! at which everything of ours is off or named.

use super::dice::Dice;
use super::faults::{self, Fault, State, What};
use super::promises::Promises;
use super::session::{Killed, Project, Session};
use super::time::{LaptopClock, TimeLine};
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
pub fn run(seed: u64, config: &Config, folder: &Path, traced: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(campaign(seed, config, folder, traced))
}

async fn campaign(seed: u64, config: &Config, folder: &Path, traced: bool) -> Outcome {
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
    let world = Shared::new(world);
    let project =
        Project { config: drawn.config, world: world.clone(), clock, state: folder.join("state") };
    let vehicles = if drawn.has_two { 2 } else { 1 };
    let mut alive = Vec::new();
    for number in 1..=drawn.sessions {
        let dice = dice.split();
        let number = usize::try_from(number).unwrap();
        alive.push(lives(number, project.clone(), dice, vehicles, length, !drawn.sleeps));
    }
    let laptop = sleeps(dice.split(), Arc::clone(&line), length, drawn.sleeps);
    tokio::join!(futures_util::future::join_all(alive), laptop);

    if world.now().promises.broken().is_none() {
        end(&mut dice, &project, vehicles).await;
    }
    let world = world.now();
    Outcome {
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
}

/// The laptop sleeps now and then, with everything that runs on it.
async fn sleeps(mut dice: Dice, line: Arc<TimeLine>, length: Duration, does: bool) {
    if !does {
        return;
    }
    for _ in 0..dice.between(1, 4) {
        let part = u64::try_from(length.as_millis()).unwrap() / 4;
        tokio::time::sleep(dice.time(1_000, part.max(2_000))).await;
        line.sleep_laptop(dice.time(60_000, 9 * 3_600_000));
    }
}

/// A session after another, each until it is done or killed.
async fn lives(
    number: usize,
    project: Project,
    mut dice: Dice,
    vehicles: usize,
    length: Duration,
    may_die: bool,
) {
    tokio::time::sleep(Duration::from_millis(dice.between(0, 60_000))).await;
    let began = tokio::time::Instant::now();
    for _ in 0..dice.between(1, 3) {
        if began.elapsed() > length || project.world.now().promises.broken().is_some() {
            return;
        }
        let polls = if may_die && dice.percent(50) {
            u32::try_from(dice.between(1, 300)).unwrap()
        } else {
            u32::MAX
        };
        let inner = Box::pin(asks(number, &project, dice.split(), vehicles));
        if (Killed { inner, polls }).await.is_none() {
            project.world.now().say(|| format!("s{number} IS KILLED"));
        }
        tokio::time::sleep(dice.time(500, 30 * 60_000)).await;
    }
}

async fn asks(number: usize, project: &Project, mut dice: Dice, vehicles: usize) {
    let mut session = Session::new(number, project);
    // Half of them want a pod first, since everything else needs one.
    if dice.percent(50) {
        let vehicle = project.config.vehicles[0].name.0.clone();
        session.ensure(&vehicle, Duration::from_secs(dice.pick(&[5, 45, 300])), false).await;
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
            78..84 => session.supervise(&vehicle, &mut dice).await,
            84..98 => {
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

/// The faults are over. Either somebody does what podtether says until it says "off", or nobody does
/// anything and what bills is named in the journal.
async fn end(dice: &mut Dice, project: &Project, vehicles: usize) {
    {
        let mut world = project.world.now();
        world.faults_cease();
        world.say(|| "          no fault any more".to_owned());
    }
    match dice.between(0, 2) {
        0 => {
            // Whoever has no journal looks when everything that was under way has come.
            tokio::time::sleep(Duration::from_secs(180)).await;
            let session = Session::new(9, project);
            told_off(project, async || session.stop_all().await).await;
        }
        1 => {
            let session = Session::new(9, project);
            for vehicle in &project.config.vehicles[..vehicles] {
                told_off(project, async || session.stop(&vehicle.name.0).await).await;
            }
        }
        _ => return named(project).await,
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
    let mut world = project.world.now();
    let now = world.truth();
    if let Some(id) =
        world.pods.iter().find(|pod| pod.is_ours && pod.bills_at(now)).map(|pod| pod.id.clone())
    {
        world.promises.break_one(format!("everything was said to be off, and {id} bills"));
    }
}

/// Asks until the answer is "off": once faults are over, that is a matter of minutes.
async fn told_off(project: &Project, ask: impl AsyncFn() -> bool) {
    for _ in 0..8 {
        if ask().await {
            return;
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
    project
        .world
        .now()
        .promises
        .break_one("no stop is confirmed although nothing is wrong any more");
}

/// Everything of ours that bills stands in the journal, by its id or as an open intent of its vehicle.
async fn named(project: &Project) {
    tokio::time::sleep(Duration::from_secs(120)).await;
    let book = project.ledger().book();
    let mut world = project.world.now();
    let now = world.truth();
    let billing: Vec<_> = world
        .pods
        .iter()
        .filter(|pod| pod.is_ours && pod.bills_at(now))
        .map(|pod| (pod.id.clone(), pod.name.clone()))
        .collect();
    let book = match book {
        Ok(book) => book,
        Err(error) => return world.promises.break_one(format!("the journal is lost: {error}")),
    };
    if book.set_aside().is_some() {
        world.promises.break_one("the journal was set aside");
    }
    for (id, name) in billing {
        let vehicle = project.config.vehicles.iter().find(|one| one.pod_name == name);
        let vehicle = vehicle.map_or("", |one| one.name.0.as_str());
        let is_open = book.open_intents().iter().any(|intent| intent.vehicle == vehicle);
        if !book.known_pods().contains(&id) && !is_open {
            world.promises.break_one(format!("{id} bills and no line of the journal names it"));
        }
    }
}
