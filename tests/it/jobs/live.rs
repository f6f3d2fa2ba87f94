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
    super::eventually("the ceiling", || live(&bench).unwrap().is_empty().then_some(()));
}
