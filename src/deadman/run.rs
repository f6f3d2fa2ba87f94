//! The fuse's own process: settles in the vehicle's log folder, looks at the clocks, answers questions
//! and carries out what `state` says. It ends in a summary and in no other way of its own.

use super::access::cloud_word;
use super::fire::{self, Target};
use super::news::{News, NewsKind, Told};
use super::order::{Order, Reply};
use super::prove::prove;
use super::record::{Proof, Record, Summary, Word};
use super::seat::{self, Ask, Seat, What};
use super::state::{self, Asked, Effect, Event, Form, Jump, Now, Outcome, Phase, State};
use crate::clock::SharedClock;
use crate::cloud::Cloud;
use crate::cloud::runpod::RunPod;
use chrono::TimeDelta;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How often the clocks and the questions are looked at. The rule is 30 s at most; this often, a
/// cancel is not waited for.
const POLL: Duration = Duration::from_millis(500);
/// How often it says that it lives.
const BEAT: Duration = Duration::from_secs(20);
/// How often a fuse does what it does all its life.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Between two looks at the clocks and the questions.
    pub poll: Duration,
    /// Between two signs of life.
    pub beat: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { poll: POLL, beat: BEAT }
    }
}

/// Leaves the session of whatever started this process, so that neither its terminal nor a signal to
/// its group reaches the fuse (C01).
///
/// # Errors
/// When the process leads a group already, which one that podtether started never does.
pub fn leave_session() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(())
}

/// A closed terminal, and whoever ends everything at once, do not end the fuse; `cancel` does. To be called
/// within the runtime and before [`fuse`]: its file makes it known to others before it is armed.
pub fn stand_fast() {
    for kind in [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::terminate()] {
        if let Ok(mut stream) = signal(kind) {
            tokio::spawn(async move {
                while stream.recv().await.is_some() {
                    tracing::warn!(
                        "a signal was ignored: `podtether deadman cancel` ends the fuse"
                    );
                }
            });
        }
    }
}

/// A fuse that has settled.
pub struct Fuse {
    record: Record,
    state: State,
    terms: state::Terms,
    folder: PathBuf,
    /// The state folder of the local cloud and which one it was; `None` for a provider.
    local_state: Option<(PathBuf, Option<u64>)>,
    target: Option<Target>,
    cloud: Arc<dyn Cloud>,
    clock: SharedClock,
    /// When the record was last written, on the clock that is never set back.
    written: Duration,
    pace: Pace,
    /// Why it was called off, and whether the pod was off by then.
    called_off: Option<(String, bool)>,
    seat: Seat,
}

/// Settles: takes the vehicle's place, proves the key, and says what its starter waits for, as one line
/// of JSON. No fuse with it means that none is armed.
pub async fn fuse(order: Order, clock: SharedClock) -> (String, Option<Fuse>) {
    match RunPod::new(order.access.options(), Arc::clone(&clock)) {
        Ok(cloud) => fuse_over(order, Arc::new(cloud), clock).await,
        Err(error) => {
            let reply = Reply::Failed(format!("the provider cannot be spoken to: {error}"));
            (serde_json::to_string(&reply).unwrap_or_default(), None)
        }
    }
}

/// The same over a provider that is there already.
pub async fn fuse_over(
    order: Order,
    cloud: Arc<dyn Cloud>,
    clock: SharedClock,
) -> (String, Option<Fuse>) {
    let (reply, fuse) = match settled(order, cloud, clock).await {
        Ok(fuse) => (Reply::Armed(Box::new(fuse.record.clone())), Some(fuse)),
        Err(reply) => (reply, None),
    };
    (serde_json::to_string(&reply).unwrap_or_default(), fuse)
}

fn now(clock: &SharedClock) -> Now {
    Now { wall: clock.now(), monotonic: clock.monotonic(), since_boot: clock.since_boot() }
}

async fn settled(order: Order, cloud: Arc<dyn Cloud>, clock: SharedClock) -> Result<Fuse, Reply> {
    let failed =
        |what: &str, error: &dyn std::fmt::Display| Reply::Failed(format!("{what}: {error}"));
    let Order { terms: told, access } = order;
    let local_state = access.local_state.clone().map(|state| {
        let id = file_id(&state);
        (state, id)
    });
    let seat = seat::take(&told.folder)
        .await
        .map_err(|error| failed("the log folder cannot be used", &error))?
        .ok_or_else(|| Reply::Failed("a fuse of this vehicle lives already".to_owned()))?;
    let begun = now(&clock);
    let state = State::armed(told.fire_at, begun);
    let mut record = Record {
        pid: std::process::id(),
        process_started_at: begun.wall,
        boot_id: crate::clock::boot::id(),
        armed_at: told.armed_at,
        fire_at: told.fire_at,
        hours: hours(told.fire_at - told.armed_at),
        retries: told.retries,
        spacing_sec: told.spacing_sec,
        vehicle: told.vehicle.clone(),
        pod_name: told.pod_name.clone(),
        pod_id: told.pod_id.clone(),
        micros_per_hour: told.micros_per_hour,
        cloud: cloud_word(cloud.is_local()).to_owned(),
        config: told.config.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        nonce: told.nonce.clone(),
        proof: Proof {
            at: begun.wall,
            read: Word::Unproven,
            stop: Word::Unproven,
            why: Some("it is being asked".to_owned()),
        },
        last_tick: begun.wall,
        answered: None,
        firing_since: None,
        attempts: Vec::new(),
        slept_for_sec: 0,
    };
    let lost = seat::left(&told.folder);
    seat::settle(&told.folder, &record)
        .map_err(|error| failed("its file cannot be written", &error))?;
    record.proof = prove(&*cloud, &clock, &mut record).await;
    let target = Target::new(&told.vehicle, &told.pod_name, record.pod_id.clone());
    let terms =
        state::Terms { retries: told.retries, spacing: Duration::from_secs(told.spacing_sec) };
    let fuse = Fuse {
        record,
        state,
        terms,
        folder: told.folder,
        local_state,
        target: Some(target),
        cloud,
        clock,
        written: begun.monotonic,
        pace: Pace::default(),
        called_off: None,
        seat,
    };
    // One that is due already is past refusing: it must try, and say what came of it.
    if fuse.record.proof.stop == Word::Denied && told.fire_at > begun.wall {
        let why = fuse.record.proof.why.clone().unwrap_or_default();
        let message =
            format!("refused to arm: the key was proven not to be able to stop pods: {why}");
        match lost {
            // One that was armed is not made undone by one that could not be: LOST it stays.
            Some(Some(lost)) => seat::update(&fuse.folder, &lost)
                .map_err(|error| failed("the file of the lost one cannot be written", &error))?,
            Some(None) => fuse.leave(Outcome::Refused, 1, true, message.clone()),
            None => fuse.leave(Outcome::Refused, 0, true, message.clone()),
        }
        return Err(Reply::Denied(message));
    }
    seat::update(&fuse.folder, &fuse.record)
        .map_err(|error| failed("its file cannot be written", &error))?;
    tracing::info!(vehicle = %fuse.record.vehicle, fire_at = %fuse.record.fire_at, "armed");
    Ok(fuse)
}

/// Tells a folder from one of its name that was made after it; `None` when there is none.
fn file_id(folder: &Path) -> Option<u64> {
    std::fs::metadata(folder).ok().map(|found| found.ino())
}

/// Hours for people; no money is counted in them.
fn hours(time: TimeDelta) -> f64 {
    time.to_std().map_or(0.0, |time| (time.as_secs_f64() / 3.6).round() / 1000.0)
}

impl Fuse {
    /// What it says of itself.
    #[must_use]
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// Runs to its end and returns the exit code. `tell` is told what is worth telling and must return at
    /// once: the stop waits for nobody.
    pub async fn run(self, tell: &(dyn Fn(&News) + Sync)) -> u8 {
        self.burn(Pace::default(), tell).await
    }

    /// The same at a pace of its own.
    pub async fn burn(mut self, pace: Pace, tell: &(dyn Fn(&News) + Sync)) -> u8 {
        self.pace = pace;
        let (mut told, mut last) = (Told::default(), None);
        let mut effect = Effect::Wait;
        loop {
            let event = match effect {
                Effect::Wait => {
                    tokio::time::sleep(self.pace.poll).await;
                    self.event()
                }
                Effect::Ask(form) => self.ask(form).await,
                Effect::Finish(outcome) => return self.end(outcome, last, tell),
            };
            let step = state::next(&self.state, event, now(&self.clock), self.terms);
            match step.jump {
                Some(Jump::Ahead(by)) => tracing::warn!(
                    seconds = by.as_secs(),
                    "this machine slept, or its clock was set forward"
                ),
                Some(Jump::Back(by)) => tracing::warn!(
                    seconds = by.as_secs(),
                    "the clock was set back; the deadline stays where it was"
                ),
                None => {}
            }
            let began = self.state.phase == Phase::Armed && step.state.phase != Phase::Armed;
            last = told.step(&self.state, &step.state);
            (self.state, effect) = (step.state, step.effect);
            if began && matches!(self.state.phase, Phase::Firing(_)) {
                tracing::warn!(vehicle = %self.record.vehicle, "the deadline has come: stopping");
                self.record.firing_since = Some(self.clock.now());
            }
            // Clocks that are read one after the other are no news; ones that were set are.
            let fire_at = self.state.fire_at();
            let is_moved = (fire_at - self.record.fire_at).abs() >= TimeDelta::seconds(1);
            if self.state.phase == Phase::Armed && (is_moved || matches!(event, Event::Extend(_))) {
                self.record.fire_at = fire_at;
                self.record.hours = hours(self.record.fire_at - self.record.armed_at);
            }
            self.record.slept_for_sec = self.state.slept.as_secs();
            self.keep(began || step.jump.is_some() || matches!(event, Event::Extend(_)));
            if let Some(kind @ (NewsKind::Fires | NewsKind::InVain)) = last {
                let said = self.record.attempts.last().map_or("", |last| last.message.as_str());
                tell(&News::of(kind, &self.record, said));
            }
        }
    }

    /// Says that it lives, when it is time or something is new.
    fn keep(&mut self, is_new: bool) {
        let monotonic = self.clock.monotonic();
        if !is_new && monotonic.saturating_sub(self.written) < self.pace.beat {
            return;
        }
        self.written = monotonic;
        self.record.last_tick = self.clock.now();
        if !self.seat.is_in_place() {
            return;
        }
        // A log folder that is gone hides the fuse; it burns on all the same.
        if let Err(error) = seat::update(&self.folder, &self.record) {
            tracing::warn!(%error, "its file could not be written");
        }
    }

    /// What has happened since the last look.
    fn event(&mut self) -> Event {
        if self.local_state.as_ref().is_some_and(|(state, id)| file_id(state) != *id) {
            self.called_off = Some(("the local cloud is gone with its pods".to_owned(), true));
            return Event::CloudGone;
        }
        let is_ours = self.seat.is_in_place();
        let ask = is_ours.then(|| seat::taken(&self.folder, &self.record.nonce)).flatten();
        let Some(Ask { id, what, .. }) = ask else { return Event::Tick };
        self.record.answered = Some(id);
        match what {
            What::Cancel { why, pod_is_off } => {
                self.called_off = Some((why, pod_is_off));
                Event::Cancel
            }
            What::Extend { until, pod, micros_per_hour } => {
                if let Some(pod) = pod {
                    let ids = self.target.as_mut().map(|target| &mut target.ids);
                    if let Some(ids) = ids.filter(|ids| !ids.contains(&pod)) {
                        ids.push(pod.clone());
                    }
                    self.record.pod_id = Some(pod);
                }
                self.record.micros_per_hour = micros_per_hour.or(self.record.micros_per_hour);
                Event::Extend(until)
            }
        }
    }

    /// Asks once, with an ear for whoever calls it off.
    async fn ask(&mut self, form: Form) -> Event {
        let Some(mut target) = self.target.take() else {
            return Event::Asked(Asked::NoEffect);
        };
        let (cloud, clock) = (Arc::clone(&self.cloud), Arc::clone(&self.clock));
        let (asked, attempt) = {
            let asking = fire::ask(&*cloud, &*clock, &mut target, form);
            tokio::pin!(asking);
            loop {
                tokio::select! {
                    answer = &mut asking => break answer,
                    () = tokio::time::sleep(self.pace.poll) => match self.event() {
                        event @ (Event::Cancel | Event::CloudGone) => return event,
                        Event::Extend(_) => self.keep(true),
                        _ => self.keep(false),
                    },
                }
            }
        };
        tracing::warn!(result = %attempt.result, "{}", attempt.message);
        self.record.pod_id = self.record.pod_id.take().or_else(|| target.ids.first().cloned());
        self.target = Some(target);
        self.record.asked(attempt);
        self.keep(true);
        Event::Asked(asked)
    }

    fn end(self, outcome: Outcome, news: Option<NewsKind>, tell: &(dyn Fn(&News) + Sync)) -> u8 {
        let last = self.record.attempts.last();
        let said = last.map_or_else(String::new, |last| last.message.clone());
        let was_off = self.called_off.as_ref().is_some_and(|(_, pod_is_off)| *pod_is_off);
        let message = match (outcome, &self.called_off) {
            (Outcome::Stopped, _) => said,
            (Outcome::Cancelled, Some((why, _))) => why.clone(),
            (Outcome::Cancelled, None) => "called off".to_owned(),
            (Outcome::Refused, _) => format!("THE POD MAY STILL BILL: {said}"),
            (Outcome::StopFailed, _) => format!(
                "THE POD MAY STILL BILL: asked in {} cycles and not stopped; stop it in the RunPod console. The last word: {said}",
                self.record.retries.saturating_add(1)
            ),
        };
        let code = outcome.exit_code();
        self.leave(outcome, code, outcome.may_still_bill(was_off), message.clone());
        if let Some(kind) = news {
            tell(&News::of(kind, &self.record, &message));
        }
        code
    }

    /// Writes the summary, and only then takes its own file away.
    fn leave(&self, outcome: Outcome, exit_code: u8, may_run: bool, message: String) {
        let summary = Summary {
            record: Record { last_tick: self.clock.now(), ..self.record.clone() },
            outcome,
            stop_status: self.record.attempts.last().and_then(|last| last.status.clone()),
            ended_at: self.clock.now(),
            pod_may_still_be_running: may_run,
            exit_code,
            message,
        };
        tracing::warn!(outcome = outcome.as_str(), "{}", summary.message);
        if !self.seat.is_in_place() {
            tracing::error!("the log folder is gone, and with it the place for the summary");
            return;
        }
        if let Err(error) = seat::leave(&self.folder, &summary) {
            tracing::error!(%error, "the summary could not be written");
        }
    }
}
