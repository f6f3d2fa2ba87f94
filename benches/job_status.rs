//! What one look at a job costs against the size of its log, beside a short script over a ControlMaster
//! `ssh` that reads the same tail and exit code; and how long a job takes from launch to running.
//! Over a real sshd on loopback. `cargo bench --bench job_status -- [runs]`
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    dead_code,
    missing_docs,
    reason = "a bench"
)]

#[path = "../tests/it/sshd.rs"]
mod sshd;

use podtether::domain::{Ceiling, JobId, JobName, JobState, PodId, RemoteCommand};
use podtether::plan::{LaunchSpec, launch_steps};
use podtether::pod::ssh::{Connection, Tuning};
use podtether::pod::{ExecLimits, JobLook, Look, LookAt, Shell as _, look_command, parse_look};
use sshd::Sshd;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What job_status takes of a log.
const TAIL: u32 = 48 * 1024;
const SIZES: [(&str, u64); 3] = [("1 MB", 1 << 20), ("100 MB", 100 << 20), ("1 GB", 1 << 30)];

fn main() {
    let runs: usize = std::env::args().filter_map(|word| word.parse().ok()).next().unwrap_or(30);
    let Some(sshd) = Sshd::start() else { return };
    let target = sshd.target();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let connection = runtime.block_on(Connection::connect(&target, &Tuning::default())).unwrap();
    let limits =
        ExecLimits { timeout: sshd::CEILING, stdout_bytes: 1 << 20, stderr_bytes: 8 << 10 };
    let run = |command: &RemoteCommand| {
        let output = runtime.block_on(connection.run(command, limits)).unwrap();
        assert!(output.succeeded(), "{output:?}");
        output
    };
    let mount = sshd.path("mount");
    let (mount, pod) = (mount.to_str().unwrap(), PodId("pod1".to_owned()));
    let look = |id: &JobId| -> Look {
        let job = Some(JobLook { id, max_bytes: TAIL, offset: None });
        let patience = Duration::from_secs(30);
        let at = LookAt { mount, pod: &pod, token: "", patience, write: false, job };
        parse_look(&run(&look_command(&at))).unwrap()
    };

    let control = sshd.path("control");
    let ssh = || {
        let mut ssh = Command::new("ssh");
        ssh.args(["-F", "none", "-p", &target.endpoint.port.to_string(), "-o", "BatchMode=yes"])
            .arg("-i")
            .arg(&target.identity)
            .args(["-o", "HostKeyAlias=pod1", "-o"])
            .arg(format!("UserKnownHostsFile={}", target.known_hosts.display()))
            .arg("-S")
            .arg(&control)
            .arg(format!("{}@127.0.0.1", target.endpoint.user))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        ssh
    };
    let mut master = ssh().args(["-M", "-N"]).spawn().unwrap();
    sshd::wait_until("the control master", || control.exists());

    let name = JobName::parse("bench").unwrap();
    let id = |number| JobId::new(chrono::DateTime::UNIX_EPOCH, &name, number);
    println!("one look at a job, median of {runs} runs, in turns; loopback, sshd of this machine");
    println!("{:<8} {:>14} {:>16} {:>7}", "log", "podtether, ms", "ssh + tail, ms", "ratio");
    let folders: Vec<_> = SIZES
        .iter()
        .zip(1..)
        .map(|((_, bytes), number)| {
            let folder = Path::new(mount).join("jobs").join(id(number).as_str());
            write_log(&folder, *bytes);
            (id(number), folder)
        })
        .collect();
    let mut times = vec![(Vec::new(), Vec::new()); SIZES.len()];
    for round in 0..=runs {
        for ((id, folder), (ours, theirs)) in folders.iter().zip(&mut times) {
            let start = Instant::now();
            assert_eq!(look(id).job.unwrap().state, JobState::Succeeded);
            let took = start.elapsed();
            let folder = folder.display();
            let script = format!(
                "tail -c {TAIL} '{folder}/out.log'; cat '{folder}/exit_code'; kill -0 1; true"
            );
            let start = Instant::now();
            assert!(ssh().arg(script).status().unwrap().success());
            if round > 0 {
                ours.push(took);
                theirs.push(start.elapsed());
            }
        }
    }
    for ((size, _), (ours, theirs)) in SIZES.iter().zip(&mut times) {
        let (ours, theirs) = (millis(ours), millis(theirs));
        println!("{size:<8} {ours:>14.1} {theirs:>16.1} {:>7.2}", ours / theirs);
    }

    let mut launches = Vec::new();
    for number in 100..100 + runs.min(20) {
        let spec = LaunchSpec {
            pod: pod.clone(),
            mount: mount.to_owned(),
            job_id: id(u16::try_from(number).unwrap()),
            name: name.clone(),
            command: "touch began; sleep 1000".to_owned(),
            workdir: Path::new(mount)
                .join("jobs")
                .join(id(u16::try_from(number).unwrap()).as_str())
                .display()
                .to_string(),
            ceiling: Ceiling::from_secs(600).unwrap(),
            auto_stop: false,
            env: BTreeMap::new(),
            started_at: chrono::DateTime::UNIX_EPOCH,
            unknown_launches: Vec::new(),
            replacements: Vec::new(),
            force: false,
            provenance: BTreeMap::new(),
            files: Vec::new(),
        };
        let start = Instant::now();
        for step in launch_steps(&spec) {
            run(&step.command);
        }
        let began = Path::new(&spec.workdir).join("began");
        while !began.exists() {
            std::thread::yield_now();
        }
        launches.push(start.elapsed());
        assert_eq!(look(&spec.job_id).job.unwrap().state, JobState::Running);
        let pid = std::fs::read_to_string(Path::new(&spec.workdir).join("pid")).unwrap();
        let pid = pid.split(' ').next().unwrap().to_owned();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        sshd::wait_until("its end", || Path::new(&spec.workdir).join("exit_code").exists());
    }
    println!("launch to running (five round trips): {:.0} ms", millis(&mut launches));
    let _ = master.kill();
    let _ = master.wait();
}

/// A job that has ended, with a log of progress lines.
fn write_log(folder: &Path, bytes: u64) {
    std::fs::create_dir_all(folder.join("launched")).unwrap();
    std::fs::write(folder.join("exit_code"), "0\n").unwrap();
    let line = format!("{}\n", "Learning iteration 7/1500 mean reward 12.5 ".repeat(3));
    let block = line.repeat((1 << 20) / line.len());
    let mut log = std::fs::File::create(folder.join("out.log")).unwrap();
    for _ in 0..bytes.div_ceil(1 << 20) {
        log.write_all(block.as_bytes()).unwrap();
    }
}

fn millis(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}
