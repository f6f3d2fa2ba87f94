//! The one interpreter of approved plans. It decides nothing about what is done; it sends each step
//! once, and what is harmless to repeat (stop, terminate) until its effect was read back.

mod create;
mod notes;
mod off;

pub use notes::Notes;
pub use off::{OffOutcome, OffSettings};

use crate::clock::Clock;
use crate::cloud::{Changed, Cloud, CloudError, CloudErrorKind};
use crate::domain::{Pod, PodId, Volume, VolumeId};
use crate::guard::{Approved, ApprovedChange, ApprovedStep};
use crate::plan::{Change, PodStep};
use crate::pod::{ExecLimits, ExecOutput, Shell, ShellError};
use std::time::Duration;

/// What steps are carried out through.
pub struct Ports<'a> {
    /// The provider.
    pub cloud: &'a dyn Cloud,
    /// The shell of the vehicle's pod, for plans that have steps on it.
    pub shell: Option<&'a dyn Shell>,
    /// Time.
    pub clock: &'a dyn Clock,
    /// Where changes are noted before they are made; `None` only where nothing is to be kept.
    pub notes: Option<Notes<'a>>,
    /// How long effects are waited for.
    pub settings: Settings,
}

/// How long effects are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Reading back a stop or a terminate.
    pub off: OffSettings,
    /// How long a pod whose create answer was lost is looked for. It can be invisible at first (A05).
    pub settle: Duration,
    /// How long after a create whose outcome is unknown its absence from every list proves that it
    /// had no effect.
    pub absent_after: Duration,
    /// How many bytes of stdout and stderr of a command are kept, each.
    pub output_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            off: OffSettings::default(),
            settle: Duration::from_secs(25),
            absent_after: Duration::from_secs(120),
            output_bytes: 64 * 1024,
        }
    }
}

/// What a step did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// A volume was created.
    VolumeCreated(Volume),
    /// A pod was created, or its lost create was found.
    PodCreated {
        /// The pod.
        pod: Box<Pod>,
        /// Whether the answer to the create was lost and the pod was found by its marker.
        adopted: bool,
    },
    /// A start was accepted.
    Started(PodId),
    /// A pod was asked to stop or to go, as far as it was confirmed.
    Off(OffOutcome),
    /// A command ran to its end with exit code 0.
    Ran(ExecOutput),
}

impl StepOutcome {
    /// What came of a stop or a terminate.
    #[must_use]
    pub const fn off(&self) -> Option<&OffOutcome> {
        match self {
            Self::Off(off) => Some(off),
            _ => None,
        }
    }
}

/// Why a plan was not carried out to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// The provider said no, or nothing.
    #[error(transparent)]
    Cloud(#[from] CloudError),
    /// The answer to a create was lost and no pod with its marker showed up.
    #[error(
        "the answer to the create of pod {name:?} was lost ({source}), and no pod with its marker appeared within {waited:?}; it may appear later and would bill"
    )]
    CreateLost {
        /// The pod's name.
        name: String,
        /// What happened to the answer.
        source: CloudError,
        /// How long it was looked for.
        waited: Duration,
    },
    /// Several pods carry the marker of one create.
    #[error("several pods carry the marker of one create: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    CreatedTwice(Vec<PodId>),
    /// The way to the pod failed.
    #[error(transparent)]
    Shell(#[from] ShellError),
    /// A command ended with another exit code than 0.
    #[error("{label} ended with {status}{said}", status = describe(.output), said = said(.output))]
    CommandFailed {
        /// What the command was for.
        label: String,
        /// How it ended and what it wrote.
        output: ExecOutput,
    },
    /// The journal could not be written, so what could start a bill was not done.
    #[error("nothing was sent, since the intent could not be noted: {0}")]
    NotNoted(String),
    /// A plan has a step on a pod and no shell was given.
    #[error("the plan has a step on a pod, but no connection to it")]
    NoShell,
}

/// A plan that ended early, with what was done before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct ApplyError {
    /// What the steps before did.
    pub done: Vec<StepOutcome>,
    /// Why the next one did not.
    #[source]
    pub error: StepError,
}

/// Carries out an approved plan, step by step.
///
/// # Errors
/// [`ApplyError`] at the first step that fails, with the outcomes of the steps before it.
pub async fn apply(approved: &Approved, ports: &Ports<'_>) -> Result<Vec<StepOutcome>, ApplyError> {
    let mut done = Vec::new();
    for step in approved.approved_steps() {
        let outcome = match step {
            ApprovedStep::Cloud(change) => noted_step(change, created_volume(&done), ports).await,
            ApprovedStep::Pod(step) => pod_step(step, ports).await,
        };
        match outcome {
            Ok(outcome) => done.push(outcome),
            Err(error) => return Err(ApplyError { done, error }),
        }
    }
    Ok(done)
}

fn created_volume(done: &[StepOutcome]) -> Option<VolumeId> {
    done.iter().rev().find_map(|outcome| match outcome {
        StepOutcome::VolumeCreated(volume) => Some(volume.id.clone()),
        _ => None,
    })
}

/// One change, with its intent before and its end after it in the journal.
async fn noted_step(
    change: ApprovedChange<'_>,
    created: Option<VolumeId>,
    ports: &Ports<'_>,
) -> Result<StepOutcome, StepError> {
    let Some(notes) = &ports.notes else { return cloud_step(change, created, ports).await };
    let id = notes.begin(change.get()).map_err(|error| StepError::NotNoted(error.to_string()))?;
    let outcome = cloud_step(change, created, ports).await;
    notes.end(id, &outcome);
    outcome
}

async fn cloud_step(
    change: ApprovedChange<'_>,
    created: Option<VolumeId>,
    ports: &Ports<'_>,
) -> Result<StepOutcome, StepError> {
    match change.get() {
        Change::CreateVolume(wanted) => match ports.cloud.change(change, None).await? {
            Changed::Volume(volume) => Ok(StepOutcome::VolumeCreated(volume)),
            Changed::Pod(_) | Changed::Accepted => Err(StepError::Cloud(CloudError {
                kind: CloudErrorKind::Malformed,
                tried: format!("creating network volume {:?}", wanted.name),
                status: None,
                detail: "the answer does not name the volume".to_owned(),
                request_id: None,
            })),
        },
        Change::CreatePod(pod) => create::create(change, pod, created.as_ref(), ports).await,
        Change::StartPod(id) => {
            ports.cloud.change(change, None).await?;
            Ok(StepOutcome::Started(id.clone()))
        }
        Change::StopPod(id) => Ok(StepOutcome::Off(off::stop(change, id, ports).await)),
        Change::TerminatePod(id) => Ok(StepOutcome::Off(off::terminate(change, id, ports).await)),
    }
}

async fn pod_step(step: &PodStep, ports: &Ports<'_>) -> Result<StepOutcome, StepError> {
    let shell = ports.shell.ok_or(StepError::NoShell)?;
    let limits = ExecLimits {
        timeout: step.timeout,
        stdout_bytes: ports.settings.output_bytes,
        stderr_bytes: ports.settings.output_bytes,
    };
    let output = shell.run(&step.command, limits).await?;
    if output.succeeded() {
        return Ok(StepOutcome::Ran(output));
    }
    Err(StepError::CommandFailed { label: step.label.clone(), output })
}

fn describe(output: &ExecOutput) -> String {
    match &output.status {
        crate::pod::ExecStatus::Code(code) => format!("exit code {code}"),
        crate::pod::ExecStatus::Signal(name) => format!("signal {name}"),
    }
}

fn said(output: &ExecOutput) -> String {
    let text = output.stderr.text();
    let last: Vec<&str> =
        text.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
    if last.is_empty() {
        return String::new();
    }
    format!(": {}", last.into_iter().rev().collect::<Vec<_>>().join(" / "))
}
