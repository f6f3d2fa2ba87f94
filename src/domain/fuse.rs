//! Fuses: what stops a pod without being asked. Of each it says what was proven, how old the proof
//! is and by when the pod would be off; and of all together what a pod costs that nobody looks after.

mod deadman;
mod unattended;

pub use deadman::DeadmanSeen;
pub use unattended::{UnattendedBill, longest_asleep, longest_unattended, slowest_proven};

use super::{Ceiling, JobEnd, JobId, PodId};
use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;

/// The fuses, by what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FuseName {
    /// A job that was launched with auto_stop=true stops the pod when it ends.
    AutoStop,
    /// A `podtether supervise` that runs on this machine.
    Supervise,
    /// The pod's own watchdog.
    Watchdog,
    /// The laptop's fuse.
    Deadman,
}

impl FuseName {
    /// The word used in every answer.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AutoStop => "auto_stop",
            Self::Supervise => "supervise",
            Self::Watchdog => "watchdog",
            Self::Deadman => "deadman",
        }
    }
}

/// How far a fuse can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FuseState {
    /// It is there, and `proof` says what was proven of it.
    Armed,
    /// It may be there or may work; nothing proves it.
    Unproven,
    /// It was there and is gone: it will not stop anything.
    Dead,
    /// There is none.
    Off,
}

/// One fuse of one pod.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct FuseReport {
    /// Which.
    pub name: FuseName,
    /// How far it can be trusted.
    pub state: FuseState,
    /// What was proven, and how.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
    /// When it was proven, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proven_at: Option<DateTime<Utc>>,
    /// How old the proof is, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_sec: Option<u64>,
    /// By when it would have stopped the pod at the latest, in seconds from now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stops_within_sec: Option<u64>,
    /// Why it is in this state, and what it depends on.
    pub why: String,
}

/// A proof: what was seen to hold, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// In words.
    pub what: String,
    /// When, UTC.
    pub at: DateTime<Utc>,
}

/// A live job, as far as its end concerns the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveJob {
    /// Which.
    pub id: JobId,
    /// Whether it stops the pod when it ends; `None` when that could not be read.
    pub auto_stop: Option<bool>,
    /// When it was launched.
    pub started_at: Option<DateTime<Utc>>,
    /// Its ceiling, in seconds.
    pub ceiling_sec: Option<u32>,
    /// Whether its wrapper is gone, which alone would stop the pod.
    pub wrapper_is_lost: bool,
}

/// The live jobs of a pod, or why nobody can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobsSeen {
    /// These live; empty means none.
    Known(Vec<LiveJob>),
    /// Nobody could say.
    Unknown(String),
}

/// A `podtether supervise` at work, as it says of itself.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Vigil {
    /// The job that it follows.
    pub job_id: String,
    /// The pod that it stops.
    pub pod: PodId,
    /// Its process, for people: whether it lives is told by its lock (A17).
    pub pid: u32,
    /// When it began, UTC.
    pub started_at: DateTime<Utc>,
    /// By when the pod is off or it has given up, UTC; `None` when it leaves the pod running.
    pub stops_by: Option<DateTime<Utc>>,
}

/// A vigil that was found, and whether its process lives; `None` when that could not be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VigilSeen {
    /// What it says of itself.
    pub vigil: Vigil,
    /// Whether it lives.
    pub lives: Option<bool>,
}

/// The pod's own watchdog, as far as anybody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watchdog {
    /// There is none.
    Off,
    /// Nobody could say, and why.
    Unknown(String),
    /// The pod told.
    Seen(WatchdogSeen),
}

impl Watchdog {
    /// The proof that the pod can stop itself, if there is one.
    #[must_use]
    pub const fn stop_path(&self) -> Option<&Proof> {
        match self {
            Self::Seen(seen) => seen.stop_path.as_ref(),
            Self::Off | Self::Unknown(_) => None,
        }
    }
}

/// What a pod told of its own watchdog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchdogSeen {
    /// Whether it was heard of lately.
    pub lives: bool,
    /// That the pod's own way to stop itself was proven. The same way serves auto-stop.
    pub stop_path: Option<Proof>,
    /// By when it would have stopped the pod at the latest, from now.
    pub stops_within: Option<Duration>,
    /// Its last word.
    pub said: String,
}

impl FuseReport {
    /// A fuse of which nothing is proven.
    #[must_use]
    pub const fn without_proof(name: FuseName, state: FuseState, why: String) -> Self {
        Self {
            name,
            state,
            proof: None,
            proven_at: None,
            age_sec: None,
            stops_within_sec: None,
            why,
        }
    }

    fn proven(
        name: FuseName,
        proof: &Proof,
        within: Option<u64>,
        why: String,
        now: DateTime<Utc>,
    ) -> Self {
        Self {
            name,
            state: FuseState::Armed,
            proof: Some(proof.what.clone()),
            proven_at: Some(proof.at),
            age_sec: Some(seconds(now - proof.at)),
            stops_within_sec: within,
            why,
        }
    }

    /// The auto-stops of live jobs; one report that says there is none when there is none.
    /// `stop_path` is the proof that the pod can stop itself, if there is one.
    #[must_use]
    pub fn auto_stop(jobs: &JobsSeen, stop_path: Option<&Proof>, now: DateTime<Utc>) -> Vec<Self> {
        let none = |state, why: String| vec![Self::without_proof(FuseName::AutoStop, state, why)];
        let jobs = match jobs {
            JobsSeen::Known(jobs) => jobs,
            JobsSeen::Unknown(why) => {
                return none(
                    FuseState::Unproven,
                    format!("whether a live job stops the pod is not known: {why}"),
                );
            }
        };
        let reports: Vec<Self> =
            jobs.iter().filter_map(|job| Self::of_job(job, stop_path, now)).collect();
        match (reports.is_empty(), jobs.is_empty()) {
            (false, _) => reports,
            (true, true) => none(FuseState::Off, "no job is live".to_owned()),
            (true, false) => {
                none(FuseState::Off, "no live job was launched with auto_stop=true".to_owned())
            }
        }
    }

    fn of_job(job: &LiveJob, stop_path: Option<&Proof>, now: DateTime<Utc>) -> Option<Self> {
        let bare = |state, why| Self::without_proof(FuseName::AutoStop, state, why);
        let id = &job.id;
        match job.auto_stop {
            Some(false) => None,
            None => Some(bare(
                FuseState::Unproven,
                format!("whether job {id} stops the pod could not be read"),
            )),
            Some(true) if job.wrapper_is_lost => Some(bare(
                FuseState::Dead,
                format!("the wrapper of job {id} is gone, and with it the stop at the job's end"),
            )),
            Some(true) => {
                let tail =
                    Duration::from_secs(u64::from(Ceiling::KILL_GRACE_SEC)) + JobEnd::AUTO_STOP_MAX;
                let longest =
                    Duration::from_secs(u64::from(job.ceiling_sec.unwrap_or(Ceiling::MAX_SEC)))
                        + tail;
                let within = left(job.started_at.unwrap_or(now), longest, now);
                let does =
                    format!("job {id} stops the pod when it ends, at its ceiling at the latest");
                Some(match stop_path {
                    Some(proof) => Self::proven(FuseName::AutoStop, proof, Some(within), does, now),
                    None => Self {
                        stops_within_sec: Some(within),
                        ..bare(
                            FuseState::Unproven,
                            format!("{does}; that this pod can stop itself has not been proven"),
                        )
                    },
                })
            }
        }
    }

    /// The supervise runs of this pod on this machine. One that died in an earlier boot of the pod
    /// (`booted_at`) is history and no fuse of this one.
    #[must_use]
    pub fn supervise(
        seen: &[VigilSeen],
        pod: &PodId,
        booted_at: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> Vec<Self> {
        let is_of_this_boot = |seen: &&VigilSeen| {
            seen.lives != Some(false) || booted_at.is_none_or(|at| seen.vigil.started_at >= at)
        };
        let ours = seen.iter().filter(|seen| seen.vigil.pod == *pod).filter(is_of_this_boot);
        let mut reports: Vec<Self> = ours.map(|seen| Self::of_vigil(seen, now)).collect();
        if reports.is_empty() {
            let why = "no supervise of this pod runs on this machine".to_owned();
            reports.push(Self::without_proof(FuseName::Supervise, FuseState::Off, why));
        }
        reports
    }

    fn of_vigil(seen: &VigilSeen, now: DateTime<Utc>) -> Self {
        let bare = |state, why| Self::without_proof(FuseName::Supervise, state, why);
        let Vigil { job_id, pid, stops_by, .. } = &seen.vigil;
        let Some(by) = *stops_by else {
            return bare(
                FuseState::Off,
                format!("supervise of job {job_id} leaves the pod running (--no-stop)"),
            );
        };
        let within = seconds(by - now);
        match seen.lives {
            Some(false) => bare(
                FuseState::Dead,
                format!(
                    "supervise of job {job_id} (process {pid}) is gone without having stopped the pod"
                ),
            ),
            None => bare(
                FuseState::Unproven,
                format!(
                    "whether supervise of job {job_id} (process {pid}) lives could not be told"
                ),
            ),
            Some(true) if by <= now => bare(
                FuseState::Unproven,
                format!(
                    "supervise of job {job_id} (process {pid}) lives, but is past the time by which it was to have stopped the pod"
                ),
            ),
            Some(true) => {
                let what = format!(
                    "process {pid} on this machine holds the lock of the supervise of job {job_id}"
                );
                let why = "captures and stops when the job ends; needs this machine awake and online, and a key that may stop".to_owned();
                Self::proven(FuseName::Supervise, &Proof { what, at: now }, Some(within), why, now)
            }
        }
    }

    /// The pod's own watchdog.
    #[must_use]
    pub fn watchdog(watchdog: &Watchdog, now: DateTime<Utc>) -> Self {
        let bare = |state, why| Self::without_proof(FuseName::Watchdog, state, why);
        let seen = match watchdog {
            Watchdog::Off => {
                let why = "there is none on this pod since its start; ensure_pod arms it";
                return bare(FuseState::Off, why.to_owned());
            }
            Watchdog::Unknown(why) => return bare(FuseState::Unproven, why.clone()),
            Watchdog::Seen(seen) => seen,
        };
        let within = seen.stops_within.map(|within| within.as_secs());
        match (seen.lives, &seen.stop_path) {
            (false, _) => bare(FuseState::Dead, seen.said.clone()),
            (true, Some(proof)) => {
                Self::proven(FuseName::Watchdog, proof, within, seen.said.clone(), now)
            }
            (true, None) => Self {
                stops_within_sec: within,
                ..bare(FuseState::Unproven, format!("armed (stop path unverified): {}", seen.said))
            },
        }
    }
}

/// What is left of `longest` since `start`, in seconds.
fn left(start: DateTime<Utc>, longest: Duration, now: DateTime<Utc>) -> u64 {
    let longest = TimeDelta::from_std(longest).unwrap_or(TimeDelta::MAX);
    let by = start.checked_add_signed(longest).unwrap_or(DateTime::<Utc>::MAX_UTC);
    // A start in the future, by another clock, does not make it longer than it can be (A14).
    seconds(by.min(now.checked_add_signed(longest).unwrap_or(by)) - now)
}

fn seconds(time: TimeDelta) -> u64 {
    u64::try_from(time.num_seconds()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
