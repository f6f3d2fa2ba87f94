//! The end: a client that goes away takes the server with it, and nothing is left behind (C10).

use super::client::{Client, ERAS, Era};
use super::rounds::pod_running;
use super::scene::{Scene, program};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Two seconds are promised; a busy machine gets as many more. rmcp's own drain would take five.
const QUICKLY: Duration = Duration::from_secs(4);

fn signal(client: &Client, signal: Signal) {
    let pid = Pid::from_raw(client.child.id().try_into().unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// The command lines of all processes that name `word`.
fn processes_with(word: &str) -> Vec<String> {
    let listed = Command::new("ps").args(["-A", "-o", "args="]).output().unwrap();
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    text.lines().filter(|line| line.contains(word)).map(str::to_owned).collect()
}

/// Some clients only look whether the server starts.
#[test]
fn a_client_that_leaves_before_its_first_word_is_no_error() {
    let scene = Scene::set();
    let (mut client, _) = Client::spawn(scene.server(), Era::Initialize, true);
    client.close_stdin();
    let (status, took) = client.ended();
    assert!(status.success() && took < QUICKLY, "{status} after {took:?}");
    assert_eq!(client.heard(), b"");
}

#[test]
fn an_idle_server_ends_with_its_client_and_at_every_signal() {
    for era in ERAS {
        for how in [None, Some(Signal::TERM), Some(Signal::INT)] {
            let mut client = Client::start(Scene::set().server(), era);
            match how {
                None => client.close_stdin(),
                Some(how) => signal(&client, how),
            }
            let (status, took) = client.ended();
            assert!(status.success() && took < QUICKLY, "{how:?}: {status} after {took:?}");
        }
    }
}

/// What holds a call up must not hold the server: a command on the pod, a pull, a boot.
#[test]
fn a_call_in_flight_never_keeps_a_server_whose_client_is_gone() {
    let scene = Scene::set();
    let mut client = Client::start(scene.server(), Era::Stateless);
    pod_running(&mut client);
    client.call("exec_on_pod", json!({"command": "mkdir -p results && seq 9 > results/numbers"}));
    drop(client);
    // An rsync that answers as one and then never ends, under a name of its own.
    let folder = scene.dir().join("bin");
    let stuck = scene.dir().join("stuck-rsync");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(which("sleep"), &stuck).unwrap();
    let script = format!(
        "#!/bin/bash\nfor word; do case $word in --version|-V|--help) exec {} \"$@\" ;; esac; done\n[ $# -lt 5 ] && exec {} \"$@\"\nexec {} 600\n",
        which("rsync"),
        which("rsync"),
        stuck.display()
    );
    std::fs::write(folder.join("rsync"), script).unwrap();
    std::fs::set_permissions(folder.join("rsync"), PermissionsExt::from_mode(0o755)).unwrap();

    for how in [None, Some(Signal::TERM), Some(Signal::INT)] {
        let mut command = scene.server();
        command.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
        let mut client = Client::start(command, Era::Stateless);
        client.begin_call("exec_on_pod", json!({"command": "sleep 30"}));
        client.begin_call("sync_logs", json!({"subdir": "results"}));
        let start = Instant::now();
        while processes_with(stuck.to_str().unwrap()).is_empty() {
            assert!(start.elapsed() < super::client::CEILING, "rsync was not started");
            std::thread::sleep(Duration::from_millis(20));
        }
        match how {
            None => client.close_stdin(),
            Some(how) => signal(&client, how),
        }
        let (status, took) = client.ended();
        assert!(status.success() && took < QUICKLY, "{how:?}: {status} after {took:?}");
        let start = Instant::now();
        while !processes_with(stuck.to_str().unwrap()).is_empty() {
            assert!(start.elapsed() < QUICKLY, "{how:?}: rsync has outlived the server");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// C10: a pull that its client cancels leaves no rsync behind, and the server serves on.
#[test]
fn a_pull_that_is_cancelled_ends_its_rsync_and_the_server_serves_on() {
    let scene = Scene::set();
    let mut client = Client::start(scene.server(), Era::Initialize);
    pod_running(&mut client);
    client.call("exec_on_pod", json!({"command": "mkdir -p results && seq 9 > results/numbers"}));
    drop(client);
    let folder = scene.dir().join("bin");
    let stuck = scene.dir().join("stuck-rsync");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(which("sleep"), &stuck).unwrap();
    let real = which("rsync");
    // Only a pull names a remote shell; the questions about options do not.
    let script = format!(
        "#!/bin/bash\nfor word; do if [ \"$word\" = -e ]; then exec {} 600; fi; done\nexec {real} \"$@\"\n",
        stuck.display()
    );
    std::fs::write(folder.join("rsync"), script).unwrap();
    std::fs::set_permissions(folder.join("rsync"), PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = scene.server();
    command.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    let mut client = Client::start(command, Era::Initialize);
    let id = client.begin_call("sync_logs", json!({"subdir": "results"}));
    let start = Instant::now();
    while processes_with(stuck.to_str().unwrap()).is_empty() {
        assert!(start.elapsed() < super::client::CEILING, "rsync was not started");
        std::thread::sleep(Duration::from_millis(20));
    }
    let cancel = json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": id, "reason": "the user pressed escape"},
    });
    client.send_raw(format!("{cancel}\n").as_bytes());
    let start = Instant::now();
    while !processes_with(stuck.to_str().unwrap()).is_empty() {
        assert!(start.elapsed() < super::client::CEILING, "rsync has outlived its call");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(client.call("pod_status", json!({}))["status"], "running");
}

/// A client that gives a progress token is told how a pull goes, in figures that grow, and nothing
/// after the answer.
#[test]
fn a_pull_tells_its_progress_to_a_client_that_asks_for_it() {
    let scene = Scene::set();
    let folder = scene.dir().join("bin");
    std::fs::create_dir(&folder).unwrap();
    let real = which("rsync");
    let script = format!(
        "#!/bin/bash\nfor word; do if [ \"$word\" = -e ]; then exec {real} --bwlimit=1500 \"$@\"; fi; done\nexec {real} \"$@\"\n"
    );
    std::fs::write(folder.join("rsync"), script).unwrap();
    std::fs::set_permissions(folder.join("rsync"), PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = scene.server();
    command.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    let mut client = Client::start(command, Era::Initialize);
    pod_running(&mut client);
    let make = "mkdir -p results && head -c 6000000 /dev/urandom >results/model.pt";
    client.call("exec_on_pod", json!({"command": make}));
    let id = client.begin(
        "tools/call",
        json!({
            "name": "sync_logs",
            "arguments": {"subdir": "results"},
            "_meta": {"progressToken": "pull-1"},
        }),
    );
    let mut told = Vec::new();
    let answer = loop {
        let message = client.next_message(super::client::CEILING).expect("no answer");
        if message["id"] == id {
            break message;
        }
        assert_eq!(message["method"], "notifications/progress", "{message}");
        assert_eq!(message["params"]["progressToken"], "pull-1");
        told.push(message["params"].clone());
    };
    assert_eq!(answer["result"]["structuredContent"]["complete"], true, "{answer}");
    assert!(!told.is_empty(), "nothing was told");
    let figures: Vec<f64> = told.iter().map(|one| one["progress"].as_f64().unwrap()).collect();
    assert!(figures.is_sorted_by(|one, next| one < next), "{figures:?}");
    assert_eq!(told[0]["total"].as_f64(), Some(6_000_000.0));
    let text = told[0]["message"].as_str().unwrap();
    assert!(text.contains("of 6.0 MB") && text.contains("1 files"), "{text}");
}

/// The local cloud goes on without the server. Clients that read stderr to its end must not wait
/// for it.
#[test]
fn what_outlives_the_server_holds_none_of_its_streams() {
    use std::io::Read as _;
    let scene = Scene::set();
    let (mut client, stderr) = Client::spawn(scene.server(), Era::Initialize, false);
    client.open();
    client.call("pod_status", json!({}));
    assert!(podtether::cloud::local::find(&scene.dir().join("cloud")).is_some());
    client.close_stdin();
    client.ended();
    let (send, read) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(stderr.unwrap().read_to_end(&mut Vec::new())));
    assert!(read.recv_timeout(QUICKLY).is_ok(), "something holds stderr open");
    assert!(client.is_silent(QUICKLY), "something holds stdout open");
}

fn which(name: &str) -> String {
    let paths = std::env::var_os("PATH").unwrap();
    let mut paths = std::env::split_paths(&paths).map(|folder| folder.join(name));
    let found = paths.find(|path| Path::is_file(path));
    found.unwrap_or_else(|| panic!("{name} is not installed")).to_str().unwrap().to_owned()
}

/// Node starts servers on sockets, not on pipes; they are read in another way.
#[test]
fn a_client_on_sockets_is_served_and_its_end_noticed() {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::fd::OwnedFd;
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let scene = Scene::set();
    let mut command = Command::new(program());
    command.arg("mcp").arg("--config").arg(scene.config()).env_clear();
    command.stdin(OwnedFd::from(theirs.try_clone().unwrap())).stdout(OwnedFd::from(theirs));
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    drop(command);
    ours.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").unwrap();
    ours.set_read_timeout(Some(super::client::CEILING)).unwrap();
    let mut line = String::new();
    BufReader::new(ours.try_clone().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap()["id"], 1);
    ours.shutdown(std::net::Shutdown::Both).unwrap();
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            break;
        }
        assert!(start.elapsed() < QUICKLY, "the server is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}
