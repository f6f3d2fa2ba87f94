//! The config: `podtether.yaml` as raw text with places, then checked, then resolved.
//!
//! A setting comes from, in this order: a flag, an environment variable, the file (a vehicle's own
//! key, then the shared key), the default. Limits are the exception: the tighter one wins, and no
//! layer may loosen another's. A key that is not known is an error, since a misspelt limit is no
//! limit; everything that is wrong is told at once, with line, key, value and what would do.

mod campaign;
mod composite;
mod cross_check;
mod declared;
mod env;
mod error;
mod find;
mod identity;
mod keys;
mod node_text;
mod notify;
mod paths;
mod read;
mod recipes;
mod resolve;
mod schema;
mod value;
mod workload;
mod yaml;

pub use campaign::load as load_campaign;
pub use cross_check::{CheckError, cross_check};
pub use env::{API_KEY, Environment, VARIABLES, Variable, WEBHOOK_URL};
pub use error::{ConfigError, Problem};
pub use find::{FILE_NAME, find};
pub use identity::check_identity;
pub use notify::{Notify, WebhookShape};
pub use schema::{campaign_schema, schema};
pub use workload::{PLACEHOLDERS, Patches, PodScript, Sweep, Workload};

use crate::domain::{Label, Labels, Limits, Recipe, Vehicle, VehicleName};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The cloud that the config chooses. Real and local are never mixed up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloudChoice {
    /// RunPod: real machines, real money.
    RunPod,
    /// The twin on this machine, for $0.
    Local {
        /// Where it keeps its pods, volumes and prices.
        state_dir: PathBuf,
    },
}

/// How long after a create or start the laptop's fuse stops a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FuseHours {
    /// No fuse is armed by itself; said aloud in every status.
    Off,
    /// After this time.
    After(Duration),
}

/// The resolved config. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The file it was read from, absolute.
    pub path: PathBuf,
    /// Which cloud.
    pub cloud: CloudChoice,
    /// Every declared vehicle, in the file's order; never empty.
    pub vehicles: Vec<Vehicle>,
    /// The vehicle that is meant when none is named.
    pub default_vehicle: VehicleName,
    /// Limits over all vehicles. For one vehicle use [`Self::limits_for`].
    pub limits: Limits,
    /// Limits that single vehicles add.
    pub vehicle_limits: BTreeMap<VehicleName, Limits>,
    /// Names of pods that no vehicle declares and that are put up with.
    pub tolerated_pods: Vec<String>,
    /// The laptop's fuse.
    pub auto_arm: FuseHours,
    /// How long what a drill has proven counts.
    pub receipts_last: Duration,
    /// The keychain account that holds the API key; `None` means the login name.
    pub keychain_account: Option<String>,
    /// The labels of runs that the file and the environment set, the environment's first.
    pub labels: Labels,
    /// Who launches runs by the environment alone: it goes before what an MCP client calls itself.
    pub agent_of_env: Option<Label>,
    /// Where people are told of what happens.
    pub notify: Notify,
    /// Declared trainings, in the file's order.
    pub trainings: Vec<Recipe>,
    /// What each vehicle's pod is set up, patched and swept with; one entry for every vehicle.
    pub workloads: BTreeMap<VehicleName, Workload>,
    /// What the file allows but a careful owner would want to know. For status and doctor.
    pub warnings: Vec<String>,
    /// Keys that the file sets and that this version reads but does not act on yet, each with what
    /// that means. Said wherever a pod is started: a limit that does not hold must not look like one.
    pub not_yet: Vec<&'static str>,
}

/// The longest config file that is read, in bytes. A real one has a few kilobytes; a log or a
/// dataset given by mistake is not read whole.
const MAX_BYTES: u64 = 1 << 20;

/// Reads, checks and resolves the config file at `path`. Nothing is looked up or changed.
///
/// # Errors
/// [`ConfigError`] with everything that is wrong in the file.
pub fn load(path: &Path, env: &Environment) -> Result<Config, ConfigError> {
    let (text, path) =
        text_of_file(path, ("the config file", "its path"), "name a podtether.yaml")?;
    resolve::config(&text, &path, env)
}

/// A file of settings as text, and its absolute path. For errors it takes what the file is, where its
/// name came from, and what to do about one that is too large.
fn text_of_file(
    path: &Path,
    (what, named_by): (&'static str, &'static str),
    too_large: &'static str,
) -> Result<(String, PathBuf), ConfigError> {
    use std::io::Read as _;
    let unreadable = |reason: String, fix| ConfigError::Unreadable {
        what,
        path: path.to_owned(),
        named_by,
        reason,
        fix,
    };
    let path_of_file =
        std::path::absolute(path).map_err(|e| unreadable(e.to_string(), "mend the path"))?;
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|e| unreadable(e.to_string(), "mend the path or the file's permissions"))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(unreadable("it is larger than 1 MiB".to_owned(), too_large));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| unreadable("it is not UTF-8 text".to_owned(), "save it as UTF-8"))?;
    Ok((text, path_of_file))
}

impl Config {
    /// The vehicle of that name, or the default one.
    ///
    /// # Errors
    /// [`ConfigError::UnknownVehicle`] with the nearest name.
    pub fn vehicle(&self, name: Option<&str>) -> Result<&Vehicle, ConfigError> {
        let name = name.unwrap_or(&self.default_vehicle.0);
        self.vehicles.iter().find(|vehicle| vehicle.name.0 == name).ok_or_else(|| {
            ConfigError::UnknownVehicle {
                given: crate::secret::scrub(name, &[]).chars().take(80).collect(),
                path: self.path.clone(),
                fix: error::nearest(name, self.vehicles.iter().map(|v| v.name.0.as_str())),
            }
        })
    }

    /// The training of that name.
    ///
    /// # Errors
    /// [`ConfigError::UnknownTraining`] with the nearest name.
    pub fn training(&self, name: &str) -> Result<&Recipe, ConfigError> {
        self.trainings.iter().find(|recipe| recipe.name == name).ok_or_else(|| {
            ConfigError::UnknownTraining {
                given: crate::secret::scrub(name, &[]).chars().take(80).collect(),
                path: self.path.clone(),
                fix: error::nearest(name, self.trainings.iter().map(|t| t.name.as_str())),
            }
        })
    }

    /// The limits that hold for one vehicle: of the shared and its own ones, the tighter each.
    #[must_use]
    pub fn limits_for(&self, vehicle: &VehicleName) -> Limits {
        match self.vehicle_limits.get(vehicle) {
            Some(own) => self.limits.tighter(own),
            None => self.limits.clone(),
        }
    }
}
