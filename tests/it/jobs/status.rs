//! Looks at job folders in every condition.

use super::{
    Bench, dead_pid_line, eventually, is_gone, log_of, parse_status, pid_line, process,
    status_command,
};
use podtether::domain::JobState;
use podtether::pod::jobs::{AnswerError, log_text};
use podtether::pod::look_answer_bytes;
use std::fs;
use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// E04: through the real look, with a live and a dead wrapper.
#[test]
fn no_content_of_an_exit_code_is_a_success_by_accident() {
    use JobState::{Failed, Running, Succeeded, Unknown, WrapperLost};
    let bench = Bench::new();
    let alive = pid_line(std::process::id());
    let dead = dead_pid_line();
    for (content, with_alive, with_dead) in [
        (Some(&b"0\n"[..]), Succeeded, Succeeded),
        (Some(b"1\n"), Failed, Failed),
        (Some(b""), Running, WrapperLost),
        (Some(b" "), Running, WrapperLost),
        (Some(b"0\r\n"), Running, Unknown),
        (Some(b"abc"), Running, Unknown),
        (Some(b"300"), Running, Unknown),
        (Some(b"\xff\0"), Running, Unknown),
        (None, Running, WrapperLost),
    ] {
        for (pid, expected) in [(&alive, with_alive), (&dead, with_dead)] {
            let id = bench.folder(&[("pid", pid.as_bytes())]);
            if let Some(content) = content {
                fs::write(bench.job_dir(&id).join("exit_code"), content).unwrap();
            }
            assert_eq!(bench.status(&id).state, expected, "{content:?} {pid}");
            fs::remove_dir_all(bench.job_dir(&id)).unwrap();
        }
    }
}

/// A17: a pid that was given out again, or of an earlier boot, is not the job.
#[test]
fn a_reused_pid_is_orphaned() {
    let bench = Bench::new();
    let ours = pid_line(std::process::id());
    let words: Vec<&str> = ours.split_whitespace().collect();
    for line in [
        format!("{} {} {}\n", words[0], "12345", words[2]),
        format!("{} {} {}\n", words[0], words[1], "00000000-0000-0000-0000-000000000000"),
    ] {
        let id = bench.folder(&[("pid", line.as_bytes())]);
        let status = bench.status(&id);
        assert_eq!((status.state, status.lives_on), (JobState::Orphaned, false), "{line}");
    }
}

/// A16: a zombie answers `kill -0` for ever and is dead.
#[test]
fn a_zombie_is_dead() {
    let bench = Bench::new();
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let id = bench.folder(&[("pid", pid_line(child.id()).as_bytes())]);
    assert_eq!(bench.status(&id).state, JobState::Running);
    child.kill().unwrap();
    let pid = child.id().to_string();
    eventually("the zombie", || process(&pid).filter(|(state, _)| state == "Z"));
    assert_eq!(bench.status(&id).state, JobState::WrapperLost);
    child.wait().unwrap();
}

/// E07: a pid file that makes no sense is neither dead nor done.
#[test]
fn a_senseless_pid_is_unknown() {
    let bench = Bench::new();
    for line in ["", "x", "12", "1 2 3 4", "-1 5 boot", "* * *"] {
        let id = bench.folder(&[("pid", line.as_bytes())]);
        assert_eq!(bench.status(&id).state, JobState::Unknown, "{line:?}");
        fs::remove_dir_all(bench.job_dir(&id)).unwrap();
    }
}

#[test]
fn a_job_without_a_pid_is_starting() {
    let bench = Bench::new();
    let id = bench.folder(&[]);
    assert_eq!(bench.status(&id).state, JobState::Starting);
}

/// D08, E14: a volume that is not there must not look like one without the job.
#[test]
fn a_job_is_not_found_only_where_the_volume_answers() {
    let bench = Bench::new();
    let id = bench.spec("", 1).job_id;
    assert_eq!(bench.status(&id).state, JobState::NotFound);
    fs::create_dir(bench.path("work space/jobs")).unwrap();
    assert_eq!(bench.status(&id).state, JobState::NotFound);
    let output = bench.run(&status_command("/no such mount", &id, 100, None));
    assert_eq!(parse_status(&output).unwrap().state, JobState::Unknown);
}

/// G08, G09: a progress bar of megabytes with broken characters comes back short and plain.
#[test]
fn any_log_can_be_read() {
    let bench = Bench::new();
    let mut log = b"first\n".to_vec();
    while log.len() < 5_000_000 {
        log.extend_from_slice("\x1b[32m█████\x1b[0m 50%\0\r".as_bytes());
    }
    log.extend_from_slice(b"end \xff\xe9\r");
    let id = bench.folder(&[("out.log", &log)]);
    let status = bench.status(&id);
    assert_eq!(status.log.as_ref().unwrap().size, log.len() as u64);
    assert_eq!(*log_of(&status), log[log.len() - 65_536..]);
    let big =
        [("out.log", &log[..]), ("meta.json", &log), ("leftovers", &log), ("exit_code", &log)];
    let id = bench.folder(&big);
    let output = bench.run(&status_command(&bench.mount(), &id, 300_000, None));
    assert!(output.stdout.bytes.len() <= look_answer_bytes(300_000));
    assert_eq!(log_of(&parse_status(&output).unwrap()).len(), 300_000);
    assert_eq!(log_text::clean(log_of(&status), 8_000), "end \u{fffd}\u{fffd}");
}

#[test]
fn a_log_that_is_followed_comes_over_byte_by_byte() {
    let bench = Bench::new();
    let log: Vec<u8> = (0..=255).cycle().take(1_000).collect();
    let id = bench.folder(&[("out.log", &log)]);
    let look = |offset| {
        let command = status_command(&bench.mount(), &id, 300, Some(offset));
        parse_status(&bench.run(&command)).unwrap().log.unwrap()
    };
    let mut seen = Vec::new();
    loop {
        let slice = look(seen.len() as u64);
        assert_eq!((slice.offset, slice.size), (seen.len() as u64, 1_000));
        if slice.bytes.is_empty() {
            break;
        }
        seen.extend_from_slice(&slice.bytes);
        assert_eq!(slice.next_offset(), seen.len() as u64);
    }
    assert_eq!(seen, log);
    let beyond = look(5_000);
    assert_eq!((beyond.offset, beyond.bytes.len()), (1_000, 0));
}

/// A14: a log from the future is not older than now.
#[test]
fn the_age_of_a_log_is_never_negative() {
    let bench = Bench::new();
    let id = bench.folder(&[("out.log", b"x")]);
    let file = fs::File::options().write(true).open(bench.job_dir(&id).join("out.log")).unwrap();
    for (shift, expected) in [(-3_600_i64, 3_600), (7_200, 0)] {
        let now = SystemTime::now();
        let by = Duration::from_secs(shift.unsigned_abs());
        file.set_modified(if shift < 0 { now - by } else { now + by }).unwrap();
        let age = bench.status(&id).log_age.unwrap().as_secs();
        assert!((expected..expected + 60).contains(&age), "{age}");
    }
}

/// E07: an answer that was cut says nothing, least of all "not running".
#[test]
fn an_answer_without_its_last_line_is_an_error() {
    let bench = Bench::new();
    let id = bench.folder(&[("exit_code", b"0\n"), ("out.log", b"text")]);
    let whole = bench.run(&status_command(&bench.mount(), &id, 100, None));
    assert!(parse_status(&whole).is_ok());
    for keep in [0, 11, whole.stdout.bytes.len() - 1] {
        let mut cut = whole.clone();
        cut.stdout.bytes.truncate(keep);
        cut.stdout.total = keep as u64;
        assert!(matches!(parse_status(&cut), Err(AnswerError::Cut { .. })), "{keep}");
    }
    let mut headless = whole.clone();
    headless.stdout.bytes.drain(..11);
    assert!(matches!(parse_status(&headless), Err(AnswerError::Cut { .. })));
    bench.fake("base64", "exit 127");
    let broken = bench.run(&status_command(&bench.mount(), &id, 100, None));
    assert_ne!(parse_status(&broken).map(|s| s.state), Ok(JobState::Succeeded), "{broken:?}");
}

#[test]
fn what_is_beside_the_meta_does_not_hide_the_state() {
    let bench = Bench::new();
    let id = bench.folder(&[("exit_code", b"0\n"), ("meta.json", b"{\"name\": ")]);
    let status = bench.status(&id);
    assert_eq!((status.state, status.meta), (JobState::Succeeded, None));
}

/// D01: a job that ends between two looks of one answer has ended well, and is not lost.
#[test]
fn a_job_that_ends_during_the_look_is_not_lost() {
    let bench = Bench::new();
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let (id, line, wrapper) = (bench.folder(&[]), pid_line(child.id()), child.id().to_string());
    let (pid, code) = (bench.job_dir(&id).join("pid"), bench.job_dir(&id).join("exit_code"));
    let next = bench.job_dir(&id).join("next");
    assert!(Command::new("mkfifo").args([&pid, &next]).status().unwrap().success());
    // The pid is read for the list of live jobs, then for the job, which ends at this moment.
    std::thread::spawn(move || {
        let open = || fs::OpenOptions::new().write(true).open(&pid).unwrap();
        let mut first = open();
        fs::rename(&next, &pid).unwrap();
        first.write_all(line.as_bytes()).unwrap();
        drop(first);
        let mut again = open();
        fs::write(&code, "0\n").unwrap();
        Command::new("kill").args(["-KILL", &wrapper]).status().unwrap();
        eventually("the end of the wrapper", || is_gone(&wrapper).then_some(()));
        again.write_all(line.as_bytes()).unwrap();
    });
    assert_eq!(bench.status(&id).state, JobState::Succeeded);
    child.wait().unwrap();
}

/// A14: ages are told by one clock. The pod's may be hours off from the volume's, or be set while a job
/// runs: neither makes a fresh log old nor a launch late.
#[test]
fn a_clock_that_is_hours_off_ages_nothing() {
    for shift in ["-10800", "10800"] {
        let bench = Bench::new();
        let spec = bench.spec("echo x; until [ -e go ]; do sleep 0.1; done", 600);
        bench.launch(&spec);
        eventually("the log", || bench.status(&spec.job_id).log_age);
        let date = format!("exec /bin/date -d \"@$(( $(/bin/date +%s) + {shift} ))\" \"$@\"");
        bench.fake("date", &date);
        let age = bench.status(&spec.job_id).log_age.unwrap();
        assert!(age < Duration::from_secs(120), "{shift}: {age:?}");
        let uptime = fs::read_to_string("/proc/uptime").unwrap();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let note = format!("{} {boot}", uptime.split('.').next().unwrap());
        let id = bench.folder(&[]);
        fs::write(bench.job_dir(&id).join("launched/at"), note).unwrap();
        assert_eq!(bench.status(&id).state, JobState::Starting, "{shift}");
        fs::write(bench.path("work space/go"), "").unwrap();
        bench.ended(&spec.job_id);
    }
}

/// One folder for each row of the table in remote/README.md, and no row without one.
#[test]
fn the_table_of_states_says_what_a_look_says() {
    let bench = Bench::new();
    let (alive, dead) = (pid_line(std::process::id()), dead_pid_line());
    let words: Vec<&str> = alive.split_whitespace().collect();
    let reused = format!("{} 12345 {}\n", words[0], words[2]);
    let rows: Vec<(&str, Vec<(&str, &str)>)> = vec![
        ("starting", vec![]),
        ("running", vec![("pid", &alive)]),
        ("succeeded", vec![("pid", &dead), ("exit_code", "0\n")]),
        ("failed", vec![("pid", &dead), ("exit_code", "9\n")]),
        ("timed_out", vec![("pid", &dead), ("exit_code", "124\n"), ("ceiling_struck", "5\n")]),
        ("wrapper_lost", vec![("pid", &dead)]),
        ("orphaned", vec![("pid", &reused)]),
        ("unknown", vec![("pid", "none")]),
    ];
    assert_eq!(bench.status(&bench.spec("", 1).job_id).state, JobState::NotFound);
    let mut seen = vec!["not_found".to_owned()];
    for (state, files) in rows {
        let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
        let id = bench.folder(&files);
        assert_eq!(serde_json::to_value(bench.status(&id).state).unwrap(), state);
        fs::remove_dir_all(bench.job_dir(&id)).unwrap();
        seen.push(state.to_owned());
    }
    let page = include_str!("../../../remote/README.md");
    let table = page.split("## State\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let words = rows.flat_map(|line| line.split('|').nth(1).unwrap().split(','));
    let mut documented: Vec<String> =
        words.map(|word| word.trim().trim_matches('`').to_owned()).collect();
    documented.sort();
    seen.sort();
    assert_eq!(documented, seen);
}
