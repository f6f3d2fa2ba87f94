//! The local cloud as its users meet it: over HTTP, with OpenSSH and with rsync.

use podtether::cloud::local::{RunningCloud, ensure_running, find, stop};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const GPU: &str = "NVIDIA GeForce RTX 4090";
const CEILING: Duration = Duration::from_secs(60);

pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_podtether"))
}

/// A local cloud in a folder of its own, gone with its pods at the end of the test.
pub struct Rig {
    pub folder: TempDir,
    pub cloud: RunningCloud,
    client: reqwest::Client,
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(cloud) = find(&self.state()) {
            signal(cloud.pid, Signal::TERM);
            let start = Instant::now();
            while find(&self.state()).is_some() && start.elapsed() < CEILING {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

impl Rig {
    pub async fn start(faults: &[&str]) -> Self {
        Self::begin(faults, &[]).await
    }

    /// A local cloud that was started by hand with `arguments`.
    pub async fn start_with(arguments: &[&str]) -> Self {
        Self::begin(&[], arguments).await
    }

    async fn begin(faults: &[&str], arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let state = folder.path().join("state");
        if !arguments.is_empty() {
            let mut daemon = Command::new(program());
            daemon.args(["local-cloud", "--state"]).arg(&state).args(arguments);
            let mut daemon = daemon.stdout(Stdio::null()).spawn().unwrap();
            std::thread::spawn(move || daemon.wait());
            wait_for("the daemon", || find(&state).is_some()).await;
        }
        let cloud = ensure_running(&state, program(), &faults).await.unwrap();
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(folder.path().join("id"))
            .status();
        assert!(made.unwrap().success());
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { folder, cloud, client }
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn mount(&self) -> PathBuf {
        self.state().join("mnt/workspace")
    }

    /// One request with the account's key; the body is null when there is none.
    pub async fn api(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let key = self.cloud.key.reveal();
        self.request(key, method, path, body).await.unwrap()
    }

    pub async fn request(
        &self,
        key: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Result<(u16, Value), reqwest::Error> {
        let method: reqwest::Method = method.parse().unwrap();
        let mut request = self.client.request(method, format!("{}{path}", self.cloud.url));
        request = request.bearer_auth(key);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await?;
        assert_eq!(response.headers()["x-podtether-local"], "1", "{path}");
        let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
        assert!(id.starts_with("local-"), "{id}");
        let status = response.status().as_u16();
        let text = response.text().await?;
        Ok((status, serde_json::from_str(&text).unwrap_or(Value::Null)))
    }

    pub async fn set_faults(&self, faults: &[&str]) {
        let body = json!({"faults": faults});
        let (status, answer) = self.api("PUT", "/_local/faults", Some(body)).await;
        assert_eq!((status, &answer["faults"]), (200, &json!(faults)));
    }

    pub async fn volume(&self) -> String {
        let body = json!({"name": "data", "size": 10, "dataCenter": "EU-RO-1"});
        let (status, volume) = self.api("POST", "/v2/network-volumes", Some(body)).await;
        assert_eq!(status, 201, "{volume}");
        volume["id"].as_str().unwrap().to_owned()
    }

    pub fn create_body(&self, volume: Option<&str>) -> Value {
        let public = std::fs::read_to_string(self.folder.path().join("id.pub")).unwrap();
        let mut body = json!({
            "name": "rover",
            "image": "runpod/pytorch:2.4.0",
            "gpu": {"id": GPU, "count": 1},
            "cloud": "SECURE",
            "dataCenterIds": ["EU-RO-1"],
            "disk": 20,
            "ports": ["22/tcp"],
            "env": {"PUBLIC_KEY": public, "PODTETHER_NONCE": "n1"},
        });
        if let Some(volume) = volume {
            body["mounts"] = json!({"network": [{"volumeId": volume, "path": self.mount()}]});
        }
        body
    }

    /// A pod that runs and can be reached, with its port.
    pub async fn pod(&self, volume: Option<&str>) -> (String, u16) {
        let body = self.create_body(volume);
        let (status, pod) = self.api("POST", "/v2/pods", Some(body)).await;
        assert_eq!(status, 201, "{pod}");
        let id = pod["id"].as_str().unwrap().to_owned();
        let port = self.reachable(&id).await;
        (id, port)
    }

    /// Waits for the direct SSH address of a pod.
    pub async fn reachable(&self, id: &str) -> u16 {
        let pod = self.until(id, |pod| !pod["ssh"]["direct"].is_null()).await;
        pod["ssh"]["direct"]["port"].as_u64().unwrap().try_into().unwrap()
    }

    pub async fn until(&self, id: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let (_, pod) = self.api("GET", &format!("/v2/pods/{id}"), None).await;
            if holds(&pod) {
                return pod;
            }
            assert!(start.elapsed() < CEILING, "{pod}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn act(&self, id: &str, action: &str) -> (u16, Value) {
        let body = json!({"action": action});
        self.api("POST", &format!("/v2/pods/{id}/action"), Some(body)).await
    }

    fn ssh_options(&self, port: u16) -> Vec<String> {
        let identity = self.folder.path().join("id").display().to_string();
        let known = self.folder.path().join("known_hosts").display().to_string();
        ["-F", "none", "-T", "-i", &identity, "-p", &port.to_string()]
            .into_iter()
            .map(str::to_owned)
            .chain(
                [
                    "BatchMode=yes",
                    "LogLevel=ERROR",
                    "IdentitiesOnly=yes",
                    "IdentityAgent=none",
                    "StrictHostKeyChecking=accept-new",
                    &format!("UserKnownHostsFile={known}"),
                ]
                .into_iter()
                .flat_map(|option| ["-o".to_owned(), option.to_owned()]),
            )
            .collect()
    }

    pub fn ssh(&self, port: u16, command: &str) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.args(self.ssh_options(port)).args(["root@127.0.0.1", command]).stdin(Stdio::null());
        ssh
    }

    /// The standard output of a command that must succeed.
    pub async fn run(&self, port: u16, command: &str) -> String {
        let output = finish(self.ssh(port, command)).await;
        assert!(output.status.success(), "{command}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }
}

async fn finish(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

pub fn is_alive(pid: &str) -> bool {
    let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
    let zombie = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()))
        .is_ok_and(|stat| stat.contains(") Z "));
    test_kill_process(pid).is_ok() && !zombie
}

async fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < CEILING, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_boots_in_steps_runs_a_command_and_stops() {
    let rig = Rig::start(&[]).await;
    let volume = rig.volume().await;
    let (status, pod) = rig.api("POST", "/v2/pods", Some(rig.create_body(Some(&volume)))).await;
    assert_eq!((status, &pod["status"]), (201, &json!("PROVISIONING")));
    assert_eq!((&pod["cost"], &pod["ssh"]["direct"]), (&json!(0.69), &Value::Null));
    let id = pod["id"].as_str().unwrap();
    assert!(id.starts_with("local"), "{id}");
    rig.until(id, |pod| pod["status"] == "STARTING").await;
    let port = rig.reachable(id).await;
    let output = finish(rig.ssh(port, "echo out; echo err >&2; exit 7")).await;
    assert_eq!(output.status.code(), Some(7));
    assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
    let (status, pod) = rig.act(id, "stop").await;
    assert_eq!((status, &pod["status"]), (200, &json!("EXITED")));
    assert_eq!((&pod["cost"], &pod["ssh"]["direct"]), (&json!(0.0), &Value::Null));
    assert!(!finish(rig.ssh(port, "true")).await.status.success());
}

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
async fn a_terminal_and_forwarding_are_refused_and_stdin_is_recorded() {
    let rig = Rig::start(&[]).await;
    let (id, port) = rig.pod(None).await;
    let mut ssh = Command::new("ssh");
    ssh.args(rig.ssh_options(port)).args(["-tt", "root@127.0.0.1", "tty"]).stdin(Stdio::null());
    let output = finish(ssh).await;
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(255), &b""[..]));
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
    std::fs::File::create(&big).unwrap().set_len(200 << 20).unwrap();
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
    assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap().trim(), "209715200");
    assert!(resident() < 120_000, "{} kB at most", resident());
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

/// F05: a start gives new host keys, F01: and a new port.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_wipes_the_container_disk_and_keeps_the_volume() {
    let rig = Rig::start(&[]).await;
    let volume = rig.volume().await;
    let (id, port) = rig.pod(Some(&volume)).await;
    let mount = rig.mount().display().to_string();
    rig.run(port, &format!("echo disk > $HOME/disk; echo kept > {mount}/kept")).await;
    let keys = |port: u16| {
        let mut scan = Command::new("ssh-keyscan");
        scan.args(["-t", "ed25519", "-p", &port.to_string(), "127.0.0.1"]);
        finish(scan)
    };
    let first = String::from_utf8(keys(port).await.stdout).unwrap();
    let first = first.split_whitespace().last().unwrap().to_owned();
    rig.act(&id, "stop").await;
    assert!(std::fs::symlink_metadata(rig.mount()).is_err(), "no mount while stopped");
    let (status, _) = rig.act(&id, "start").await;
    assert_eq!(status, 200);
    let next = rig.reachable(&id).await;
    assert_ne!(next, port);
    let second = String::from_utf8(keys(next).await.stdout).unwrap();
    assert_ne!(second.split_whitespace().last().unwrap(), first);
    let found = rig.run(next, &format!("cat {mount}/kept; test -e $HOME/disk || echo wiped")).await;
    assert_eq!(found, "kept\nwiped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_the_container_and_ends_its_processes() {
    let rig = Rig::start(&[]).await;
    let (id, port) = rig.pod(None).await;
    let command = "echo disk > $HOME/disk; setsid sleep 600 >/dev/null 2>&1 & echo $!";
    let pid = rig.run(port, command).await;
    let (status, pod) = rig.act(&id, "restart").await;
    assert_eq!((status, &pod["status"]), (200, &json!("STARTING")));
    wait_for("the child to die", || !is_alive(&pid)).await;
    rig.until(&id, |pod| pod["status"] == "RUNNING").await;
    let port = rig.reachable(&id).await;
    assert_eq!(rig.run(port, "cat $HOME/disk").await, "disk");
}

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
    assert!(stop(&state).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_key_is_told_where_it_is_and_a_pods_key_reaches_that_pod_only() {
    let rig = Rig::start(&[]).await;
    let (status, problem) = rig.request("rpa_0123456789", "GET", "/v2/pods", None).await.unwrap();
    assert_eq!(status, 401);
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("local cloud") && !detail.contains("rpa_"), "{detail}");
    let mut body = rig.create_body(None);
    body["env"]["RUNPOD_API_KEY"] = json!("rpa_0123456789abcdef");
    let (status, problem) = rig.api("POST", "/v2/pods", Some(body)).await;
    assert_eq!(status, 400, "{problem}");
    let recorded = std::fs::read_to_string(rig.state().join("requests.jsonl")).unwrap();
    assert!(!recorded.contains("rpa_0123456789abcdef"), "{recorded}");

    let (id, port) = rig.pod(None).await;
    let (other, _) = rig.pod(None).await;
    let source = ". $PODTETHER_RP_ENVIRONMENT;";
    let key = rig.run(port, &format!("{source} echo $RUNPOD_API_KEY")).await;
    assert_eq!(rig.run(port, "echo .$RUNPOD_API_KEY").await, ".", "sessions do not inherit it");
    assert_eq!(rig.run(port, &format!("{source} echo $PODTETHER_API_URL")).await, rig.cloud.url);
    let action = |action: &str| Some(json!({"action": action}));
    for (method, path, body, status) in [
        ("GET", format!("/v2/pods/{id}"), None, 200),
        ("GET", "/v2/pods".to_owned(), None, 403),
        ("GET", format!("/v2/pods/{other}"), None, 403),
        ("POST", format!("/v2/pods/{id}/action"), action("restart"), 403),
        ("POST", format!("/v2/pods/{other}/action"), action("stop"), 403),
        ("PUT", "/_local/faults".to_owned(), Some(json!({"faults": []})), 403),
        ("POST", format!("/v2/pods/{id}/action"), action("stop"), 200),
        ("DELETE", format!("/v2/pods/{id}"), None, 204),
    ] {
        let answer = rig.request(&key, method, &path, body).await.unwrap();
        assert_eq!(answer.0, status, "{method} {path}: {answer:?}");
    }
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

/// B01, B02: the answer of a create is lost and the pod exists.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_create_reply_leaves_a_pod() {
    let rig = Rig::start(&["create-reply-lost"]).await;
    let (key, body) = (rig.cloud.key.reveal(), rig.create_body(None));
    let lost = rig.request(key, "POST", "/v2/pods", Some(body)).await;
    let error = lost.unwrap_err();
    assert!(error.is_request() && error.status().is_none(), "{error:?}");
    let (_, list) = rig.api("GET", "/v2/pods", None).await;
    assert_eq!(list["pods"][0]["env"]["PODTETHER_NONCE"], "n1");
    rig.pod(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_does_what_it_says() {
    let rig = Rig::start(&["no-capacity"]).await;
    let (status, problem) = rig.api("POST", "/v2/pods", Some(rig.create_body(None))).await;
    assert_eq!(status, 400);
    let detail = problem["detail"].as_str().unwrap().to_lowercase();
    assert!(detail.contains("no longer any instances available"), "{detail}");

    rig.set_faults(&["slow-boot=600"]).await;
    let (_, pod) = rig.api("POST", "/v2/pods", Some(rig.create_body(None))).await;
    let slow = pod["id"].as_str().unwrap().to_owned();
    rig.until(&slow, |pod| pod["status"] == "STARTING").await;
    rig.set_faults(&[]).await;
    let (id, _) = rig.pod(None).await;
    let (_, pod) = rig.api("GET", &format!("/v2/pods/{slow}"), None).await;
    assert_eq!(pod["status"], "STARTING", "a later pod has overtaken it");
    let (status, pod) = rig.act(&slow, "stop").await;
    assert_eq!((status, &pod["status"]), (200, &json!("EXITED")));

    // A04: 200 and nothing happens.
    rig.set_faults(&["stop-without-effect=2"]).await;
    for expected in ["RUNNING", "RUNNING", "EXITED"] {
        assert_eq!(rig.act(&id, "stop").await.0, 200);
        let (_, pod) = rig.api("GET", &format!("/v2/pods/{id}"), None).await;
        assert_eq!(pod["status"], expected);
    }

    // A09: too many requests.
    rig.set_faults(&["rate-limited=2"]).await;
    for expected in [429, 429, 200] {
        assert_eq!(rig.api("GET", "/v2/pods", None).await.0, expected);
    }
    let url = format!("{}/v2/pods", rig.cloud.url);
    rig.set_faults(&["rate-limited=3"]).await;
    let key = rig.cloud.key.reveal();
    let answer = rig.client.get(url).bearer_auth(key).send().await.unwrap();
    assert_eq!(answer.headers()["retry-after"], "1");
    assert_eq!(answer.headers()["ratelimit"], "\"minute\";r=0;t=1");

    let body = json!({"faults": ["slowboot"]});
    let (status, problem) = rig.api("PUT", "/_local/faults", Some(body)).await;
    assert_eq!(status, 400);
    assert!(problem["detail"].as_str().unwrap().contains("slow-boot"), "{problem}");
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

/// B06: pages, and an end to them.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_comes_in_pages_when_asked() {
    let rig = Rig::start(&[]).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(rig.volume().await);
    }
    let (_, all) = rig.api("GET", "/v2/network-volumes", None).await;
    assert!(all.get("pagination").is_none(), "{all}");
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/v2/network-volumes?limit=2&cursor={cursor}");
        let (status, page) = rig.api("GET", &path, None).await;
        assert_eq!(status, 200, "{page}");
        for volume in page["networkVolumes"].as_array().unwrap() {
            seen.push(volume["id"].as_str().unwrap().to_owned());
        }
        match page["pagination"]["nextCursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, ids);
    assert_eq!(rig.api("GET", "/v2/network-volumes?cursor=nonsense", None).await.0, 400);
}
