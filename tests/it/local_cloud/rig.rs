//! A local cloud of a test's own, and how a test talks to it.

use podtether::cloud::local::{RunningCloud, ensure_running, find};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const GPU: &str = "NVIDIA GeForce RTX 4090";
pub const CEILING: Duration = Duration::from_secs(60);

pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_podtether"))
}

/// A local cloud in a folder of its own, gone with its pods at the end of the test.
pub struct Rig {
    pub folder: TempDir,
    pub cloud: RunningCloud,
    pub client: reqwest::Client,
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

    pub fn ssh_options(&self, port: u16) -> Vec<String> {
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

pub async fn finish(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

pub fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

pub fn is_alive(pid: &str) -> bool {
    let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
    let zombie = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()))
        .is_ok_and(|stat| stat.contains(") Z "));
    test_kill_process(pid).is_ok() && !zombie
}

pub async fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < CEILING, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
