//! How transfers end: every exit code of rsync with its own words and retries, no rsync, a shell that
//! talks.

use super::{Scene, program, without_rsync};
use futures_util::future::join_all;
use podtether::pod::transfer::{
    Carrier, PullReport, PullRequest, RsyncProgram, TransferError, pull,
};
use std::fs;

/// D03: what each code means, how often rsync is run for it, and what is said. In every case all files
/// had come, so that only the code speaks.
#[tokio::test]
async fn each_exit_code_has_its_own_retries_and_words() {
    let Some(scene) = Scene::new().await else { return };
    scene.write("a", "1");
    type Ended = Result<PullReport, TransferError>;
    let warns = |words: &'static str| {
        move |ended: &Ended| {
            let Ok(report) = ended else { return false };
            report.complete && report.warnings.iter().any(|said| said.contains(words))
        }
    };
    let breaks = |words: &'static str| {
        move |ended: &Ended| {
            let Err(error @ TransferError::Link { attempts: 3, .. }) = ended else { return false };
            error.to_string().contains(words) && error.to_string().contains("what has come is kept")
        }
    };
    let fails = |words: &'static str| {
        move |ended: &Ended| ended.as_ref().is_err_and(|error| error.to_string().contains(words))
    };
    type Judge = Box<dyn Fn(&Ended) -> bool>;
    let table: Vec<(&str, usize, Judge)> = vec![
        ("exit 0", 1, Box::new(|ended: &Ended| matches!(ended, Ok(report) if report.complete))),
        ("exit 24", 1, Box::new(warns("vanished"))),
        ("echo no such file >&2; exit 23", 2, Box::new(warns("rsync: no such file"))),
        ("exit 10", 3, Box::new(breaks("a socket failed"))),
        ("exit 12", 3, Box::new(breaks("stream broke"))),
        ("exit 16", 3, Box::new(breaks("connection was lost"))),
        ("exit 30", 3, Box::new(breaks("no data came"))),
        ("exit 35", 3, Box::new(breaks("no data came"))),
        ("exit 255", 3, Box::new(breaks("transport failed"))),
        ("echo No space left >&2; exit 11", 1, Box::new(fails("cannot write here: No space left"))),
        ("exit 20", 1, Box::new(fails("interrupted; what has come is kept"))),
        ("kill -TERM $$", 1, Box::new(fails("interrupted; what has come is kept"))),
        ("exit 1", 1, Box::new(fails("exit code 1, which means that options were wrong"))),
        ("exit 2", 1, Box::new(fails("the two rsyncs do not understand"))),
        ("exit 4", 1, Box::new(fails("the pod sent what was not asked for"))),
        (
            "echo 'protocol version mismatch -- is your shell clean?' >&2; exit 2",
            1,
            Box::new(fails("the pod's shell says nothing by itself")),
        ),
    ];
    // Side by side, since a broken link is waited for.
    let run = |(index, (end, _, _)): (usize, &(&str, usize, Judge))| {
        let path = scene.sshd.path(&format!("rsync-{index}"));
        let real = scene.rsync.path.display();
        program(&path, &format!("echo >>\"$0.runs\"; '{real}' \"$@\"; {end}"));
        let rsync = Some(RsyncProgram { path, ..scene.rsync.clone() });
        let local_dir = scene.local.join(index.to_string());
        let request = PullRequest { rsync, local_dir, ..scene.request() };
        let shell = &scene.shell;
        async move { pull(&request, shell, |_| {}).await }
    };
    let ended = join_all(table.iter().enumerate().map(run)).await;
    for (index, ((end, runs, judge), ended)) in table.iter().zip(&ended).enumerate() {
        assert!(judge(ended), "{end}: {ended:?}");
        let log = fs::read_to_string(scene.sshd.path(&format!("rsync-{index}.runs"))).unwrap();
        assert_eq!(log.lines().count(), *runs, "{end}");
    }
}

/// D05: what a stop has taken with the container disk is installed again, once.
#[tokio::test]
async fn a_missing_rsync_is_installed_again_and_else_tar_is_used_and_both_are_said() {
    for (works, carrier, words) in [
        (true, Carrier::Rsync, "it was installed again"),
        (false, Carrier::Tar, "could not be installed (E: Unable to locate package rsync)"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        without_rsync(folder.path());
        let path = format!("PATH={}", folder.path().display());
        let Some(scene) = Scene::with(&path).await else { return };
        let bring = match works {
            true => format!(
                "[[ $* == *install* ]] && /bin/ln -s {} {}/rsync; exit 0",
                scene.rsync.path.display(),
                folder.path().display()
            ),
            false => "echo 'E: Unable to locate package rsync'; exit 100".to_owned(),
        };
        program(&folder.path().join("apt-get"), &format!("echo \"$*\" >>\"$0.log\"; {bring}"));
        scene.write("a", "1");
        let report = scene.pull().await.unwrap();
        assert!(report.complete, "{report:?}");
        assert_eq!(report.carrier, carrier, "{report:?}");
        assert!(report.warnings.iter().any(|said| said.contains(words)), "{report:?}");
        let asked = fs::read_to_string(folder.path().join("apt-get.log")).unwrap();
        assert_eq!(asked.lines().count(), if works { 1 } else { 2 }, "{asked}");
    }
}

/// A ~/.bashrc that writes breaks rsync and scp; here it is told and does no harm.
#[tokio::test]
async fn a_shell_that_writes_before_every_command_is_named_and_does_no_harm() {
    let Some(scene) = Scene::new().await else { return };
    // bash reads it for commands over SSH; the server's HOME is this folder.
    fs::write(scene.sshd.path(".bashrc"), "printf 'Welcome to pod 42\\0\\n'\n").unwrap();
    scene.write("a", "1");
    for rsync in [Some(scene.rsync.clone()), None] {
        scene.write(&format!("more {}", rsync.is_some()), "2");
        let request = PullRequest { rsync, ..scene.request() };
        let report = pull(&request, &scene.shell, |_| {}).await.unwrap();
        assert!(report.complete && report.files > 0, "{report:?}");
        let said = report.warnings.iter().any(|said| said.contains("Welcome to pod 42"));
        assert!(said, "{:?}", report.warnings);
    }
}
