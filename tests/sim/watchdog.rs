//! The pod's watchdog: a model of the rules of `remote/idle_watchdog.sh`, of what arms it and what it
//! tells. It sees jobs, its deadline, the lease, whoever arms it, and on some pods somebody at a terminal.

use super::faults::{Kind, On};
use super::world::{Effect, World, after};
use chrono::{DateTime, TimeDelta, Utc};
use podtether::domain::PodId;
use std::fmt::Write as _;
use std::time::Duration;

/// A watchdog of one boot of a pod. Times are true; the pod's clock does not lie here.
#[derive(Clone, Debug)]
pub struct SimWatchdog {
    idle: TimeDelta,
    tick: Duration,
    /// Set when armed, never brought nearer.
    deadline: DateTime<Utc>,
    lease: Option<DateTime<Utc>>,
    used: DateTime<Utc>,
    last_live: Option<DateTime<Utc>>,
    armed: DateTime<Utc>,
    looked: DateTime<Utc>,
    probed: DateTime<Utc>,
    ticks: u64,
    stops: u64,
    /// What a stop of no pod was answered with when it was armed.
    write: u16,
}

/// After the last lease ran out the pod is idle for no longer.
const AFTER_LEASE: TimeDelta = TimeDelta::seconds(600);
/// After a job, for whoever pulls its results; and while somebody holds a lease.
const GRACE: TimeDelta = TimeDelta::seconds(900);
const GRACE_WITH_LEASE: TimeDelta = TimeDelta::seconds(4_500);

impl SimWatchdog {
    /// Whether somebody holds a lease, or has had no time yet to take one.
    pub fn is_leased(&self, now: DateTime<Utc>) -> bool {
        let is_new = now - self.armed < TimeDelta::seconds(300);
        is_new || self.lease.is_some_and(|until| until > now)
    }
}

fn seconds(text: &str) -> Option<i64> {
    text.parse().ok().filter(|seconds| *seconds > 0)
}

/// `arm_watchdog.sh`: what it prints, or `None` for arguments that make no sense.
pub fn arm(world: &mut World, pod: &PodId, run: usize, args: &[&str]) -> Option<String> {
    let [_, _, idle, tick, limit, _] = args else { return None };
    let (idle, tick, limit) = (seconds(idle)?, seconds(tick)?, seconds(limit)?);
    let now = world.truth();
    let write = match world.call_fault(On::Stop) {
        Some(Kind::Auth) => 401,
        Some(Kind::Forbidden) => 403,
        Some(Kind::Error | Kind::Html | Kind::Slow(_) | Kind::LostRequest) => 0,
        _ => 404,
    };
    let until = now + TimeDelta::seconds(limit);
    let tick = Duration::from_secs(tick.unsigned_abs());
    let own = world.pods.iter_mut().find(|one| one.id == *pod)?.runs.get_mut(run)?;
    let is_new = own.watchdog.is_none();
    let dog = own.watchdog.get_or_insert(SimWatchdog {
        idle: TimeDelta::seconds(idle),
        tick,
        deadline: until,
        lease: None,
        used: now,
        last_live: None,
        armed: now,
        looked: now,
        probed: now,
        ticks: 0,
        stops: 0,
        write,
    });
    dog.deadline = dog.deadline.max(until);
    (dog.used, dog.probed, dog.write) = (now, now, write);
    if is_new {
        world.schedule(now, Effect::Watch(pod.clone(), run));
    }
    Some(format!("{}end=arm_watchdog.sh\n", report(world, pod, run)))
}

/// `renew_lease.sh`.
pub fn lease(world: &mut World, pod: &PodId, run: usize, args: &[&str]) -> Option<String> {
    let [lasts] = args else { return None };
    let (now, lasts): (_, i64) = (world.truth(), lasts.parse().ok()?);
    let own = world.pods.iter_mut().find(|one| one.id == *pod)?.runs.get_mut(run)?;
    if let Some(dog) = &mut own.watchdog {
        dog.lease = (lasts > 0).then(|| now + TimeDelta::seconds(lasts));
    }
    Some(format!("{}end=renew_lease.sh\n", report(world, pod, run)))
}

/// An answer told by when it surely stops its pod. Where something that is no job keeps the pod in use, that
/// is at the deadline, which waits for the job that lives, and a while for its results.
pub fn was_told(world: &mut World, pod: &PodId, run: usize, within_sec: u64) {
    let now = world.truth();
    let found = world.pods.iter().find(|one| one.id == *pod).and_then(|pod| pod.runs.get(run));
    let Some(dog) = found.and_then(|run| run.watchdog.as_ref()) else { return };
    let of_run = |job: &&super::pods::SimJob| job.pod == *pod && job.run == run && job.from <= now;
    let ends = world.jobs.iter().filter(of_run).map(|job| world.job_end(job));
    let last = ends.filter(|end| *end > now).max();
    let latest = last.map_or(dog.deadline, |end| dog.deadline.max(end + GRACE));
    if after(now, Duration::from_secs(within_sec)) < latest {
        world.promises.break_one(format!(
            "the watchdog of {pod} was said to stop it within {within_sec} s, and waits until {latest}"
        ));
    }
}

/// The `watchdog…` lines of every answer.
pub fn report(world: &World, pod: &PodId, run: usize) -> String {
    let now = world.truth();
    let found = world.pods.iter().find(|one| one.id == *pod);
    let Some(dog) = found.and_then(|pod| pod.runs.get(run)).and_then(|run| run.watchdog.as_ref())
    else {
        return "watchdog=none\n".to_owned();
    };
    let left = |at: DateTime<Utc>| (at - now).num_seconds();
    let fired = if found.is_some_and(|pod| pod.was_stopped_by_its_own) { "yes" } else { "no" };
    let quiet = (now - dog.used).num_seconds();
    let mut text = format!(
        "watchdog=alive\nwatchdog_idle_s={}\nwatchdog_tick_s={}\nwatchdog_curl=yes\nwatchdog_runpodctl=yes\nwatchdog_code=0\nwatchdog_read=200\nwatchdog_write={:03}\nwatchdog_fired={fired}\nwatchdog_ticks={}\nwatchdog_quiet_s={quiet}\nwatchdog_stops={}\nwatchdog_volume=yes\nwatchdog_decision=stay\n",
        dog.idle.num_seconds(),
        dog.tick.as_secs(),
        dog.write,
        dog.ticks,
        dog.stops,
    );
    let _ = writeln!(text, "watchdog_deadline_in_s={}", left(dog.deadline));
    let lease = dog.lease.map(|at| left(at).to_string()).unwrap_or_default();
    let _ = writeln!(text, "watchdog_lease_in_s={lease}");
    let _ = writeln!(text, "watchdog_probed_in_s={}", left(dog.probed));
    let _ = writeln!(text, "watchdog_age_s={}", (now - dog.looked).num_seconds());
    text
}

/// One look, and what follows from it. The next one is on its way when this returns.
pub fn tick(world: &mut World, pod: &PodId, run: usize, at: DateTime<Utc>) {
    let lives = |job: &&super::pods::SimJob| {
        job.pod == *pod && job.run == run && job.from <= at && world.job_end(job) > at
    };
    let is_live = world.jobs.iter().any(|job| lives(&job));
    let Some(index) = world.pods.iter().position(|one| one.id == *pod) else { return };
    let Some(own) = world.pods[index].runs.get_mut(run) else { return };
    if own.ends.is_some_and(|end| end <= at) {
        return;
    }
    let is_in_use = own.is_in_use;
    let Some(dog) = &mut own.watchdog else { return };
    (dog.ticks, dog.looked) = (dog.ticks + 1, at);
    if is_live {
        dog.last_live = Some(at);
    }
    if is_live || is_in_use {
        dog.used = at;
    }
    let is_leased = dog.lease.is_some_and(|until| until > at);
    let has_left = dog.lease.is_some() && !is_leased;
    let window = if has_left { dog.idle.min(AFTER_LEASE) } else { dog.idle };
    let grace = if is_leased { GRACE_WITH_LEASE } else { GRACE };
    let deadline = dog.last_live.map_or(dog.deadline, |live| dog.deadline.max(live + grace));
    let fires = at >= deadline || at - dog.used >= window;
    dog.stops += u64::from(fires);
    let (stops, pause) = (dog.stops, dog.tick);
    if fires {
        world.say(|| format!("          the watchdog of {pod} stops it"));
        fire(world, pod, at);
    }
    let pause = if stops > 0 { pause.min(Duration::from_secs(60)) } else { pause };
    world.schedule(after(at, pause), Effect::Watch(pod.clone(), run));
}

/// `stop_pod.sh`, four tries: the pod has a network of its own, and the provider's troubles are its too.
fn fire(world: &mut World, pod: &PodId, at: DateTime<Utc>) {
    for _ in 0..4 {
        let met = match world.call_fault(On::Stop) {
            Some(
                Kind::Error
                | Kind::Html
                | Kind::Edge1010
                | Kind::Auth
                | Kind::Forbidden
                | Kind::Retired
                | Kind::Limited(_)
                | Kind::NotFound
                | Kind::NoEffect,
            ) => continue,
            Some(Kind::LateEffect(seconds)) => {
                let at = after(at, Duration::from_secs(seconds));
                return world.schedule(at, Effect::Stop(pod.clone()));
            }
            _ => world.stop(pod, at),
        };
        if met.is_ok() {
            if let Some(pod) = world.pods.iter_mut().find(|one| one.id == *pod) {
                pod.was_stopped_by_its_own = true;
            }
            return;
        }
    }
}
