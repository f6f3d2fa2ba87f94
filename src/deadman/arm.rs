//! Arms, extends and calls off a vehicle's fuse. Whoever does takes turns, so that two sessions never
//! arm two fuses or overwrite each other's question.

use super::access::Access;
use super::arm_error::ArmError;
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
    match settled_look(&wish.folder).await? {
        Seen::Lives(Some(record)) => longer(*record, wish).await,
        Seen::Lost(_) => start(arming, wish, How::Replaced, clock).await,
        _ => start(arming, wish, How::New, clock).await,
    }
}

/// Has the fuse that lives fire at `wish.until` or later.
///
/// # Errors
/// [`ArmError::NotArmed`] when none lives.
pub async fn extend(wish: &Wish) -> Result<Armed, ArmError> {
    let _turn = turn(&wish.folder).await?;
    match settled_look(&wish.folder).await? {
        Seen::Lives(Some(record)) => longer(*record, wish).await,
        _ => Err(ArmError::NotArmed),
    }
}

/// Calls the vehicle's fuse off. It is asked, never signalled: a number in a file may be anybody's.
///
/// # Errors
/// [`ArmError::Silent`] when it lives and does not answer.
pub async fn cancel(
    folder: &Path,
    why: &str,
    pod_is_off: bool,
    clock: &SharedClock,
) -> Result<Called, CancelError> {
    if !folder.exists() {
        return Ok(Called::NotArmed);
    }
    let unusable = |source| ArmError::Folder { folder: folder.to_owned(), source };
    let _turn = turn(folder).await?;
    let record = match settled_look(folder).await? {
        Seen::Lives(Some(record)) => record,
        Seen::Lost(record) => {
            // Only the holder of the place writes there.
            let _seat = seat::take(folder).await.map_err(unusable)?;
            let why = format!("{why}; its process was gone before");
            seat::write_off(folder, &record, &why, pod_is_off, clock.now()).map_err(unusable)?;
            return Ok(Called::WasLost(record));
        }
        _ => return Ok(Called::NotArmed),
    };
    let ask = question(&record, What::Cancel { why: why.to_owned(), pod_is_off });
    seat::put(folder, &ask).map_err(unusable)?;
    let mut waited = Duration::ZERO;
    while waited < ANSWER {
        match seat::look(folder) {
            Seen::Lives(Some(now)) if now.nonce == record.nonce => {}
            Seen::Lives(None) | Seen::Lost(_) => {}
            _ => return Ok(Called::Cancelled(record)),
        }
        tokio::time::sleep(PAUSE).await;
        waited += PAUSE;
    }
    seat::withdraw(folder);
    Err(ArmError::Silent(record.pid.to_string()))
}

async fn turn(folder: &Path) -> Result<Seat, ArmError> {
    let unusable = |source| ArmError::Folder { folder: folder.to_owned(), source };
    let held = seat::turn(folder, TURN).await.map_err(unusable)?;
    held.ok_or_else(|| ArmError::Failed("another session is arming it".to_owned()))
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

fn question(record: &Record, what: What) -> Ask {
    Ask { id: format!("{:016x}", rand::rng().random::<u64>()), to: record.nonce.clone(), what }
}

async fn longer(record: Record, wish: &Wish) -> Result<Armed, ArmError> {
    let firing = |record: &Record| {
        let vehicle = record.vehicle.clone();
        record.firing_since.map(|since| ArmError::Firing { vehicle, since })
    };
    if let Some(error) = firing(&record) {
        return Err(error);
    }
    let knows_more = wish.pod.is_some() && wish.pod != record.pod_id;
    if record.fire_at >= wish.until && !knows_more {
        return Ok(Armed { how: How::Already, record });
    }
    let how = if record.fire_at >= wish.until { How::Already } else { How::Extended };
    let (until, pod) = (wish.until, wish.pod.clone());
    let micros_per_hour = wish.usd_per_hour.map(Usd::micros);
    let ask = question(&record, What::Extend { until, pod, micros_per_hour });
    let unusable = |source| ArmError::Folder { folder: wish.folder.clone(), source };
    seat::put(&wish.folder, &ask).map_err(unusable)?;
    let mut waited = Duration::ZERO;
    while waited < ANSWER {
        match seat::look(&wish.folder) {
            Seen::Lives(Some(now)) if now.answered.as_ref() == Some(&ask.id) => {
                return match firing(&now) {
                    Some(error) => Err(error),
                    None => Ok(Armed { how, record: *now }),
                };
            }
            Seen::Lives(_) => {}
            _ => return Err(ArmError::NotArmed),
        }
        tokio::time::sleep(PAUSE).await;
        waited += PAUSE;
    }
    seat::withdraw(&wish.folder);
    Err(ArmError::Silent(record.pid.to_string()))
}

async fn start(
    arming: &Arming,
    wish: &Wish,
    how: How,
    clock: &SharedClock,
) -> Result<Armed, ArmError> {
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
        Ok(Reply::Armed(record)) => Ok(Armed { how, record: *record }),
        Ok(Reply::Denied(why)) => Err(ArmError::Denied(why)),
        Ok(Reply::Failed(why)) => Err(ArmError::Failed(why)),
        Err(_) => Err(ArmError::Failed(format!(
            "its process ended without a word; see {}",
            wish.folder.join(seat::LOG).display()
        ))),
    }
}
