//! apply_bluerov_patches: the vehicle's source patches, all of them or none.

use super::gather::Needs;
use super::job_parts::job_file;
use super::{CloudName, StepView, Tether};
use crate::apply::{self, StepError, StepOutcome};
use crate::config::Patches;
use crate::digest::sha256_hex;
use crate::domain::{Pod, RemoteCommand, Vehicle, scripts};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::plan::{self, Intent, JobFile, PodStep};
use crate::pod::{ExecLimits, ExecOutput, ShellErrorKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is asked of apply_bluerov_patches.
#[derive(Clone, Copy, Debug, Default)]
pub struct PatchRequest {
    /// Only show the plan, and whether the edits fit what is on the pod.
    pub dry_run: bool,
    /// Patch beside a live job.
    pub force: bool,
}

/// The answer of apply_bluerov_patches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PatchAnswer {
    /// Which cloud answered.
    pub cloud: CloudName,
    /// On which vehicle's pod.
    pub vehicle: String,
    /// Whether the patches are in.
    pub patched: bool,
    /// Whether this call put them in.
    pub changed: bool,
    /// The edits, one line each; in a dry run those that would be made.
    pub edits: Vec<String>,
    /// The marker that is there while they are in.
    pub marker: String,
    /// What to do next.
    pub next_step: String,
    /// Dry run: the very commands that the real call sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Vec<StepView>>,
}

/// The last word of a patch script's answer: without it the answer says nothing.
const END: &str = "podtether-patch-end";
/// How the line with its status begins.
const STATUS: &str = "podtether-patch ";

/// What a patch script says in its status line, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Told {
    /// `applied`, `already`, `would_apply`, `refused` (nothing was changed) or `failed` (everything
    /// was put back).
    status: String,
    #[serde(default)]
    edits: Vec<String>,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    fix: String,
}

/// The script waits for git and for a volume that may be slow; the tool answers within 50 s.
const TIMEOUT: Duration = Duration::from_secs(40);
/// How long another session may be about to change something.
const TURN: Duration = Duration::from_secs(5);
/// A question that changes nothing.
const CHECK: ExecLimits = ExecLimits {
    timeout: Duration::from_secs(30),
    stdout_bytes: 64 * 1024,
    stderr_bytes: 8 * 1024,
};

impl Tether {
    /// Applies the patches of the vehicle that declares some, or shows what would be done. Asking
    /// again changes nothing and says so.
    ///
    /// # Errors
    /// No vehicle with patches, no running pod, a live job, and everything that the script refuses:
    /// another commit, a changed tree, an edit that does not fit. Then nothing was changed.
    pub async fn apply_bluerov_patches(
        &self,
        request: PatchRequest,
    ) -> Result<PatchAnswer, Failure> {
        let (vehicle, patches) = self.patched()?;
        let (script, files) = (script(&patches)?, files(&patches)?);
        let arguments =
            |verb: &str| arguments(verb, &vehicle, &patches, &files, self.swept_marker(&vehicle));
        let _turn = if request.dry_run { None } else { self.turn(TURN).await? };
        let mut facts = self.gather(Needs::default()).await?;
        let pod = self.pick(&vehicle, &mut facts).await?;
        facts.live_jobs = self.before_a_job(&vehicle, &pod).await.live_jobs;
        let (unknown, called_off) = self.unknown_launches(&pod);
        let mount = &vehicle.volume_mount_path;
        let mut steps = plan::call_offs(&pod.id, mount, &called_off, request.force);
        let apply = arguments("apply");
        steps.extend(patch_steps(&vehicle, &pod, &patches, &script, &files, apply));
        let intent = Intent::Patch { force: request.force };
        let draft = plan::on_pod(&vehicle, true, intent, steps, None);
        let approved = self.review(draft, &facts)?;
        let shell = self.shell(&vehicle, &pod)?;
        if request.dry_run {
            let words = ["python3".to_owned(), "-".to_owned()];
            let words = words.into_iter().chain(arguments("check"));
            let check = RemoteCommand::new(words).with_stdin(script.bytes);
            let told = told(&shell.run(&check, CHECK).await?)?;
            let plan = Some(StepView::all(approved.steps(), &*self.cloud));
            return Ok(PatchAnswer { plan, ..self.answer(&vehicle, &patches, told) });
        }
        let ports = self.ports(&vehicle, Some(&*shell), None);
        let applied = apply::apply(&approved, &ports).await;
        self.note_called_off(&pod, &unknown, &applied);
        let output = match applied {
            Ok(mut outcomes) => match outcomes.pop() {
                Some(StepOutcome::Ran(output)) => output,
                _ => return Err(super::ensure::start_failure(StepError::NoShell)),
            },
            Err(error) if error.done.len() + 1 < approved.steps().len() => {
                return Err(failed(&vehicle, error.error));
            }
            Err(error) => match error.error {
                StepError::CommandFailed { output, .. } => output,
                other => return Err(failed(&vehicle, other)),
            },
        };
        Ok(self.answer(&vehicle, &patches, told(&output)?))
    }

    fn patched(&self) -> Result<(Vehicle, Patches), Failure> {
        self.declaring(
            |workload| workload.patches.clone(),
            "patches",
            "patches: {checkout: isaac-auv-env, commit: …, marker: …}",
        )
    }

    /// The vehicle that declares patches, and the files that make them.
    pub(super) fn patch_files(&self) -> Result<(Vehicle, JobFile, Vec<JobFile>), Failure> {
        let (vehicle, patches) = self.patched()?;
        let (script, files) = (script(&patches)?, files(&patches)?);
        Ok((vehicle, script, files))
    }

    fn swept_marker(&self, vehicle: &Vehicle) -> Option<String> {
        let sweep = self.config.workloads.get(&vehicle.name)?.sweep.as_ref()?;
        Some(vehicle.on_volume(&sweep.marker))
    }

    fn answer(&self, vehicle: &Vehicle, patches: &Patches, told: Told) -> PatchAnswer {
        let marker = vehicle.on_volume(&patches.marker);
        let (patched, next_step) = match told.status.as_str() {
            "would_apply" => (
                false,
                "This is what the call would send; nothing was changed. Every edit fits."
                    .to_owned(),
            ),
            "already" => (
                true,
                "They were in before; nothing was changed. Next: axis_sanity_sweep.".to_owned(),
            ),
            _ => (true, format!("{marker} is there. Next: axis_sanity_sweep.")),
        };
        PatchAnswer {
            cloud: self.cloud_name(),
            vehicle: vehicle.name.0.clone(),
            patched,
            changed: told.status == "applied",
            edits: told.edits,
            marker,
            next_step,
            plan: None,
        }
    }
}

fn script(patches: &Patches) -> Result<JobFile, Failure> {
    let own = scripts::APPLY_BLUEROV2_PATCH;
    patches.script.as_ref().map_or_else(
        || Ok(JobFile { name: own.name.to_owned(), bytes: own.text.into() }),
        |path| job_file(path),
    )
}

fn files(patches: &Patches) -> Result<Vec<JobFile>, Failure> {
    patches.files.iter().map(|path| job_file(path)).collect()
}

/// Where the script and its files are placed: beside the checkout, not in it.
fn folder(vehicle: &Vehicle) -> String {
    vehicle.on_volume("patches")
}

/// The words behind the script's name. `swept` is the marker of the vehicle's sweep.
fn arguments(
    verb: &str,
    vehicle: &Vehicle,
    patches: &Patches,
    files: &[JobFile],
    swept: Option<String>,
) -> Vec<String> {
    let mut words = vec![
        verb.to_owned(),
        "--checkout".to_owned(),
        vehicle.on_volume(&patches.checkout),
        "--commit".to_owned(),
        patches.commit.clone(),
        "--marker".to_owned(),
        vehicle.on_volume(&patches.marker),
    ];
    if let (None, [drop_in]) = (&patches.script, files) {
        // What is on the pod may be an older one: a dry run places nothing, and is asked about this one.
        words.extend(["--drop-in-sha256".to_owned(), sha256_hex(&drop_in.bytes)]);
        // A sweep says something about the tree that it ran on.
        words.extend(swept.into_iter().flat_map(|marker| ["--void".to_owned(), marker]));
    }
    words.extend(files.iter().map(|file| format!("{}/{}", folder(vehicle), file.name)));
    words
}

fn patch_steps(
    vehicle: &Vehicle,
    pod: &Pod,
    patches: &Patches,
    script: &JobFile,
    files: &[JobFile],
    apply: Vec<String>,
) -> Vec<PodStep> {
    let step =
        |label: String, command, timeout| PodStep { pod: pod.id.clone(), label, command, timeout };
    let place = |file: &JobFile| {
        let path = format!("{}/{}", folder(vehicle), file.name);
        let command = plan::place_file(path, "755", file.bytes.clone());
        step(format!("place {}", file.name), command, plan::PLACE_TIMEOUT)
    };
    let mut steps: Vec<PodStep> = std::iter::once(script).chain(files).map(place).collect();
    let words = ["python3".to_owned(), format!("{}/{}", folder(vehicle), script.name)];
    let words = words.into_iter().chain(apply);
    let label = format!("patch {}", patches.checkout);
    steps.push(step(label, RemoteCommand::new(words), TIMEOUT));
    steps
}

/// What the script said. An answer without its last line says nothing.
fn told(output: &ExecOutput) -> Result<Told, Failure> {
    let text = output.stdout.text();
    let mut lines = text.lines().rev().filter(|line| !line.trim().is_empty());
    let ended = lines.next().is_some_and(|line| line.trim() == END);
    let told = lines.find_map(|line| line.strip_prefix(STATUS)).filter(|_| ended);
    let told: Option<Told> = told.and_then(|json| serde_json::from_str(json).ok());
    let Some(told) = told else {
        let said = output.stderr.text();
        let said: String = said.lines().rev().find(|line| !line.is_empty()).unwrap_or("").into();
        let message =
            format!("the patch script did not say what it did ({:?}): {said}", output.status);
        return Err(Failure::new(FailureKind::PodCommand, message, AGAIN)
            .billing(StillBilling::Yes)
            .retryable());
    };
    let kind = match told.status.as_str() {
        "applied" | "already" | "would_apply" if output.succeeded() => return Ok(told),
        "refused" => FailureKind::Refused,
        _ => FailureKind::PodCommand,
    };
    let after = if kind == FailureKind::Refused {
        "nothing was changed"
    } else {
        "everything was put back"
    };
    let hint =
        if told.fix.is_empty() { after.to_owned() } else { format!("{}; {after}", told.fix) };
    Err(Failure::new(kind, told.reason, hint).billing(StillBilling::Yes))
}

const AGAIN: &str =
    "call again: what was interrupted is put back first, and what was done is not done twice";

fn failed(vehicle: &Vehicle, error: StepError) -> Failure {
    let is_open = matches!(&error, StepError::Shell(error)
        if matches!(error.kind, ShellErrorKind::Lost | ShellErrorKind::Timeout));
    let mut failure = super::ensure::start_failure(error).billing(StillBilling::Yes);
    failure.message =
        format!("patching on the pod of vehicle {}: {}", vehicle.name, failure.message);
    if is_open {
        failure.hint = AGAIN.to_owned();
        return failure.retryable();
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::{Captured, ExecStatus};

    fn output(code: u32, stdout: &str) -> ExecOutput {
        let captured =
            |text: &str| Captured { bytes: text.as_bytes().to_vec(), total: text.len() as u64 };
        ExecOutput {
            status: ExecStatus::Code(code),
            stdout: captured(stdout),
            stderr: captured("Traceback\nSyntaxError: no\n"),
        }
    }

    #[test]
    fn an_answer_without_its_last_line_says_nothing() {
        let line = "podtether-patch {\"status\": \"applied\", \"edits\": [\"a\"]}\n";
        for text in
            ["", line, "podtether-patch-end\n", "podtether-patch {\"status\npodtether-patch-end\n"]
        {
            let failure = told(&output(0, text)).unwrap_err();
            assert_eq!(failure.kind, FailureKind::PodCommand, "{text}");
            assert!(failure.retryable && failure.message.contains("SyntaxError"), "{failure}");
        }
        let whole = format!("edit 1\n{line}podtether-patch-end\n");
        assert_eq!(told(&output(0, &whole)).unwrap().edits, ["a"]);
        assert!(told(&output(1, &whole)).is_err(), "a word of success with a failure's code");
    }

    #[test]
    fn a_refusal_of_the_script_is_a_refusal() {
        let text = "podtether-patch {\"status\":\"refused\",\"reason\":\"a dirty tree\",\"fix\":\"git stash\"}\npodtether-patch-end\n";
        let failure = told(&output(3, text)).unwrap_err();
        assert_eq!((failure.kind, &*failure.message), (FailureKind::Refused, "a dirty tree"));
        assert_eq!(failure.hint, "git stash; nothing was changed");
    }
}
