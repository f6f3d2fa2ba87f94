//! The watchdog on a pod: what to ask and how to read the answers. Its rules and files are described
//! in `remote/README.md`.

use super::jobs::{Answer, AnswerError};
use super::shell::ExecOutput;
use crate::digest::hex;
use crate::domain::{PodId, RemoteCommand, scripts};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::time::Duration;

/// When a watchdog stops its pod. Whole seconds, at least one; what is beyond is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchdogTerms {
    /// After so much time in which nobody used the pod.
    pub idle: Duration,
    /// How often it looks.
    pub tick: Duration,
    /// After so much time in any case, but for a job within its ceiling. An earlier arming's later
    /// deadline stays.
    pub deadline: Duration,
}

impl WatchdogTerms {
    /// Time between two looks (contract §5).
    pub const TICK: Duration = Duration::from_secs(300);
}

/// How far it is proven that the watchdog can stop its pod. The later ones prove more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopProof {
    /// Not at all.
    None,
    /// The pod's own key can read its pod. It may still lack the right to stop it (A07).
    Read,
    /// A stop of a pod that does not exist was answered with "not found", not with "denied". An
    /// inference: it was not tried against the live API whether that one tells the two apart.
    Write,
    /// A watchdog of this pod has stopped it before.
    Fired,
}

/// Whether the watchdog counts as a fuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchdogState {
    /// It lives, and [`StopProof::Write`] or more is proven.
    Armed,
    /// It lives, and nobody has seen that it may stop its pod.
    ArmedUnverified,
    /// It has ended, it hangs, or it has nothing to stop the pod with.
    Dead,
    /// There is none since the pod's start.
    Absent,
}

/// What is known about a pod's watchdog. Times are the pod's own and in seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchdogReport {
    /// Whether it counts as a fuse.
    pub state: WatchdogState,
    /// How far its stop path is proven.
    pub proof: StopProof,
    /// What keeps it from being armed and proven.
    pub why: Option<String>,
    /// Age of its last look.
    pub heartbeat_age_sec: Option<u64>,
    /// Looks so far.
    pub ticks: Option<u64>,
    /// Quiet time after which it stops the pod.
    pub idle_sec: Option<u64>,
    /// Time between two looks.
    pub tick_sec: Option<u64>,
    /// How long nobody has used the pod, at its last look.
    pub quiet_sec: Option<u64>,
    /// How long ago its stop path was probed.
    pub probed_age_sec: Option<u64>,
    /// Until its deadline; below 0 when that has passed.
    pub deadline_in_sec: Option<i64>,
    /// Until the supervisor's lease runs out; missing without one.
    pub lease_in_sec: Option<i64>,
    /// How often it tried to stop this pod, in vain so far.
    pub failed_stops: Option<u64>,
    /// What it decided last, with the numbers.
    pub last_decision: Option<String>,
}

/// Places the watchdog, has its stop path probed, and starts it. One with the same terms is kept.
#[must_use]
pub fn arm_command(pod: &PodId, mount: &str, terms: WatchdogTerms) -> RemoteCommand {
    armed_with(pod, mount, terms, None)
}

/// The same for a drill: the deadline is set as it is given, also nearer than it was, and once a lease
/// ran out the pod may be idle for no longer than `after_lease`.
#[must_use]
pub fn drill_command(
    pod: &PodId,
    mount: &str,
    terms: WatchdogTerms,
    after_lease: Duration,
) -> RemoteCommand {
    armed_with(pod, mount, terms, Some(after_lease))
}

fn armed_with(
    pod: &PodId,
    mount: &str,
    terms: WatchdogTerms,
    after_lease: Option<Duration>,
) -> RemoteCommand {
    let texts = [scripts::IDLE_WATCHDOG.text, scripts::STOP_POD.text];
    let digest = texts.iter().fold(Sha256::new(), |hash, text| hash.chain_update(text)).finalize();
    let version = hex(&digest[..6]);
    let seconds = |time: Duration| time.as_secs().clamp(1, 9_999_999).to_string();
    let mut args = vec![
        pod.0.clone(),
        mount.to_owned(),
        seconds(terms.idle),
        seconds(terms.tick),
        seconds(terms.deadline),
        version,
    ];
    args.extend(after_lease.map(seconds));
    // The last word proves that the ones before are whole.
    let stdin = texts.iter().chain(&["whole"]).flat_map(|text| [text, "\0"]).collect::<String>();
    RemoteCommand::script(scripts::ARM_WATCHDOG, args).with_stdin(stdin.into_bytes())
}

/// Says that somebody supervises the pod for so long; zero takes that back. Without a watchdog it is
/// no error.
#[must_use]
pub fn lease_command(lasts: Duration) -> RemoteCommand {
    RemoteCommand::script(scripts::RENEW_LEASE, [lasts.as_secs().min(9_999_999).to_string()])
}

/// Reads the answer to [`arm_command`].
///
/// # Errors
/// [`AnswerError`] when it is not whole or makes no sense. Then nothing is known about the watchdog.
pub fn parse_armed(output: &ExecOutput) -> Result<WatchdogReport, AnswerError> {
    WatchdogReport::read(&Answer::read(scripts::ARM_WATCHDOG.name, output)?)
}

/// Reads the answer to [`lease_command`].
///
/// # Errors
/// [`AnswerError`] when it is not whole or makes no sense.
pub fn parse_lease(output: &ExecOutput) -> Result<WatchdogReport, AnswerError> {
    WatchdogReport::read(&Answer::read(scripts::RENEW_LEASE.name, output)?)
}

impl WatchdogReport {
    /// Reads the `watchdog…` lines of an answer.
    pub(super) fn read(answer: &Answer) -> Result<Self, AnswerError> {
        let signed = |key: &str| answer.get(key).and_then(|text| text.parse::<i64>().ok());
        let heartbeat_age_sec = answer.number("watchdog_age_s")?;
        let tick_sec = answer.number("watchdog_tick_s")?;
        let life = match answer.get("watchdog") {
            Some("alive") => match heartbeat_age_sec {
                Some(age) if age <= longest_silence(tick_sec) => Ok(()),
                Some(age) => Err(format!("it has not looked for {age} s; does it hang?")),
                None => Err("it has not looked since the pod's start".to_owned()),
            },
            Some("none") => Err("there is none on this pod since its start".to_owned()),
            Some("dead" | "reused" | "other_boot" | "malformed") => {
                Err("it has ended; ensure_pod starts it again".to_owned())
            }
            _ => return Err(answer.senseless("watchdog")),
        };
        let (proof, unproven) = proof(answer);
        let (state, why) = match (life, can_stop(answer)) {
            (Err(why), _) if answer.get("watchdog") == Some("none") => {
                (WatchdogState::Absent, Some(why))
            }
            (Err(why), _) | (Ok(()), Err(why)) => (WatchdogState::Dead, Some(why)),
            (Ok(()), Ok(())) if proof >= StopProof::Write => (WatchdogState::Armed, None),
            (Ok(()), Ok(())) => (WatchdogState::ArmedUnverified, Some(unproven)),
        };
        Ok(Self {
            state,
            proof,
            why,
            heartbeat_age_sec,
            ticks: answer.number("watchdog_ticks")?,
            idle_sec: answer.number("watchdog_idle_s")?,
            tick_sec,
            quiet_sec: answer.number("watchdog_quiet_s")?,
            probed_age_sec: signed("watchdog_probed_in_s").map(i64::unsigned_abs),
            deadline_in_sec: signed("watchdog_deadline_in_s"),
            lease_in_sec: signed("watchdog_lease_in_s"),
            failed_stops: answer.number("watchdog_stops")?.filter(|count| *count > 0),
            last_decision: answer.get("watchdog_decision").map(str::to_owned),
        })
    }
}

/// A look takes a minute and a half at most, when the volume hangs; a stop in vain takes some more.
fn longest_silence(tick_sec: Option<u64>) -> u64 {
    tick_sec.unwrap_or(WatchdogTerms::TICK.as_secs()).saturating_mul(2).saturating_add(240)
}

/// The verdict in the contract's words: 90 no runpodctl, 91 no credentials, 92 script missing. A
/// missing runpodctl is made up for by curl.
fn can_stop(answer: &Answer) -> Result<(), String> {
    let has = |key: &str| answer.get(key) == Some("yes");
    match answer.get("watchdog_code") {
        Some("0") => Ok(()),
        Some("90") if has("watchdog_curl") => Ok(()),
        Some("90") => Err("verdict 90: neither runpodctl nor curl is there".to_owned()),
        Some("91") => {
            Err("verdict 91: the pod has no RUNPOD_API_KEY to stop itself with".to_owned())
        }
        Some("92") => Err("verdict 92: its script is missing".to_owned()),
        _ => Err("its stop path was not probed".to_owned()),
    }
}

/// What is proven, and why no more is.
fn proof(answer: &Answer) -> (StopProof, String) {
    let code = |key: &str| answer.get(key).unwrap_or("000").to_owned();
    let (read, write) = (code("watchdog_read"), code("watchdog_write"));
    let unproven = match (read.as_str(), write.as_str()) {
        (_, "401") => "the provider does not know the pod's own key (401)".to_owned(),
        (_, "403") => {
            "a stop with the pod's own key was denied (403): it may lack the right, or be bound to its pod".to_owned()
        }
        (_, "000") => "the provider did not answer the pod".to_owned(),
        (_, write) => format!("the provider answered a stop for no pod with {write}"),
    };
    let proof = if answer.get("watchdog_fired") == Some("yes") {
        StopProof::Fired
    } else if read == "200" && write == "404" {
        StopProof::Write
    } else if read == "200" {
        StopProof::Read
    } else {
        StopProof::None
    };
    (proof, unproven)
}

impl StopProof {
    /// What was seen, in words; nothing when it proves no right to stop.
    #[must_use]
    pub const fn told(self) -> Option<&'static str> {
        match self {
            Self::Fired => Some("a watchdog of this pod has stopped it before"),
            Self::Write => Some("the pod's own key passed a trial stop of no pod"),
            Self::None | Self::Read => None,
        }
    }
}

/// Its last word: what keeps it from being armed and proven, when it stops the pod, and when it looked.
impl fmt::Display for WatchdogReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = self.why.iter().cloned().collect();
        if !matches!(self.state, WatchdogState::Dead | WatchdogState::Absent) {
            if let Some(idle) = self.idle_sec {
                let minutes = idle / 60;
                parts.push(format!("stops the pod after {minutes} min without use"));
            }
            if let Some(left) = self.deadline_in_sec {
                let minutes = left.max(0) / 60;
                parts.push(format!(
                    "in {minutes} min whoever uses it, but for a job within its ceiling"
                ));
            }
            if let Some(age) = self.heartbeat_age_sec {
                parts.push(format!("it looked {age} s ago"));
            }
        }
        if let Some(stops) = self.failed_stops {
            parts.push(format!("{stops} STOPS FAILED, this pod still bills: stop_pod"));
        }
        f.write_str(&parts.join("; "))
    }
}
