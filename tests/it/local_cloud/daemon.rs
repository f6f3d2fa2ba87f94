//! The daemon of a state folder: one at a time, found again, gone with its pods.

use super::rig::{Rig, is_alive, program, signal, wait_for};
use podtether::cloud::local::{ensure_running, find, stop};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::{Command, Stdio};

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_daemon_goes_on_where_it_was() {
    let mut rig = Rig::start(&[]).await;
    let (id, port) = rig.pod(None).await;
    let pid = rig.run(port, "setsid sleep 600 >/dev/null 2>&1 </dev/null & echo $!").await;
    let before = rig.cloud.clone();
    signal(before.pid, Signal::KILL);
    let state = rig.state();
    wait_for("the daemon to be gone", || find(&state).is_none()).await;
    rig.cloud = ensure_running(&state, program(), &[]).await.unwrap();
    assert_eq!((&rig.cloud.url, &rig.cloud.key), (&before.url, &before.key));
    assert_ne!(rig.cloud.pid, before.pid);
    assert_eq!(rig.reachable(&id).await, port);
    // The known_hosts file has the key of before, so this proves that it is the same.
    wait_for("the SSH server", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()).await;
    assert_eq!(rig.run(port, &format!("kill -0 {pid} && echo alive")).await, "alive");
    rig.act(&id, "terminate").await;
    assert!(!is_alive(&pid));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_daemon_stops_its_pods() {
    let rig = Rig::start(&[]).await;
    let (id, port) = rig.pod(None).await;
    let pid = rig.run(port, "setsid sleep 600 >/dev/null 2>&1 </dev/null & echo $!").await;
    assert!(stop(&rig.state()).await.unwrap());
    assert!(!is_alive(&pid));
    assert!(!stop(&rig.state()).await.unwrap(), "there is none any more");
    let text = std::fs::read_to_string(rig.state().join("cloud.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&document["pods"][0]["id"], &document["pods"][0]["status"]),
        (&json!(id), &json!("EXITED"))
    );
    assert!(document["pod_spans"][0]["end"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_at_once_get_one_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let callers: Vec<_> = (0..6)
        .map(|_| {
            let state = state.clone();
            tokio::spawn(async move { ensure_running(&state, program(), &[]).await.unwrap() })
        })
        .collect();
    let mut clouds = Vec::new();
    for caller in callers {
        clouds.push(caller.await.unwrap());
    }
    assert!(clouds.iter().all(|cloud| *cloud == clouds[0]), "{clouds:?}");
    let second = Command::new(program()).arg("local-cloud").arg("--state").arg(&state).output();
    let second = second.unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&second.stderr).contains("already served"), "{second:?}");
    let refused = ensure_running(&state, program(), &["slow-bot".to_owned()]).await.unwrap_err();
    assert!(refused.to_string().contains("did you mean `slow-boot`"), "{refused}");
    assert!(stop(&state).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_announces_itself_and_refuses_unknown_faults() {
    let folder = tempfile::tempdir().unwrap();
    let refused = Command::new(program())
        .args(["local-cloud", "--fault", "no-capasity", "--state"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("no-capacity") && text.contains("rate-limited"), "{text}");
    assert!(refused.stdout.is_empty());

    let mut child = Command::new(program())
        .args(["local-cloud", "--state"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(ready["pid"], json!(child.id()));
    assert!(ready["url"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{ready}");
    signal(child.id(), Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_whose_folder_is_gone_ends() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let mut child = Command::new(program())
        .args(["local-cloud", "--state"])
        .arg(&state)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the daemon", || find(&state).is_some()).await;
    std::fs::remove_dir_all(&state).unwrap();
    wait_for("its end", || child.try_wait().unwrap().is_some()).await;
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
