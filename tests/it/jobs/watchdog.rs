//! The watchdog alone under bash: a folder stands in for /proc, and the time is what the test says.

use super::{Bench, eventually};
use podtether::domain::scripts;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const BOOT: &str = "b00t";
/// Device number of /dev/pts/0.
const PTS: u32 = 136 * 256;
/// Uptime at the start of every test, in seconds.
const START: u64 = 10_000;

/// A watchdog with an hour of patience on a pod that a test makes up.
struct Alone {
    bench: Bench,
    watchdog: Option<Child>,
}

impl Drop for Alone {
    fn drop(&mut self) {
        if let Some(child) = &mut self.watchdog {
            let group = format!("-{}", child.id());
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            let _ = child.wait();
        }
    }
}

impl Alone {
    fn new() -> Self {
        let bench = Bench::new();
        let proc = bench.path("proc").to_str().unwrap().to_owned();
        let alone = Self { bench: bench.with("PODTETHER_PROC", &proc), watchdog: None };
        for folder in ["proc/self", "proc/sys/kernel/random", "proc/net", "tmp/podtether/watchdog"]
        {
            fs::create_dir_all(alone.bench.path(folder)).unwrap();
        }
        fs::create_dir_all(PathBuf::from(alone.bench.mount()).join("jobs")).unwrap();
        alone.file("proc/sys/kernel/random/boot_id", BOOT);
        alone.uptime(START);
        alone.network(0);
        alone.process(1, "init", 0, 0, 0);
        alone.process(50, "sshd", 1, 0, 0);
        alone.bench.environment_file("export RUNPOD_API_KEY=\"rpa_k\"\n");
        // Every way claims success, and nothing comes of it.
        alone.bench.fake("curl", "cat >/dev/null; echo 'HTTP 200'");
        alone.bench.fake("runpodctl", "echo \"pod \\\"$3\\\" stop failed; status is RUNNING\"");
        alone.bench.fake("sleep", "exec /bin/sleep 0.02");
        alone
    }

    /// Written whole: the watchdog reads while the test writes.
    fn file(&self, name: &str, text: &str) {
        let part = self.bench.path("part");
        fs::write(&part, text).unwrap();
        fs::rename(part, self.bench.path(name)).unwrap();
    }

    fn uptime(&self, seconds: u64) {
        self.file("proc/uptime", &format!("{seconds}.00 1.00\n"));
    }

    fn network(&self, bytes: u64) {
        let text = format!(
            "Inter-|\n face |\n    lo: 999999999 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0\n  eth0: {bytes} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        );
        self.file("proc/net/dev", &text);
    }

    /// A process that leads its session, with so many hundredths of a second of CPU time.
    fn process(&self, pid: u32, name: &str, parent: u32, terminal: u32, cpu: u64) {
        self.process_in_state('S', pid, name, parent, terminal, cpu);
    }

    fn process_in_state(&self, state: char, pid: u32, name: &str, parent: u32, tty: u32, cpu: u64) {
        let folder = format!("proc/{pid}");
        fs::create_dir_all(self.bench.path(&folder)).unwrap();
        let stat = format!(
            "{pid} ({name}) {state} {parent} {pid} {pid} {tty} -1 0 0 0 0 0 {cpu} 0 0 0 20 0 1 0 {} 0 0\n",
            START * 100
        );
        self.file(&format!("{folder}/stat"), &stat);
        self.io(pid, 0);
    }

    fn io(&self, pid: u32, bytes: u64) {
        self.file(&format!("proc/{pid}/io"), &format!("rchar: {bytes}\nwchar: 0\nsyscr: 7\n"));
    }

    fn gone(&self, pid: u32) {
        fs::remove_dir_all(self.bench.path(&format!("proc/{pid}"))).unwrap();
    }

    /// A job that was started with the machine, with a wrapper of that pid.
    fn job(&self, pid: u32, ceiling: u32) {
        let folder = PathBuf::from(self.bench.mount()).join("jobs/20260101-000000_job_0001");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("meta.json"), format!("{{\n  \"max_runtime_sec\": {ceiling}\n}}"))
            .unwrap();
        fs::write(folder.join("pid"), format!("{pid} {} {BOOT}\n", START * 100)).unwrap();
    }

    fn keepalive(&self, seconds_from_now: i64) {
        let path = PathBuf::from(self.bench.mount()).join(".keepalive");
        let words = [format!("-d@{}", chrono::Utc::now().timestamp() + seconds_from_now)];
        assert!(Command::new("touch").args(&words).arg(path).status().unwrap().success());
    }

    /// A moment of the boot of `1`'s start, in seconds of uptime, as another program would leave it.
    fn moment(&self, name: &str, boot: &str, at: u64) {
        self.file(&format!("tmp/podtether/watchdog/{name}"), &format!("{boot} {}\n", at * 100));
    }

    fn this_boot() -> String {
        format!("{BOOT}/{}", START * 100)
    }

    fn watch(&mut self) {
        self.watch_until(90_000);
    }

    fn watch_until(&mut self, deadline: u32) {
        for script in [scripts::IDLE_WATCHDOG, scripts::STOP_POD] {
            self.file(&format!("tmp/podtether/watchdog/{}", script.name), script.text);
        }
        let script = self.bench.path("tmp/podtether/watchdog/idle_watchdog.sh");
        let words = ["setsid", "bash", script.to_str().unwrap(), "watch", "pod1"];
        let mut words: Vec<String> = words.map(str::to_owned).to_vec();
        words.extend([self.bench.mount(), "3600".into(), "1".into(), deadline.to_string()]);
        let mut command = self.bench.command(&words);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        self.watchdog = Some(child);
        self.decision();
    }

    fn log(&self) -> String {
        fs::read_to_string(self.bench.path("tmp/podtether/watchdog/log")).unwrap_or_default()
    }

    fn decisions(&self) -> Vec<String> {
        let log = self.log();
        let decision = |line: &str| Some(line.split_once(' ')?.1.to_owned());
        let is_one = |line: &String| line.starts_with("stay: ") || line.starts_with("stop, ");
        log.lines().filter_map(decision).filter(is_one).collect()
    }

    /// What a look that begins from now on decides.
    fn decision(&self) -> String {
        let before = self.decisions().len();
        eventually("two looks", || self.decisions().get(before + 1).cloned())
    }

    /// Lets time pass and returns what is decided then. One look in between, since what was used is
    /// reckoned from look to look.
    fn after(&self, seconds: u64) -> String {
        self.uptime(START + seconds);
        self.decision()
    }

    fn assert_stays(&self, seconds: u64, because: &str) {
        let decision = self.after(seconds);
        assert!(decision.starts_with("stay: "), "{decision}");
        assert!(decision.contains(because), "{because}: {decision}");
    }

    fn assert_stops(&self, seconds: u64, because: &str) {
        let decision = self.after(seconds);
        assert!(decision.starts_with(&format!("stop, {because}")), "{because}: {decision}");
    }
}

/// A03: runpodctl exits 0 on a failed stop. What is still there has not stopped, and is tried again.
#[test]
fn an_unused_pod_is_stopped_and_no_answer_is_believed() {
    let mut pod = Alone::new();
    pod.watch();
    pod.assert_stays(3_500, "idle 58 of 60 min: jobs 0, terminals 0, keepalive none, cpu 0.0 %");
    pod.assert_stops(3_700, "nobody uses it: idle 61 of 60 min");
    eventually("a second try", || pod.log().contains("still here after stop 2").then_some(()));
    let log = pod.log();
    assert!(log.contains("stop failed; status is RUNNING") && log.contains("/graphql"), "{log}");
    assert!(!log.contains("rpa_k"), "{log}");
    let notices = format!("{}/.podtether/watchdog/notices", pod.bench.mount());
    let notices = fs::read_to_string(notices).unwrap();
    assert!(notices.contains("pod pod1: stop, nobody uses it: idle 61 of 60 min"), "{notices}");
}

/// A14: a date in the future is taken for now, said, and the window ends all the same.
#[test]
fn a_keepalive_from_the_future_keeps_a_pod_for_one_window_only() {
    let mut pod = Alone::new();
    pod.keepalive(2 * 3_600);
    pod.watch();
    assert!(pod.log().contains("s in the future; taken for now"), "{}", pod.log());
    pod.assert_stays(3_500, "keepalive 58 min");
    // A touch counts from when it was seen, whatever date the file server gave it.
    pod.keepalive(-10 * 3_600);
    pod.assert_stays(3_550, "keepalive 0 min");
    pod.assert_stays(7_000, "keepalive 57 min");
    pod.assert_stops(7_200, "nobody uses it");
}

/// A14: the pod's clock three hours off, either way.
#[test]
fn a_pod_whose_clock_is_wrong_stops_in_its_window() {
    for off_by in ["+ 10800", "- 10800"] {
        let mut pod = Alone::new();
        let date = format!("exec /bin/date -d \"@$(($(/bin/date +%s) {off_by}))\" \"$@\"");
        pod.bench.fake("date", &date);
        pod.keepalive(0);
        pod.watch();
        pod.keepalive(-60);
        pod.assert_stays(100, "keepalive 0 min");
        pod.assert_stays(3_600, "keepalive 58 min");
        pod.assert_stops(3_800, "nobody uses it");
    }
}

/// A16: a defunct wrapper is no live job.
#[test]
fn a_live_job_keeps_the_pod_and_a_zombie_does_not() {
    let mut pod = Alone::new();
    pod.process(77, "bash", 1, 0, 0);
    pod.job(77, 50_000);
    pod.watch();
    pod.assert_stays(40_000, "idle 0 of 60 min: jobs 1");
    pod.process_in_state('Z', 77, "bash", 1, 0, 0);
    pod.assert_stays(43_000, "idle 50 of 60 min: jobs 0");
    pod.assert_stops(44_000, "nobody uses it");
}

/// E06: a job whose keeper is gone with its wrapper is ended by the end of the pod.
#[test]
fn a_job_far_past_its_ceiling_keeps_nothing() {
    let mut pod = Alone::new();
    pod.process(77, "bash", 1, 0, 0);
    pod.job(77, 1_000);
    pod.watch();
    pod.assert_stays(1_600, "jobs 1");
    pod.process(77, "bash", 1, 0, 9_999_999); // it is busy, too
    pod.assert_stops(1_700, "a job is ten minutes past its ceiling");
}

#[test]
fn the_deadline_stops_a_pod_in_use_but_not_a_job_within_its_ceiling() {
    let mut pod = Alone::new();
    pod.process(60, "bash", 50, PTS, 0);
    pod.process(77, "bash", 1, 0, 0);
    pod.job(77, 20_000);
    pod.watch_until(1_000);
    pod.assert_stays(5_000, "deadline in -66 min");
    pod.gone(77);
    // Whoever pulls its results has a quarter of an hour, and with a lease an hour more.
    pod.assert_stays(5_300, "jobs 0, terminals 1");
    pod.moment("lease", &Alone::this_boot(), START + 9_000);
    pod.assert_stays(8_900, "lease 100 s");
    pod.assert_stops(9_600, "the deadline has passed");
}

/// Both are bound to this boot: of another one the deadline that is known goes on, and no lease counts.
#[test]
fn a_deadline_or_a_lease_of_another_boot_is_none() {
    let mut pod = Alone::new();
    pod.process(60, "bash", 50, PTS, 0);
    pod.watch_until(1_000);
    for text in ["other/1 99999999\n", "", "garbage", &format!("{} -5\n", Alone::this_boot())] {
        pod.file("tmp/podtether/watchdog/deadline", text);
        pod.file("tmp/podtether/watchdog/lease", text);
        let decision = pod.after(500);
        assert!(
            decision.contains("deadline in 8 min") && !decision.contains("lease"),
            "{decision}"
        );
    }
    pod.moment("deadline", &Alone::this_boot(), START + 2_000);
    pod.assert_stays(1_900, "deadline in 1 min");
    pod.assert_stops(2_000, "the deadline has passed");
}

/// C07: a supervisor that has gone silent is waited for ten minutes, a job up to its ceiling.
#[test]
fn a_lease_that_ran_out_shortens_the_window_and_ends_no_job() {
    let mut pod = Alone::new();
    pod.process(77, "bash", 1, 0, 0);
    pod.job(77, 50_000);
    pod.moment("lease", &Alone::this_boot(), START + 900);
    pod.watch();
    pod.assert_stays(20_000, "idle 0 of 10 min: jobs 1");
    pod.gone(77);
    pod.assert_stays(20_500, "of 10 min: jobs 0");
    pod.moment("lease", &Alone::this_boot(), START + 21_900);
    pod.assert_stays(21_000, "idle 16 of 60 min");
    pod.assert_stops(22_000, "nobody uses it: idle 33 of 10 min");
}

/// D13: what people do on a pod, and what only looks like it.
#[test]
fn use_is_told_from_looking() {
    let mut pod = Alone::new();
    pod.process(60, "bash", 50, 0, 0); // a command of ours over SSH, without a terminal
    pod.process(70, "tmux: server", 1, 0, 0);
    pod.process(71, "bash", 70, PTS + 1, 0); // a shell in a tmux that nobody looks at
    pod.watch();
    pod.assert_stays(1_000, "idle 16 of 60 min: jobs 0, terminals 0");
    let used = |what: &str, at: u64| {
        let decisions = pod.decisions().len();
        pod.uptime(START + at);
        // The look that sees the use is the first one after it.
        let decision = eventually(what, || {
            pod.decisions().split_off(decisions).into_iter().find(|line| line.contains("idle 0 of"))
        });
        assert!(decision.contains(what), "{what}: {decision}");
    };
    // One and a half minutes of CPU in ten minutes, by a process that was started by hand.
    pod.process(80, "python", 1, 0, 9_000);
    used("cpu 1", 1_600);
    pod.io(80, 300 << 20);
    used("disk 3", 2_200);
    pod.network(200 << 20);
    used("network 2", 2_800);
    pod.process(61, "bash", 50, PTS, 0); // somebody logs in
    used("terminals 1", 3_400);
    pod.assert_stays(9_000, "idle 0 of 60 min: jobs 0, terminals 1");
    pod.gone(61);
    // Polling: half a percent, a few KiB, and sshd's own time.
    pod.process(50, "sshd", 1, 0, 99_999);
    pod.process(60, "bash", 50, 0, 300);
    pod.network((200 << 20) + 500_000);
    pod.assert_stays(9_600, "idle 10 of 60 min");
    // The provider's web terminal comes from outside of the container.
    pod.process(62, "bash", 0, PTS + 2, 0);
    used("terminals 1", 9_700);
}

/// A19: nothing that fails ends it.
#[test]
fn ten_looks_in_which_everything_fails_are_survived() {
    let mut pod = Alone::new();
    for program in ["curl", "runpodctl", "awk", "grep", "stat", "ls", "date"] {
        pod.bench.fake(program, "exit 1");
    }
    pod.watch();
    fs::remove_dir_all(pod.bench.path("proc/net")).unwrap();
    pod.uptime(START + 4_000);
    let before = pod.log().matches("still here").count();
    eventually("ten looks", || {
        (pod.log().matches("still here").count() > before + 10).then_some(())
    });
    assert!(pod.watchdog.as_mut().unwrap().try_wait().unwrap().is_none());
    let heartbeat = pod.bench.path("tmp/podtether/watchdog/heartbeat");
    assert!(fs::read_to_string(heartbeat).unwrap().contains("volume=no"));
    // Its folder is swept away: it makes it anew and goes on.
    fs::remove_dir_all(pod.bench.path("tmp/podtether/watchdog")).unwrap();
    pod.decision();
}

/// E14: a volume that hangs keeps it from nothing; jobs are found by their processes.
#[test]
fn a_volume_that_hangs_does_not_keep_a_pod() {
    let mut pod = Alone::new();
    pod.bench.fake("ls", "exec /bin/sleep 1000");
    pod.process(78, "python", 1, 0, 0);
    pod.file("proc/78/environ", "PODTETHER_JOB=x:1:2\0");
    pod.watch();
    pod.assert_stays(3_700, "jobs 1 (the volume does not answer)");
    pod.gone(78);
    pod.assert_stays(7_000, "jobs 0 (the volume does not answer)");
    pod.assert_stops(7_500, "nobody uses it");
    eventually("a try", || pod.log().contains("still here after stop 1").then_some(()));
}

/// A21: no time that is none is taken for "never".
#[test]
fn a_time_that_is_none_is_refused() {
    let pod = Alone::new();
    let script = pod.bench.path("w.sh").to_str().unwrap().to_owned();
    fs::write(&script, scripts::IDLE_WATCHDOG.text).unwrap();
    for time in ["", "0", "off", "-1", "1h", "99999999", "null"] {
        for at in 0..3 {
            let mut times = ["60", "5", "60"];
            times[at] = time;
            let words = ["bash", &script, "watch", "pod1", "/mnt"].into_iter().chain(times);
            let words: Vec<String> = words.map(str::to_owned).collect();
            let output = pod.bench.command(&words).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{time} {output:?}");
        }
    }
}
