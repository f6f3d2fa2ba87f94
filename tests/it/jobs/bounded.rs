//! A look is bounded in time, whatever hangs, and tells all that does not.

use super::{Bench, eventually, is_gone, log_of, look_at, pid_line};
use podtether::domain::{JobState, PodId};
use podtether::pod::jobs::LiveJobsError;
use podtether::pod::{JobLook, Look, LookAt, MountKind, look_command, parse_look};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A file that hangs whoever opens it, as everything does on a volume that has stopped answering.
fn hang(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn short_look(bench: &Bench, id: Option<&podtether::domain::JobId>) -> (Look, Duration) {
    let mount = bench.mount();
    let job = id.map(|id| JobLook { id, max_bytes: 1_000, offset: None });
    let at = LookAt { patience: Duration::from_secs(2), job, ..look_at(&mount) };
    let start = Instant::now();
    let look = parse_look(&bench.run(&look_command(&at))).unwrap();
    (look, start.elapsed())
}

/// E14: "volume unresponsive" in time, and the pod, its GPU and its disk are told all the same. What
/// hung is not left behind.
#[test]
fn a_frozen_volume_is_told_in_time_and_hides_nothing_else() {
    let bench = Bench::new();
    bench.environment_file("export RUNPOD_POD_ID=pod1\n");
    bench.fake("nvidia-smi", "echo '550.54.15, 87, 1024, 24564'");
    // Whoever looks at the mount says who he is and hangs.
    let who = bench.path("tmp/who");
    bench.fake("stat", &format!("echo $$ >>'{}'; exec /bin/sleep 1000", who.display()));
    let id = bench.folder(&[("exit_code", b"0\n")]);
    let (look, took) = short_look(&bench, Some(&id));
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_eq!((look.pod.volume_answers, look.pod.mount), (false, MountKind::Unresponsive));
    assert_eq!(look.live_jobs, Err(LiveJobsError::Unresponsive));
    assert_eq!(look.pod.pod_id, Some(PodId("pod1".to_owned())));
    assert_eq!(look.pod.gpus[0].percent, Some(87));
    assert!(look.pod.gpu_answers && look.pod.disk_free.unwrap() > 0);
    let (used, total) = look.pod.memory.unwrap();
    assert!(0 < used && used < total, "{used} of {total}");
    let job = look.job.unwrap();
    assert_eq!((job.state, job.exit_code, job.log), (JobState::Unknown, None, None));
    assert!(job.note.unwrap().contains("volume unresponsive"));
    let hung = fs::read_to_string(who).unwrap();
    for pid in hung.lines() {
        eventually("the end of what hung", || is_gone(pid).then_some(()));
    }
}

/// E14: the same when it is one file that hangs, late in the look.
#[test]
fn a_log_that_hangs_is_a_volume_that_hangs() {
    let bench = Bench::new();
    let id = bench.folder(&[("exit_code", b"0\n")]);
    hang(&bench.job_dir(&id).join("out.log"));
    let (look, took) = short_look(&bench, Some(&id));
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_eq!(look.job.unwrap().state, JobState::Unknown);
    assert_eq!(look.live_jobs, Ok(vec![]), "what came whole before counts");
}

/// E14, E07: the wrapper's notes beside the volume tell a running job from one that has ended.
#[test]
fn a_job_on_a_frozen_volume_is_known_by_what_lies_beside_it() {
    let bench = Bench::new();
    bench.fake("mv", "case ${@: -1} in *' space'*/exit_code) exit 1 ;; esac\nexec /bin/mv \"$@\"");
    let spec = bench.spec("echo $$ >job; until [ -e go ]; do sleep 0.1; done; exit 6", 60);
    bench.launch(&spec);
    bench.written("job");
    let pid = fs::read_to_string(bench.job_dir(&spec.job_id).join("pid")).unwrap();
    hang(&bench.job_dir(&spec.job_id).join("exit_code"));
    let job = short_look(&bench, Some(&spec.job_id)).0.job.unwrap();
    assert_eq!((job.state, job.exit_code), (JobState::Running, None), "{job:?}");
    fs::write(bench.path("work space/go"), "").unwrap();
    let pid = pid.split(' ').next().unwrap();
    eventually("the wrapper ends", || is_gone(pid).then_some(()));
    let job = short_look(&bench, Some(&spec.job_id)).0.job.unwrap();
    assert_eq!((job.state, job.exit_code), (JobState::Failed, Some(6)), "{job:?}");
    assert!(job.note.unwrap().contains("volume unresponsive"));
}

/// nvidia-smi hangs on a sick GPU; everything else is told.
#[test]
fn a_gpu_that_hangs_hides_nothing_else() {
    let bench = Bench::new();
    let who = bench.path("tmp/who");
    bench.fake("nvidia-smi", &format!("echo $$ >'{}'; exec /bin/sleep 1000", who.display()));
    let id = bench.folder(&[("pid", pid_line(std::process::id()).as_bytes()), ("out.log", b"x")]);
    let (look, took) = short_look(&bench, Some(&id));
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert!(look.pod.volume_answers && !look.pod.gpu_answers && look.pod.gpus.is_empty());
    let job = look.job.unwrap();
    assert_eq!((job.state, log_of(&job)), (JobState::Running, &b"x"[..]));
    let pid = fs::read_to_string(who).unwrap();
    eventually("the end of what hung", || is_gone(pid.trim()).then_some(()));
}

/// E04, on a disk that is really full: neither the result nor the auto-stop is lost, and no further job
/// is let onto it. Needs the right to mount.
#[test]
fn a_full_disk_loses_neither_the_result_nor_the_auto_stop() {
    let bench = Bench::new();
    let mount = bench.path("work space");
    let words = ["-t", "tmpfs", "-o", "size=512k", "none"];
    let mounted = Command::new("mount").args(words).arg(&mount).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        crate::sshd::skip("no right to mount a small disk");
        return;
    }
    let _unmount = Unmount(mount.clone());
    let calls = bench.path("tmp/calls");
    bench.fake("runpodctl", &format!("echo \"$@\" >>{}", calls.display()));
    let mut spec = bench.spec("dd if=/dev/zero of=fill bs=4k; echo full >>more; exit 7", 60);
    spec.auto_stop = true;
    bench.launch(&spec);
    eventually("the stop", || calls.exists().then_some(()));
    let pid = fs::read_to_string(bench.job_dir(&spec.job_id).join("pid")).unwrap();
    eventually("the wrapper ends", || is_gone(pid.split(' ').next().unwrap()).then_some(()));
    let status = bench.status(&spec.job_id);
    assert_eq!((status.state, status.exit_code), (JobState::Failed, Some(7)), "{status:?}");
    assert!(status.note.unwrap().contains("volume full"));
    let path = bench.mount();
    let look = parse_look(&bench.run(&look_command(&LookAt { write: true, ..look_at(&path) })));
    let pod = look.unwrap().pod;
    assert!(pod.write_fault.as_deref().unwrap().contains("No space left"), "{pod:?}");
    assert_eq!((pod.mount_free, pod.mount), (Some(0), MountKind::Device));
    fs::remove_file(mount.join("fill")).unwrap();
    let look = parse_look(&bench.run(&look_command(&LookAt { write: true, ..look_at(&path) })));
    assert_eq!(look.unwrap().pod.write_fault.as_deref(), Some(""));
    assert_eq!(fs::read_dir(mount.join(".podtether")).unwrap().count(), 1, "nothing is left");
}

struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
