//! A command that took too long is ended on the pod.

use super::{Bench, eventually, is_gone};
use podtether::domain::{RemoteCommand, scripts};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// A mark of this run: what a failed one left behind must not be found.
fn mark() -> String {
    format!("{:016x}", rand::random::<u64>())
}

/// As an SSH server starts it: the leader of a group.
fn begin(bench: &Bench, line: &str, mark: &str) -> std::process::Child {
    let words = [bench.mount(), mark.to_owned(), line.to_owned()];
    let command = RemoteCommand::script(scripts::RUN_IN, words);
    let mut command: Command = bench.command(command.argv());
    command.stdin(Stdio::null()).process_group(0).spawn().unwrap()
}

fn end(bench: &Bench, mark: &str) -> String {
    let command = RemoteCommand::script(scripts::END_EXEC, [mark, "1"]);
    bench.run(&command).stdout.text()
}

/// F03: children, those that ignore TERM and those that emptied their environment go with it; who took a
/// session of its own stays and is told, and nobody else is touched.
#[test]
fn an_end_reaches_the_whole_command_and_nothing_beside_it() {
    let bench = Bench::new();
    let own = mark();
    let mut child = begin(
        &bench,
        "bash -c 'trap \"\" TERM; echo $BASHPID >stubborn; while :; do sleep 1; done' &\n\
         env -i /bin/bash -c 'echo $$ >bare; while :; do sleep 1; done' &\n\
         setsid bash -c 'echo $$ >away; exec sleep 1000' &\n\
         echo $$ >top; wait",
        &own,
    );
    let mut other = begin(&bench, "echo $$ >other; exec sleep 1000", &mark());
    let pids = ["top", "stubborn", "bare"].map(|name| bench.written(name));
    let (away, beside) = (bench.written("away"), bench.written("other"));
    let said = end(&bench, &own);
    assert!(said.contains("\nleft=0\naway=1\nend=end_exec.sh\n"), "{said}");
    child.wait().unwrap();
    for pid in pids {
        eventually("its end", || is_gone(&pid).then_some(()));
    }
    assert!(!is_gone(&away) && !is_gone(&beside));
    Command::new("kill").args(["-KILL", &away]).status().unwrap();
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(end(&bench, &own), "found=0\nleft=0\naway=0\nend=end_exec.sh\n");
}

/// H03: what is no mark finds nothing and ends nothing.
#[test]
fn only_a_mark_is_looked_for() {
    let bench = Bench::new();
    for mark in ["", ".*", "x", "ab cd", "ab'"] {
        let command = RemoteCommand::script(scripts::END_EXEC, [mark, "1"]);
        let output = bench.run(&command);
        assert!(!output.succeeded() && output.stderr.text().contains("usage"), "{mark:?}");
    }
}
