//! The demo's folder: a config with `cloud: local`, an SSH key of its own, and room for the cloud.

use crate::cloud::local;
use crate::error::{Failure, FailureKind};
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The demo's vehicle.
pub const VEHICLE: &str = "demo";
/// Where the training writes, below the mount path.
pub const RESULTS: &str = "training";
/// The training, as it would be typed on the pod.
pub const TRAINING: &str = "podtether train-auv --iterations 60 --seed 1 --out training/run1";

/// A file that marks a folder as the demo's own, so that it may be made anew.
const MARK: &str = ".podtether-demo";

const CONFIG: &str = "\
# The demo's config: one vehicle on the local cloud. Nothing here costs anything.
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
  demo:
    pod_name: podtether-demo
    network_volume_name: podtether-demo
    datacenter_preference: [EU-RO-1, US-TX-3]
    known_hosts_file: known_hosts
    local_log_dir: logs
";

/// The demo's folder.
pub struct Scene {
    dir: PathBuf,
}

impl Scene {
    /// Makes the folder anew: a demo that broke off is cleared away first.
    pub async fn set(dir: &Path) -> Result<Self, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(
                FailureKind::BadInput,
                format!("the demo's folder {}: {error}", dir.display()),
                "name another folder with --dir",
            )
        };
        if dir.exists() {
            let is_empty = std::fs::read_dir(dir).map_err(|error| failed(&error))?.next().is_none();
            if !is_empty && !dir.join(MARK).exists() {
                return Err(failed(&"exists and is not a demo's"));
            }
            local::stop(&dir.join("cloud")).await.map_err(|error| failed(&error))?;
            std::fs::remove_dir_all(dir).map_err(|error| failed(&error))?;
        }
        std::fs::create_dir_all(dir).map_err(|error| failed(&error))?;
        let dir = dir.canonicalize().map_err(|error| failed(&error))?;
        let scene = Self { dir };
        std::fs::write(scene.dir.join(MARK), "").map_err(|error| failed(&error))?;
        std::fs::write(scene.config_file(), CONFIG).map_err(|error| failed(&error))?;
        scene.write_key().map_err(|error| failed(&error))?;
        Ok(scene)
    }

    fn write_key(&self) -> Result<(), String> {
        let key = PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519)
            .map_err(|error| error.to_string())?;
        let text = key.to_openssh(LineEnding::LF).map_err(|error| error.to_string())?;
        let path = self.dir.join("id_ed25519");
        // Private before it holds anything.
        std::fs::write(&path, "").map_err(|error| error.to_string())?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
            .map_err(|error| error.to_string())?;
        std::fs::write(&path, text.as_bytes()).map_err(|error| error.to_string())?;
        let public = key.public_key().to_openssh().map_err(|error| error.to_string())?;
        std::fs::write(path.with_extension("pub"), public).map_err(|error| error.to_string())
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn config_file(&self) -> PathBuf {
        self.dir.join("podtether.yaml")
    }

    pub fn cloud_dir(&self) -> PathBuf {
        self.dir.join("cloud")
    }

    pub fn plot_file(&self) -> PathBuf {
        self.dir.join("reward.png")
    }
}
