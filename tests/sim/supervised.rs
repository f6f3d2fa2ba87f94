//! A supervised run of a session, and a later one that takes it up. Both end in a stop that was read
//! back, or in words and an exit code that say that the pod may still bill.

use super::dice::Dice;
use super::promises::Op;
use super::session::{Session, job};
use podtether::notify::Notifier;
use podtether::ops::RunJobRequest;
use podtether::supervise::{self, Note, Options, ResumeOptions, Summary};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// What the end of a run may take beyond the job's ceiling: waits for the provider, capture, stops; and
/// what the laptop slept is none of it.
const SLACK: Duration = Duration::from_secs(4 * 3600);
const LOOKED_AT: Duration = Duration::from_secs(45);

impl Session {
    /// A supervised run.
    pub async fn supervise(&self, vehicle: &str, dice: &mut Dice) {
        let job = RunJobRequest { auto_stop: false, force: false, ..job(vehicle, dice, false) };
        let ceiling = job.max_runtime_sec.and_then(|sec| u64::try_from(sec).ok()).unwrap_or(3600);
        let options = Options {
            job,
            interval: LOOKED_AT,
            max_wait: None,
            backstop: Duration::from_secs(300),
            no_stop: false,
            sync_subdir: None,
            pull_every: supervise::PULL_EVERY,
            notifier: Notifier::silent(),
            summary_path: None,
        };
        self.begin(Op::Supervise, &format!("supervise {vehicle}, {ceiling} s"));
        self.void(vehicle);
        let (_keep, mut signals) = tokio::sync::mpsc::unbounded_channel();
        let mut tell = |note| self.note(note);
        let run = supervise::run(self.tether(), &options, &mut signals, &mut tell);
        let bound = Duration::from_secs(ceiling) + SLACK;
        let Some((summary, _)) = self.within(bound, "supervise", run).await else { return };
        self.void(vehicle);
        self.judge(vehicle, &summary, "supervise");
    }

    /// Takes up the last run of the vehicle that left a summary.
    pub async fn resume(&self, vehicle: &str) {
        let Some(path) = self.last_summary(vehicle) else { return };
        self.begin(Op::Resume, &format!("supervise --resume {vehicle}"));
        self.void(vehicle);
        let asked = ResumeOptions {
            summary: path,
            vehicle: None,
            interval: LOOKED_AT,
            pull_every: supervise::PULL_EVERY,
            notifier: Notifier::silent(),
        };
        let (_keep, mut signals) = tokio::sync::mpsc::unbounded_channel();
        let mut tell = |note| self.note(note);
        let run = supervise::resume(self.tether(), &asked, &mut signals, &mut tell);
        let bound = Duration::from_secs(5 * 3600) + SLACK;
        let answer = self.within(bound, "supervise --resume", run).await;
        self.void(vehicle);
        match answer {
            Some(Ok((summary, _))) => self.judge(vehicle, &summary, "supervise --resume"),
            Some(Err(failure)) => self.say(&format!("not taken up: {}", failure.message)),
            None => {}
        }
    }

    fn note(&self, note: Note) {
        if let Note::Said(text) = note {
            self.say(&text);
        }
    }

    fn last_summary(&self, vehicle: &str) -> Option<PathBuf> {
        let folder = self.project().world.now().folder_of(vehicle);
        let entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
        let is_one = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with("supervise-") && name.ends_with(".json")
        };
        // Ids begin with the time of their making; the laptop's clock goes on.
        let last = entries.filter(is_one).max()?;
        // The file's own time is of the real clock, which has nothing to do with the campaign's.
        let file = std::fs::File::options().append(true).open(&last).ok()?;
        file.set_modified(SystemTime::UNIX_EPOCH).ok()?;
        Some(last)
    }

    fn judge(&self, vehicle: &str, summary: &Summary, who: &str) {
        let (code, may) = (summary.process_exit_code, summary.pod_may_still_be_running);
        let whole = summary.capture_complete;
        self.say(&format!(
            "{who} ends with {code:?}, may still be running: {may}, all home: {whole}"
        ));
        if !may {
            // What it says was read in its last call.
            let ago = self.project().world.now().truth() - chrono::TimeDelta::minutes(5);
            self.off(vehicle, ago, who);
        }
        let mut world = self.project().world.now();
        if may && code.is_none_or(|code| code == 0) {
            let broken = format!("s{}: {who} ends with {code:?} and the pod may run", self.number);
            world.promises.break_one(broken);
        }
        // A job that was followed to its end and of which all is said to be home.
        let ended = ["succeeded", "failed", "timed_out"];
        let has_ended = summary.state.as_deref().is_some_and(|state| ended.contains(&state));
        let id = summary.job_id.clone().unwrap_or_default();
        let is_home = world.home.iter().any(|dir| dir.ends_with(&id));
        if whole && has_ended && !is_home {
            let broken = format!("s{}: {who} says that all is home, and it is not", self.number);
            world.promises.break_one(broken);
        }
        if code == Some(0) && !is_home {
            let broken = format!("s{}: {who} ends with 0 and results are not home", self.number);
            world.promises.break_one(broken);
        }
    }
}
