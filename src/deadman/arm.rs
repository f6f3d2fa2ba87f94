//! Arms, extends and calls off a vehicle's fuse. Whoever does takes turns, so that two sessions never
//! arm two fuses or overwrite each other's question.

use super::access::Access;
use super::arm_error::ArmError;
use super::claim::Claim;
use super::order::{self, Order, Reply, Telling};
use super::record::Record;
use super::seat::{self, Ask, Seat, Seen, What};
use super::starts::Starts;
use crate::clock::SharedClock;
use crate::domain::{PodId, Usd};
use chrono::{DateTime, Utc};
use rand::RngExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The longest fuse, in hours: as long as the longest job.
pub const MAX_HOURS: f64 = 168.0;

/// What every fuse of one config is armed with.
#[derive(Clone, Debug)]
pub struct Arming {
    /// Where the process of one comes from.
    pub starts: Arc<dyn Starts>,
    /// The config, for people; it is not read again.
    pub config: PathBuf,
    /// How the provider is reached.
    pub access: Access,
    /// Where people are told of what it does.
    pub telling: Telling,
}

/// The fuse that is wanted.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The vehicle.
    pub vehicle: String,
    /// The name of its pod.
    pub pod_name: String,
    /// Its log folder.
    pub folder: PathBuf,
    /// When it fires at the earliest, UTC.
    pub until: DateTime<Utc>,
    /// How many cycles are tried again.
    pub retries: u32,
    /// Between two cycles.
    pub spacing: Duration,
    /// The pod's id, when it is known.
    pub pod: Option<PodId>,
    /// What the pod bills for an hour, when it is known.
    pub usd_per_hour: Option<Usd>,
}

impl Wish {
    /// With the contract's five tries, five minutes apart.
    #[must_use]
    pub fn new(vehicle: &crate::domain::Vehicle, until: DateTime<Utc>) -> Self {
        Self {
            vehicle: vehicle.name.0.clone(),
            pod_name: vehicle.pod_name.clone(),
            folder: vehicle.local_log_dir.clone(),
            until,
            retries: 5,
            spacing: Duration::from_secs(300),
            pod: None,
            usd_per_hour: None,
        }
    }
}

/// What arming came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// A new fuse.
    New,
    /// A new one in the place of one whose process was gone.
    Replaced,
    /// The one that lives fires later now.
    Extended,
    /// The one that lives fires later than was asked for; it is not shortened.
    Already,
}

/// A fuse that is armed.
#[derive(Clone, Debug, PartialEq)]
pub struct Armed {
    /// How that came.
    pub how: How,
    /// What it says of itself.
    pub record: Record,
    /// What whoever has armed or extended it names when it calls it off.
    pub claim: Claim,
}

/// On what a fuse is called off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOff<'a> {
    /// On a person's word: the pod goes on, whoever relies on the fuse.
    ByHand,
    /// Since the vehicle's pods were read off the bill by a session whose last claim this is. Another
    /// session that has armed or extended since may have started one: then it is refused.
    ReadOff {
        /// What was read, in words.
        why: &'a str,
        /// From the last time that the session armed or extended it; `None` when it never did.
        claim: Option<&'a Claim>,
    },
}

impl CallOff<'_> {
    const fn why(&self) -> &str {
        match self {
            Self::ByHand => "called off by hand",
            Self::ReadOff { why, .. } => why,
        }
    }

    const fn pod_is_off(&self) -> bool {
        matches!(self, Self::ReadOff { .. })
    }

    fn is_due(&self, last: Option<&Claim>) -> bool {
        match self {
            Self::ByHand => true,
            Self::ReadOff { claim, .. } => claim.is_some_and(|claim| claim.is_the_last(last)),
        }
    }
}

/// It was not called off.
pub type CancelError = ArmError;

/// What calling off came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Called {
    /// A fuse that lived ended.
    Cancelled(Box<Record>),
    /// Its process was gone before; what it left was written off.
    WasLost(Box<Record>),
    /// The same, and nothing that it had said of itself could be read.
    WasLostUnread,
    /// There was none.
    NotArmed,
}

/// How long others may be arming.
const TURN: Duration = Duration::from_secs(45);
/// How long a fuse that lives may take to answer.
const ANSWER: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(25);

/// Has a fuse armed that fires at `wish.until` or later: arms one, or extends the one that lives.
///
/// # Errors
/// [`ArmError`]; then no fuse lives that was not there before.
pub async fn ensure_armed(
    arming: &Arming,
    wish: &Wish,
    clock: &SharedClock,
) -> Result<Armed, ArmError> {
    let _turn = turn(&wish.folder).await?;
    let seen = settled_look(&wish.folder).await?;
    of_this_cloud(&seen, arming.access.cloud())?;
    let claim = claimed(&wish.folder)?;
    let (how, record) = match seen {
        Seen::Lives(Some(record)) => longer(*record, wish).await?,
        Seen::Lost(_) | Seen::LostUnread(_) => (How::Replaced, start(arming, wish, clock).await?),
        _ => (How::New, start(arming, wish, clock).await?),
    };
    Ok(Armed { how, record, claim })
}

/// Has the fuse that lives fire at `wish.until` or later.
///
/// # Errors
/// [`ArmError::NotArmed`] when none lives.
pub async fn extend(wish: &Wish) -> Result<Armed, ArmError> {
    let _turn = turn(&wish.folder).await?;
    let Seen::Lives(Some(record)) = settled_look(&wish.folder).await? else {
        return Err(ArmError::NotArmed);
    };
    let claim = claimed(&wish.folder)?;
    let (how, record) = longer(*record, wish).await?;
    Ok(Armed { how, record, claim })
}

/// Calls the vehicle's fuse off. It is asked, never signalled: a number in a file may be anybody's.
///
/// # Errors
/// [`ArmError::Claimed`] when somebody else relies on it by now, [`ArmError::Silent`] when it lives and
/// does not answer. It stays armed then.
pub async fn cancel(
    folder: &Path,
    call_off: CallOff<'_>,
    clock: &SharedClock,
) -> Result<Called, CancelError> {
    if !folder.exists() {
        return Ok(Called::NotArmed);
    }
    let unusable = |source| ArmError::Folder { folder: folder.to_owned(), source };
    let _turn = turn(folder).await?;
    let seen = settled_look(folder).await?;
    let is_there = matches!(seen, Seen::Lives(_) | Seen::Lost(_) | Seen::LostUnread(_));
    if is_there && !call_off.is_due(super::last_claim(folder).as_ref()) {
        return Err(ArmError::Claimed);
    }
    let (why, pod_is_off) = (call_off.why(), call_off.pod_is_off());
    let record = match seen {
        Seen::Lives(Some(record)) => record,
        Seen::Lost(record) => {
            // Only the holder of the place writes there.
            let _seat = seat::take(folder).await.map_err(unusable)?;
            let why = format!("{why}; its process was gone before");
            seat::write_off(folder, &record, &why, pod_is_off, clock.now()).map_err(unusable)?;
            return Ok(Called::WasLost(record));
        }
        Seen::LostUnread(_) => {
            let _seat = seat::take(folder).await.map_err(unusable)?;
            seat::forget(folder).map_err(unusable)?;
            return Ok(Called::WasLostUnread);
        }
        _ => return Ok(Called::NotArmed),
    };
    let ask = question(&record, What::Cancel { why: why.to_owned(), pod_is_off });
    seat::put(folder, &ask).map_err(unusable)?;
    let mut waited = Duration::ZERO;
    while waited < ANSWER {
        if is_worth_a_look(folder, waited) {
            match seat::look(folder) {
                Seen::Lives(Some(now)) if now.nonce == record.nonce => {}
                Seen::Lives(None) | Seen::Lost(_) | Seen::LostUnread(_) => {}
                _ => return Ok(Called::Cancelled(record)),
            }
        }
        tokio::time::sleep(PAUSE).await;
        waited += PAUSE;
    }
    seat::withdraw(folder);
    Err(ArmError::Silent(record.pid.to_string()))
}

/// A fuse takes a question before it answers it: until then a look, which takes its lock for an instant,
/// has nothing to see but that it may be gone.
fn is_worth_a_look(folder: &Path, waited: Duration) -> bool {
    !seat::is_asked(folder) || waited.as_millis().is_multiple_of(500)
}

async fn turn(folder: &Path) -> Result<Seat, ArmError> {
    let unusable = |source| ArmError::Folder { folder: folder.to_owned(), source };
    let held = seat::turn(folder, TURN).await.map_err(unusable)?;
    let held = held.ok_or_else(|| ArmError::Failed("another session is arming it".to_owned()))?;
    // Only who has the turn asks and waits: what lies here is of one that died in the asking, and must not
    // end a fuse that whoever comes next relies on.
    seat::withdraw(folder);
    Ok(held)
}

/// A look that waits until a fuse that settles has written its file.
async fn settled_look(folder: &Path) -> Result<Seen, ArmError> {
    let mut waited = Duration::ZERO;
    loop {
        match seat::look(folder) {
            Seen::Lives(None) if waited >= ANSWER => {
                return Err(ArmError::Silent("(unknown)".to_owned()));
            }
            Seen::Lives(None) => {}
            Seen::Unreadable(why) => return Err(ArmError::Failed(why)),
            seen => return Ok(seen),
        }
        tokio::time::sleep(PAUSE).await;
        waited += PAUSE;
    }
}

/// A fuse of another cloud is no cover, and is not written over while something may hang on it: one that
/// lives, or a lost one over a pod that bills real money.
fn of_this_cloud(seen: &Seen, ours: &'static str) -> Result<(), ArmError> {
    let theirs = match seen {
        Seen::Lives(Some(record)) => &record.cloud,
        Seen::Lost(record) if ours == "local" => &record.cloud,
        _ => return Ok(()),
    };
    if theirs == ours {
        return Ok(());
    }
    Err(ArmError::OtherCloud { theirs: theirs.clone(), ours })
}

fn question(record: &Record, what: What) -> Ask {
    Ask { id: format!("{:016x}", rand::rng().random::<u64>()), to: record.nonce.clone(), what }
}

/// Puts a claim of whoever has the turn.
fn claimed(folder: &Path) -> Result<Claim, ArmError> {
    let unusable = |source| ArmError::Folder { folder: folder.to_owned(), source };
    Claim::put(folder).map_err(unusable)
}

async fn longer(record: Record, wish: &Wish) -> Result<(How, Record), ArmError> {
    let firing = |record: &Record| {
        let vehicle = record.vehicle.clone();
        record.firing_since.map(|since| ArmError::Firing { vehicle, since })
    };
    if let Some(error) = firing(&record) {
        return Err(error);
    }
    let knows_more = wish.pod.is_some() && wish.pod != record.pod_id;
    if record.fire_at >= wish.until && !knows_more {
        return Ok((How::Already, record));
    }
    let how = if record.fire_at >= wish.until { How::Already } else { How::Extended };
    let (until, pod) = (wish.until, wish.pod.clone());
    let micros_per_hour = wish.usd_per_hour.map(Usd::micros);
    let ask = question(&record, What::Extend { until, pod, micros_per_hour });
    let unusable = |source| ArmError::Folder { folder: wish.folder.clone(), source };
    seat::put(&wish.folder, &ask).map_err(unusable)?;
    let mut waited = Duration::ZERO;
    while waited < ANSWER {
        if is_worth_a_look(&wish.folder, waited) {
            match seat::look(&wish.folder) {
                Seen::Lives(Some(now)) if now.answered.as_ref() == Some(&ask.id) => {
                    return match firing(&now) {
                        Some(error) => Err(error),
                        None => Ok((how, *now)),
                    };
                }
                Seen::Lives(_) => {}
                _ => return Err(ArmError::NotArmed),
            }
        }
        tokio::time::sleep(PAUSE).await;
        waited += PAUSE;
    }
    seat::withdraw(&wish.folder);
    Err(ArmError::Silent(record.pid.to_string()))
}

async fn start(arming: &Arming, wish: &Wish, clock: &SharedClock) -> Result<Record, ArmError> {
    let unusable = |source| ArmError::Folder { folder: wish.folder.clone(), source };
    let order = Order {
        terms: order::Terms {
            vehicle: wish.vehicle.clone(),
            pod_name: wish.pod_name.clone(),
            pod_id: wish.pod.clone(),
            micros_per_hour: wish.usd_per_hour.map(Usd::micros),
            folder: std::path::absolute(&wish.folder).map_err(unusable)?,
            config: arming.config.clone(),
            armed_at: clock.now(),
            fire_at: wish.until,
            retries: wish.retries,
            spacing_sec: wish.spacing.as_secs(),
            nonce: format!("{:016x}", rand::rng().random::<u64>()),
            telling: arming.telling.clone(),
        },
        access: arming.access.clone(),
    };
    let log = wish.folder.join(seat::LOG);
    let line = arming.starts.start(order, &log).await?;
    match serde_json::from_str(&line) {
        Ok(Reply::Armed(record)) => Ok(*record),
        Ok(Reply::Denied(why)) => Err(ArmError::Denied(why)),
        Ok(Reply::Failed(why)) => Err(ArmError::Failed(why)),
        Err(_) => Err(ArmError::Failed(format!(
            "its process ended without a word; see {}",
            wish.folder.join(seat::LOG).display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::run::{Pace, fuse_over};
    use super::*;
    use crate::clock::SystemClock;
    use crate::cloud::scripted::Scripted;
    use crate::domain::sample;
    use crate::secret::Secret;
    use async_trait::async_trait;

    /// Fuses that burn in this process, over an account without pods.
    #[derive(Debug)]
    struct Here {
        poll: Duration,
    }

    #[async_trait]
    impl Starts for Here {
        async fn start(&self, order: Order, _: &Path) -> Result<String, ArmError> {
            let cloud = Arc::new(Scripted::new(vec![Ok(vec![])], vec![Ok(vec![])]));
            let (line, fuse) = fuse_over(order, cloud, SystemClock::shared()).await;
            let pace = Pace { poll: self.poll, beat: self.poll };
            if let Some(fuse) = fuse {
                tokio::spawn(async move { fuse.burn(pace, &|_| {}).await });
            }
            Ok(line)
        }
    }

    fn arming(poll: Duration) -> Arming {
        Arming {
            starts: Arc::new(Here { poll }),
            config: PathBuf::from("podtether.yaml"),
            access: Access {
                base_url: "https://nowhere.invalid".to_owned(),
                key: Secret::new("a key of the test").unwrap(),
                is_local: true,
                allow_loopback_http: false,
                local_state: None,
            },
            telling: Telling::default(),
        }
    }

    const QUICK: Duration = Duration::from_millis(5);

    /// C01: a session that is killed while it calls off leaves its question lying. The next one that relies
    /// on the fuse takes it away, or the fuse would be gone a moment after.
    #[tokio::test]
    async fn the_question_of_a_session_that_died_ends_no_fuse_that_another_relies_on() {
        let folder = tempfile::tempdir().unwrap();
        let clock = SystemClock::shared();
        let vehicle =
            crate::domain::Vehicle { local_log_dir: folder.path().into(), ..sample::vehicle() };
        let soon = Wish::new(&vehicle, clock.now() + chrono::TimeDelta::hours(1));
        // One that takes no question for a minute.
        let arming = arming(Duration::from_secs(60));
        let armed = ensure_armed(&arming, &soon, &clock).await.unwrap();
        let what = What::Cancel { why: "it was read off".to_owned(), pod_is_off: true };
        seat::put(folder.path(), &question(&armed.record, what)).unwrap();
        assert!(seat::is_asked(folder.path()));
        let again = ensure_armed(&arming, &soon, &clock).await.unwrap();
        assert_eq!(again.record.nonce, armed.record.nonce);
        assert!(!seat::is_asked(folder.path()));
    }

    /// A22: between the read-back of one session and its call-off another one has the fuse cover the pod
    /// that it is about to start, also when the fuse fires late enough for that already.
    #[tokio::test]
    async fn whoever_reads_a_pod_off_leaves_the_fuse_to_a_session_that_has_claimed_it_since() {
        let folder = tempfile::tempdir().unwrap();
        let clock = SystemClock::shared();
        let vehicle =
            crate::domain::Vehicle { local_log_dir: folder.path().into(), ..sample::vehicle() };
        let soon = Wish::new(&vehicle, clock.now() + chrono::TimeDelta::hours(1));
        let one = ensure_armed(&arming(QUICK), &soon, &clock).await.unwrap();
        let why = "it was read off";
        let read_off = |claim| CallOff::ReadOff { why, claim };
        let never = cancel(folder.path(), read_off(None), &clock).await;
        assert!(matches!(never, Err(ArmError::Claimed)), "{never:?}");
        let other = ensure_armed(&arming(QUICK), &soon, &clock).await.unwrap();
        assert_eq!((one.how, other.how), (How::New, How::Already));
        let late = cancel(folder.path(), read_off(Some(&one.claim)), &clock).await;
        assert!(matches!(late, Err(ArmError::Claimed)), "{late:?}");
        assert!(matches!(seat::look(folder.path()), Seen::Lives(Some(_))));
        let own = cancel(folder.path(), read_off(Some(&other.claim)), &clock).await.unwrap();
        assert!(matches!(own, Called::Cancelled(_)), "{own:?}");
        // A person's word needs no claim.
        let third = ensure_armed(&arming(QUICK), &soon, &clock).await.unwrap();
        let by_hand = cancel(folder.path(), CallOff::ByHand, &clock).await.unwrap();
        assert!(matches!(by_hand, Called::Cancelled(_)), "{by_hand:?}");
        let gone = cancel(folder.path(), read_off(Some(&third.claim)), &clock).await.unwrap();
        assert_eq!(gone, Called::NotArmed);
    }

    /// Real and local are never mixed up: a rehearsal on the local cloud leaves a fuse in the very log folder
    /// that the real pod has later, and that one stops nothing that costs money.
    #[tokio::test]
    async fn a_fuse_of_another_cloud_covers_nothing_and_is_not_extended() {
        let folder = tempfile::tempdir().unwrap();
        let clock = SystemClock::shared();
        let vehicle =
            crate::domain::Vehicle { local_log_dir: folder.path().into(), ..sample::vehicle() };
        let soon = Wish::new(&vehicle, clock.now() + chrono::TimeDelta::hours(1));
        let armed = ensure_armed(&arming(QUICK), &soon, &clock).await.unwrap();
        assert!(crate::deadman::seen(folder.path(), "local").is_some());
        assert_eq!(crate::deadman::seen(folder.path(), "runpod"), None);
        let mut other = arming(QUICK);
        other.access.is_local = false;
        let later = Wish { until: soon.until + chrono::TimeDelta::hours(1), ..soon.clone() };
        let refused = ensure_armed(&other, &later, &clock).await;
        assert!(matches!(refused, Err(ArmError::OtherCloud { .. })), "{refused:?}");
        let Seen::Lives(Some(record)) = seat::look(folder.path()) else { panic!("it is gone") };
        assert_eq!(record.fire_at, armed.record.fire_at);
        // One whose process is gone over a pod that bills is not written over by one of the local cloud.
        cancel(folder.path(), CallOff::ByHand, &clock).await.unwrap();
        let lost = Record { cloud: "runpod".to_owned(), ..armed.record };
        seat::update(folder.path(), &lost).unwrap();
        let refused = ensure_armed(&arming(QUICK), &later, &clock).await;
        assert!(matches!(refused, Err(ArmError::OtherCloud { .. })), "{refused:?}");
        assert!(matches!(seat::look(folder.path()), Seen::Lost(_)));
    }
}
