//! Watches beside whatever else goes on: of the newest live job or of a named one, killed and begun again on
//! their own status file, with the laptop asleep or dead, the pod rebooted or gone, the provider lying.
//! What a watch says at its end is held against what is truly so.

use super::dice::Dice;
use super::faults::{Fault, State, What};
use super::logs::Kind;
use super::pods::SimJob;
use super::promises::Op;
use super::session::{Killed, Project, Session};
use super::world::{Effect, World};
use chrono::{DateTime, TimeDelta, Utc};
use podtether::error::FailureKind;
use podtether::ops::{LogForm, WatchNote, WatchRequest, WatchStatus};
use podtether::watch::{PlateauRule, Verdict};
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest that a watch may go on: a job's longest ceiling, and the longest fuse after it.
const LONGEST: Duration = Duration::from_secs(14 * 3600);
const GRACE: Duration = Duration::from_secs(180);
const STALL: Duration = Duration::from_secs(600);
/// What the shell and the provider may keep one look waiting.
const LOOK: Duration = Duration::from_secs(75);

/// What was paged for: the job, what about, and how many pieces its log had.
type Pages = BTreeMap<(String, String), usize>;

/// More of what a watch has to bear: a provider that shows a pod wrongly for long, a pod that boots anew or
/// is deleted.
pub fn makes_it_hard_to_watch(dice: &mut Dice, world: &mut World, length: Duration) {
    let length = u64::try_from(length.as_millis()).unwrap();
    if dice.percent(40) {
        let state = dice.pick(&[
            State::ShownError,
            State::ShownUnknown,
            State::ListLag(30),
            State::NoEnvironment,
            State::ShellDown,
        ]);
        let from = Duration::from_millis(dice.between(0, length));
        let until = from + dice.time(60_000, 3 * 3_600_000);
        world.faults.push(Fault { what: What::State(state), from, until, left: u32::MAX });
    }
    for (chance, effect) in [(20, Effect::Reboot), (10, Effect::Deleted)] {
        if dice.percent(chance) {
            let at = world.truth() + TimeDelta::from_std(dice.time(60_000, length)).unwrap();
            world.schedule(at, effect);
        }
    }
}

/// Somebody who watches now and then, each time until it is over, or killed and begun again.
pub async fn watches(number: usize, project: Project, mut dice: Dice, length: Duration) {
    let length = u64::try_from(length.as_millis()).unwrap();
    let mut pages = Pages::new();
    for _ in 0..dice.between(1, 2) {
        tokio::time::sleep(dice.time(60_000, length)).await;
        if dice.percent(85) {
            a_job_lives(&project, length).await;
        }
        let vehicle = project.config.vehicles[0].name.0.clone();
        let named = dice.percent(50).then(|| any_job(&project, &vehicle)).flatten();
        let interval = Duration::from_secs(dice.pick(&[30, 60, 300]));
        let request = WatchRequest {
            vehicle: Some(vehicle.clone()),
            job_id: named,
            interval,
            startup_grace: GRACE,
            stall: STALL,
            plateau: PlateauRule::default(),
            form: LogForm::default(),
            status_path: (number % 2 == 1)
                .then(|| project.world.now().folder_of(&vehicle).join(format!("s{number}.json"))),
        };
        for life in 0..4 {
            if project.world.now().promises.broken().is_some() {
                return;
            }
            project.laptop.is_on().await;
            let is_killed = dice.percent(if life == 0 { 50 } else { 30 });
            let polls = dice.time(3, 3_000).as_millis();
            let polls = if is_killed { u32::try_from(polls).unwrap() } else { u32::MAX };
            let mut seen = Seen::new(&project, request.job_id.clone(), life > 0);
            let session = Session::new(number, &project);
            let inner = Box::pin(session.watch(&request, &mut seen, &mut pages));
            let ended = tokio::select! {
                biased;
                () = project.laptop.death() => None,
                ended = (Killed { inner, polls }) => ended,
            };
            match ended {
                // Nobody looks again after a job that has ended.
                Some(code) if !matches!(code, Some(3..)) => break,
                Some(_) => {}
                None => project.world.now().say(|| format!("s{number} THE WATCH IS KILLED")),
            }
            tokio::time::sleep(dice.time(500, 30 * 60_000)).await;
        }
    }
}

/// Returns when a job lives, or when none has for long.
async fn a_job_lives(project: &Project, length: u64) {
    for _ in 0..length / 30_000 {
        {
            let world = project.world.now();
            let now = world.truth();
            if world.jobs.iter().any(|job| world.job_end(job) > now) {
                return;
            }
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
}

/// One of the jobs of this vehicle's pods.
fn any_job(project: &Project, vehicle: &str) -> Option<String> {
    let mut world = project.world.now();
    let name = &project.config.vehicles.iter().find(|one| one.name.0 == vehicle)?.pod_name;
    let of = |job: &&SimJob| world.pods.iter().any(|pod| pod.id == job.pod && pod.name == *name);
    let ids: Vec<String> = world.jobs.iter().filter(of).map(|job| job.id().to_owned()).collect();
    let last = ids.len().checked_sub(1)?;
    let at = world.dice.between(0, last as u64);
    ids.into_iter().nth(usize::try_from(at).unwrap())
}

/// A file of its own knows of one job only.
fn forget(request: &WatchRequest, job: &Option<String>, pages: &mut Pages) {
    if request.status_path.is_some() {
        pages.retain(|(of, _), _| Some(of) == job.as_ref());
    }
}

/// What one watch told.
struct Seen {
    from: DateTime<Utc>,
    /// Whether this watch goes on from an earlier one, which may have told before.
    is_successor: bool,
    job: Option<String>,
}

impl Seen {
    fn new(project: &Project, job: Option<String>, is_successor: bool) -> Self {
        Self { from: project.world.now().truth(), is_successor, job }
    }
}

impl Session {
    /// One watch to its end; its exit code, when it began at all.
    async fn watch(
        &self,
        request: &WatchRequest,
        seen: &mut Seen,
        pages: &mut Pages,
    ) -> Option<u8> {
        let what = request.job_id.as_deref().unwrap_or("the newest job");
        let vehicle = request.vehicle.clone().unwrap_or_default();
        self.begin(Op::Watch, &format!("watch {}", what.split('_').next().unwrap_or_default()));
        if seen.job.is_some() {
            forget(request, &seen.job, pages);
        }
        let mut tell = |note| match note {
            WatchNote::Said(text) => {
                if let Some(job) = text.strip_prefix("watching job ") {
                    seen.job = Some(job.to_owned());
                    forget(request, &seen.job, pages);
                }
                self.say(&text);
            }
            WatchNote::Page(verdict) => self.paged(&verdict, seen, pages),
            WatchNote::Saw(_) | WatchNote::Round(_) | WatchNote::Ended => {}
        };
        let watch = self.tether().watch(request, &mut tell);
        let Ok(watched) = tokio::time::timeout(LONGEST, watch).await else {
            // Begun again over a volume that still hangs it looks on, as long as the pod bills: it was told
            // already that there is no contact.
            if self.project().world.now().hangs_for().is_zero() {
                self.breaks(&format!("a watch took longer than {LONGEST:?}"));
            }
            return None;
        };
        match watched {
            Ok(status) => {
                self.judge_watch(request, &status, seen, &vehicle);
                forget(request, &status.job_id, pages);
                status.process_exit_code
            }
            Err(failure) => {
                self.say(&format!("not watched: {}", failure.message));
                if failure.kind == FailureKind::Internal {
                    self.breaks(&failure.to_string());
                }
                None
            }
        }
    }

    fn breaks(&self, what: &str) {
        let broken = format!("s{}: {what}", self.number);
        self.project().world.now().promises.break_one(broken);
    }

    /// One page for each cause, as long as it lasts: a log that has grown may be silent once more.
    fn paged(&self, verdict: &Verdict, seen: &Seen, pages: &mut Pages) {
        self.say(&format!("PAGE: {verdict}"));
        self.project().world.now().bounds.pages += 1;
        let Some(id) = seen.job.clone() else { return };
        let cause = match verdict {
            Verdict::Failed(finding) => format!("{:?}", finding.cause),
            Verdict::PodOff { .. } => "a pod that is off".to_owned(),
            Verdict::Lost { why } => why.replace(|of: char| of.is_ascii_digit(), ""),
            other => format!("what ends with {}", other.exit_code()),
        };
        let written = {
            let world = self.project().world.now();
            let (now, job) = (world.truth(), world.jobs.iter().find(|job| job.id() == id));
            job.map_or(0, |job| job.log.pieces_by(job.age(world.job_end(job).min(now))))
        };
        let before = pages.insert((id, cause.clone()), written);
        if before == Some(written) {
            self.breaks(&format!("a watch pages twice for {cause}"));
        }
    }

    fn judge_watch(
        &self,
        request: &WatchRequest,
        status: &WatchStatus,
        seen: &Seen,
        vehicle: &str,
    ) {
        let (code, verdict) = (status.process_exit_code, status.verdict.clone());
        let verdict = verdict.unwrap_or_default();
        self.say(&format!("the watch ends with {code:?}: {verdict}"));
        let Some(code) = code else { return self.breaks("a watch ends without an exit code") };
        if request.job_id.is_some() && request.job_id != status.job_id {
            return self.breaks("a watch watched another job than it was told to");
        }
        let broken = {
            let mut world = self.project().world.now();
            world.bounds.watches[usize::from(code)] += 1;
            let job = status.job_id.as_deref();
            let job = job.and_then(|id| world.jobs.iter().find(|job| job.id() == id));
            let name = self.pod_name(vehicle);
            let watched = Watched { world: &world, seen, job, name, interval: request.interval };
            watched.is_late().or_else(|| watched.is_wrong(code))
        };
        if let Some(broken) = broken {
            self.breaks(&format!("a watch that ends with {code} ({verdict}) {broken}"));
        }
    }
}

/// A watch that has ended, and what is true of what it watched.
struct Watched<'a> {
    world: &'a World,
    seen: &'a Seen,
    job: Option<&'a SimJob>,
    name: String,
    interval: Duration,
}

impl Watched<'_> {
    /// It comes to an end within a bound after the job's, or where people were told that there is no contact
    /// after the pod's.
    fn is_late(&self) -> Option<String> {
        let now = self.world.truth();
        let looks = (STALL.as_secs() / self.interval.as_secs()).max(3);
        let patience = (self.interval + LOOK) * u32::try_from(looks).unwrap() + LOOK * 2;
        let patience = TimeDelta::from_std(patience).unwrap();
        let began = self.seen.from + TimeDelta::from_std(GRACE).unwrap();
        let over = match self.job {
            Some(job) if self.seen.is_successor => self.world.pod_end(&job.pod)?,
            Some(job) => self.world.job_end(job),
            None => began,
        };
        let by = over.max(began) + patience;
        let latest = self.world.bounds.excused(by, patience);
        (now > latest).then(|| format!("was to end by {by}, and what was wrong by {latest}"))
    }

    /// What it says of the job and the pod is so.
    fn is_wrong(&self, code: u8) -> Option<String> {
        let now = self.world.truth();
        let answers = self.answers();
        let Some(job) = self.job else {
            // Nobody could say which job.
            let lives = |job: &&SimJob| {
                let of = |pod: &super::pods::SimPod| pod.id == job.pod && pod.name == self.name;
                self.world.pods.iter().any(of)
                    && job.from <= self.seen.from
                    && self.world.job_end(job) > now
            };
            let live = self.world.jobs.iter().find(lives);
            let is_wrong = match code {
                2 => live.is_some() && answers,
                5 => answers,
                _ => true,
            };
            return is_wrong
                .then(|| format!("knows no job, and {:?} lives", live.map(|job| job.id().len())));
        };
        let end = self.world.job_end(job);
        let is_over = end <= now;
        let by_itself = is_over && end == job.ends;
        let age = job.age(end.min(now));
        let is_right = match code {
            0 => by_itself && job.code == 0,
            2 => false,
            3 => job.log.kind == Kind::Flat,
            4 => (by_itself && job.code != 0) || job.log.shows_a_failure(age),
            5 => !answers || job.log.was_stalled(age, STALL),
            _ => false,
        };
        let ended = if by_itself { Some(job.code) } else { None };
        (!is_right).then(|| {
            format!(
                "is wrong: the job has {} ({ended:?}), its log is {:?}, its pod answers: {answers}",
                if is_over { "ended" } else { "not ended" },
                job.log.kind
            )
        })
    }

    /// Whether the pod has answered all the time since a minute before the watch began.
    fn answers(&self) -> bool {
        let from = self.seen.from - TimeDelta::seconds(60);
        let now = self.world.truth();
        let is_up = |pod: &super::pods::SimPod| {
            let run = match self.job {
                Some(job) if job.pod == pod.id => pod.runs.get(job.run),
                Some(_) => None,
                None if pod.name == self.name => pod.run_at(now).map(|(_, run)| run),
                None => None,
            };
            run.is_some_and(|run| {
                run.up.is_some_and(|up| up <= from) && run.ends.is_none_or(|end| end > now)
            })
        };
        self.world.pods.iter().any(is_up) && !self.world.was_deaf(from, now)
    }
}
