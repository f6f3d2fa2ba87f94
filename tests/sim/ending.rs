//! The end of a campaign: everything of ours is off, or named, or off by itself within what was said.

use super::bad_days::sleeps;
use super::dice::Dice;
use super::faults::{Fault, Kind, On, What};
use super::session::{Project, Session};
use super::world::after;
use chrono::TimeDelta;
use podtether::clock::Clock as _;
use podtether::domain::Usd;
use std::time::Duration;

/// Longer than any fuse of a campaign: three hours, or a job of five and what waits for it.
const LONG: Duration = Duration::from_secs(12 * 3600);

/// The faults are over. Either somebody does what podtether says until it says "off", or nobody does
/// anything and what bills is named in the journal.
pub async fn end(dice: &mut Dice, project: &Project, vehicles: usize) {
    {
        let mut world = project.world.now();
        world.faults_cease();
        world.say(|| "          no fault any more".to_owned());
    }
    match dice.between(0, 3) {
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
        2 => return left_alone(dice, project, vehicles).await,
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

/// Somebody looks once more and goes; nobody comes back. The laptop may sleep or be switched off.
async fn left_alone(dice: &mut Dice, project: &Project, vehicles: usize) {
    // What a session that was killed has asked the fuse for comes within its next look.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let session = Session::new(9, project);
    for vehicle in &project.config.vehicles[..vehicles] {
        session.pod_status(&vehicle.name.0).await;
    }
    let committed = session.committed().await;
    let before = spent_on_pods(project);
    let is_well = match dice.between(0, 8) {
        0 => {
            project.laptop.dies();
            false
        }
        1 => {
            sleeps(dice.split(), project.world.clone(), Duration::from_secs(7_200), true).await;
            false
        }
        // Somebody looks again when the laptop is back: what is left is on the pod.
        2 => {
            project.laptop.dies();
            tokio::time::sleep(dice.time(1_000, 3_600_000)).await;
            project.laptop.boots();
            let session = Session::new(9, project);
            for vehicle in &project.config.vehicles[..vehicles] {
                session.pod_status(&vehicle.name.0).await;
            }
            false
        }
        3 => {
            stops_fail_when_the_fuse_fires(dice, project);
            false
        }
        _ => true,
    };
    tokio::time::sleep(LONG).await;
    // Nothing goes wrong any more, and each pod has a fuse that can act: then the journal's worst case
    // holds.
    let ran_up = spent_on_pods(project).saturating_sub(before);
    let mut world = project.world.now();
    let now = world.truth();
    let is_bounded =
        world.bounds.are_told_of_all(&world.pods, now - TimeDelta::from_std(LONG).unwrap());
    if let Some(committed) = committed.filter(|_| is_well && is_bounded) {
        world.bounds.was_committed = true;
        if ran_up > committed {
            world.promises.break_one(format!(
                "pods that were left alone with a fuse each cost {ran_up} more, and {committed} was committed"
            ));
        }
    }
}

/// When the laptop's fuse begins to ask, stops are answered and nothing comes of them for a while.
fn stops_fail_when_the_fuse_fires(dice: &mut Dice, project: &Project) {
    let kind = dice.pick(&[Kind::NoEffect, Kind::NoEffect, Kind::NoEffect, Kind::LostRequest]);
    let lasts = dice.time(30_000, 3_600_000);
    for vehicle in &project.config.vehicles {
        let Some(fuse) = podtether::deadman::seen(&vehicle.local_log_dir) else { continue };
        let mut world = project.world.now();
        let left = fuse.fire_at - world.laptop_ahead - world.truth();
        let from = (world.line.since_start() + left.to_std().unwrap_or_default())
            .saturating_sub(Duration::from_secs(60));
        let (what, until) = (What::Call(kind, On::Stop), from + lasts);
        world.faults.push(Fault { what, from, until, left: u32::MAX });
        let from = world.truth() + left - TimeDelta::seconds(60);
        world.bounds.held_up(from, after(from, lasts));
    }
}

fn spent_on_pods(project: &Project) -> Usd {
    let world = project.world.now();
    let now = world.truth();
    world.pods.iter().filter(|pod| pod.is_ours).map(|pod| pod.cost_until(now)).sum()
}

/// Asks until the answer is "off": once faults are over, that is a matter of minutes. Where the clock was set
/// back and the laptop started anew, a create of before dated ahead of it is not proven absent before that time
/// has come (and may bill until then).
async fn told_off(project: &Project, ask: impl AsyncFn() -> bool) {
    let was_started_anew = project.clock.boot().is_some_and(|boot| boot != "0");
    let set_back = project.world.now().was_set_back;
    if was_started_anew && !set_back.is_zero() && !ask().await {
        tokio::time::sleep(set_back).await;
    }
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
