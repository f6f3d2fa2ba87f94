//! exec_on_pod: one command, waited for.

use super::end_exec::end_exec;
use super::gather::Needs;
use super::{CloudName, Tether, boot, command_line};
use crate::apply::{self, StepError, StepOutcome};
use crate::domain::{RemoteCommand, scripts};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::plan::{self, Intent, PodStep};
use crate::pod::jobs::log_text;
use crate::pod::{Captured, ExecStatus, ShellErrorKind};
use rand::RngExt as _;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// What is asked of exec_on_pod.
#[derive(Clone, Debug)]
pub struct ExecRequest {
    /// The command line, run by `bash -c` on the pod as it is.
    pub command: String,
    /// How long to wait, in seconds, from 1 to timeouts.exec_max_sec.
    pub timeout_sec: i64,
    /// The folder to run in; the volume's mount path when `None`.
    pub workdir: Option<String>,
    /// The vehicle; the default one when `None`.
    pub vehicle: Option<String>,
}

/// The answer of exec_on_pod.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ExecAnswer {
    /// Which cloud answered.
    pub cloud: CloudName,
    /// On which vehicle's pod.
    pub vehicle: String,
    /// Exit code; missing when a signal ended the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u32>,
    /// The signal that ended the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The last 8000 characters of stdout.
    pub stdout: String,
    /// The last 4000 characters of stderr.
    pub stderr: String,
    /// Whether stdout was longer.
    pub stdout_truncated: bool,
    /// Whether stderr was longer.
    pub stderr_truncated: bool,
}

const STDOUT_CHARS: usize = 8_000;
const STDERR_CHARS: usize = 4_000;

fn timed_out(timeout: u32, end: &str) -> Failure {
    let message = format!("the command did not end within {timeout} s. {end}");
    let hint = "use run_job for long work; pod_status shows what lives";
    Failure::new(FailureKind::Timeout, message, hint).billing(StillBilling::Yes)
}

impl Tether {
    /// Runs one command on the vehicle's pod and waits for it.
    ///
    /// # Errors
    /// Bad input, refusals, no running pod, no way to its shell, or the time-out. A command that
    /// ends with another code than 0 is an answer.
    pub async fn exec_on_pod(&self, request: &ExecRequest) -> Result<ExecAnswer, Failure> {
        let vehicle = self.vehicle(request.vehicle.as_deref())?;
        let max = vehicle.timeouts.exec_max_sec;
        let timeout = u32::try_from(request.timeout_sec).ok().filter(|sec| (1..=max).contains(sec)).ok_or_else(|| {
            Failure::bad_input(format!("timeout_sec={} is not a whole number from 1 to {max}; use run_job for longer work", request.timeout_sec))
        })?;
        command_line::check_command(&request.command, "the command line to run")?;
        let workdir = command_line::workdir(&vehicle, request.workdir.as_deref())?;
        let mut facts = self.gather(Needs::default()).await?;
        let pod = self.pick(&vehicle, &mut facts).await?;
        let mark = format!("{:016x}", rand::rng().random::<u64>());
        let words = [workdir.as_str(), mark.as_str(), request.command.as_str()];
        let command = RemoteCommand::script(scripts::RUN_IN, words);
        command_line::check_wire(&command)?;
        let step = PodStep {
            pod: pod.id.clone(),
            label: "run the command".to_owned(),
            command,
            timeout: Duration::from_secs(u64::from(timeout)),
        };
        let named = request.vehicle.is_some();
        let draft = plan::on_pod(&vehicle, named, Intent::Exec, vec![step], None);
        let approved = self.review(draft, &facts)?;
        let shell = self.shell(&vehicle, &pod)?;
        let output = match apply::apply(&approved, &self.ports(&vehicle, Some(&*shell), None)).await
        {
            Ok(mut outcomes) => match outcomes.pop() {
                Some(StepOutcome::Ran(output)) => output,
                _ => return Err(super::ensure::start_failure(StepError::NoShell)),
            },
            Err(error) => match error.error {
                StepError::CommandFailed { output, .. } => output,
                StepError::Shell(error) if error.kind == ShellErrorKind::Timeout => {
                    let end = end_exec(&*shell, &mark).await;
                    return Err(timed_out(timeout, &end));
                }
                other => return Err(super::ensure::start_failure(other)),
            },
        };
        // The pod is in use: nobody gives up on its boot any more.
        boot::over(&vehicle);
        let (stdout, stdout_truncated) = self.shown(&output.stdout, STDOUT_CHARS);
        let (stderr, stderr_truncated) = self.shown(&output.stderr, STDERR_CHARS);
        let (exit_code, signal) = match output.status {
            ExecStatus::Code(code) => (Some(code), None),
            ExecStatus::Signal(name) => (None, Some(name)),
        };
        Ok(ExecAnswer {
            cloud: self.cloud_name(),
            vehicle: vehicle.name.0,
            exit_code,
            signal,
            stdout,
            stderr,
            stdout_truncated,
            stderr_truncated,
        })
    }

    /// The last `max` characters of a stream, cleaned for reading and without secrets.
    pub(super) fn shown(&self, stream: &Captured, max: usize) -> (String, bool) {
        let clean = crate::secret::scrub(&log_text::clean(&stream.bytes, stream.bytes.len()), &[]);
        let count = clean.chars().count();
        let text: String = clean.chars().skip(count.saturating_sub(max)).collect();
        (text, stream.is_truncated() || count > max)
    }
}
