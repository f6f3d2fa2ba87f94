//! A folder with a config, an SSH key and a local cloud of its own, and what is asked and recorded
//! there. Its name has a space and a quote, as folders on a laptop have (D09).

use super::twin::{CEILING, Daemon, Inside};
use crate::local_cloud::program;
use podtether::apply::{OffSettings, Settings};
use podtether::clock::{SharedClock, SystemClock};
use podtether::cloud::local::{RunningCloud, find};
use podtether::config::Environment;
use podtether::ledger::{Ledger, project_folder};
use podtether::ops::{self, EnsureAnswer, EnsureRequest, EnsureStatus, ExecRequest, Start, Tether};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const VEHICLE: &str = "rover";
pub const POD: &str = "rover-pod";
pub const VOLUME: &str = "rover-volume";

/// Waits that a test has time for.
pub const QUICK: Settings = Settings {
    off: OffSettings {
        budget: Duration::from_secs(20),
        read_every: Duration::from_millis(50),
        ask_again_after: Duration::from_millis(200),
    },
    settle: Duration::from_secs(20),
    absent_after: Duration::from_secs(120),
    output_bytes: 64 * 1024,
};

/// The config, apart from what a test adds to it.
const CONFIG: &str = "\
cloud: local
local:
  state_dir: cloud
limits:
  max_usd_per_hour: 0.80
  budget_usd: 5
poll:
  interval_sec: 1
ssh_identity: id_ed25519
vehicles:
  rover:
    pod_name: rover-pod
    network_volume_name: rover-volume
    datacenter_preference: [EU-RO-1, US-TX-3]
    known_hosts_file: known_hosts
    local_log_dir: logs
";

/// One command that a pod ran, as its SSH server recorded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub command: String,
    pub stdin_bytes: u64,
    pub stdin_sha256: String,
}

/// One request that changes something, as the cloud recorded it.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub at: String,
    pub method: String,
    pub path: String,
    pub body: Value,
    pub status: Option<u64>,
}

enum Cloud {
    Inside(Inside),
    Daemon(Daemon),
}

pub struct Fixture {
    // Before the folder: fields are dropped in this order.
    cloud: Cloud,
    client: reqwest::Client,
    folder: TempDir,
}

impl Fixture {
    pub fn new() -> Self {
        Self::with("")
    }

    /// With more lines at the top level of the config.
    pub fn with(config: &str) -> Self {
        Self::begin(config, |state| Cloud::Inside(Inside::start(state)))
    }

    /// With the cloud as a daemon that can be killed.
    pub fn with_daemon() -> Self {
        Self::begin("", |state| Cloud::Daemon(Daemon::start(state)))
    }

    /// With a cloud that has billed these spans of pods and of volumes before.
    pub fn with_past(pods: &[Value], volumes: &[Value]) -> Self {
        let document = json!({
            "version": 1, "pods": [], "volumes": [], "pod_spans": pods, "volume_spans": volumes,
        });
        Self::begin("", |state| {
            fs::create_dir_all(state).unwrap();
            fs::write(state.join("cloud.json"), document.to_string()).unwrap();
            Cloud::Inside(Inside::start(state))
        })
    }

    fn begin(config: &str, cloud: impl FnOnce(&Path) -> Cloud) -> Self {
        let folder = tempfile::Builder::new().prefix("it's a test ").tempdir().unwrap();
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(folder.path().join("id_ed25519"))
            .status();
        assert!(made.unwrap().success());
        fs::write(folder.path().join("podtether.yaml"), format!("{CONFIG}{config}")).unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { cloud: cloud(&folder.path().join("cloud")), client, folder }
    }

    pub fn daemon(&mut self) -> &mut Daemon {
        match &mut self.cloud {
            Cloud::Daemon(daemon) => daemon,
            Cloud::Inside(_) => panic!("this fixture's cloud is no daemon"),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub fn config_file(&self) -> PathBuf {
        self.path("podtether.yaml")
    }

    /// The journal of this project, as another process would open it.
    pub fn ledger(&self) -> Ledger {
        let home = self.path("");
        let env = Environment::isolated([("HOME", home.as_os_str())]);
        let project = project_folder(&env.state_dir().unwrap(), &self.config_file());
        Ledger::new(project.join("local"), &self.config_file(), SystemClock::shared())
    }

    pub fn state(&self) -> PathBuf {
        self.path("cloud")
    }

    pub async fn tether(&self) -> Tether {
        self.tether_of(&self.config_file()).await
    }

    /// The same by another path to the config.
    pub async fn tether_of(&self, config: &Path) -> Tether {
        self.tether_from(config, std::env::var_os("PATH").unwrap()).await
    }

    /// The same with other programs on PATH.
    pub async fn tether_with_path(&self, path: OsString) -> Tether {
        self.tether_from(&self.config_file(), path).await
    }

    /// The same with clocks of the test's own.
    pub async fn tether_on(&self, clock: SharedClock) -> Tether {
        let path = std::env::var_os("PATH").unwrap();
        self.tether_with(&self.config_file(), path, clock).await
    }

    async fn tether_from(&self, config: &Path, path: OsString) -> Tether {
        self.tether_with(config, path, SystemClock::shared()).await
    }

    async fn tether_with(&self, config: &Path, path: OsString, clock: SharedClock) -> Tether {
        let home = self.path("").into_os_string();
        let start = Start {
            config: Some(config.to_owned()),
            env: Environment::isolated([("PATH", path), ("HOME", home)]),
            cwd: self.path(""),
            program: program().to_owned(),
        };
        let (tether, _) = ops::open(&start, clock).await.unwrap();
        tether.with_settings(QUICK)
    }

    pub async fn stop_all(&self) -> (i32, Value) {
        self.stop(&["--all"]).await
    }

    /// `podtether stop --json`: its exit code and what it printed.
    pub async fn stop(&self, arguments: &[&str]) -> (i32, Value) {
        let ran = tokio::process::Command::new(program())
            .args(["stop", "--json", "--config", self.config_file().to_str().unwrap()])
            .args(arguments)
            .env_clear()
            .env("HOME", self.path(""))
            .env("PATH", std::env::var_os("PATH").unwrap())
            .output()
            .await
            .unwrap();
        (ran.status.code().unwrap(), serde_json::from_slice(&ran.stdout).unwrap())
    }

    pub fn running_cloud(&self) -> RunningCloud {
        find(&self.state()).unwrap()
    }

    /// A request of the test's own, past podtether.
    pub async fn api(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let (url, key) = match &self.cloud {
            Cloud::Inside(inside) => (inside.url.clone(), inside.key.clone()),
            Cloud::Daemon(_) => {
                let cloud = self.running_cloud();
                (cloud.url, cloud.key.reveal().to_owned())
            }
        };
        let mut request = self.client.request(method.parse().unwrap(), format!("{url}{path}"));
        request = request.bearer_auth(key);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        assert!(response.status().is_success(), "{method} {path}: {response:?}");
        serde_json::from_str(&response.text().await.unwrap()).unwrap_or(Value::Null)
    }

    pub async fn set_faults(&self, faults: &[&str]) {
        self.api("PUT", "/_local/faults", Some(json!({"faults": faults}))).await;
    }

    /// The account's pods of this name, as the cloud shows them.
    pub async fn pods_named(&self, name: &str) -> Vec<Value> {
        let all = self.api("GET", "/v2/pods", None).await;
        let pods = all["pods"].as_array().unwrap();
        pods.iter().filter(|pod| pod["name"] == name).cloned().collect()
    }

    /// The status of the vehicle's one pod, read past podtether.
    pub async fn status(&self) -> String {
        let pods = self.pods_named(POD).await;
        assert_eq!(pods.len(), 1, "{pods:?}");
        pods[0]["status"].as_str().unwrap().to_owned()
    }

    /// A pod that podtether did not make, without a volume.
    pub async fn other_pod(&self, name: &str) -> String {
        let body = json!({
            "name": name,
            "image": "runpod/pytorch:2.4.0",
            "gpu": {"id": "NVIDIA GeForce RTX 4090", "count": 1},
            "cloud": "SECURE",
            "dataCenterIds": ["EU-RO-1"],
            "disk": 20,
            "ports": ["22/tcp"],
        });
        let pod = self.api("POST", "/v2/pods", Some(body)).await;
        pod["id"].as_str().unwrap().to_owned()
    }

    /// Has the vehicle's pod running and proven, without sleeping between looks.
    pub async fn running(&self, tether: &Tether) -> EnsureAnswer {
        let first = tether.ensure_pod(&ensure(0)).await.unwrap();
        if first.status == Some(EnsureStatus::Running) {
            return first;
        }
        self.until("an SSH endpoint", async || {
            self.pods_named(POD).await.iter().any(|pod| !pod["ssh"]["direct"].is_null())
        })
        .await;
        let answer = tether.ensure_pod(&ensure(45)).await.unwrap();
        assert_eq!(answer.status, Some(EnsureStatus::Running), "{answer:?}");
        answer
    }

    pub async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let start = Instant::now();
        while !holds().await {
            assert!(start.elapsed() < CEILING, "waited in vain for {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Where the vehicle's volume lies on this machine.
    pub fn volume(&self) -> PathBuf {
        let mut volumes = fs::read_dir(self.state().join("volumes")).unwrap();
        volumes.next().unwrap().unwrap().path()
    }

    pub async fn volume_id(&self) -> String {
        let all = self.api("GET", "/v2/network-volumes", None).await;
        let volumes = all["networkVolumes"].as_array().unwrap();
        let own: Vec<_> = volumes.iter().filter(|volume| volume["name"] == VOLUME).collect();
        assert_eq!(own.len(), 1, "{all}");
        own[0]["id"].as_str().unwrap().to_owned()
    }

    /// The requests with the account's key.
    pub fn requests(&self) -> Vec<Request> {
        self.requests_by(false)
    }

    /// The requests of pods with their own keys: those of a watchdog come when it pleases.
    pub fn requests_of_pods(&self) -> Vec<Request> {
        self.requests_by(true)
    }

    fn requests_by(&self, pods: bool) -> Vec<Request> {
        lines(&self.state().join("requests.jsonl"))
            .filter(|line| line["by_pod"] == pods)
            .map(|line| Request {
                at: line["at"].as_str().unwrap().to_owned(),
                method: line["method"].as_str().unwrap().to_owned(),
                path: line["path"].as_str().unwrap().to_owned(),
                body: line["body"].clone(),
                status: line["status"].as_u64(),
            })
            .collect()
    }

    /// The requests that change something; the test's own ones go past `/v2` or are counted by it.
    pub fn changes(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.method != "GET").collect()
    }

    pub fn sessions(&self, pod: &str) -> Vec<Session> {
        lines(&self.state().join("pods").join(pod).join("sessions.jsonl"))
            .map(|line| Session {
                command: line["command"].as_str().unwrap().to_owned(),
                stdin_bytes: line["stdin_bytes"].as_u64().unwrap(),
                stdin_sha256: line["stdin_sha256"].as_str().unwrap().to_owned(),
            })
            .collect()
    }
}

fn lines(path: &Path) -> impl Iterator<Item = Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>().into_iter()
}

pub fn ensure(wait_sec: u64) -> EnsureRequest {
    EnsureRequest { vehicle: None, dry_run: false, wait: Duration::from_secs(wait_sec) }
}

pub fn exec(command: &str) -> ExecRequest {
    ExecRequest { command: command.to_owned(), timeout_sec: 60, workdir: None, vehicle: None }
}
