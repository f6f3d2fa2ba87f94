//! One job from its start to its recorded end.

use super::{Bench, eventually, is_gone, log_of};
use podtether::domain::{JobState, scripts};
use podtether::plan::launch_steps;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn signal(signal: &str, pid: &str) {
    assert!(Command::new("kill").args([signal, pid]).status().unwrap().success());
}

/// The wrapper's pid.
fn wrapper(bench: &Bench, id: &podtether::domain::JobId) -> String {
    let line = fs::read_to_string(bench.job_dir(id).join("pid")).unwrap();
    line.split(' ').next().unwrap().to_owned()
}

/// Runs the wrapper without a launch.
fn by_hand(bench: &Bench, dir: &Path, ceiling: &str, auto_stop: &str) -> Output {
    let script = bench.path("job_wrapper.sh");
    fs::write(&script, scripts::JOB_WRAPPER.text).unwrap();
    let argv = ["setsid", "--wait", "bash", script.to_str().unwrap(), dir.to_str().unwrap()];
    bench.command(&argv.map(str::to_owned)).args(["pod1", ceiling, auto_stop]).output().unwrap()
}

#[test]
fn a_failure_keeps_its_exit_code() {
    let bench = Bench::new();
    for (command, code) in [("exit 3", 3), ("kill -KILL $$", 137), ("no-such-program", 127)] {
        let (_, status) = bench.finish(command, 60);
        assert_eq!((status.state, status.exit_code), (JobState::Failed, Some(code)), "{command}");
    }
}

/// E12: what a pipe hides is a failure all the same.
#[test]
fn a_failing_part_of_a_pipe_fails_the_job() {
    let bench = Bench::new();
    let (_, status) = bench.finish("false | tee x", 60);
    assert_eq!((status.state, status.exit_code), (JobState::Failed, Some(1)));
}

/// E01: whoever ignores TERM, however deep, is gone before the job counts as ended.
#[test]
fn the_ceiling_ends_everything_that_the_job_started() {
    let bench = Bench::new();
    let (_, status) = bench.finish(
        "bash -c 'trap \"\" TERM; echo $BASHPID >grandchild; while :; do sleep 1; done' &\nwait",
        2,
    );
    assert_eq!((status.state, status.exit_code), (JobState::TimedOut, Some(124)), "{status:?}");
    let pid = bench.written("grandchild");
    assert!(is_gone(&pid));
    let named = status.leftovers.iter().any(|line| line.starts_with(&format!("{pid} killed ")));
    assert!(named, "{:?}", status.leftovers);
    assert!(String::from_utf8_lossy(log_of(&status)).contains("the ceiling of 2 s is reached"));
}

/// E02: a session of its own, a double fork, another process group: none of them is a way out.
#[test]
fn an_escapee_is_ended_at_the_ceiling() {
    let bench = Bench::new();
    let (_, status) = bench.finish(
        "setsid bash -c 'trap \"\" TERM; echo $$ >one; while :; do sleep 1; done' &\n\
         (setsid bash -c '(exec sleep 1000) & echo $! >two' &) &\n\
         (setsid env -i bash -c 'echo $$ >three; exec sleep 1000') &\n\
         set -m; sleep 1001 & echo $! >four\n\
         wait",
        3,
    );
    assert_eq!(status.state, JobState::TimedOut);
    for name in ["one", "two", "three", "four"] {
        let pid = bench.written(name);
        assert!(is_gone(&pid), "{name}");
    }
}

#[test]
fn a_job_may_clean_up_within_the_grace_of_its_ceiling() {
    let bench = Bench::new().with("PODTETHER_KILL_GRACE_SEC", "60");
    let (_, status) = bench.finish("trap 'echo saved >saved; exit 0' TERM; sleep 1000 & wait", 2);
    assert_eq!((status.state, status.exit_code), (JobState::TimedOut, Some(124)));
    assert_eq!(bench.written("saved"), "saved");
    assert!(status.leftovers.is_empty(), "{:?}", status.leftovers);
}

/// A job's own 124 passes through (experiment behind E01).
#[test]
fn a_jobs_own_124_is_a_failure_and_no_timeout() {
    let bench = Bench::new();
    let (_, status) = bench.finish("exit 124", 60);
    assert_eq!((status.state, status.exit_code), (JobState::Failed, Some(124)));
    assert!(!status.ceiling_struck);
}

/// D02: with an exit code nothing of the job writes any more, unless it chose to leave.
#[test]
fn what_a_job_leaves_behind_ends_with_it_unless_it_left_the_session() {
    let bench = Bench::new();
    let (_, status) = bench.finish(
        "sleep 1000 & echo $! >inside\n\
         setsid bash -c 'echo $$ >outside; exec sleep 1000' &\n\
         while ! [ -s outside ]; do sleep 0.05; done",
        60,
    );
    assert_eq!(status.state, JobState::Succeeded);
    assert!(is_gone(&bench.written("inside")));
    let outside = bench.written("outside");
    assert!(!is_gone(&outside));
    assert_eq!(status.leftovers, [format!("{outside} left sleep 1000 ")]);
    signal("-KILL", &outside);
}

/// E05: the code appears whole, by a rename, and before that not at all.
#[test]
fn nobody_sees_a_half_written_exit_code() {
    let bench = Bench::new();
    bench.fake(
        "mv",
        &format!(
            "case ${{@: -1}} in *' space'*/exit_code) cat \"$2\" >{0}/seen; until [ -e {0}/go ]; do sleep 0.05; done ;; esac\nexec /bin/mv \"$@\"",
            bench.path("tmp").display()
        ),
    );
    let spec = bench.spec("exit 5", 60);
    bench.launch(&spec);
    let seen = bench.path("tmp/seen");
    let ready = eventually("the rename", || fs::read(&seen).ok().filter(|text| !text.is_empty()));
    assert_eq!(ready, b"5\n");
    let code = bench.job_dir(&spec.job_id).join("exit_code");
    assert!(!code.exists());
    fs::write(bench.path("tmp/go"), "").unwrap();
    let text = eventually("the code", || fs::read_to_string(&code).ok());
    assert_eq!(text, "5\n");
}

/// E04: a volume that takes no exit code loses none.
#[test]
fn an_exit_code_that_the_volume_refuses_is_kept_beside_it() {
    let bench = Bench::new();
    bench.fake("mv", "case ${@: -1} in *' space'*/exit_code) exit 1 ;; esac\nexec /bin/mv \"$@\"");
    let spec = bench.spec("exit 7", 60);
    bench.launch(&spec);
    let pid = wrapper(&bench, &spec.job_id);
    eventually("the wrapper ends", || is_gone(&pid).then_some(()));
    assert!(!bench.job_dir(&spec.job_id).join("exit_code").exists());
    let status = bench.status(&spec.job_id);
    assert_eq!((status.state, status.exit_code), (JobState::Failed, Some(7)));
    assert!(status.note.unwrap().contains("volume full"));
}

/// E06: a wrapper that was killed is said to be lost, its job still counts as live, the ceiling
/// still strikes and the pod is still stopped.
#[test]
fn the_ceiling_and_the_auto_stop_outlive_a_killed_wrapper() {
    let bench = Bench::new();
    bench.fake("runpodctl", &format!("echo \"$@\" >>{}/calls", bench.path("tmp").display()));
    let mut spec = bench.spec("echo $$ >job; sleep 1000", 12);
    spec.auto_stop = true;
    bench.launch(&spec);
    let job = bench.written("job");
    signal("-KILL", &wrapper(&bench, &spec.job_id));
    let lost = eventually("the loss", || {
        Some(bench.status(&spec.job_id)).filter(|status| status.state != JobState::Running)
    });
    assert_eq!((lost.state, lost.lives_on), (JobState::WrapperLost, true));
    assert_eq!(lost.exit_code, None);
    eventually("the ceiling", || is_gone(&job).then_some(()));
    let calls = bench.path("tmp/calls");
    eventually("the stop", || fs::read_to_string(&calls).ok().filter(|c| c.contains("pod1")));
    let status = bench.status(&spec.job_id);
    assert_eq!((status.state, status.exit_code), (JobState::TimedOut, Some(124)));
}

/// E14: whoever reads the environment of a process that hangs in the kernel may hang with it. The ceiling
/// strikes and the pod is stopped all the same.
#[test]
fn an_environment_that_cannot_be_read_keeps_neither_the_ceiling_nor_the_stop() {
    let bench = Bench::new();
    let calls = bench.stops();
    bench.fake("grep", "case \"$*\" in */environ*) exec sleep 1000 ;; esac\nexec /bin/grep \"$@\"");
    let mut spec = bench.spec("echo $$ >job; sleep 1000", 2);
    spec.auto_stop = true;
    bench.launch(&spec);
    let job = bench.written("job");
    eventually("the stop", || calls.exists().then_some(()));
    assert!(is_gone(&job));
    let status = bench.status(&spec.job_id);
    assert_eq!((status.state, status.exit_code), (JobState::TimedOut, Some(124)));
}

/// E14: a log that hangs where the job cannot even begin keeps nothing from the stop.
#[test]
fn a_log_that_hangs_before_the_job_begins_keeps_the_pod_from_no_stop() {
    let bench = Bench::new();
    let calls = bench.stops();
    let mut spec = bench.spec("true", 60);
    (spec.auto_stop, spec.workdir) = (true, "/no/such/folder".to_owned());
    // Whoever opens it to write waits for a reader.
    let log = bench.job_dir(&spec.job_id).join("out.log");
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(&log).status().unwrap().success());
    bench.launch(&spec);
    eventually("the stop", || calls.exists().then_some(()));
    let code = fs::read_to_string(bench.job_dir(&spec.job_id).join("exit_code")).unwrap();
    assert_eq!(code, "1\n");
    // Lets go of who still waits.
    fs::File::options().read(true).write(true).open(&log).unwrap();
}

/// E06: also when the job ends by itself; how it ended is then not known.
#[test]
fn the_auto_stop_of_a_lost_wrapper_waits_for_the_job() {
    let bench = Bench::new();
    let calls = bench.stops();
    let mut spec = bench.spec("echo $$ >job; until [ -e go ]; do sleep 0.1; done", 600);
    spec.auto_stop = true;
    bench.launch(&spec);
    let job = bench.written("job");
    signal("-KILL", &wrapper(&bench, &spec.job_id));
    // Longer than the keeper takes to notice: the stop must not come before the job has ended.
    for _ in 0..7 {
        std::thread::sleep(std::time::Duration::from_secs(1));
        assert!(!is_gone(&job) && !calls.exists());
    }
    fs::write(bench.path("work space/go"), "").unwrap();
    eventually("the stop", || calls.exists().then_some(()));
    assert!(is_gone(&job));
    let status = bench.status(&spec.job_id);
    assert_eq!((status.state, status.exit_code), (JobState::WrapperLost, None));
}

#[test]
fn a_wrapper_that_is_asked_to_end_ends_its_job_first() {
    let bench = Bench::new();
    let spec = bench.spec("echo $$ >job; sleep 1000", 60);
    bench.launch(&spec);
    let job = bench.written("job");
    signal("-TERM", &wrapper(&bench, &spec.job_id));
    let status = bench.ended(&spec.job_id);
    assert_eq!((status.state, status.exit_code), (JobState::Failed, Some(143)));
    assert!(is_gone(&job));
}

/// From the moment on in which it can be found, a wrapper that is asked to end records that and stops the
/// pod.
#[test]
fn a_stop_that_comes_as_the_wrapper_shows_itself_is_heard() {
    let bench = Bench::new();
    let calls = bench.stops();
    bench.fake(
        "mv",
        "real=$(PATH=${PATH#*:} && command -v mv); \"$real\" \"$@\" || exit\n\
         case ${!#} in */pid) kill -TERM \"$PPID\" ;; esac",
    );
    let mut spec = bench.spec("sleep 1000", 60);
    spec.auto_stop = true;
    bench.launch(&spec);
    let status = bench.ended(&spec.job_id);
    assert_eq!((status.state, status.exit_code), (JobState::Failed, Some(143)));
    eventually("the stop", || fs::read_to_string(&calls).ok().filter(|c| c.contains("pod1")));
}

/// E11: and the pod's environment, with a value that refers to nothing, is the job's.
#[test]
fn a_job_sees_the_pods_environment_and_its_own_over_it() {
    let bench = Bench::new();
    bench.environment_file("export A=\"pod $nothing\"\nexport B=\"pod\"\n");
    let mut spec = bench.spec("echo \"$A|$B|$PYTHONUNBUFFERED\" >seen", 60);
    spec.env.insert("B".to_owned(), "job".to_owned());
    bench.launch(&spec);
    assert_eq!(bench.written("seen"), "pod |job|1");
    bench.environment_file("export PYTHONUNBUFFERED=\n");
    let (_, status) = bench.finish("echo \"[$PYTHONUNBUFFERED]\"", 60);
    assert_eq!(log_of(&status), b"[]\n");
}

#[test]
fn a_working_directory_that_is_not_there_fails_the_job_and_says_so() {
    let bench = Bench::new();
    let mut spec = bench.spec("touch ran", 60);
    spec.workdir = "/no such folder".to_owned();
    bench.launch(&spec);
    let status = bench.ended(&spec.job_id);
    assert_eq!((status.state, status.exit_code), (JobState::Failed, Some(1)));
    let log = String::from_utf8_lossy(log_of(&status)).into_owned();
    assert!(log.contains("cannot enter the working directory '/no such folder'"), "{log}");
}

/// A21: nothing means unlimited, not even by hand.
#[test]
fn a_ceiling_that_is_none_runs_nothing() {
    let bench = Bench::new();
    for (ceiling, auto_stop) in [
        ("0", "0"),
        ("", "0"),
        ("off", "0"),
        ("-1", "0"),
        ("1h", "0"),
        ("99999999", "0"),
        ("9", "yes"),
    ] {
        let id = bench.folder(&[("cmd.sh", b"touch ran")]);
        let dir = bench.job_dir(&id);
        let output = by_hand(&bench, &dir, ceiling, auto_stop);
        assert!(String::from_utf8_lossy(&output.stderr).contains("job_wrapper.sh: "), "{output:?}");
        assert!(!dir.join("ran").exists() && !dir.join("pid").exists(), "{ceiling:?}");
        fs::remove_dir_all(dir).unwrap();
    }
}

#[test]
fn a_job_that_ran_is_not_run_again() {
    let bench = Bench::new();
    let spec = bench.spec("echo run >>runs; sleep 1000", 60);
    bench.launch(&spec);
    bench.written("runs");
    let dir = bench.job_dir(&spec.job_id);
    fs::remove_dir_all(dir.join("launched")).unwrap();
    let again = bench.run(&launch_steps(&spec).last().unwrap().command);
    assert_eq!(again.stdout.text(), "already_started\n");
    let output = by_hand(&bench, &dir, "9", "0");
    assert!(String::from_utf8_lossy(&output.stderr).contains("was run before"), "{output:?}");
    assert_eq!(bench.written("runs"), "run");
    signal("-TERM", &wrapper(&bench, &spec.job_id));
    bench.ended(&spec.job_id);
}

/// A Mac that stands in for a pod has no /proc, and its ps knows no sessions.
#[test]
fn without_proc_a_job_is_watched_through_ps() {
    let bench = Bench::new().with("PODTETHER_PROC", "/no such folder");
    let (_, status) = bench.finish("exit 4", 60);
    assert_eq!((status.state, status.exit_code), (JobState::Failed, Some(4)));
    let spec = bench.spec("bash -c 'trap \"\" TERM; echo $$ >deep; while :; do sleep 1; done'", 3);
    bench.launch(&spec);
    let deep = bench.written("deep");
    assert_eq!(bench.status(&spec.job_id).state, JobState::Running);
    let status = bench.ended(&spec.job_id);
    assert_eq!((status.state, status.exit_code), (JobState::TimedOut, Some(124)));
    assert!(is_gone(&deep));
    let spec = bench.spec("exec sleep 1000", 5);
    bench.launch(&spec);
    signal("-KILL", &wrapper(&bench, &spec.job_id));
    assert_eq!(bench.ended(&spec.job_id).state, JobState::WrapperLost);
}
