//! A supervised run on a terminal, and what it does when its terminal dies. The terminal is a pty that
//! Python makes.

use super::fixture::Fixture;
use super::signals::WAITS;
use super::supervised::{Run, summary};
use super::twin::CEILING;
use crate::local_cloud::program;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Runs a command on a pty of so many columns, copies what it writes to a file, and tells its exit code
/// last. When the file `hang-up` is there, the terminal is closed, and the command is waited for.
const ON_A_PTY: &str = r#"
import fcntl, os, pty, struct, sys, termios, select
columns, out, hang_up, told = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
pid, master = pty.fork()
if pid == 0:
    fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execv(sys.argv[5], sys.argv[5:])
open(told + ".pid", "w").write(str(pid))
with open(out, "wb", 0) as copy:
    while True:
        if os.path.exists(hang_up):
            os.close(master)
            break
        if master in select.select([master], [], [], 0.02)[0]:
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            if not data:
                break
            copy.write(data)
_, status = os.waitpid(pid, 0)
open(told + ".part", "w").write(str(os.waitstatus_to_exitcode(status)))
os.rename(told + ".part", told)
"#;

struct OnAPty<'a> {
    fixture: &'a Fixture,
    python: Child,
}

impl<'a> OnAPty<'a> {
    fn start(fixture: &'a Fixture, columns: u32, command: &str) -> Self {
        let python = Command::new("python3")
            .args(["-c", ON_A_PTY, &columns.to_string()])
            .args([fixture.path("screen"), fixture.path("hang-up"), fixture.path("code")])
            .arg(program())
            .args(["supervise", "--job-name", "job", "--sync-subdir", "none", "--interval", "1"])
            .args(["--command", command, "--config"])
            .arg(fixture.config_file())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", fixture.path(""))
            .env("TERM", "xterm")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self { fixture, python }
    }

    fn screen(&self) -> String {
        let bytes = fs::read(self.fixture.path("screen")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    async fn shows(&self, words: &str) {
        let start = Instant::now();
        while !self.screen().contains(words) {
            assert!(start.elapsed() < CEILING, "never showed {words:?}: {}", self.screen());
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    fn signal(&self, signal: Signal) {
        let pid: i32 = fs::read_to_string(self.fixture.path("code.pid")).unwrap().parse().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    async fn code(&self) -> i32 {
        let told = self.fixture.path("code");
        self.fixture.until("the end of the run", async || told.exists()).await;
        fs::read_to_string(told).unwrap().parse().unwrap()
    }
}

impl Drop for OnAPty<'_> {
    fn drop(&mut self) {
        let _ = self.python.kill();
        let _ = self.python.wait();
    }
}

/// One line that is written over and never reaches the last column; what happens stands above it.
#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_one_line_is_written_over_and_never_wraps() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let columns = 60;
    let command = format!(
        "echo 'Learning iteration 7/10'; echo '  Mean reward: 1.25'; echo; echo 'Learning iteration 8/10'; {WAITS}"
    );
    let run = OnAPty::start(&fixture, columns, &command);
    run.shows("iteration 7/10 · reward 1.25").await;
    let overs = || run.screen().matches("\r\u{1b}[2K  running").count();
    let before = overs();
    fixture.until("the line to go on between looks", async || overs() > before + 3).await;
    fs::write(fixture.volume().join("go"), "").unwrap();
    assert_eq!(run.code().await, 0, "{}", run.screen());
    let screen = run.screen();
    let live: Vec<&str> = screen
        .split("\r\u{1b}[2K")
        .skip(1)
        .map(|part| part.split(['\r', '\n']).next().unwrap())
        .filter(|part| part.starts_with("  running"))
        .collect();
    for line in &live {
        assert!(line.chars().count() < columns as usize, "{line:?}");
        assert!(!line.contains('\n'));
    }
    assert!(live.iter().any(|line| line.ends_with('…')), "{live:#?}");
    assert!(live.iter().any(|line| line.contains('$')), "{live:#?}");
    // None of them is left standing above what was said later.
    assert!(!screen.contains("…\r\n"), "{screen}");
}

/// C01: a terminal that is closed. The summary is written, the pod and its fuse are left alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_closed_terminal_leaves_the_summary_written_and_the_fuse_armed() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let run = OnAPty::start(&fixture, 100, WAITS);
    run.shows("  running").await;
    fs::write(fixture.path("hang-up"), "").unwrap();
    assert_eq!(run.code().await, 6);
    is_left(&fixture).await;
}

async fn is_left(fixture: &Fixture) {
    let (_, summary) = summary(fixture);
    let told = ["process_exit_code", "pod_may_still_be_running", "stop"];
    let told = told.map(|key| summary[key].clone());
    assert_eq!(json!(told), json!([6, true, null]));
    assert!(summary["ended_at"].is_string());
    let pid = fs::read_to_string(fixture.path("logs/deadman.pid")).unwrap();
    assert!(pid.contains("fire_at"), "{pid}");
    assert_eq!(fixture.status().await, "RUNNING");
}

/// C01: who read the lines is gone, and with it whoever could have heard of the end.
#[tokio::test(flavor = "multi_thread")]
async fn a_stderr_that_nobody_reads_any_more_is_a_dead_terminal() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let mut child = Command::new(program())
        .args(["supervise", "--job-name", "job", "--sync-subdir", "none", "--interval", "1"])
        .args(["--command", WAITS, "--config"])
        .arg(fixture.config_file())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", fixture.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let reader = child.stderr.take().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(reader));
    // Reads up to the launch and goes away.
    let launched = lines.map_while(Result::ok).find(|line| line.contains("launched:"));
    assert!(launched.is_some());
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(start.elapsed() < CEILING, "it never noticed");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert_eq!(status.code(), Some(6));
    is_left(&fixture).await;
}

/// The second Ctrl-C leaves at once and says the very command that stops the pod.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_interrupt_leaves_at_once_and_says_how_to_stop_the_pod() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id;
    let run = OnAPty::start(&fixture, 100, WAITS);
    run.shows("  running").await;
    // The orderly end must not be over before the second: what lists the results waits for a file.
    let held = fixture.state().join("pods").join(&pod.0).join("bin/bash");
    let gate = podtether::domain::join_quoted([fixture.path("gate").to_str().unwrap()]);
    let script = format!(
        "#!/bin/bash\n[ \"${{3-}}\" != manifest.sh ] || until [ -e {gate} ]; do sleep 0.05; done\nexec /bin/bash \"$@\"\n"
    );
    let mut file = fs::File::create(&held).unwrap();
    file.write_all(script.as_bytes()).unwrap();
    drop(file);
    fs::set_permissions(&held, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    run.signal(Signal::INT);
    run.shows("once more (Ctrl-C) leaves at once").await;
    run.signal(Signal::INT);
    assert_eq!(run.code().await, 6, "{}", run.screen());
    let screen = run.screen();
    let words = format!(
        "podtether stop --vehicle rover --config {}",
        podtether::domain::join_quoted([fixture.config_file().to_str().unwrap()])
    );
    assert!(screen.contains(&words), "{words}: {screen}");
    assert_eq!(fixture.status().await, "RUNNING");
    fs::write(fixture.path("gate"), "").unwrap();
    drop(run);
    // And that command does it.
    assert_eq!(fixture.stop(&["--vehicle", "rover"]).await.0, 0);
    assert_eq!(fixture.status().await, "EXITED");
}

/// Elsewhere, plain lines without a control character.
#[tokio::test(flavor = "multi_thread")]
async fn piped_a_run_tells_plain_lines() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    // A job that has ended before the first look has nothing left to tell of sleep.
    let mut run = Run::of(&fixture, WAITS, &["--interval", "1"]);
    run.says("if this laptop sleeps:").await;
    fs::write(fixture.volume().join("go"), "").unwrap();
    let outcome = run.end().await;
    assert_eq!(outcome.code, 0);
    assert!(!outcome.stderr.contains(['\r', '\u{1b}']), "{:?}", outcome.stderr);
    for words in ["plan: job", "launched:", "if this laptop sleeps:", "armed: "] {
        assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
    }
}
