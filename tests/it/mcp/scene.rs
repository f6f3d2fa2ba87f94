//! A folder with a config, an SSH key and a local cloud of its own, which is gone at the end.

use podtether::cloud::local;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_podtether"))
}

/// Two vehicles, so that one can be told from the other.
pub const CONFIG: &str = "\
cloud: local
local:
  state_dir: cloud
limits:
  max_usd_per_hour: 0.80
  budget_usd: 5
poll:
  interval_sec: 1
ssh_identity: id_ed25519
default_vehicle: rover
vehicles:
  rover:
    pod_name: rover
    network_volume_name: rover
    datacenter_preference: [EU-RO-1, US-TX-3]
    known_hosts_file: known_hosts
    local_log_dir: logs
  glider:
    pod_name: glider
    network_volume_name: glider
    datacenter_preference: [EU-RO-1]
    known_hosts_file: known_hosts_glider
    local_log_dir: logs/glider
";

pub struct Scene {
    folder: TempDir,
}

impl Scene {
    /// The folder, with key and config.
    pub fn set() -> Self {
        let scene = Self::without_config();
        scene.write_config(CONFIG);
        scene
    }

    pub fn without_config() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("id_ed25519");
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(key)
            .status()
            .unwrap();
        assert!(made.success());
        Self { folder }
    }

    pub fn dir(&self) -> &Path {
        self.folder.path()
    }

    pub fn config(&self) -> PathBuf {
        self.dir().join("podtether.yaml")
    }

    pub fn write_config(&self, text: &str) {
        std::fs::write(self.config(), text).unwrap();
    }

    /// `podtether mcp` on this config, with an environment of its own.
    pub fn server(&self) -> Command {
        let mut command = self.bare_server();
        command.arg("--config").arg(self.config());
        command
    }

    /// The same, without being told where the config is.
    pub fn bare_server(&self) -> Command {
        let mut command = Command::new(program());
        command.arg("mcp").current_dir(self.dir()).env_clear();
        command.env("HOME", self.dir()).env("PATH", std::env::var_os("PATH").unwrap());
        command
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let state = self.dir().join("cloud");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // From a thread of its own: a test may be in a runtime already.
        let stopped = std::thread::spawn(move || runtime.block_on(local::stop(&state))).join();
        if !std::thread::panicking() {
            stopped.unwrap().unwrap();
        }
    }
}
