//! The stop path on the pod.

use super::{Bench, eventually};
use podtether::domain::{JobId, JobState, RemoteCommand, scripts};
use std::fs;

const KEY: &str = "rpa_SECRETSECRET\"1";

/// A pod on which every way to stop claims success and does nothing.
fn bench() -> Bench {
    let bench = Bench::new();
    let calls = bench.path("tmp/calls").display().to_string();
    bench.environment_file("export RUNPOD_API_KEY='rpa_SECRETSECRET\"1'\n");
    bench
        .fake("curl", &format!("echo \"curl $*\" >>{calls}; cat >>{calls}.stdin; echo 'HTTP 200'"));
    bench.fake(
        "runpodctl",
        &format!(
            "echo \"runpodctl $*\" >>{calls}; echo \"pod $3 stop failed for $RUNPOD_API_KEY\""
        ),
    );
    bench
}

fn stop_log(bench: &Bench, id: &JobId) -> String {
    let path = bench.job_dir(id).join("stop.log");
    eventually("the end of the tries", || {
        fs::read_to_string(&path).ok().filter(|log| log.contains("gave up"))
    })
}

/// A03, A04: exit code 0 and a friendly answer prove nothing; every way is tried, again and again.
#[test]
fn no_way_to_stop_is_believed() {
    let bench = bench();
    let mut spec = bench.spec("exit 3", 60);
    spec.auto_stop = true;
    bench.launch(&spec);
    let log = stop_log(&bench, &spec.job_id);
    assert!(log.contains("gave up after 4 tries"), "{log}");
    let calls = fs::read_to_string(bench.path("tmp/calls")).unwrap();
    let lines: Vec<&str> = calls.lines().collect();
    assert_eq!(lines.len(), 4, "{calls}");
    for (at, body, address) in [
        (0, r#"{"action":"stop"}"#, "/v2/pods/pod1/action"),
        (1, r#"podStop(input: {podId: \"pod1\"})"#, "/graphql"),
    ] {
        assert!(lines[at].starts_with("curl "), "{calls}");
        assert!(lines[at].contains("-X POST"), "{calls}");
        assert!(lines[at].contains(body), "{calls}");
        assert!(lines[at].ends_with(&format!("https://api.runpod.io{address}")), "{calls}");
    }
    assert_eq!(lines[2..4], ["runpodctl pod stop pod1", "runpodctl stop pod pod1"]);
    assert_eq!(bench.status(&spec.job_id).state, JobState::Failed);
}

/// H01: the key reaches curl, and neither an argument nor the log.
#[test]
fn the_key_is_in_no_argument_and_no_log() {
    let bench = bench();
    let mut spec = bench.spec("true", 60);
    spec.auto_stop = true;
    bench.launch(&spec);
    let log = stop_log(&bench, &spec.job_id);
    assert!(!log.contains("SECRET"), "{log}");
    assert!(log.contains("stop failed for [secret]"), "{log}");
    assert!(!fs::read_to_string(bench.path("tmp/calls")).unwrap().contains("SECRET"));
    let stdin = fs::read_to_string(bench.path("tmp/calls.stdin")).unwrap();
    let quoted = KEY.replace('"', "\\\"");
    assert!(
        stdin.starts_with(&format!("header = \"Authorization: Bearer {quoted}\"\n")),
        "{stdin}"
    );
}

/// D01: the record comes before the stop, which may cut everything after it.
#[test]
fn the_exit_code_is_written_before_the_pod_is_stopped() {
    let bench = bench();
    let mut spec = bench.spec("exit 0", 60);
    spec.auto_stop = true;
    let code = bench.job_dir(&spec.job_id).join("exit_code");
    let seen = bench.path("tmp/seen");
    bench.fake("curl", &format!("cat '{}' >>'{}'; cat >/dev/null", code.display(), seen.display()));
    bench.launch(&spec);
    assert_eq!(
        eventually("the stop", || fs::read(&seen).ok().filter(|s| !s.is_empty()))[..2],
        *b"0\n"
    );
}

#[test]
fn a_job_without_auto_stop_stops_nothing() {
    let bench = bench();
    let (id, status) = bench.finish("true", 60);
    assert_eq!(status.state, JobState::Succeeded);
    let line = fs::read_to_string(bench.job_dir(&id).join("pid")).unwrap();
    let pid = line.split(' ').next().unwrap();
    eventually("the wrapper ends", || super::is_gone(pid).then_some(()));
    assert!(!bench.path("tmp/calls").exists() && !bench.job_dir(&id).join("stop.log").exists());
}

/// A19: programs that are missing or fail end no loop.
#[test]
fn the_stop_path_needs_neither_key_nor_programs_to_go_on() {
    let bench = Bench::new();
    bench.fake("runpodctl", "exit 1");
    let output = bench.run(&RemoteCommand::script(scripts::STOP_POD, ["pod1"]));
    let log = output.stdout.text();
    assert!(!output.succeeded());
    assert!(log.contains("no RUNPOD_API_KEY"), "{log}");
    assert!(log.contains("exit code 1 (not believed)"), "{log}");
    assert!(log.contains("gave up after 4 tries"), "{log}");
}

/// H03: an id that is none reaches no address.
#[test]
fn a_strange_pod_id_is_refused() {
    let bench = bench();
    for id in ["", "a/b", "x y", "$(id)", "../x"] {
        let output = bench.run(&RemoteCommand::script(scripts::STOP_POD, [id]));
        assert!(!output.succeeded());
        assert!(output.stderr.text().contains("is no pod id"), "{output:?}");
    }
    assert!(!bench.path("tmp/calls").exists());
}

/// E14: a volume that hangs when the code is written keeps the pod from nothing. The bound is made
/// short by a fake `sleep`.
#[test]
fn a_hanging_volume_cannot_keep_the_pod_from_being_stopped() {
    let bench = bench();
    bench.fake("sleep", "[ \"$1\" = 0.05 ] || exec /bin/sleep \"$@\"");
    bench.fake(
        "mv",
        "case ${@: -1} in *' space'*/exit_code) exec /bin/sleep 100 ;; esac\nexec /bin/mv \"$@\"",
    );
    let mut spec = bench.spec("true", 60);
    spec.auto_stop = true;
    bench.launch(&spec);
    stop_log(&bench, &spec.job_id);
    assert!(!bench.job_dir(&spec.job_id).join("exit_code").exists());
}
