//! A local cloud, a config and pods for benches: in a folder of its own, gone when it is dropped.
#![allow(dead_code, reason = "each bench uses a part")]

use podtether::clock::SystemClock;
use podtether::cloud::local::{LocalCloud, Options, Timing};
use podtether::config::Environment;
use podtether::ops::{self, EnsureRequest, EnsureStatus, Start, Tether};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::oneshot;

/// Far above what anything here takes.
pub const CEILING: Duration = Duration::from_secs(600);

pub struct Rig {
    pub url: String,
    pub key: String,
    folder: TempDir,
    end: Option<oneshot::Sender<()>>,
    cloud: Option<JoinHandle<()>>,
}

/// The program that is measured: the release build that cargo made for this bench.
pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_podtether"))
}

pub fn vehicle(number: usize) -> String {
    format!("v{number:03}")
}

impl Rig {
    /// A cloud, and a config with so many vehicles.
    pub fn start(vehicles: usize) -> Self {
        let folder = tempfile::Builder::new().prefix("podtether-bench-").tempdir().unwrap();
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(folder.path().join("id_ed25519"))
            .status();
        assert!(made.unwrap().success());
        let mut config =
            "cloud: local\nlocal:\n  state_dir: cloud\nlimits:\n  max_usd_per_hour: 0.80\n  \
             budget_usd: 1000000\n  max_boots_per_hour: 1000\npoll:\n  interval_sec: 1\nssh_identity: id_ed25519\nvehicles:\n"
                .to_owned();
        for vehicle in (0..vehicles).map(vehicle) {
            config.push_str(&format!(
                "  {vehicle}:\n    pod_name: pod-{vehicle}\n    network_volume_name: volume-{vehicle}\n    \
                 datacenter_preference: [EU-RO-1, US-TX-3]\n    known_hosts_file: known_hosts_{vehicle}\n    \
                 local_log_dir: logs/{vehicle}\n"
            ));
        }
        fs::write(folder.path().join("podtether.yaml"), config).unwrap();
        let options = Options {
            state: folder.path().join("cloud"),
            port: 0,
            faults: Vec::new(),
            program: program().to_owned(),
            timing: Timing {
                provisioning: Duration::from_millis(5),
                starting: Duration::from_millis(5),
                ssh_after: Duration::from_millis(5),
                billing_lag: Duration::from_secs(3600),
            },
        };
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (end, ended) = oneshot::channel::<()>();
        let cloud = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let cloud = LocalCloud::start(options, SystemClock::shared()).await.unwrap();
                ready.send((cloud.url().to_owned(), cloud.key().reveal().to_owned())).unwrap();
                cloud.serve(async { drop(ended.await) }).await.unwrap();
            });
            runtime.shutdown_background();
        });
        let (url, key) = is_ready.recv_timeout(CEILING).unwrap();
        Self { url, key, folder, end: Some(end), cloud: Some(cloud) }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub async fn tether(&self) -> Tether {
        let path = std::env::var_os("PATH").unwrap();
        let start = Start {
            config: Some(self.path("podtether.yaml")),
            env: Environment::isolated([("PATH", path), ("HOME", self.path("").into_os_string())]),
            cwd: self.path(""),
            program: program().to_owned(),
        };
        ops::open(&start, SystemClock::shared()).await.unwrap().0
    }

    /// Has a vehicle's pod running; its id and its address, `user@host:port`.
    pub async fn running(&self, tether: &Tether, vehicle: &str) -> (String, String) {
        let wait = Duration::from_secs(45);
        let request = EnsureRequest { vehicle: Some(vehicle.to_owned()), dry_run: false, wait };
        let answer = tether.ensure_pod(&request).await.unwrap();
        assert_eq!(answer.status, Some(EnsureStatus::Running), "{answer:?}");
        let pod = answer.pod.unwrap();
        (pod.id.0, pod.ssh.unwrap())
    }

    /// A command of podtether on this config, with only what a shell would give it.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(words)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path(""))
            .env("PODTETHER_CONFIG", self.path("podtether.yaml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    /// `ssh` to a pod of this cloud, as a script would call it.
    pub fn ssh_words(&self, address: &str) -> Vec<String> {
        let (login, port) = address.rsplit_once(':').unwrap();
        let identity = self.path("id_ed25519").display().to_string();
        ["-F", "none", "-p", port, "-i", &identity, "-o", "BatchMode=yes"]
            .into_iter()
            .chain(["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"])
            .chain(["-o", "LogLevel=ERROR", login])
            .map(str::to_owned)
            .collect()
    }

    /// When the cloud took the first stop of this pod, by its own record; in seconds since 1970.
    pub fn stop_accepted(&self, pod: &str) -> Option<f64> {
        let text = fs::read_to_string(self.path("cloud/requests.jsonl")).unwrap_or_default();
        let stop = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find(
            |line| {
                line["body"]["action"] == "stop"
                    && line["path"].as_str().is_some_and(|path| path.contains(pod))
                    && line["status"].as_u64().is_some_and(|status| status < 300)
            },
        )?;
        let at: chrono::DateTime<chrono::Utc> = stop["at"].as_str()?.parse().ok()?;
        Some(seconds(at.timestamp_micros()))
    }

    /// Where a vehicle's volume lies; the only one of a rig with one vehicle.
    pub fn volume(&self) -> PathBuf {
        let mut volumes = fs::read_dir(self.path("cloud/volumes")).unwrap();
        volumes.next().unwrap().unwrap().path()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(cloud) = self.cloud.take() {
            let _ = cloud.join();
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a time of a bench")]
pub fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < CEILING, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
