//! Drafts the steps of a launch: place the scripts, the command and its meta, start the wrapper.

use super::PodStep;
use super::replace::{Replacement, replace_step};
use crate::digest::hex;
use crate::domain::{
    Ceiling, JobId, JobMeta, JobName, PodId, RemoteCommand, Script, join_quoted, scripts,
};
use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::time::Duration;

/// The scripts that a running job needs as files.
const PLACED: [Script; 2] = [scripts::JOB_WRAPPER, scripts::STOP_POD];

/// For placing one small file. Generous: a network volume may be slow to answer.
pub const PLACE_TIMEOUT: Duration = Duration::from_secs(30);
/// `launch_job.sh` waits 20 s for the wrapper.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(50);

/// Everything about a launch. Nothing is left to decide once it is drafted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchSpec {
    /// On which pod.
    pub pod: PodId,
    /// Where the network volume is mounted, absolute.
    pub mount: String,
    /// The new job's id.
    pub job_id: JobId,
    /// The job's name.
    pub name: JobName,
    /// The command, a shell text of one line or many.
    pub command: String,
    /// The folder to start it in, absolute.
    pub workdir: String,
    /// The longest it may run.
    pub ceiling: Ceiling,
    /// Whether the pod stops itself when the job ends.
    pub auto_stop: bool,
    /// The job's environment beside the pod's own. Stored readable in the job's folder and shown in
    /// a dry run, so no secrets.
    pub env: BTreeMap<String, String>,
    /// When it is launched.
    pub started_at: DateTime<Utc>,
    /// Launches on this pod whose outcome nobody knows: they must not start anything after this one.
    pub unknown_launches: Vec<JobId>,
    /// Whether it is launched although another job lives.
    pub force: bool,
    /// Files that are written anew before it starts.
    pub replacements: Vec<Replacement>,
    /// Where the job comes from.
    pub provenance: BTreeMap<String, serde_json::Value>,
    /// Files that are placed in its folder's [`files_dir`] before it starts.
    pub files: Vec<JobFile>,
}

/// A file that travels with a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFile {
    /// Its name, one part of a path.
    pub name: String,
    /// Its whole content.
    pub bytes: Vec<u8>,
}

/// The folder of a job.
#[must_use]
pub fn job_dir(mount: &str, id: &JobId) -> String {
    format!("{}/jobs/{id}", mount.trim_end_matches('/'))
}

/// The folder of the files that travel with a job, inside the job's own.
#[must_use]
pub fn files_dir(job_dir: &str) -> String {
    format!("{job_dir}/files")
}

/// The steps of a launch, in order. Each may be repeated when its answer was lost: files are placed
/// whole, and the last step starts the job at most once (F04).
#[must_use]
pub fn launch_steps(spec: &LaunchSpec) -> Vec<PodStep> {
    let dir = job_dir(&spec.mount, &spec.job_id);
    // Named by content: a newer version is placed beside, never under a wrapper that runs.
    let script_dir =
        format!("{}/.podtether/remote/{}", spec.mount.trim_end_matches('/'), placed_digest());
    let step = |label: String, command, timeout| PodStep {
        pod: spec.pod.clone(),
        label,
        command,
        timeout,
    };
    let mut steps = call_offs(&spec.pod, &spec.mount, &spec.unknown_launches, spec.force);
    steps.extend(spec.replacements.iter().map(|file| replace_step(&spec.pod, file)));
    steps.extend(PLACED.iter().map(|script| {
        let path = format!("{script_dir}/{}", script.name);
        let label = format!("place {}", script.name);
        step(label, place_file(path, "755", script.text.into()), PLACE_TIMEOUT)
    }));
    steps.extend(spec.files.iter().map(|file| {
        let label = format!("place {} of job {}", file.name, spec.job_id);
        let path = format!("{}/{}", files_dir(&dir), file.name);
        step(label, place_file(path, "755", file.bytes.clone()), PLACE_TIMEOUT)
    }));
    for (name, mode, text) in
        [("cmd.sh", "755", command_file(spec)), ("meta.json", "644", meta_file(spec))]
    {
        let label = format!("place {name} of job {}", spec.job_id);
        let command = place_file(format!("{dir}/{name}"), mode, text.into_bytes());
        steps.push(step(label, command, PLACE_TIMEOUT));
    }
    let launch = RemoteCommand::script(
        scripts::LAUNCH_JOB,
        [
            dir,
            script_dir,
            spec.pod.0.clone(),
            spec.ceiling.as_secs().to_string(),
            u8::from(spec.auto_stop).to_string(),
            spec.workdir.clone(),
        ],
    );
    steps.push(step(format!("launch job {}", spec.job_id), launch, LAUNCH_TIMEOUT));
    steps
}

/// Launches of unknown outcome are called off before anything that no job may run beside: a process that
/// died in the middle of a launch may have left its last command on the way. With `force` one that has
/// begun meanwhile is let be; without it, that is an error.
#[must_use]
pub fn call_offs(pod: &PodId, mount: &str, unknown: &[JobId], force: bool) -> Vec<PodStep> {
    let call_off = |job: &JobId| PodStep {
        pod: pod.clone(),
        label: format!("call off the launch of job {job}, whose outcome is not known"),
        command: RemoteCommand::script(
            scripts::CALL_OFF_LAUNCH,
            [job_dir(mount, job), u8::from(force).to_string()],
        ),
        timeout: PLACE_TIMEOUT,
    };
    unknown.iter().map(call_off).collect()
}

/// Places a file on the pod, all of it or nothing. `path` is absolute, `mode` octal.
#[must_use]
pub fn place_file(path: String, mode: &str, bytes: Vec<u8>) -> RemoteCommand {
    let length = bytes.len().to_string();
    RemoteCommand::script(scripts::PLACE_FILE, [path, mode.to_owned(), length]).with_stdin(bytes)
}

/// A fixed head, the job's environment, then the command to the letter.
fn command_file(spec: &LaunchSpec) -> String {
    let mut text = format!(
        "#!/usr/bin/env bash\n\
         # Job {}. Below the line stands the command as it was given. A pipe fails with its first\n\
         # failing part; of several lines the last one decides, unless the command says `set -e`.\n\
         set -o pipefail\n",
        spec.job_id
    );
    for (key, value) in &spec.env {
        let assignment = format!("{key}={value}");
        text.push_str(&join_quoted(["export", &assignment]));
        text.push('\n');
    }
    text.push_str("# ----\n");
    text.push_str(&spec.command);
    text.push('\n');
    text
}

/// A command as meta.json remembers it. A look reads 64 KiB of that file; `cmd.sh` has all of it.
fn shown(command: &str) -> String {
    const MOST: usize = 8 * 1024;
    if command.len() <= MOST {
        return command.to_owned();
    }
    let cut = command.floor_char_boundary(MOST);
    format!("{}… ({} bytes; the whole of it is in cmd.sh)", &command[..cut], command.len())
}

fn meta_file(spec: &LaunchSpec) -> String {
    let meta = JobMeta {
        name: spec.name.as_str().to_owned(),
        command: shown(&spec.command),
        workdir: spec.workdir.clone(),
        pod_id: Some(spec.pod.clone()),
        max_runtime_sec: Some(spec.ceiling.as_secs()),
        auto_stop: Some(spec.auto_stop),
        started_at: Some(spec.started_at),
        provenance: spec.provenance.clone(),
    };
    // `{:#}` of a Value cannot fail, and a JobMeta has nothing that JSON cannot hold.
    format!("{:#}\n", serde_json::json!(meta))
}

/// 12 hex digits that name the placed scripts by their content.
fn placed_digest() -> String {
    let mut hash = Sha256::new();
    for script in PLACED {
        hash.update(script.name);
        hash.update([0]);
        hash.update(script.text);
        hash.update([0]);
    }
    hex(&hash.finalize()[..6])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> LaunchSpec {
        let started_at = DateTime::parse_from_rfc3339("2026-07-03T13:25:25Z").unwrap().to_utc();
        let name = JobName::parse("train").unwrap();
        LaunchSpec {
            pod: PodId("pod1".to_owned()),
            mount: "/work space/".to_owned(),
            job_id: JobId::new(started_at, &name, 0xab),
            name,
            command: "echo \"$A\"".to_owned(),
            workdir: "/work space/it's".to_owned(),
            ceiling: Ceiling::from_secs(3600).unwrap(),
            auto_stop: true,
            env: BTreeMap::from([("A".to_owned(), "it's $(id)".to_owned())]),
            started_at,
            unknown_launches: Vec::new(),
            replacements: Vec::new(),
            force: false,
            provenance: BTreeMap::from([("seed".to_owned(), serde_json::json!(1))]),
            files: Vec::new(),
        }
    }

    /// F04: what may still be on its way from a session that died is called off before anything else.
    #[test]
    fn a_launch_of_unknown_outcome_is_called_off_first() {
        let unknown = JobId::parse("20260703-125000_train_00aa").unwrap();
        let spec = LaunchSpec { unknown_launches: vec![unknown], force: true, ..spec() };
        let steps = launch_steps(&spec);
        assert_eq!(steps.len(), 6);
        let first = steps[0].command.argv();
        assert_eq!(
            first[3..],
            ["call_off_launch.sh", "/work space/jobs/20260703-125000_train_00aa", "1"]
        );
    }

    /// The wrapper reads its script from the volume, so the folder's name is part of the steps.
    #[test]
    fn a_launch_places_every_file_before_it_starts_the_job() {
        let steps = launch_steps(&spec());
        let labels: Vec<&str> = steps.iter().map(|step| step.label.as_str()).collect();
        let id = "20260703-132525_train_00ab";
        assert_eq!(
            labels,
            [
                "place job_wrapper.sh",
                "place stop_pod.sh",
                &format!("place cmd.sh of job {id}"),
                &format!("place meta.json of job {id}"),
                &format!("launch job {id}"),
            ]
        );
        let last = steps.last().unwrap().command.to_string();
        let scripts = format!("'/work space/.podtether/remote/{}'", placed_digest());
        assert_eq!(
            last,
            format!(
                "bash -c \"$(cat remote/shared/identity.sh remote/launch_job.sh)\" launch_job.sh '/work space/jobs/{id}' {scripts} pod1 3600 1 '/work space/it'\\''s'"
            )
        );
    }

    #[test]
    fn what_travels_with_a_job_is_placed_in_its_folder_before_it_starts() {
        let files = vec![JobFile { name: "set up.sh".to_owned(), bytes: b"echo\n".to_vec() }];
        let steps = launch_steps(&LaunchSpec { files, ..spec() });
        let at = steps.iter().position(|step| step.label.starts_with("place set up.sh")).unwrap();
        assert!(at + 1 < steps.len(), "the launch is last");
        let path = "'/work space/jobs/20260703-132525_train_00ab/files/set up.sh'";
        assert!(steps[at].command.to_string().ends_with(&format!("{path} 755 5")));
        assert_eq!(steps[at].command.stdin, b"echo\n");
    }

    #[test]
    fn the_command_stands_in_its_file_to_the_letter() {
        let text = command_file(&spec());
        let (head, command) = text.split_once("# ----\n").unwrap();
        assert_eq!(command, "echo \"$A\"\n");
        assert!(head.ends_with("set -o pipefail\nexport 'A=it'\\''s $(id)'\n"), "{head}");
    }

    #[test]
    fn the_meta_is_read_back() {
        let meta: JobMeta = serde_json::from_str(&meta_file(&spec())).unwrap();
        assert_eq!(meta.max_runtime_sec, Some(3600));
        assert_eq!(meta.started_at, Some(spec().started_at));
        assert_eq!(meta.provenance["seed"], 1);
    }
}
