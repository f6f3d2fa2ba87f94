//! The real scripts of `remote/` with the real bash, a temporary folder standing in for the pod.
//! They run on Linux, as on a pod.
#![cfg(target_os = "linux")]

mod arming;
mod bounded;
mod exec;
mod launch;
mod live;
mod probe;
mod scripts;
mod status;
mod stop;
mod watchdog;
mod wrapper;

use chrono::Utc;
use podtether::domain::{Ceiling, JobId, JobName, JobState, PodId, RemoteCommand};
use podtether::plan::{LaunchSpec, PodStep, launch_steps};
use podtether::pod::jobs::{AnswerError, JobStatus};
use podtether::pod::{
    Captured, ExecOutput, ExecStatus, JobLook, Look, LookAt, look_command, parse_look,
};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// A folder that stands in for a pod: a volume, a temporary folder, an environment file and a
/// folder of fake programs.
pub struct Bench {
    root: tempfile::TempDir,
    extra: BTreeMap<String, String>,
}

impl Bench {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["work space", "tmp", "bin"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self { root, extra: BTreeMap::new() }
    }

    /// With an environment variable for every script.
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.extra.insert(key.to_owned(), value.to_owned());
        self
    }

    /// The same for a bench that is in use.
    pub fn set(&mut self, key: &str, value: &str) {
        self.extra.insert(key.to_owned(), value.to_owned());
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn mount(&self) -> String {
        self.path("work space").to_str().unwrap().to_owned()
    }

    pub fn job_dir(&self, id: &JobId) -> PathBuf {
        Path::new(&self.mount()).join("jobs").join(id.as_str())
    }

    /// Puts a program in front of the real one of that name.
    pub fn fake(&self, name: &str, body: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/bash\n{body}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Has every stop of a pod succeed; the file in which they are noted.
    pub fn stops(&self) -> PathBuf {
        let calls = self.path("tmp/calls");
        self.fake("runpodctl", &format!("echo \"$@\" >>{}", calls.display()));
        calls
    }

    pub fn environment_file(&self, text: &str) {
        fs::write(self.path("rp_environment"), text).unwrap();
    }

    pub fn command(&self, argv: &[String]) -> Command {
        let mut command = Command::new(&argv[0]);
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        command
            .args(&argv[1..])
            .env("PATH", path)
            .env("TMPDIR", self.path("tmp"))
            .env("PODTETHER_RP_ENVIRONMENT", self.path("rp_environment"))
            .env("PODTETHER_KILL_GRACE_SEC", "1")
            .env("PODTETHER_STOP_GAP_SEC", "0")
            .env("PODTETHER_STOP_TRIES", "4")
            .env_remove("RUNPOD_API_KEY")
            .env_remove("RUNPOD_POD_ID")
            .env_remove("PYTHONUNBUFFERED")
            .envs(&self.extra);
        command
    }

    /// Runs a command as a pod's shell would, to its end and until its pipes are closed.
    pub fn run(&self, command: &RemoteCommand) -> ExecOutput {
        let mut child = self
            .command(command.argv())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&command.stdin).unwrap();
        let output = child.wait_with_output().unwrap();
        let captured = |bytes: Vec<u8>| Captured { total: bytes.len() as u64, bytes };
        ExecOutput {
            status: output.status.code().map_or_else(
                || ExecStatus::Signal(format!("{:?}", output.status.signal())),
                |code| ExecStatus::Code(u32::try_from(code).unwrap()),
            ),
            stdout: captured(output.stdout),
            stderr: captured(output.stderr),
        }
    }

    /// A launch of `command` on the volume, with a ceiling in seconds.
    pub fn spec(&self, command: &str, ceiling: u32) -> LaunchSpec {
        let name = JobName::parse("job").unwrap();
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let random = NEXT.fetch_add(1, Ordering::Relaxed);
        LaunchSpec {
            pod: PodId("pod1".to_owned()),
            mount: self.mount(),
            job_id: JobId::new(Utc::now(), &name, random),
            name,
            command: command.to_owned(),
            workdir: self.mount(),
            ceiling: Ceiling::from_secs(ceiling).unwrap(),
            auto_stop: false,
            env: BTreeMap::new(),
            started_at: Utc::now(),
            unknown_launches: Vec::new(),
            replacements: Vec::new(),
            force: false,
            provenance: BTreeMap::new(),
            files: Vec::new(),
        }
    }

    /// Runs every step of a launch; the last one must have started the job.
    pub fn launch(&self, spec: &LaunchSpec) {
        let last = self.run_steps(&launch_steps(spec));
        assert!(last.stdout.text().starts_with("launched "), "{last:?}");
    }

    pub fn run_steps(&self, steps: &[PodStep]) -> ExecOutput {
        let mut last = None;
        for step in steps {
            let output = self.run(&step.command);
            assert!(output.succeeded(), "{}: {output:?}", step.label);
            last = Some(output);
        }
        last.unwrap()
    }

    pub fn status(&self, id: &JobId) -> JobStatus {
        self.look(Some(id)).job.unwrap()
    }

    /// One look at the pod, and at a job with the last 64 KiB of its log.
    pub fn look(&self, id: Option<&JobId>) -> Look {
        let mount = self.mount();
        let job = id.map(|id| JobLook { id, max_bytes: 65_536, offset: None });
        parse_look(&self.run(&look_command(&LookAt { job, ..look_at(&mount) }))).unwrap()
    }

    /// Launches a job and waits until it has ended.
    pub fn finish(&self, command: &str, ceiling: u32) -> (JobId, JobStatus) {
        let spec = self.spec(command, ceiling);
        self.launch(&spec);
        let status = self.ended(&spec.job_id);
        (spec.job_id, status)
    }

    pub fn ended(&self, id: &JobId) -> JobStatus {
        eventually("the job ends", || Some(self.status(id)).filter(|s| s.state.has_ended()))
    }

    /// A file that the job wrote on the volume, once it is there with a whole line.
    pub fn written(&self, name: &str) -> String {
        let path = Path::new(&self.mount()).join(name);
        eventually(name, || fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n')))
            .trim()
            .to_owned()
    }

    /// A job folder as it is found, with the given files.
    pub fn folder(&self, files: &[(&str, &[u8])]) -> JobId {
        let id = self.spec("", 1).job_id;
        let dir = self.job_dir(&id);
        fs::create_dir_all(dir.join("launched")).unwrap();
        for (name, content) in files {
            fs::write(dir.join(name), content).unwrap();
        }
        id
    }
}

/// A look that leaves nothing behind.
pub fn look_at(mount: &str) -> LookAt<'_> {
    static POD: LazyLock<PodId> = LazyLock::new(|| PodId("pod1".to_owned()));
    let patience = Duration::from_secs(30);
    LookAt { mount, pod: &POD, token: "", patience, write: false, job: None }
}

pub fn status_command(
    mount: &str,
    id: &JobId,
    max_bytes: u32,
    offset: Option<u64>,
) -> RemoteCommand {
    let job = Some(JobLook { id, max_bytes, offset });
    look_command(&LookAt { job, ..look_at(mount) })
}

pub fn parse_status(output: &ExecOutput) -> Result<JobStatus, AnswerError> {
    parse_look(output).map(|look| look.job.unwrap())
}

/// The log that a look brought.
pub fn log_of(status: &JobStatus) -> &[u8] {
    &status.log.as_ref().unwrap().bytes
}

/// Waits until `look` finds something; generous, since the machine may be busy.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "not within 60 s: {what}");
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// State letter and start time of a process.
pub fn process(pid: &str) -> Option<(String, String)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    Some((fields[0].to_owned(), fields[19].to_owned()))
}

pub fn is_gone(pid: &str) -> bool {
    assert!(!pid.is_empty());
    process(pid).is_none_or(|(state, _)| state == "Z" || state == "X")
}

/// The pid line that a wrapper with this pid would have written.
pub fn pid_line(pid: u32) -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let (_, start) = process(&pid.to_string()).unwrap();
    format!("{pid} {start} {}\n", boot.trim())
}

/// A pid line of this boot whose process has ended.
pub fn dead_pid_line() -> String {
    let mut child = Command::new("sleep").arg("100").spawn().unwrap();
    let line = pid_line(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    line
}

#[test]
fn a_job_that_ends_well_has_succeeded() {
    let bench = Bench::new();
    let (id, status) = bench.finish("pwd; echo err >&2; read line || echo eof", 60);
    assert_eq!((status.state, status.exit_code), (JobState::Succeeded, Some(0)), "{status:?}");
    assert_eq!(log_of(&status), format!("{}\nerr\neof\n", bench.mount()).into_bytes());
    assert_eq!(status.meta.unwrap().max_runtime_sec, Some(60));
    assert_eq!(
        (status.ceiling_struck, &status.leftovers[..], &status.note),
        (false, &[][..], &None)
    );
    assert_eq!(fs::read_to_string(bench.job_dir(&id).join("exit_code")).unwrap(), "0\n");
}
