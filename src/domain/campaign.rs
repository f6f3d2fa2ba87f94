//! A campaign: links that are run one after the other on one vehicle's pod, as its file declares them.

use super::{Marker, Usd, VehicleName};
use std::path::PathBuf;

/// A campaign. Only what can be checked in the file alone is known of it: names, order, ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Campaign {
    /// The file that it was read from, absolute.
    pub path: PathBuf,
    /// Its name; part of the name of its record.
    pub name: String,
    /// The vehicle that all of its links run on.
    pub vehicle: VehicleName,
    /// The links, in order; the last one, and no other, ends in [`LinkEnd::Stop`].
    pub links: Vec<Link>,
}

/// One link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its name; no two of a campaign have the same.
    pub name: String,
    /// The line of the file that it begins on, from 1.
    pub line: u64,
    /// What it does.
    pub work: Work,
    /// Its ceiling in seconds; the config's when `None`.
    pub max_runtime_sec: Option<u32>,
    /// A folder below the mount path that is pulled while its job runs and at its end. Of a training
    /// its `logs.root` when `None`.
    pub pull: Option<String>,
    /// Links before it whose outcome it builds on.
    pub needs: Vec<String>,
    /// Files that must be these very bytes before it begins.
    pub pins: Vec<Pin>,
    /// What must, or must not, be on the volume before it begins.
    pub before: Vec<Marker>,
    /// What must, or must not, be there after it has ended.
    pub after: Vec<Marker>,
    /// Its envelope: what it may cost. Of a link that only stops the pod zero.
    pub max_usd: Usd,
    /// What it must leave.
    pub expect: LinkExpected,
    /// What comes after it.
    pub end: LinkEnd,
}

/// What a link does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// The vehicle's setup script, as a job.
    SetUp,
    /// The vehicle's patches.
    Patches,
    /// A training by its recipe, as a job.
    Training {
        /// Its name; always a declared one that runs on the campaign's vehicle.
        training: String,
        /// The level as it was written; the recipe's default when `None`.
        level: Option<String>,
        /// The seed as it was written; 1 when `None`.
        seed: Option<String>,
        /// More arguments for its command, split into words.
        extra_args: String,
    },
    /// The vehicle's sweep, as a job.
    Sweep,
    /// A command, as a job.
    Command {
        /// The command, run by bash as it is.
        command: String,
        /// The folder to run in; the volume's mount path when `None`.
        workdir: Option<String>,
    },
    /// A pull of a folder below the mount path.
    Sync {
        /// The folder.
        folder: String,
    },
    /// Nothing: it only ends the campaign.
    Nothing,
}

impl Work {
    /// Whether it is a job on the pod.
    #[must_use]
    pub const fn is_job(&self) -> bool {
        matches!(self, Self::SetUp | Self::Training { .. } | Self::Sweep | Self::Command { .. })
    }

    /// In words.
    #[must_use]
    pub fn told(&self) -> String {
        match self {
            Self::SetUp => "setup".to_owned(),
            Self::Patches => "patches".to_owned(),
            Self::Training { training, level, seed, extra_args } => {
                let level = level.as_ref().map(|level| format!(" {level}")).unwrap_or_default();
                let seed = seed.as_deref().unwrap_or("1");
                let extra = if extra_args.is_empty() { "" } else { " " };
                format!("training {training}{level} seed {seed}{extra}{extra_args}")
            }
            Self::Sweep => "sweep".to_owned(),
            Self::Command { command, .. } => {
                let short: String = command.chars().take(60).collect();
                let cut = if short.len() < command.len() { "…" } else { "" };
                format!("command {short:?}{cut}")
            }
            Self::Sync { folder } => format!("sync {folder}"),
            Self::Nothing => "stop".to_owned(),
        }
    }
}

/// A file that must be these very bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The file.
    pub file: PinnedFile,
    /// Its SHA-256, 64 lower-case hexadecimal digits.
    pub sha256: String,
}

/// Where a pinned file lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinnedFile {
    /// On this machine, absolute.
    Here(PathBuf),
    /// On the pod, relative to the volume's mount path.
    OnPod(String),
}

/// What a link must leave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkExpected {
    /// Files with `*`, `?` and `[…]`, relative to the run's folder: of a training its own, else the
    /// folder that is pulled, else the job's. At least one file must be of each, and none empty.
    pub artifacts: Vec<String>,
    /// How often the log must tell a mean reward, exactly.
    pub reward_lines: Option<RewardLines>,
    /// Within what the last mean reward must be.
    pub reward: Option<ExpectedReward>,
}

/// How often a log must tell a mean reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewardLines {
    /// Once for every iteration of the training.
    Iterations,
    /// So often.
    Count(u32),
}

/// Within what a reward must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedReward {
    /// What the recipe of the training expects.
    OfRecipe,
    /// From the lowest to the highest, as they are written.
    Between(String, String),
}

/// What comes after a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkEnd {
    /// The next link.
    Next,
    /// A stop point: somebody looks, and runs the campaign again to go on.
    Pause {
        /// Whether the pod is stopped, or left running and billing.
        stops: bool,
    },
    /// The end of the campaign: the pod is stopped.
    Stop,
}
