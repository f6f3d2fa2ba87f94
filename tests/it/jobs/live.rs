//! Which jobs live.

use super::{Bench, dead_pid_line, look_at, pid_line};
use podtether::domain::JobId;
use podtether::pod::jobs::LiveJobsError;
use podtether::pod::{look_command, parse_look};
use std::fs;

fn live(bench: &Bench) -> Result<Vec<JobId>, LiveJobsError> {
    bench.look(None).live_jobs
}

#[test]
fn a_job_lives_from_its_launch_to_its_exit_code() {
    let bench = Bench::new();
    assert_eq!(live(&bench), Ok(vec![]));
    let alive = pid_line(std::process::id());
    for (name, files, lives) in [
        ("just launched", vec![], true),
        ("running", vec![("pid", alive.as_str())], true),
        ("ending", vec![("pid", alive.as_str()), ("exit_code", "")], true),
        ("stopping the pod", vec![("pid", alive.as_str()), ("exit_code", "0\n")], false),
        ("lost", vec![("pid", dead_pid_line().as_str())], false),
    ] {
        let files: Vec<_> = files.iter().map(|(file, text)| (*file, text.as_bytes())).collect();
        let id = bench.folder(&files);
        let expected = if lives { vec![id.clone()] } else { vec![] };
        assert_eq!(live(&bench), Ok(expected), "{name}");
        fs::remove_dir_all(bench.job_dir(&id)).unwrap();
    }
}

/// E06, E07: what cannot be judged is not "none", and a volume that is gone is no empty one.
#[test]
fn what_cannot_be_judged_is_no_answer() {
    let bench = Bench::new();
    let id = bench.folder(&[("pid", b"garbage")]);
    assert_eq!(live(&bench), Err(LiveJobsError::Undecided(vec![id.to_string()])));
    let gone = parse_look(&bench.run(&look_command(&look_at("/no such mount")))).unwrap();
    assert_eq!(gone.live_jobs, Err(LiveJobsError::NotListed));
    fs::remove_dir_all(bench.job_dir(&id)).unwrap();
    let mut cut = bench.run(&look_command(&look_at(&bench.mount())));
    assert_eq!(parse_look(&cut).unwrap().live_jobs, Ok(vec![]));
    // Without its closing line the list says nothing, whatever else came.
    let text = String::from_utf8(cut.stdout.bytes).unwrap();
    cut.stdout.bytes = text.replace("jobs=whole\n", "").into_bytes();
    cut.stdout.total = cut.stdout.bytes.len() as u64;
    assert_eq!(parse_look(&cut).unwrap().live_jobs, Err(LiveJobsError::NotListed));
}

#[test]
fn a_job_whose_wrapper_was_killed_lives() {
    let bench = Bench::new();
    let spec = bench.spec("echo $$ >job; sleep 1000", 8);
    bench.launch(&spec);
    bench.written("job");
    let line = fs::read_to_string(bench.job_dir(&spec.job_id).join("pid")).unwrap();
    let pid = line.split(' ').next().unwrap();
    std::process::Command::new("kill").args(["-KILL", pid]).status().unwrap();
    super::eventually("the wrapper ends", || super::is_gone(pid).then_some(()));
    assert_eq!(live(&bench), Ok(vec![spec.job_id.clone()]));
    assert!(bench.look(None).live[0].wrapper_is_lost);
    super::eventually("the ceiling", || live(&bench).unwrap().is_empty().then_some(()));
}

/// What the end of each live job does to the pod comes with the same look, whatever its command is; of
/// more than eight only the ids.
#[test]
fn one_look_tells_what_the_end_of_every_live_job_does() {
    let bench = Bench::new();
    let alive = pid_line(std::process::id());
    let command = "echo \"\\\"auto_stop\\\": false\"\n  \"command\": ".repeat(400);
    let spec = bench.spec(&command, 77);
    let steps = podtether::plan::launch_steps(&spec);
    bench.run_steps(&steps[..steps.len() - 1]);
    fs::write(bench.job_dir(&spec.job_id).join("pid"), &alive).unwrap();
    let look = bench.look(None);
    let [job] = &look.live[..] else { panic!("{look:?}") };
    assert_eq!(job.id, spec.job_id);
    assert_eq!((job.auto_stop, job.ceiling_sec), (Some(false), Some(77)));
    assert_eq!(job.started_at, Some(spec.started_at));
    assert!(!job.wrapper_is_lost);

    let compact = br#"{"auto_stop":true,"started_at":null}"#;
    let huge = format!("{{\"auto_stop\": true, \"name\": \"{}\"}}", "x".repeat(9_000));
    for meta in [&compact[..], huge.as_bytes(), b"\0\xff{", b""] {
        let id = bench.folder(&[("pid", alive.as_bytes()), ("meta.json", meta)]);
        let look = bench.look(None);
        let job = look.live.iter().find(|job| job.id == id).unwrap();
        assert_eq!(job.auto_stop, (meta == compact).then_some(true), "{job:?}");
        assert_eq!(job.ceiling_sec, None);
    }
    for _ in 0..8 {
        bench.folder(&[("pid", alive.as_bytes()), ("meta.json", &compact[..])]);
    }
    let look = bench.look(None);
    assert_eq!(look.live.iter().filter(|job| job.auto_stop.is_some()).count(), 8 - 3);
    let ids: Vec<_> = look.live.iter().map(|job| job.id.clone()).collect();
    assert_eq!((ids.len(), Ok(ids)), (13, look.live_jobs));
}

/// A name that is none, and has line breaks in it, adds nothing to an answer.
#[test]
fn the_name_of_a_folder_says_nothing_else() {
    let bench = Bench::new();
    let dir = std::path::Path::new(&bench.mount()).join("jobs/x\njobs=whole\nlive=y");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("pid"), pid_line(std::process::id())).unwrap();
    let strange = "x?jobs=whole?live=y".to_owned();
    assert_eq!(live(&bench), Err(LiveJobsError::Strange(strange)));
}

/// A look starts as many programs for hundreds of jobs that have ended as for none.
#[test]
fn jobs_that_have_ended_cost_a_look_no_process() {
    let bench = Bench::new();
    bench.environment_file("export RUNPOD_POD_ID=pod1\n");
    let calls = bench.path("tmp/calls");
    for program in [
        "awk", "base64", "cat", "cut", "date", "df", "head", "ls", "ps", "sed", "sleep", "stat",
        "tail", "tr", "wc",
    ] {
        let path = std::env::var("PATH").unwrap();
        let real = path.split(':').map(|dir| format!("{dir}/{program}"));
        let real = real.into_iter().find(|path| fs::exists(path).unwrap()).unwrap();
        let body = format!("echo {program} >>'{}'\nexec {real} \"$@\"", calls.display());
        bench.fake(program, &body);
    }
    let started = |id: Option<&JobId>| {
        let _ = fs::remove_file(&calls);
        bench.look(id);
        let mut programs: Vec<String> =
            fs::read_to_string(&calls).unwrap().lines().map(str::to_owned).collect();
        programs.sort();
        programs
    };
    let alive = pid_line(std::process::id());
    let boot = alive.trim().rsplit(' ').next().unwrap();
    let note = format!("1 {boot}\n");
    let files = [("pid", alive.as_bytes()), ("out.log", b"x\n"), ("launched/at", note.as_bytes())];
    let running = bench.folder(&files);
    let (plain, with_a_job) = (started(None), started(Some(&running)));
    assert_eq!(plain, ["cat", "df", "df", "ls", "stat"]);
    let more = ["base64", "cat", "df", "df", "head", "ls", "ls", "stat", "stat", "tail"];
    assert_eq!(with_a_job, more);
    let dead = dead_pid_line();
    for _ in 0..300 {
        bench.folder(&[("exit_code", b"0\n"), ("pid", dead.as_bytes())]);
    }
    assert_eq!((started(None), started(Some(&running))), (plain, with_a_job));
}
