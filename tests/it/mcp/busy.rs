//! A server under strain: slow tools, huge outputs, a client that reads nothing of stderr.

use super::client::{CEILING, Client, Era};
use super::rounds::pod_running;
use super::scene::Scene;
use serde_json::json;
use std::time::{Duration, Instant};

/// G04, G07, G08: one pod serves all three, since its boot is the slow part.
#[test]
fn slow_calls_hold_up_nothing_and_huge_outputs_are_cut() {
    let scene = Scene::set();
    let mut client = Client::start(scene.server(), Era::Initialize);
    pod_running(&mut client);

    // G07: five megabytes come back as the last 8,000 characters.
    let huge = client.call("exec_on_pod", json!({"command": "seq 700000; seq 700000 >&2"}));
    assert_eq!(
        (&huge["stdout_truncated"], &huge["stderr_truncated"]),
        (&json!(true), &json!(true))
    );
    let stdout = huge["stdout"].as_str().unwrap();
    assert!(stdout.len() <= 8_000 && stdout.ends_with("699999\n700000\n"), "{}", stdout.len());
    let stderr = huge["stderr"].as_str().unwrap();
    assert!(stderr.len() <= 4_000 && stderr.ends_with("700000\n"), "{}", stderr.len());
    // Characters of four bytes, six when JSON spells them out, fit as well.
    let wide = "head -c 40000 /dev/zero | tr '\\0' '\\001'; for i in $(seq 9000); do printf '\u{1F980}'; done";
    let wide = client.call("exec_on_pod", json!({"command": wide}));
    assert!(wide["stdout"].as_str().unwrap().ends_with('\u{1F980}'));

    // G08: a progress bar of five megabytes in one line, with colours and NULs.
    let bar = "for i in $(seq 60000); do printf '\\r\\033[32m%d%%\\033[0m [=====>      ] still going on and on and on and on\\0' $i; done; echo; echo done";
    let job = json!({"name": "bar", "command": bar, "max_runtime_sec": 60});
    let id = client.call("run_job", job)["job_id"].as_str().unwrap().to_owned();
    let ended = super::rounds::job_ended(&mut client, &id);
    let tail = ended["log_tail"].as_str().unwrap();
    assert!(
        tail.ends_with("60000% [=====>      ] still going on and on and on and on\ndone"),
        "{tail:?}"
    );
    assert!(ended["log_bytes"].as_u64().unwrap() > 4_000_000 && tail.len() < 8_300, "{ended}");

    // G04: a hung command blocks neither ping nor reads nor the stop.
    let slow = client.begin_call("exec_on_pod", json!({"command": "sleep 20", "timeout_sec": 50}));
    let slower = client.begin_call("exec_on_pod", json!({"command": "sleep 20", "timeout_sec": 2}));
    assert!(client.is_alive() < Duration::from_secs(1));
    let late = Client::failure(&client.wait(slower));
    assert_eq!((&late["kind"], &late["still_billing"]), (&json!("timeout"), &json!("yes")));
    let start = Instant::now();
    let stopped = client.call("stop_pod", json!({"vehicle": "rover"}));
    assert_eq!(stopped["status"], "stopped");
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    // The command that the stop took down is told as lost.
    let lost = Client::failure(&client.wait(slow));
    assert_eq!(lost["kind"], "ssh_unreachable", "{lost}");
}

/// G11: stderr is a pipe that nobody reads, and more is logged than it holds.
#[test]
fn an_unread_stderr_never_holds_up_an_answer() {
    let chatter = |client: &mut Client| {
        let noise = "x".repeat(6_000);
        for _ in 0..200 {
            client.fail("no_such_tool", json!({"noise": noise}));
        }
    };
    let scene = Scene::set();
    let server = || {
        let mut command = scene.server();
        command.env("PODTETHER_LOG", "trace");
        command
    };
    let (mut read, _) = Client::spawn(server(), Era::Initialize, true);
    read.open();
    chatter(&mut read);
    read.close_stdin();
    read.ended();
    let heard = read.heard().len();
    assert!(heard > 1_000_000, "only {heard} bytes were logged, the test shows nothing");

    let (mut unread, stderr) = Client::spawn(server(), Era::Initialize, false);
    unread.open();
    chatter(&mut unread);
    assert!(unread.is_alive() < CEILING);
    unread.close_stdin();
    let (status, took) = unread.ended();
    assert!(status.success() && took < Duration::from_secs(4), "{status} after {took:?}");
    drop(stderr);
}
