//! The laptop's bad days: sleep, a network that comes back late, and no power.

use super::dice::Dice;
use super::faults::{Fault, State, What};
use super::laptop::Laptop;
use super::world::{Shared, after};
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
