//! How a watch ends, and what it says then.

use super::failure::{FailureCause, Finding};
use super::plateau::Flat;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The end of a watch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The job ended with exit code 0, or the pod went off after its log said the end.
    Done,
    /// No job came up within the grace.
    NoJob,
    /// The reward does not move any more.
    Plateau(Flat),
    /// The run failed, or goes on without a chance.
    Failed(Finding),
    /// The log is silent and the GPU does not work, or for far too long.
    Stalled {
        /// How long it has been silent, in seconds.
        silent_sec: i64,
        /// The GPU's use in percent, when it could be read.
        gpu_percent: Option<u32>,
    },
    /// The provider shows the pod off the bill, and the log did not say an end before.
    PodOff {
        /// The provider's word.
        status: String,
    },
    /// Nobody can say any more what became of the job.
    Lost {
        /// Why.
        why: String,
    },
}

impl Verdict {
    /// The exit code (contract, section 7): 0 done, 2 usage, 3 plateau, 4 failure, 5 stall or lost contact.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Done => 0,
            Self::NoJob => 2,
            Self::Plateau(_) => 3,
            Self::Failed(_) => 4,
            Self::Stalled { .. } | Self::PodOff { .. } | Self::Lost { .. } => 5,
        }
    }

    /// Whether people are to be told at once.
    #[must_use]
    pub const fn is_a_page(&self) -> bool {
        self.exit_code() > 2
    }

    /// Whether one page is enough for both.
    #[must_use]
    pub fn is_about_the_same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Failed(one), Self::Failed(other)) => one.cause == other.cause,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::NoJob => f.write_str(
                "no live job came up; start one with run_job, or name an ended one with --job-id",
            ),
            Self::Plateau(flat) => write!(
                f,
                "plateau: the mean reward stayed between {:.2} and {:.2} from iteration {} to {}",
                flat.low, flat.high, flat.from, flat.to
            ),
            Self::Failed(finding) => write!(f, "failure ({}): {}", finding.cause, finding.evidence),
            Self::Stalled { silent_sec, gpu_percent } => {
                write!(f, "stall: the log is silent for {silent_sec} s and ")?;
                match gpu_percent {
                    Some(percent) => write!(f, "the GPU is at {percent} %"),
                    None => f.write_str("the GPU's use cannot be read"),
                }
            }
            Self::PodOff { status } => {
                write!(f, "the pod is {status}, and the job was not seen to end")
            }
            Self::Lost { why } => write!(f, "lost contact: {why}"),
        }
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfMemory => "out of memory",
            Self::Nan => "not a number",
            Self::Diverged => "diverged",
            Self::Cuda => "CUDA error",
            Self::Nccl => "collective timed out",
            Self::NativeCrash => "crash below Python",
            Self::DiskFull => "disk full",
            Self::Exception => "exception",
            Self::StoppedFromOutside => "stopped from outside",
            Self::NonZeroExit => "non-zero exit",
        })
    }
}
