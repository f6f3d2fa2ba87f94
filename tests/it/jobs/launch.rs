//! A launch from its steps: what reaches the pod, once, to the letter.

use super::{Bench, eventually, log_of};
use podtether::domain::{JobState, RemoteCommand, scripts};
use podtether::plan::{LaunchSpec, launch_steps};
use podtether::pod::ExecStatus;
use std::fs;

/// F04: an answer that was lost may be asked for again; the job runs once.
#[test]
fn a_launch_that_is_repeated_starts_nothing() {
    let bench = Bench::new();
    let spec = bench.spec("echo run >>runs; sleep 1", 60);
    let steps = launch_steps(&spec);
    let (last, first) = steps.split_last().unwrap();
    bench.run_steps(first);
    let mut answers: Vec<String> = std::thread::scope(|scope| {
        let racing: Vec<_> = (0..4).map(|_| scope.spawn(|| bench.run(&last.command))).collect();
        racing.into_iter().map(|thread| thread.join().unwrap().stdout.text()).collect()
    });
    answers.sort();
    assert_eq!(answers[..3], ["already_started\n"; 3]);
    let pid = answers[3].strip_prefix("launched ").unwrap().trim();
    assert!(pid.bytes().all(|b| b.is_ascii_digit()));
    assert_eq!(bench.ended(&spec.job_id).state, JobState::Succeeded);
    assert_eq!(bench.run_steps(&steps).stdout.text(), "already_started\n");
    assert_eq!(bench.written("runs"), "run");
}

/// F04: a launch whose session died may still be on its way. Once it is called off it starts nothing,
/// whenever it arrives; one that has begun is told, and one that is over is left alone.
#[test]
fn a_launch_that_was_called_off_starts_nothing() {
    let bench = Bench::new();
    let call_off = |spec: &LaunchSpec, force| {
        let dir = bench.job_dir(&spec.job_id).display().to_string();
        let force = u8::from(force).to_string();
        bench.run(&RemoteCommand::script(scripts::CALL_OFF_LAUNCH, [dir, force]))
    };
    let late = bench.spec("touch late", 60);
    let steps = launch_steps(&late);
    let (last, first) = steps.split_last().unwrap();
    assert_eq!(call_off(&late, false).stdout.text(), "called_off\n", "nothing is placed yet");
    assert!(!bench.job_dir(&late.job_id).exists());
    bench.run_steps(first);
    for _ in 0..2 {
        assert_eq!(call_off(&late, false).stdout.text(), "called_off\n");
        let answer = bench.run(&last.command);
        assert_eq!(answer.status, ExecStatus::Code(1));
        assert!(answer.stderr.text().contains("was called off"), "{answer:?}");
        assert_eq!(bench.status(&late.job_id).state, JobState::NotFound);
        assert_eq!(bench.look(None).live_jobs, Ok(vec![]));
    }

    let begun = bench.spec("until [ -e go ]; do sleep 0.1; done", 60);
    bench.launch(&begun);
    let answer = call_off(&begun, false);
    assert_eq!((answer.status, &*answer.stdout.text()), (ExecStatus::Code(6), "live\n"));
    assert_eq!(call_off(&begun, true).status, ExecStatus::Code(0));
    assert_eq!(bench.status(&begun.job_id).state, JobState::Running);
    fs::write(bench.path("work space/go"), "").unwrap();
    bench.ended(&begun.job_id);
    assert_eq!(call_off(&begun, false).stdout.text(), "over\n");
    assert_eq!(bench.status(&begun.job_id).state, JobState::Succeeded);
    assert!(!bench.path("work space/late").exists());
}

/// Whichever of the two comes first, the other heeds it.
#[test]
fn a_call_off_and_its_launch_at_once_agree() {
    let bench = Bench::new();
    for _ in 0..8 {
        let spec = bench.spec("true", 60);
        let steps = launch_steps(&spec);
        let (last, first) = steps.split_last().unwrap();
        bench.run_steps(first);
        let dir = bench.job_dir(&spec.job_id);
        let words = [dir.display().to_string(), "0".to_owned()];
        let call_off = RemoteCommand::script(scripts::CALL_OFF_LAUNCH, words);
        let (launch, call_off) = std::thread::scope(|scope| {
            let launch = scope.spawn(|| bench.run(&last.command));
            let call_off = bench.run(&call_off);
            (launch.join().unwrap(), call_off)
        });
        let has_started = launch.stdout.text().starts_with("launched ");
        let is_called_off = call_off.stdout.text() == "called_off\n";
        assert!(!(has_started && is_called_off), "{launch:?} {call_off:?}");
        assert!(has_started || !dir.join("pid").exists(), "{launch:?}");
    }
}

/// A child that held a pipe would keep the SSH channel open until the job ends.
#[test]
fn a_launch_closes_its_pipes_while_the_job_runs() {
    let bench = Bench::new();
    let spec = bench.spec("until [ -e go ]; do sleep 0.1; done", 60);
    bench.launch(&spec);
    assert_eq!(bench.status(&spec.job_id).state, JobState::Running);
    fs::write(bench.path("work space/go"), "").unwrap();
    assert_eq!(bench.ended(&spec.job_id).state, JobState::Succeeded);
}

/// H03: text stays text on its way to the job, its folder, its environment and back.
#[test]
fn hostile_words_arrive_to_the_letter() {
    let bench = Bench::new();
    let hostile = "it's \"$(touch PWN)\" `touch PWN` ; & | \\ * \n\t-n é ${HOME} !x #";
    let mut spec = bench.spec("printf '%s' \"$WORD\" >word\n# 'unbalanced \" `quotes\npwd", 60);
    spec.workdir = format!("{}/it's $(touch PWN) \"x\"", bench.mount());
    fs::create_dir(&spec.workdir).unwrap();
    spec.env.insert("WORD".to_owned(), hostile.to_owned());
    spec.provenance.insert("note".to_owned(), hostile.into());
    bench.launch(&spec);
    let status = bench.ended(&spec.job_id);
    assert_eq!(status.state, JobState::Succeeded, "{status:?}");
    assert_eq!(log_of(&status), format!("{}\n", spec.workdir).into_bytes());
    assert_eq!(fs::read_to_string(format!("{}/word", spec.workdir)).unwrap(), hostile);
    let meta = status.meta.unwrap();
    assert_eq!((meta.command, meta.workdir), (spec.command, spec.workdir.clone()));
    assert_eq!(meta.provenance["note"], hostile);
    for folder in [spec.workdir, bench.mount(), bench.path("tmp").display().to_string()] {
        assert!(!std::path::Path::new(&folder).join("PWN").exists());
    }
}

/// A job that starts with ignored signals cannot be interrupted and sees pipes fail strangely. What
/// the tests themselves were started with is inherited and counts for nothing.
#[test]
fn a_job_starts_with_no_signal_ignored() {
    let bench = Bench::new();
    let (_, status) = bench.finish("exec grep SigIgn /proc/self/status", 60);
    let ours = fs::read_to_string("/proc/self/status").unwrap();
    let inherited = ignored_signals(&ours);
    let added = ignored_signals(std::str::from_utf8(log_of(&status)).unwrap()) & !inherited;
    for (signal, name) in [(1, "HUP"), (2, "INT"), (3, "QUIT"), (13, "PIPE"), (15, "TERM")] {
        assert_eq!(added >> (signal - 1) & 1, 0, "{name}");
    }
}

fn ignored_signals(status: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with("SigIgn:")).unwrap();
    u64::from_str_radix(line.rsplit_once('\t').unwrap().1.trim(), 16).unwrap()
}

#[test]
fn a_file_is_placed_whole_or_not_at_all() {
    let bench = Bench::new();
    let path = format!("{}/new folder/a file", bench.mount());
    let place = |text: &str, bytes: usize| {
        let args = [path.clone(), "640".to_owned(), bytes.to_string()];
        RemoteCommand::script(scripts::PLACE_FILE, args).with_stdin(text.into())
    };
    assert!(bench.run(&place("whole\n", 6)).succeeded());
    let cut = bench.run(&place("cu", 6));
    assert!(!cut.succeeded());
    assert!(cut.stderr.text().contains("2 of 6 bytes arrived"), "{cut:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "whole\n");
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    let names: Vec<_> = fs::read_dir(format!("{}/new folder", bench.mount())).unwrap().collect();
    assert_eq!(names.len(), 1, "a part was left behind");
}

/// An auto-stop that cannot happen must not be promised.
#[test]
fn without_the_stop_path_no_job_with_auto_stop_starts() {
    let bench = Bench::new();
    let mut spec = bench.spec("touch ran", 60);
    spec.auto_stop = true;
    let steps = launch_steps(&spec);
    let without: Vec<_> =
        steps.iter().filter(|step| step.label != "place stop_pod.sh").cloned().collect();
    let (last, first) = without.split_last().unwrap();
    bench.run_steps(first);
    let output = bench.run(&last.command);
    assert!(!output.succeeded());
    assert!(output.stderr.text().contains("stop_pod.sh"), "{output:?}");
    assert!(!bench.path("work space/ran").exists());
    eventually("it is known not to run", || {
        Some(bench.status(&spec.job_id)).filter(|status| status.state == JobState::Starting)
    });
}

/// A job that inherited a pipe or a lock of whoever launched it would hold it for hours.
#[test]
fn a_job_has_three_descriptors_and_an_empty_stdin() {
    let bench = Bench::new();
    let line = "ls -1 /proc/$$/fd; readlink /proc/$$/fd/0; until [ -e go ]; do sleep 0.1; done";
    let spec = bench.spec(line, 60);
    let steps = launch_steps(&spec);
    let (last, first) = steps.split_last().unwrap();
    bench.run_steps(first);
    // A launch with a file, and with its own answer's pipe once more, open beside the usual three. It
    // returns only when nobody holds that pipe any more.
    let words = ["bash", "-c", "exec 7</etc/passwd 42>&1; exec \"$@\"", "x"].map(str::to_owned);
    let argv: Vec<String> = words.into_iter().chain(last.command.argv().to_vec()).collect();
    assert!(bench.run(&RemoteCommand::new(argv)).succeeded());
    fs::write(bench.path("work space/go"), "").unwrap();
    let status = bench.ended(&spec.job_id);
    // 255 is bash's own hold on the file it reads, which it does not pass on.
    assert_eq!(String::from_utf8_lossy(log_of(&status)), "0\n1\n2\n255\n/dev/null\n");
}
