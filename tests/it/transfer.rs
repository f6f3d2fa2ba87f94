//! Pulls from a real OpenSSH server with the real rsync, through the real binary as its transport.

mod ends;
mod growing;
mod room;

use crate::sshd::{CEILING, Sshd, free_port, skip};
use podtether::domain::RemoteCommand;
use podtether::pod::ssh::{PodShell, Tuning};
use podtether::pod::transfer::{
    Carrier, Check, Progress, PullReport, PullRequest, RsyncProgram, TransferError, pull,
};
use podtether::pod::{ExecLimits, ExecOutput, Shell, ShellError};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A pod with a folder to pull, and a place to pull it to.
struct Scene {
    sshd: Sshd,
    rsync: RsyncProgram,
    shell: PodShell,
    remote: PathBuf,
    local: PathBuf,
}

impl Scene {
    async fn new() -> Option<Self> {
        Self::with("").await
    }

    async fn with(environment: &str) -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let Ok(rsync) = RsyncProgram::probe(&path).await else {
            skip("no rsync on this machine");
            return None;
        };
        let sshd = Sshd::start_with("", environment)?;
        let remote = sshd.path("pod's job $(touch PWN)");
        let local = sshd.path("results here").join("job");
        fs::create_dir(&remote).unwrap();
        let tuning = Tuning { connect_timeout: CEILING, ..Tuning::default() };
        let shell = PodShell::new(sshd.target(), tuning);
        Some(Self { sshd, rsync, shell, remote, local })
    }

    fn request(&self) -> PullRequest {
        PullRequest::new(
            self.shell.target().clone(),
            self.shell.tuning().clone(),
            PathBuf::from(env!("CARGO_BIN_EXE_podtether")),
            Some(self.rsync.clone()),
            self.remote.to_str().unwrap().to_owned(),
            self.local.clone(),
        )
    }

    async fn pull(&self) -> Result<PullReport, TransferError> {
        pull(&self.request(), &self.shell, |_| {}).await
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.remote.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn has_staging(&self) -> bool {
        fs::read_dir(self.local.parent().unwrap())
            .unwrap()
            .any(|entry| entry.unwrap().file_name().to_str().unwrap().starts_with(".podtether"))
    }

    /// A program of its own in place of rsync.
    fn wrapped_rsync(&self, body: &str) -> RsyncProgram {
        let path = self.sshd.path("wrapped-rsync");
        let real = self.rsync.path.display();
        program(&path, &format!("real='{real}'\n{body}"));
        RsyncProgram { path, ..self.rsync.clone() }
    }
}

/// A program of these lines of bash. Written by a process of its own: a file that this process holds
/// open for writing, if only in a fork of another test's thread, can not be run.
fn program(path: &Path, body: &str) {
    let text = format!("#!/bin/bash\n{body}\n");
    let written = Command::new("sh")
        .args(["-c", r#"printf %s "$1" >"$0" && chmod 755 "$0""#])
        .arg(path)
        .arg(text)
        .status();
    assert!(written.unwrap().success());
}

/// Bytes that no delta can find twice.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            found.extend(
                tree(&path).into_iter().map(|(sub, bytes)| (format!("{name}/{sub}"), bytes)),
            );
        } else if meta.is_symlink() {
            found.push((name, fs::read_link(&path).unwrap().to_str().unwrap().into()));
        } else {
            found.push((name, fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

const HOSTILE: [&str; 14] = [
    "plain",
    "a b",
    " lead",
    "trail ",
    "new\nline",
    "back\\slash",
    "*",
    "?[x]",
    "-n",
    "$(touch PWN)",
    "it's \"q\"",
    "#hash",
    "~",
    "é ü",
];

/// D09: any name arrives byte for byte, and nothing in one is run.
#[tokio::test]
async fn a_tree_of_hostile_names_arrives_whole() {
    let Some(scene) = Scene::new().await else { return };
    for name in HOSTILE {
        scene.write(name, name);
        scene.write(&format!("sub dir/{name}"), format!("2 {name}"));
        scene.write(&format!("{name}.d/x"), "x");
    }
    scene.write("empty", "");
    symlink("plain", scene.remote.join("link")).unwrap();
    let report = scene.pull().await.unwrap();
    assert!(report.complete, "{report:?}");
    assert_eq!((report.files, report.carrier), (14 * 3 + 2, Carrier::Rsync));
    assert_eq!(tree(&scene.local), tree(&scene.remote));
    assert!(!scene.has_staging());
    // Nothing came of it anywhere that a shell could have been.
    let sshd = scene.sshd.folder.path();
    assert!(!sshd.join("PWN").exists() && !scene.local.join("PWN").exists());
    let again = scene.pull().await.unwrap();
    assert!(again.complete && again.files == 0, "{again:?}");
}

/// The same with the words of a stock Mac's rsync, which escapes nothing itself.
#[tokio::test]
async fn a_client_that_escapes_nothing_is_safe_too() {
    let Some(scene) = Scene::new().await else { return };
    for name in HOSTILE {
        scene.write(name, name);
    }
    // RSYNC_OLD_ARGS makes rsync 3 pass raw words, as openrsync and 2.6.9 do.
    let body = "export RSYNC_OLD_ARGS=1; exec \"$real\" \"$@\"";
    let rsync =
        RsyncProgram { protects_args: false, total_progress: false, ..scene.wrapped_rsync(body) };
    let request = PullRequest { rsync: Some(rsync), ..scene.request() };
    let mut last = Progress::default();
    let report = pull(&request, &scene.shell, |progress| last = progress).await.unwrap();
    assert!(report.complete, "{report:?}");
    assert_eq!(tree(&scene.local), tree(&scene.remote));
    assert_eq!(last.bytes, last.total_bytes);
    let home = std::env::var_os("HOME").unwrap_or_default();
    assert!(!Path::new(&home).join("PWN").exists());
}

/// What was received before the transport died is not sent again.
#[tokio::test]
async fn a_pull_whose_transport_was_killed_goes_on_where_it_was() {
    let Some(scene) = Scene::new().await else { return };
    const SIZE: usize = 30_000_000;
    scene.write("model.pt", noise(SIZE));
    // Slow, so that it can be killed in the middle: once, then let through.
    let limited = scene.wrapped_rsync("exec \"$real\" --bwlimit=6000 \"$@\"");
    let request = PullRequest { rsync: Some(limited), ..scene.request() };
    let killed = AtomicUsize::new(0);
    let report = pull(&request, &scene.shell, |progress| {
        if progress.bytes > 5_000_000 && killed.load(Ordering::Relaxed) == 0 {
            killed.store(1, Ordering::Relaxed);
            let ours = scene.sshd.folder.path().display().to_string();
            for pid in transports_for(&ours) {
                let _ = Command::new("kill").args(["-KILL", &pid]).output();
                killed.fetch_add(1, Ordering::Relaxed);
            }
        }
    })
    .await
    .unwrap();
    assert_eq!(killed.load(Ordering::Relaxed), 2, "one transport was to be killed");
    assert!(report.complete, "{report:?}");
    assert_eq!(fs::read(scene.local.join("model.pt")).unwrap(), noise(SIZE));
    // The run that broke tells no figure, so count the one that went on.
    let received = report.received_bytes;
    assert!(received < SIZE as u64 * 9 / 10, "{received} of {SIZE} bytes were sent again");
}

/// Other tests of this process pull too, so a transport is known by its rsync. One look at all
/// processes: on a busy machine one for each would outlast the transfer.
fn transports_for(folder: &str) -> Vec<String> {
    let listed = Command::new("ps").args(["-A", "-ww", "-o", "pid=,ppid=,command="]).output();
    let text = String::from_utf8_lossy(&listed.unwrap().stdout).into_owned();
    let processes: Vec<(&str, &str, &str)> = text
        .lines()
        .filter_map(|line| {
            let (pid, rest) = line.trim_start().split_once(' ')?;
            let (parent, command) = rest.trim_start().split_once(' ')?;
            Some((pid, parent, command))
        })
        .collect();
    let is_ours =
        |pid: &str| processes.iter().any(|(of, _, line)| *of == pid && line.contains(folder));
    processes
        .iter()
        // rsync names the transport behind -e, in its own forks too.
        .filter(|(_, _, line)| line.contains("podtether transport") && !line.contains(" -e "))
        .filter(|(_, parent, _)| is_ours(parent))
        .map(|(pid, _, _)| (*pid).to_owned())
        .collect()
}

/// A second pull takes up what an interrupted one left.
#[tokio::test]
async fn a_pull_that_was_dropped_is_taken_up_by_the_next() {
    let Some(scene) = Scene::new().await else { return };
    const SIZE: usize = 30_000_000;
    scene.write("model.pt", noise(SIZE));
    let limited = scene.wrapped_rsync("exec \"$real\" --bwlimit=6000 \"$@\"");
    let request = PullRequest { rsync: Some(limited), ..scene.request() };
    let (reached, mut wait) = tokio::sync::mpsc::unbounded_channel();
    {
        let pulling = pull(&request, &scene.shell, move |progress| {
            if progress.bytes > 5_000_000 {
                let _ = reached.send(());
            }
        });
        tokio::select! {
            ended = pulling => panic!("it ended: {ended:?}"),
            _ = wait.recv() => {}
        }
    }
    assert!(scene.has_staging() && !scene.local.join("model.pt").exists());
    // rsync was asked to stop and puts what it has under a name that it takes up again; the staging
    // folder is held until it is gone.
    let mut report = scene.pull().await;
    let start = Instant::now();
    while matches!(report, Err(TransferError::Busy { .. })) && start.elapsed() < CEILING {
        tokio::time::sleep(Duration::from_millis(50)).await;
        report = scene.pull().await;
    }
    let report = report.unwrap();
    assert!(report.complete, "{report:?}");
    assert!(report.received_bytes < SIZE as u64 * 9 / 10, "{report:?}");
    assert!(!scene.has_staging());
}

#[tokio::test]
async fn what_leads_out_or_is_no_file_is_left_out_and_said() {
    let Some(scene) = Scene::new().await else { return };
    scene.write("a/real", "x");
    symlink("../..", scene.remote.join("a/up")).unwrap();
    symlink("/etc/passwd", scene.remote.join("abs")).unwrap();
    symlink("a/real", scene.remote.join("fine")).unwrap();
    let pipe = scene.remote.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let report = scene.pull().await.unwrap();
    assert!(report.complete, "{report:?}");
    let names: Vec<String> = tree(&scene.local).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a/real", "fine"]);
    for name in ["a/up", "abs", "pipe"] {
        let said = report
            .warnings
            .iter()
            .any(|warning| warning.starts_with(&format!("{name} was left out")));
        assert!(said, "{name}: {:?}", report.warnings);
    }
}

/// D02: a file that came out shorter than the pod's is fetched again, and named if that fails.
#[tokio::test]
async fn a_truncated_file_is_noticed() {
    let Some(scene) = Scene::new().await else { return };
    scene.write("model.pt", noise(100_000));
    scene.write("log.txt", "log");
    // It damages what rsync has received, the first time or always.
    let cut = "\"$real\" \"$@\"; code=$?; dst=${!#}; ";
    let once = "if [[ ! -e $0.done ]]; then touch \"$0.done\"; echo short > \"$dst/model.pt\"; fi; exit $code";
    let always = "echo short > \"$dst/model.pt\"; exit $code";
    let rsync = scene.wrapped_rsync(&format!("{cut}{always}"));
    let request = PullRequest { rsync: Some(rsync), ..scene.request() };
    fs::create_dir_all(&scene.local).unwrap();
    fs::write(scene.local.join("model.pt"), "the old one").unwrap();
    let report = pull(&request, &scene.shell, |_| {}).await.unwrap();
    assert!(!report.complete);
    assert_eq!(report.missing, ["model.pt"]);
    assert_eq!(fs::read(scene.local.join("model.pt")).unwrap(), b"the old one");
    assert_eq!(fs::read(scene.local.join("log.txt")).unwrap(), b"log");

    let rsync = scene.wrapped_rsync(&format!("{cut}{once}"));
    let request = PullRequest { rsync: Some(rsync), ..scene.request() };
    let report = pull(&request, &scene.shell, |_| {}).await.unwrap();
    assert!(report.complete, "{report:?}");
    assert_eq!(fs::read(scene.local.join("model.pt")).unwrap(), noise(100_000));
}

/// Writes to a file each time it is asked anything, as a job at work would.
struct Busy<'a> {
    shell: &'a PodShell,
    log: PathBuf,
}

#[async_trait::async_trait]
impl Shell for Busy<'_> {
    async fn run(
        &self,
        command: &RemoteCommand,
        limits: ExecLimits,
    ) -> Result<ExecOutput, ShellError> {
        use std::io::Write as _;
        let mut log = fs::OpenOptions::new().append(true).open(&self.log).unwrap();
        log.write_all(b"another line\n").unwrap();
        self.shell.run(command, limits).await
    }
}

/// D02: a file that grows during the pull comes as it was, and the pull is not called complete.
#[tokio::test]
async fn a_file_that_is_being_written_comes_as_a_snapshot() {
    let Some(scene) = Scene::new().await else { return };
    scene.write("out.log", "first line\n");
    scene.write("meta.json", "{}");
    scene.write("last.ckpt", "");
    for check in [Check::Hashes, Check::Sizes] {
        let busy = Busy { shell: &scene.shell, log: scene.remote.join("out.log") };
        let request = PullRequest { check, ..scene.request() };
        let report = pull(&request, &busy, |_| {}).await.unwrap();
        assert_eq!(
            (report.complete, report.missing.as_slice()),
            (false, &["out.log".to_owned()][..])
        );
        let log = fs::read_to_string(scene.local.join("out.log")).unwrap();
        assert!(log.starts_with("first line\nanother line\n"), "{log}");
        assert!(report.warnings.iter().any(|said| said == "last.ckpt is empty on the pod"));
    }
    assert!(scene.pull().await.unwrap().complete);
}

/// Links to everything that the scripts use but rsync, for a pod's PATH.
fn without_rsync(folder: &Path) {
    for program in [
        "awk",
        "bash",
        "date",
        "df",
        "find",
        "head",
        "perl",
        "sha256sum",
        "shasum",
        "stat",
        "tail",
        "tar",
        "timeout",
        "xargs",
    ] {
        for at in ["/usr/bin", "/bin"] {
            let path = Path::new(at).join(program);
            if path.exists() {
                let _ = symlink(&path, folder.join(program));
            }
        }
    }
}

/// D05: no rsync on the pod.
#[tokio::test]
async fn a_pod_without_rsync_is_served_by_tar() {
    // A PATH of the pod's own, with everything but rsync.
    let folder = tempfile::tempdir().unwrap();
    without_rsync(folder.path());
    let path = format!("PATH={}", folder.path().display());
    let Some(scene) = Scene::with(&path).await else { return };
    for name in HOSTILE {
        scene.write(&format!("d/{name}"), name);
    }
    symlink("/etc/passwd", scene.remote.join("abs")).unwrap();
    let report = scene.pull().await.unwrap();
    assert!(report.complete, "{report:?}");
    assert_eq!((report.carrier, report.files), (Carrier::Tar, 14));
    assert!(report.warnings.iter().any(|said| said.contains("no apt-get")), "{report:?}");
    assert!(report.warnings.iter().any(|said| said.starts_with("abs was left out")), "{report:?}");
    let names: Vec<String> = tree(&scene.local).into_iter().map(|(name, _)| name).collect();
    assert!(names.len() == 14 && names.contains(&"d/new\nline".to_owned()), "{names:?}");

    // No rsync here either.
    scene.write("later", "x");
    let request = PullRequest { rsync: None, ..scene.request() };
    let report = pull(&request, &scene.shell, |_| {}).await.unwrap();
    assert!(report.complete && scene.local.join("later").is_file(), "{report:?}");
}

/// D03: each way in which rsync ends leads to its own answer.
#[tokio::test]
async fn exit_codes_of_rsync_are_told_apart() {
    let Some(scene) = Scene::new().await else { return };
    scene.write("a", "1");
    let ended = async |body: &str| {
        let request = PullRequest { rsync: Some(scene.wrapped_rsync(body)), ..scene.request() };
        pull(&request, &scene.shell, |_| {}).await
    };
    let full = ended("echo 'write failed: No space left on device' >&2; exit 11").await;
    assert!(
        matches!(full, Err(TransferError::LocalDisk { detail }) if detail.contains("No space"))
    );
    assert!(matches!(ended("exit 20").await, Err(TransferError::Interrupted)));
    assert!(matches!(ended("kill -TERM $$").await, Err(TransferError::Interrupted)));
    let ours = ended("exit 2").await;
    assert!(matches!(ours, Err(TransferError::Program { code: 2, .. })));
    assert!(!scene.local.join("a").exists());

    // Nothing came, so the pod's list decides, whatever the code says.
    for body in ["exit 23", "exit 0"] {
        let report = ended(body).await.unwrap();
        assert_eq!((report.complete, report.missing), (false, vec!["a".to_owned()]), "{body}");
    }
    let report = ended("\"$real\" \"$@\"; exit 24").await.unwrap();
    assert!(report.complete, "{report:?}");
    assert!(report.warnings.iter().any(|said| said.contains("vanished")), "{report:?}");
}

/// D08: pulls never delete, and what looks like an unmounted volume is refused.
#[tokio::test]
async fn nothing_local_is_deleted_and_an_empty_or_absent_folder_is_refused() {
    let Some(scene) = Scene::new().await else { return };
    fs::create_dir_all(scene.local.join("mine")).unwrap();
    fs::write(scene.local.join("mine/notes"), "mine").unwrap();
    let error = scene.pull().await.unwrap_err();
    assert!(matches!(error, TransferError::EmptyFolder { .. }), "{error}");
    for (path, expected) in [("/no/such folder", true), ("relative", false), ("", false)] {
        let request = PullRequest { remote_dir: path.to_owned(), ..scene.request() };
        let error = pull(&request, &scene.shell, |_| {}).await.unwrap_err();
        assert_eq!(matches!(error, TransferError::NoSuchFolder { .. }), expected, "{error}");
    }
    scene.write("a", "1");
    scene.write("b", "1");
    assert!(scene.pull().await.unwrap().complete);
    fs::remove_file(scene.remote.join("a")).unwrap();
    assert!(scene.pull().await.unwrap().complete);
    let names: Vec<String> = tree(&scene.local).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "b", "mine/notes"]);
}

#[tokio::test]
async fn what_is_here_already_is_not_sent_again() {
    let Some(scene) = Scene::new().await else { return };
    scene.write("big", noise(5_000_000));
    assert!(scene.pull().await.unwrap().complete);
    scene.write("small", "x");
    let report = scene.pull().await.unwrap();
    assert_eq!((report.complete, report.files, report.bytes), (true, 1, 1));
    assert!(report.received_bytes < 100_000, "{report:?}");
    // Damaged here without a trace in size or time: the pod's list tells, and it is mended.
    let big = scene.local.join("big");
    let time = fs::metadata(&big).unwrap().modified().unwrap();
    let mut damaged = noise(5_000_000);
    damaged[2_500_000] ^= 1;
    fs::write(&big, damaged).unwrap();
    fs::File::options().write(true).open(&big).unwrap().set_modified(time).unwrap();
    assert!(scene.pull().await.unwrap().complete);
    assert_eq!(fs::read(&big).unwrap(), noise(5_000_000));
}

/// F03: rsync's own time-out does not see a remote rsync that stands still.
#[tokio::test]
async fn a_remote_rsync_that_stands_still_is_given_up() {
    let Some(scene) = Scene::new().await else { return };
    scene.write("big", noise(30_000_000));
    let limited = scene.wrapped_rsync("exec \"$real\" --bwlimit=6000 \"$@\"");
    let stall = Duration::from_secs(2);
    let request = PullRequest { rsync: Some(limited), stall, ..scene.request() };
    let mut frozen = 0;
    let report = pull(&request, &scene.shell, |progress| {
        if progress.bytes > 5_000_000 && frozen == 0 {
            for pid in scene.sshd.sessions() {
                let listed = Command::new("ps")
                    .args(["-ww", "-o", "command=", "-p", &pid])
                    .output()
                    .unwrap();
                if String::from_utf8_lossy(&listed.stdout).starts_with("rsync --server") {
                    let _ = Command::new("kill").args(["-STOP", &pid]).output();
                    frozen += 1;
                }
            }
        }
    })
    .await
    .unwrap();
    assert_eq!(frozen, 1);
    assert!(report.complete, "{report:?}");
}

/// D03: a link that stays down ends in an error that says so, within bounds.
#[tokio::test]
async fn a_link_that_stays_down_is_an_error_and_keeps_what_has_come() {
    let Some(scene) = Scene::new().await else { return };
    scene.write("a", "1");
    let mut request = scene.request();
    request.target.endpoint.port = free_port();
    let error = pull(&request, &scene.shell, |_| {}).await.unwrap_err();
    assert!(matches!(error, TransferError::Link { attempts: 3, .. }), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
    // A host key that is not the pinned one is not asked for again.
    let mut request = scene.request();
    request.target.known_hosts = scene.sshd.path("other_hosts");
    let other = fs::read_to_string(scene.sshd.path("id.pub")).unwrap();
    let line = format!(
        "pod1 {} podtether boot={}\n",
        other.trim().rsplit_once(' ').unwrap().0,
        request.target.boot
    );
    fs::write(&request.target.known_hosts, line).unwrap();
    let error = pull(&request, &scene.shell, |_| {}).await.unwrap_err();
    assert!(matches!(error, TransferError::Link { attempts: 1, .. }), "{error}");
}

#[tokio::test]
async fn two_pulls_of_one_folder_do_not_mix() {
    let Some(scene) = Scene::new().await else { return };
    scene.write("big", noise(20_000_000));
    let limited = scene.wrapped_rsync("exec \"$real\" --bwlimit=6000 \"$@\"");
    let request = PullRequest { rsync: Some(limited), ..scene.request() };
    let (reached, mut wait) = tokio::sync::mpsc::unbounded_channel();
    let first = pull(&request, &scene.shell, move |_| _ = reached.send(()));
    let second = async {
        wait.recv().await;
        scene.pull().await
    };
    let (first, second) = tokio::join!(first, second);
    assert!(matches!(second.unwrap_err(), TransferError::Busy { .. }));
    assert!(first.unwrap().complete);
}

#[test]
fn the_transport_alone_says_what_is_wrong_on_one_line() {
    let output = Command::new(env!("CARGO_BIN_EXE_podtether"))
        .args(["transport", "-l", "root", "pod", "rsync", "--server", "--sender"])
        .env_remove("PODTETHER_TRANSPORT")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(255));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.lines().count() == 1 && said.contains("PODTETHER_TRANSPORT"), "{said}");
}
