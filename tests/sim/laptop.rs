//! The laptop of a campaign, with the fuses that burn on it: it may be switched off and come back, and
//! a fuse outlives the session that armed it but not the laptop.

use super::promises::{Doing, Op, a_fuse_was_called_off, off_was_said};
use super::provider::SimCloud;
use super::time::LaptopClock;
use super::world::Shared;
use async_trait::async_trait;
use podtether::clock::SharedClock;
use podtether::deadman::state::Outcome;
use podtether::deadman::{self, ArmError, Order, Pace, Starts};
use podtether::domain::Price;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;

/// Fewer looks than a real fuse makes, all within its rule of 30 s: virtual time is paid by the look.
const PACE: Pace = Pace { poll: Duration::from_secs(10), beat: Duration::from_secs(60) };
/// The number of a fuse in what is told, beside those of sessions.
const FUSE: usize = 7;

/// A laptop.
#[derive(Clone)]
pub struct Laptop {
    world: Shared,
    clock: Arc<LaptopClock>,
    /// How often it was switched off, and whether it is on.
    power: watch::Sender<(u32, bool)>,
    fuses: Arc<Mutex<Vec<AbortHandle>>>,
}

impl fmt::Debug for Laptop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the simulated laptop")
    }
}

impl Laptop {
    /// One that is on.
    pub fn new(world: Shared, clock: Arc<LaptopClock>) -> Self {
        let (power, _) = watch::channel((0, true));
        Self { world, clock, power, fuses: Arc::default() }
    }

    /// Power is lost: everything on it is gone, without a word.
    pub fn dies(&self) {
        self.power.send_modify(|(times, is_on)| (*times, *is_on) = (*times + 1, false));
        for fuse in self.fuses.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            fuse.abort();
        }
        let mut world = self.world.now();
        world.bounds.laptop_died();
        world.say(|| "          THE LAPTOP DIES".to_owned());
    }

    /// It is switched on again.
    pub fn boots(&self) {
        if !self.power.borrow().1 {
            self.clock.boots();
            self.power.send_modify(|(_, is_on)| *is_on = true);
            self.world.now().say(|| "          the laptop is on again".to_owned());
        }
    }

    /// Returns when it is switched off, from now on.
    pub async fn death(&self) {
        let mut power = self.power.subscribe();
        let before = power.borrow().0;
        if power.wait_for(|(times, _)| *times > before).await.is_err() {
            std::future::pending().await
        }
    }

    /// Returns when it is on.
    pub async fn is_on(&self) {
        let _ = self.power.subscribe().wait_for(|(_, is_on)| *is_on).await;
    }

    async fn burns(self, order: Order, reply: oneshot::Sender<String>) {
        let price_shown = Price::Unknown;
        let doing = Arc::new(Mutex::new(Doing { op: Op::Fuse, price_shown }));
        let cloud = SimCloud { world: self.world.clone(), session: FUSE, doing };
        let clock: SharedClock = Arc::clone(&self.clock) as SharedClock;
        let (line, fuse) = deadman::fuse_over(order, Arc::new(cloud), clock).await;
        let _ = reply.send(line);
        let Some(fuse) = fuse else { return };
        let record = fuse.record().clone();
        let folder = self.world.now().folder_of(&record.vehicle);
        let vehicle = record.vehicle.clone();
        self.world.now().say(|| format!("s{FUSE} the fuse of {vehicle} burns"));
        let tell = |news: &deadman::News| {
            self.world.now().say(|| format!("s{FUSE} {:?}", news.kind));
        };
        let code = fuse.burn(PACE, &tell).await;
        let now = self.world.now().truth();
        let Some(last) = deadman::status(&vehicle, &folder, now).last else {
            return self.world.now().promises.break_one("a fuse ended without a summary");
        };
        let mut world = self.world.now();
        let (may, outcome) = (last.pod_may_still_be_running, last.outcome);
        world.say(|| format!("s{FUSE} the fuse of {vehicle} ends: {outcome:?}, {code}"));
        if outcome == Outcome::Cancelled && !may {
            a_fuse_was_called_off(&mut world, &record.pod_name);
        }
        let is_ended_by_itself = outcome != Outcome::Cancelled;
        if may && is_ended_by_itself {
            world.bounds.gave_up(&record.pod_name);
        }
        if may && is_ended_by_itself && code == 0 {
            world.promises.break_one("a fuse ends with 0 and the pod may run");
        }
        if outcome == Outcome::Stopped {
            // What it says was read in its last cycle.
            let ago = world.truth() - chrono::TimeDelta::minutes(5);
            off_was_said(&mut world, &record.pod_name, ago, "the laptop's fuse");
        }
    }
}

#[async_trait]
impl Starts for Laptop {
    async fn start(&self, order: Order, _: &Path) -> Result<String, ArmError> {
        let (reply, line) = oneshot::channel();
        let task = tokio::spawn(self.clone().burns(order, reply)).abort_handle();
        self.fuses.lock().unwrap_or_else(PoisonError::into_inner).push(task);
        line.await.map_err(|_| ArmError::Failed("the process is gone".to_owned()))
    }
}
