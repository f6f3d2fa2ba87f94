//! Arming the watchdog: what is proven of its stop path, and one watchdog to a pod.

use super::{Bench, eventually, is_gone, look_at};
use podtether::domain::PodId;
use podtether::pod::watchdog::{
    StopProof, WatchdogReport, WatchdogState, WatchdogTerms, arm_command, lease_command,
    parse_armed, parse_lease,
};
use podtether::pod::{LookAt, look_command, parse_look, who_command};
use std::fs;
use std::time::Duration;

const TERMS: WatchdogTerms = WatchdogTerms {
    idle: Duration::from_secs(3_600),
    tick: Duration::from_secs(300),
    deadline: Duration::from_secs(7_200),
};

/// A machine that is shared with other tests; only what carries the mark is this pod.
struct Pod(Bench);

impl Drop for Pod {
    fn drop(&mut self) {
        let line =
            fs::read_to_string(self.0.path("tmp/podtether/watchdog/pid")).unwrap_or_default();
        if let Some(pid) = line.split(' ').next().filter(|pid| !pid.is_empty()) {
            let group = format!("-{pid}");
            let _ = std::process::Command::new("kill").args(["-KILL", "--", &group]).status();
        }
    }
}

impl Pod {
    /// The API answers reads and writes with these.
    fn new(read: &str, write: &str) -> Self {
        let bench = Bench::new().with("PODTETHER_LOCAL_POD", "arming");
        bench.environment_file("export RUNPOD_API_KEY=\"rpa_k\"\n");
        let answers = format!(
            "cat >\"$TMPDIR/key\"; case \" $* \" in *' GET '*) printf {read} ;; *no-such*) printf {write} ;; esac"
        );
        bench.fake("curl", &answers);
        bench.fake("runpodctl", "exit 0");
        Self(bench)
    }

    fn arm(&self, terms: WatchdogTerms) -> WatchdogReport {
        let command = arm_command(&PodId("pod1".to_owned()), &self.0.mount(), terms);
        parse_armed(&self.0.run(&command)).unwrap()
    }

    fn pid(&self) -> String {
        let line = fs::read_to_string(self.0.path("tmp/podtether/watchdog/pid")).unwrap();
        line.split(' ').next().unwrap().to_owned()
    }
}

/// A07: a key that may read and not write is not taken for one that can stop the pod.
#[test]
fn a_stop_path_is_armed_only_for_what_was_proven() {
    use StopProof::{None, Read, Write};
    use WatchdogState::{Armed, ArmedUnverified};
    for (read, write, state, proof, why) in [
        ("200", "404", Armed, Write, ""),
        ("200", "403", ArmedUnverified, Read, "denied (403)"),
        ("401", "401", ArmedUnverified, None, "does not know"),
        ("000", "000", ArmedUnverified, None, "did not answer"),
        ("502", "502", ArmedUnverified, None, "with 502"),
    ] {
        let pod = Pod::new(read, write);
        let report = pod.arm(TERMS);
        assert_eq!((report.state, report.proof), (state, proof), "{report}");
        assert!(report.why.clone().unwrap_or_default().contains(why), "{report}");
        assert_eq!((report.idle_sec, report.tick_sec), (Some(3_600), Some(300)));
        assert!((7_190..=7_200).contains(&report.deadline_in_sec.unwrap()), "{report:?}");
        assert_eq!((report.lease_in_sec, report.failed_stops), (Option::None, Option::None));
    }
}

/// The contract's verdicts: 90 no runpodctl, 91 no credentials, 92 script missing.
#[test]
fn a_watchdog_with_nothing_to_stop_the_pod_with_is_dead() {
    let mut pod = Pod::new("200", "404");
    // Nothing else is found on this path, as on a pod without it.
    let path = pod.0.path("bin").to_str().unwrap().to_owned();
    for program in [
        "bash", "env", "cat", "sed", "tr", "grep", "head", "mkdir", "mv", "ln", "rm", "sleep",
        "setsid", "date", "wc", "tail", "ls", "find", "stat", "awk", "dirname",
    ] {
        let real = ["/usr/bin", "/bin"].map(|at| format!("{at}/{program}"));
        let real = real.iter().find(|at| std::path::Path::new(at).exists()).unwrap();
        std::os::unix::fs::symlink(real, pod.0.path("bin").join(program)).unwrap();
    }
    pod.0.set("PATH", &path);
    fs::remove_file(pod.0.path("bin/runpodctl")).unwrap();
    assert_eq!(pod.arm(TERMS).state, WatchdogState::Armed, "curl makes up for runpodctl");
    fs::remove_file(pod.0.path("bin/curl")).unwrap();
    let report = pod.arm(TERMS);
    let dead = |report: &WatchdogReport, verdict: &str| {
        assert_eq!(report.state, WatchdogState::Dead, "{report}");
        assert!(report.to_string().starts_with(verdict), "{report}");
    };
    dead(&report, "verdict 90");
    pod.0.fake("runpodctl", "exit 0");
    let report = pod.arm(TERMS);
    assert_eq!((report.state, report.proof), (WatchdogState::ArmedUnverified, StopProof::None));
    pod.0.environment_file("export RUNPOD_POD_ID=\"pod1\"\n");
    dead(&pod.arm(TERMS), "verdict 91");
    fs::remove_file(pod.0.path("tmp/podtether/watchdog/stop_pod.sh")).unwrap();
    dead(&pod.arm(TERMS), "verdict 92");
}

/// What is known of it comes with every look but the one that only asks who answers; E14: also when
/// the volume hangs, on which none of it lies.
#[test]
fn a_look_tells_of_the_watchdog_whatever_the_volume_does() {
    let pod = Pod::new("200", "404");
    assert_eq!(pod.0.look(None).pod.watchdog.unwrap().state, WatchdogState::Absent);
    pod.arm(TERMS);
    let mount = pod.0.mount();
    pod.0.fake("ls", "exec /bin/sleep 1000");
    let at = LookAt { patience: Duration::from_secs(2), ..look_at(&mount) };
    let look = parse_look(&pod.0.run(&look_command(&at))).unwrap();
    assert!(!look.pod.volume_answers);
    let report = look.pod.watchdog.unwrap();
    assert_eq!((report.state, report.proof), (WatchdogState::Armed, StopProof::Write), "{report}");
    assert!(report.probed_age_sec.unwrap() < 60 && report.heartbeat_age_sec.unwrap() < 60);
    let who = parse_look(&pod.0.run(&who_command(&mount, &PodId("pod1".to_owned()), ""))).unwrap();
    assert_eq!(who.pod.watchdog, None);
}

/// The file is read and never run, and a key that is cut off is none.
#[test]
fn the_environment_file_is_understood_in_every_shape_and_never_run() {
    let cut = "export RUNPOD_POD_ID=\"pod1\"\nexport RUNPOD_API_KEY=\"rpa_wh";
    for (text, key) in [
        ("export RUNPOD_API_KEY=\"rpa_whole\"\n", Some("rpa_whole")),
        ("RUNPOD_API_KEY=rpa_whole\n", Some("rpa_whole")),
        ("declare -x RUNPOD_API_KEY=\"rpa_whole\"\r\n", Some("rpa_whole")),
        ("  export RUNPOD_API_KEY='rpa_whole'", Some("rpa_whole")),
        (
            "export RUNPOD_API_KEY=\"old\"\nexport RUNPOD_API_KEY=\"a\\\"b\\$c\\\\d\"\n",
            Some("a\"b$c\\d"),
        ),
        (
            "export OTHER=\"it's $(touch ran)`touch ran`\nexport RUNPOD_API_KEY=\"rpa_whole\"\n",
            Some("rpa_whole"),
        ),
        (cut, None),
        ("export RUNPOD_API_KEY=rpa_wh", None),
        ("export MY_RUNPOD_API_KEY=\"x\"\n", None),
    ] {
        let pod = Pod::new("200", "404");
        pod.0.fake("sleep", "exec /bin/sleep 0.02");
        pod.0.environment_file(text);
        let report = pod.arm(TERMS);
        let seen = fs::read_to_string(pod.0.path("tmp/key")).ok();
        let wanted = key.map(|key| {
            let key = key.replace('\\', "\\\\").replace('"', "\\\"");
            format!("header = \"Authorization: Bearer {key}\"\n")
        });
        assert_eq!(seen, wanted, "{text}");
        assert_eq!(report.state == WatchdogState::Armed, key.is_some(), "{text}");
        assert!(!pod.0.path("ran").exists() && !std::path::Path::new("ran").exists());
    }
}

/// A20: arming again keeps the watchdog and never brings its deadline nearer.
#[test]
fn there_is_one_watchdog_and_its_deadline_only_moves_away() {
    let pod = Pod::new("200", "404");
    pod.arm(TERMS);
    let first = pod.pid();
    let sooner = WatchdogTerms { deadline: Duration::from_secs(60), ..TERMS };
    let report = pod.arm(sooner);
    assert_eq!(pod.pid(), first);
    assert!(report.deadline_in_sec.unwrap() > 7_000, "{report:?}");
    let later = WatchdogTerms { deadline: Duration::from_secs(9_000), ..TERMS };
    assert!(pod.arm(later).deadline_in_sec.unwrap() > 8_900);
    // Other terms, another watchdog; and the one before is gone.
    let other = WatchdogTerms { idle: Duration::from_secs(1_800), ..TERMS };
    let report = pod.arm(other);
    assert_eq!(report.idle_sec, Some(1_800));
    assert!(pod.pid() != first && is_gone(&first));
    assert!(report.deadline_in_sec.unwrap() > 8_800, "{report:?}");
    // A19: one that was killed is said to be dead, and the next arming starts another one.
    let second = pod.pid();
    let killed = std::process::Command::new("kill").args(["-KILL", &second]).status();
    assert!(killed.unwrap().success());
    eventually("its end", || is_gone(&second).then_some(()));
    let renewed = parse_lease(&pod.0.run(&lease_command(Duration::from_secs(900)))).unwrap();
    assert_eq!(renewed.state, WatchdogState::Dead);
    assert!(renewed.why.as_ref().unwrap().contains("has ended"), "{renewed}");
    let report = pod.arm(other);
    assert!(report.state == WatchdogState::Armed && pod.pid() != second, "{report}");
    assert!((880..=900).contains(&report.lease_in_sec.unwrap()), "{report:?}");
    let ended = parse_lease(&pod.0.run(&lease_command(Duration::ZERO))).unwrap();
    assert_eq!(ended.lease_in_sec, None);
}

/// A12: a stop that was only tried proves nothing; one after which this disk was wiped does.
#[test]
fn a_stop_counts_as_fired_only_when_the_container_went_with_it() {
    let pod = Pod::new("200", "403");
    let mark = std::path::Path::new(&pod.0.mount()).join(".podtether/watchdog");
    fs::create_dir_all(&mark).unwrap();
    fs::write(mark.join("fired"), "another\n").unwrap();
    assert_eq!(pod.arm(TERMS).proof, StopProof::Read, "that was another pod");
    fs::write(mark.join("fired"), "pod1\n").unwrap();
    let own = pod.0.path("tmp/podtether/watchdog/fired");
    fs::write(&own, "pod1\n").unwrap();
    assert_eq!(pod.arm(TERMS).proof, StopProof::Read, "this container has survived it");
    fs::remove_file(own).unwrap();
    let report = pod.arm(TERMS);
    assert_eq!((report.state, report.proof), (WatchdogState::Armed, StopProof::Fired), "{report}");
}

/// A connection that is lost in the middle must not leave half a script that runs.
#[test]
fn scripts_that_did_not_arrive_whole_are_not_started() {
    let pod = Pod::new("200", "404");
    let mut command = arm_command(&PodId("pod1".to_owned()), &pod.0.mount(), TERMS);
    command.stdin.truncate(command.stdin.len() - 3);
    let output = pod.0.run(&command);
    assert!(parse_armed(&output).is_err() && output.stderr.text().contains("whole"), "{output:?}");
    assert!(!pod.0.path("tmp/podtether/watchdog/pid").exists());
}
