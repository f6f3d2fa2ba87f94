//! What must never happen, checked against what is truly so: at every change that is sent, at every
//! pod that comes to be, at every launch and at every answer that says "off".

use super::pods::SimPod;
use super::world::World;
use chrono::{DateTime, TimeDelta, Utc};
use podtether::domain::{JobEnd, PodId, Price, Usd, UsdPerHour};
use podtether::plan::{Change, NewPod};
use std::time::Duration;

/// A fuse was called off since the vehicle was read off the bill. Whoever arms one or calls one off has the
/// turn, so whatever another session starts has a fuse of its own; of a pod that somebody else made under
/// the name nobody can know before a list shows it.
pub fn a_fuse_was_called_off(world: &mut World, pod_name: &str) {
    let now = world.truth();
    let before = now - TimeDelta::minutes(5);
    let bills = |pod: &&SimPod| match pod.is_ours {
        true => pod.bills_at(now),
        false => pod.bills_throughout(before, now),
    };
    let found = world.pods.iter().filter(|pod| pod.name == pod_name).find(bills);
    if let Some(id) = found.map(|pod| pod.id.clone()) {
        let broken =
            format!("the laptop's fuse was called off since {pod_name:?} is off, and {id} bills");
        world.promises.break_one(broken);
    }
}

/// What a session is asking podtether for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Nothing yet.
    Idle,
    /// A look or a dry run: it may change nothing.
    Look,
    /// A watch: it may change nothing, and runs nothing on a pod but looks.
    Watch,
    /// ensure_pod: the only one that may start a pod.
    Ensure,
    /// run_job.
    Launch { is_forced: bool },
    /// A supervised run, which launches and stops.
    Supervise,
    /// A run that is taken up again, which launches nothing.
    Resume,
    /// stop_pod or `podtether stop`.
    Stop,
    /// Nobody: the laptop's fuse.
    Fuse,
}

/// What a session is doing, and what it was told before.
#[derive(Clone, Debug)]
pub struct Doing {
    pub op: Op,
    pub price_shown: Price,
}

/// How long a create or start is counted beyond the boot: `fuse.auto_arm_hours` of the config.
pub const UNWATCHED: Duration = Duration::from_secs(3 * 3600);
/// `boot_max_sec`.
pub const BOOT_MAX: Duration = Duration::from_secs(900);
/// From the look at the bill to the change that follows it, retries included.
const LOOK_TO_ACT: Duration = Duration::from_secs(300);

/// An answer that said that nothing of a vehicle bills.
#[derive(Clone, Debug)]
struct Off {
    pod_name: String,
    asked: DateTime<Utc>,
    said: DateTime<Utc>,
    who: String,
}

/// The promises of one campaign.
#[derive(Clone, Debug, Default)]
pub struct Promises {
    broken: Option<String>,
    /// The budget, where the campaign has one that can be checked.
    pub budget: Option<Usd>,
    /// The ceiling on the price.
    pub max_rate: Option<UsdPerHour>,
    creates: Vec<(String, DateTime<Utc>)>,
    offs: Vec<Off>,
}

impl Promises {
    /// Promises of a campaign with these limits.
    pub fn new(budget: Option<Usd>, max_rate: Option<UsdPerHour>) -> Self {
        Self { budget, max_rate, ..Self::default() }
    }

    /// The first promise that was broken.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Breaks one.
    pub fn break_one(&mut self, what: impl Into<String>) {
        self.broken.get_or_insert(what.into());
    }

    /// B01, B02, B05: one vehicle, one pod; and nobody was told before that there is none.
    pub fn a_pod_was_made(
        &mut self,
        name: &str,
        id: &PodId,
        nonce: Option<&String>,
        others: &[PodId],
        at: DateTime<Utc>,
    ) {
        if !others.is_empty() {
            self.break_one(format!("a second pod of {name:?} was made, {id} beside {others:?}"));
        }
        let sent = self.creates.iter().find(|(of, _)| Some(of) == nonce).map(|(_, sent)| *sent);
        let Some(sent) = sent else {
            return self.break_one(format!("{id} carries a marker that nobody sent"));
        };
        let too_early = |off: &&Off| off.pod_name == name && off.asked > sent && off.said < at;
        if let Some(off) = self.offs.iter().find(too_early) {
            let (who, said) = (&off.who, off.said);
            self.break_one(format!(
                "{who} was told at {said} that nothing of {name:?} bills, and {id}, asked for at {sent}, appeared at {at}"
            ));
        }
    }
}

/// A change leaves the laptop.
pub fn a_change_is_sent(world: &mut World, doing: &Doing, change: &Change) {
    let now = world.truth();
    let op = doing.op;
    let starts = matches!(change, Change::CreatePod(_) | Change::StartPod(_));
    if let Change::TerminatePod(id) = change {
        world.promises.break_one(format!("{id} is terminated"));
    }
    if matches!(op, Op::Look | Op::Watch) {
        world.promises.break_one(format!("a look, a watch or a dry run sent {change:?}"));
    }
    // A22: nothing starts a pod but the wish for one.
    if starts && op != Op::Ensure {
        world.promises.break_one(format!("{op:?} sent {change:?}"));
    }
    if let Change::StartPod(id) | Change::StopPod(id) = change {
        let is_foreign = |pod: &&SimPod| pod.id == *id && pod.name == super::world::STRANGER;
        if world.pods.iter().any(|pod| is_foreign(&pod)) {
            world.promises.break_one(format!("a stranger's pod, {id}, is changed"));
        }
    }
    if let (Op::Fuse, Change::StopPod(id)) = (op, change) {
        the_fuse_fires(world, id);
    }
    if let Change::CreatePod(pod) = change {
        let nonce = pod.env.get(NewPod::NONCE_ENV).cloned().unwrap_or_default();
        world.promises.creates.push((nonce, now));
    }
    if starts {
        match (doing.price_shown, world.promises.max_rate) {
            (Price::Unknown, _) => {
                world.promises.break_one(format!("{change:?} at an unknown price"));
            }
            (Price::Known(rate), Some(max)) if rate > max => {
                world.promises.break_one(format!("{change:?} at {rate}, above {max}"));
            }
            _ => {}
        }
        let of = match change {
            Change::StartPod(id) => Some(id.clone()),
            _ => None,
        };
        spend(world, of.as_ref(), BOOT_MAX + UNWATCHED, "a start");
    }
}

/// Every launch has the laptop's fuse cover its job. Not checked where the laptop slept between the two.
fn the_fuse_fires(world: &mut World, pod: &PodId) {
    let now = world.truth();
    let lives = |job: &&super::pods::SimJob| job.pod == *pod && world.job_end(job) > now;
    let live = world.jobs.iter().find(lives).map(|job| job.dir.clone());
    if let Some(dir) = live.filter(|_| world.is_awake && !world.was_set_forward) {
        world.promises.break_one(format!("the laptop's fuse stops {pod} under {dir}"));
    }
}

/// C07: whoever follows a job has told the watchdog so. Not checked where a link was bad or the laptop slept.
pub fn a_job_is_followed(world: &mut World, pod: &PodId, op: Op) {
    let now = world.truth();
    let found = world.pods.iter().find(|one| one.id == *pod).and_then(|pod| pod.run_at(now));
    let dog = found.and_then(|(_, run)| run.watchdog.as_ref());
    let is_told = dog.is_none_or(|dog| dog.is_leased(now));
    if !is_told && world.is_awake && world.has_good_link && op != Op::Idle {
        world.promises.break_one(format!("{op:?} follows a job on {pod} and holds no lease"));
    }
}

/// A script is run on a pod.
pub fn a_script_is_run(world: &mut World, pod: &PodId, op: Op, name: &str, args: &[&str]) {
    let is_look = name == podtether::domain::scripts::POD_LOOK.name && args.get(4) == Some(&"read");
    if op == Op::Watch && !is_look {
        world.promises.break_one(format!("a watch runs {name} on {pod}"));
    }
}

/// A job is launched on a pod.
pub fn a_launch(world: &mut World, pod: &PodId, ceiling: Duration, auto_stop: bool, op: Op) {
    if !matches!(op, Op::Launch { .. } | Op::Supervise) {
        world.promises.break_one(format!("{op:?} launched a job on {pod}"));
    }
    let after = match (op, auto_stop) {
        (_, true) => JobEnd::AUTO_STOP_MAX,
        (Op::Supervise, _) => Duration::ZERO,
        // A proven fuse bounds it by less: what that may be is held against how long the pod ran.
        (_, false) => Duration::ZERO,
    };
    spend(world, Some(pod), ceiling + Duration::from_secs(60) + after, "a launch");
    let now = world.truth();
    let lives = |job: &&super::pods::SimJob| job.pod == *pod && world.job_end(job) > now;
    let live = world.jobs.iter().find(lives).map(|job| job.dir.clone());
    if let Some(dir) = live.filter(|_| op != (Op::Launch { is_forced: true })) {
        world.promises.break_one(format!("a job was launched on {pod} beside {dir}, unforced"));
    }
}

/// What is spent and what may run up stays within the budget when one more is let through.
fn spend(world: &mut World, pod: Option<&PodId>, time: Duration, what: &str) {
    let now = world.truth();
    let until = now + TimeDelta::from_std(time).unwrap();
    let rate = pod
        .and_then(|id| world.pods.iter().find(|pod| pod.id == *id))
        .map_or_else(|| world.price(), |pod| pod.rate);
    if let Some(budget) = world.promises.budget {
        let others = world.promised(pod);
        let total = world.spent() + others + rate.cost_of(time.saturating_sub(LOOK_TO_ACT));
        if total > budget {
            let spent = world.spent();
            world.promises.break_one(format!(
                "{what} with a worst case of {} s at {rate} is let through with {spent} spent and {others} promised, against a budget of {budget}",
                time.as_secs()
            ));
        }
    }
    if let Some(pod) = world.pods.iter_mut().find(|one| Some(&one.id) == pod) {
        pod.promised_until = pod.promised_until.max(until);
    }
}

/// A01, A02, A04, A05: an answer said that nothing of the vehicle bills. It is true when every pod of
/// ours was off at some moment between question and answer.
pub fn off_was_said(world: &mut World, pod_name: &str, asked: DateTime<Utc>, who: &str) {
    let said = world.truth();
    let bills =
        |pod: &&SimPod| pod.name == pod_name && pod.is_ours && pod.bills_throughout(asked, said);
    if let Some(id) = world.pods.iter().find(bills).map(|pod| pod.id.clone()) {
        world
            .promises
            .break_one(format!("{who} was told that {pod_name:?} is off, and {id} bills"));
    }
    let (pod_name, who) = (pod_name.to_owned(), who.to_owned());
    world.promises.offs.push(Off { pod_name, asked, said, who });
}
