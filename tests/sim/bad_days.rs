//! The laptop's bad days: sleep, a network that comes back late, and no power.

use super::dice::Dice;
use super::faults::{Fault, State, What};
use super::laptop::Laptop;
use super::session::Project;
use super::world::{Shared, World, after};
use chrono::TimeDelta;
use std::time::Duration;

/// The laptop sleeps now and then, with everything that runs on it, and its network comes back a while
/// after it does.
pub async fn sleeps(mut dice: Dice, world: Shared, length: Duration, does: bool) {
    if !does {
        return;
    }
    for _ in 0..dice.between(1, 4) {
        let part = u64::try_from(length.as_millis()).unwrap() / 4;
        tokio::time::sleep(dice.time(1_000, part.max(2_000))).await;
        let time = dice.time(60_000, 9 * 3_600_000);
        let mut world = world.now();
        let from = world.truth();
        world.is_awake = false;
        world.line.sleep_laptop(time);
        let (wakes, until) = (world.line.since_start(), world.truth());
        world.say(|| format!("          the laptop slept for {} s", time.as_secs()));
        let deaf = Duration::from_secs(dice.pick(&[0, 0, 20, 90]));
        let what = What::State(State::Offline);
        world.faults.push(Fault { what, from: wakes, until: wakes + deaf, left: u32::MAX });
        world.bounds.held_up(from, after(until, deaf));
        world.deaf.push((from, after(until, deaf)));
    }
}

/// The laptop's wall clock is set, back or forward, and perhaps right again; its other clocks are not.
pub async fn is_set(mut dice: Dice, project: Project, length: Duration) {
    let length = u64::try_from(length.as_millis()).unwrap();
    for _ in 0..dice.between(1, 3) {
        tokio::time::sleep(dice.time(1_000, length)).await;
        let by = dice.pick(&[-7_200, -3_600, -900, -90, -20, -2, 30, 240, 1_800, 10_800]);
        sets(&project, by);
        if dice.percent(40) {
            tokio::time::sleep(dice.time(1_000, 3_600_000)).await;
            sets(&project, -by);
        }
    }
}

fn sets(project: &Project, by: i64) {
    let delta = chrono::TimeDelta::seconds(by);
    project.clock.set(delta);
    let mut world = project.world.now();
    world.laptop_ahead += delta;
    world.was_set_forward |= by > 0;
    world.was_set_back += Duration::from_secs((-by).max(0).unsigned_abs());
    world.say(|| format!("          the clock is set by {by} s"));
}

/// A volume hangs for a while, or for good.
pub fn volume_hangs(dice: &mut Dice, world: &mut World, length: Duration) {
    let length = u64::try_from(length.as_millis()).unwrap();
    for _ in 0..dice.between(1, 2) {
        let from = Duration::from_millis(dice.between(0, length));
        let for_good = Duration::from_secs(30 * 86_400);
        let lasts = if dice.percent(25) { for_good } else { dice.time(10_000, 4 * 3_600_000) };
        let (what, until) = (What::State(State::VolumeHangs), from + lasts);
        world.faults.push(Fault { what, from, until, left: u32::MAX });
        // What is shorter than a stall is no reason to say that contact is lost.
        if lasts >= Duration::from_secs(400) {
            let began = world.truth() - TimeDelta::from_std(world.line.since_start()).unwrap();
            world.deaf.push((after(began, from), after(began, until)));
        }
    }
}

/// The laptop loses power, and is switched on again after a while.
pub async fn dies(mut dice: Dice, laptop: Laptop, length: Duration) {
    if !dice.percent(12) {
        return;
    }
    let length = u64::try_from(length.as_millis()).unwrap();
    tokio::time::sleep(dice.time(10_000, length)).await;
    laptop.dies();
    tokio::time::sleep(dice.time(60_000, 6 * 3_600_000)).await;
    laptop.boots();
}
