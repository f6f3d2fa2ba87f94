//! A pod under OpenSSH and rsync, and the programs on it.

use super::rig::{CEILING, GPU, Rig, finish, is_alive, wait_for};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn only_the_injected_key_and_the_user_root_get_in() {
    let rig = Rig::start(&[]).await;
    let (_, port) = rig.pod(None).await;
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(rig.folder.path().join("other"))
        .status();
    assert!(made.unwrap().success());
    let mut other = rig.ssh_options(port);
    let identity = other.iter().position(|word| word == "-i").unwrap() + 1;
    let own = std::mem::replace(
        &mut other[identity],
        rig.folder.path().join("other").display().to_string(),
    );
    for (options, user) in [(other.clone(), "root"), (rig.ssh_options(port), "nobody")] {
        let mut ssh = Command::new("ssh");
        ssh.args(options).args([&format!("{user}@127.0.0.1"), "true"]).stdin(Stdio::null());
        let output = finish(ssh).await;
        assert_eq!(output.status.code(), Some(255));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("Permission denied (publickey)"), "{text}");
    }
    assert!(Path::new(&own).exists());
    assert_eq!(rig.run(port, "echo in").await, "in");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_is_one_forwarding_is_refused_and_stdin_is_recorded() {
    let rig = Rig::start(&[]).await;
    let (id, port) = rig.pod(None).await;
    let mut ssh = Command::new("ssh");
    ssh.args(rig.ssh_options(port)).args(["-tt", "root@127.0.0.1", "tty"]).stdin(Stdio::null());
    let output = finish(ssh).await;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!((output.status.code(), told.trim().starts_with("/dev/")), (Some(0), true), "{told}");
    let mut ssh = Command::new("ssh");
    ssh.args(rig.ssh_options(port)).args(["-W", "127.0.0.1:22", "root@127.0.0.1"]);
    assert!(!finish(ssh).await.status.success());
    let mut ssh = rig.ssh(port, "sha256sum; exit 3");
    let input = std::fs::File::open(rig.folder.path().join("id.pub")).unwrap();
    ssh.stdin(input);
    let output = finish(ssh).await;
    let digest = String::from_utf8(output.stdout).unwrap()[..64].to_owned();
    let path = rig.state().join("pods").join(&id).join("sessions.jsonl");
    let start = Instant::now();
    let entry = loop {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if let Some(line) = text.lines().find(|line| line.contains("sha256sum")) {
            break serde_json::from_str::<Value>(line).unwrap();
        }
        assert!(start.elapsed() < CEILING);
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let length = std::fs::metadata(rig.folder.path().join("id.pub")).unwrap().len();
    assert_eq!(entry["command"], "sha256sum; exit 3");
    assert_eq!((&entry["status"], &entry["stdin_bytes"]), (&json!(3), &json!(length)));
    assert_eq!(entry["stdin_sha256"], json!(digest));
}

/// An upload into a command that does not read must neither fill the daemon's memory nor block the
/// other commands of the pod.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_does_not_read_holds_its_sender_back() {
    let rig = Rig::start(&[]).await;
    let (_, port) = rig.pod(None).await;
    let big = rig.folder.path().join("big");
    std::fs::File::create(&big).unwrap().set_len(96 << 20).unwrap();
    let mut ssh = rig.ssh(port, "until test -e $HOME/go; do sleep 0.05; done; wc -c");
    ssh.stdin(std::fs::File::open(&big).unwrap()).stdout(Stdio::piped());
    let sending = ssh.spawn().unwrap();
    let resident = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", rig.cloud.pid));
        let status = status.unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("VmHWM: 0 kB");
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    // Enough rounds for all of it to have come, were nobody held back.
    for _ in 0..20 {
        assert_eq!(rig.run(port, "echo still here").await, "still here");
    }
    rig.run(port, "touch $HOME/go").await;
    let output = tokio::task::spawn_blocking(move || sending.wait_with_output().unwrap()).await;
    assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap().trim(), "100663296");
    assert!(resident() < 80_000, "{} kB at most", resident());
}

#[tokio::test(flavor = "multi_thread")]
async fn rsync_moves_files_both_ways() {
    let rig = Rig::start(&[]).await;
    let volume = rig.volume().await;
    let (_, port) = rig.pod(Some(&volume)).await;
    let here = rig.folder.path().join("here");
    std::fs::create_dir_all(here.join("deep/er")).unwrap();
    std::fs::write(here.join("deep/er/a file's name"), vec![7u8; 3 << 20]).unwrap();
    let remote = format!("root@127.0.0.1:{}/in/", rig.mount().display());
    let shell = format!("ssh {}", rig.ssh_options(port).join(" "));
    let rsync = |from: String, to: String| {
        let mut rsync = Command::new("rsync");
        rsync.args(["-rt", "--timeout=60", "-e", &shell, "--", &from, &to]);
        rsync
    };
    let push = finish(rsync(format!("{}/", here.display()), remote.clone())).await;
    assert!(push.status.success(), "{push:?}");
    let there = rig.folder.path().join("there");
    let pull = finish(rsync(remote, format!("{}/", there.display()))).await;
    assert!(pull.status.success(), "{pull:?}");
    let came = std::fs::read(there.join("deep/er/a file's name")).unwrap();
    assert_eq!(came, vec![7u8; 3 << 20]);
    // The volume's folder outlives the pod and holds the same files.
    let kept = rig.state().join("volumes").join(&volume).join("in/deep/er/a file's name");
    assert_eq!(std::fs::metadata(kept).unwrap().len(), 3 << 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_detached_child_survives_a_disconnect_and_dies_at_the_stop() {
    let rig = Rig::start(&[]).await;
    let volume = rig.volume().await;
    let (id, port) = rig.pod(Some(&volume)).await;
    let command = format!(
        "setsid bash -c 'echo $$ > {0}/pid; sleep 600 & wait' </dev/null >/dev/null 2>&1 & \
         until test -s {0}/pid; do sleep 0.01; done; cat {0}/pid; sleep 600",
        rig.mount().display()
    );
    let mut ssh = rig.ssh(port, &command).stdout(Stdio::piped()).spawn().unwrap();
    let file = rig.state().join("volumes").join(&volume).join("pid");
    wait_for("the detached child", || {
        std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'))
    })
    .await;
    let pid = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    ssh.kill().unwrap();
    ssh.wait().unwrap();
    assert_eq!(rig.run(port, &format!("kill -0 {pid} && echo alive")).await, "alive");
    rig.act(&id, "stop").await;
    assert!(!is_alive(&pid), "a stop leaves no process");
}

/// A03: the old grammar exits 0 when it failed.
#[tokio::test(flavor = "multi_thread")]
async fn the_stand_ins_behave_like_the_programs_they_stand_in_for() {
    let rig = Rig::start(&[]).await;
    let (id, port) = rig.pod(None).await;
    let query = "nvidia-smi --query-gpu=name,driver_version,memory.total,utilization.gpu --format=csv,noheader";
    assert_eq!(rig.run(port, query).await, format!("{GPU}, 550.127.05, 24564 MiB, 0 %"));
    assert!(rig.run(port, "nvidia-smi").await.contains("Driver Version: 550.127.05"));
    assert!(rig.run(port, "podtether --version").await.starts_with("podtether "));
    let keyless = finish(rig.ssh(port, &format!("runpodctl pod get {id}"))).await;
    assert_eq!(keyless.status.code(), Some(1), "{keyless:?}");
    let source = ". $PODTETHER_RP_ENVIRONMENT;";
    let got = rig.run(port, &format!("{source} runpodctl pod get {id}")).await;
    assert_eq!(serde_json::from_str::<Value>(&got).unwrap()["id"], json!(id));
    let old = rig.run(port, &format!("{source} runpodctl stop pod other")).await;
    assert!(old.starts_with("pod \"other\" stop failed"), "{old}");
    let new = finish(rig.ssh(port, &format!("{source} runpodctl pod stop other"))).await;
    assert_eq!(new.status.code(), Some(1), "{new:?}");
    // The pod that stops itself dies before it hears the answer.
    finish(rig.ssh(port, &format!("{source} runpodctl stop pod {id}"))).await;
    rig.until(&id, |pod| pod["status"] == "EXITED").await;
}

/// The stand-ins that only macOS gets behave the same where the system has its own.
#[tokio::test(flavor = "multi_thread")]
async fn the_stand_in_setsid_leaves_the_session_even_as_a_group_leader() {
    let rig = Rig::start(&[]).await;
    let (id, port) = rig.pod(None).await;
    let folder = rig.state().join("pods").join(&id).canonicalize().unwrap();
    let setsid = format!("podtether pod-shim --pod '{}' setsid", folder.display());
    let own = "bash -c 'echo $$ $(ps -o sid= -p $$)'";
    // Alone on the line it replaces the shell, which leads its group; with another one after it not.
    for command in [format!("{setsid} -w {own}"), format!("{setsid} {own}; true")] {
        let text = rig.run(port, &command).await;
        let numbers: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(numbers.len(), 2, "{text}");
        assert_eq!(numbers[0], numbers[1], "{command}");
        assert!(folder.join("groups").join(numbers[0]).exists(), "its group is on record");
    }
}
