//! From checked keys to settings: a vehicle's own key over the shared one over the default, paths
//! made absolute, and the rules that hold between keys.

use super::declared::{self, Declared};
use super::error::Problems;
use super::read::{self, Entry, Section, Value};
use super::yaml::Node;
use super::{
    CloudChoice, Config, ConfigError, Environment, FuseHours, Notify, WebhookShape, keys, paths,
    recipes, workload, yaml,
};
use crate::domain::{
    BudgetWindow, Ceiling, CloudTier, DataCenterId, GpuTypeId, Label, Labels, Limits, Timeouts,
    Usd, UsdPerHour, Vehicle, VehicleName,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Read like a file under the user's own, so that a default is checked as a given value is.
pub(super) const DEFAULTS: &str = include_str!("defaults.yaml");

/// Checks and resolves a file's text. `path` is absolute.
pub(super) fn config(text: &str, path: &Path, env: &Environment) -> Result<Config, ConfigError> {
    let tree = parsed(text, path)?;
    let defaults = parsed(DEFAULTS, Path::new("built-in defaults"))?;
    let mut problems = Problems::default();
    let file_keys = keys::of_file();
    let defaults = read::section(&defaults, "", &file_keys, &mut problems);
    let file = match tree.value {
        // An empty file is one without vehicles, and told so.
        yaml::Value::Null => Section::default(),
        _ => read::section(&tree, "", &file_keys, &mut problems),
    };
    let declared = declared::vehicles(&file, &mut problems);
    let folder = path.parent().unwrap_or(Path::new("/"));
    let around = recipes::Around { folder, home: env.home(), defaults: &defaults };
    let trainings = recipes::trainings(&file, &declared, &around, &mut problems);
    let default_vehicle = declared::default_vehicle(&file, &declared, &mut problems);
    let mut resolver = Resolver { file, defaults, path, env, problems };
    let resolved = resolver.resolve(&declared);
    match resolved {
        Some(mut config) if resolver.problems.is_empty() => {
            config.trainings = trainings;
            config.default_vehicle = default_vehicle;
            Ok(config)
        }
        _ => {
            if resolver.problems.is_empty() {
                // A hole in the table of keys: a mistake of ours, but never an empty message.
                let fix = "this is a fault of podtether; please report it with the file";
                resolver.problems.add(0, "the file", "could not be resolved", fix);
            }
            Err(resolver.problems.into_error(path.to_owned()))
        }
    }
}

pub(super) fn parsed(text: &str, path: &Path) -> Result<Node, ConfigError> {
    yaml::parse(text).map_err(|error| ConfigError::Syntax {
        path: path.to_owned(),
        line: error.line,
        column: error.column,
        detail: crate::secret::scrub(&error.detail, &[]),
    })
}

struct Resolver<'a> {
    file: Section,
    defaults: Section,
    path: &'a Path,
    env: &'a Environment,
    problems: Problems,
}

/// Keys of the contract that this version reads and does not act on: none at present.
const NOT_YET: &[(&str, &str)] = &[];

impl Resolver<'_> {
    /// Everything; `None` when a value is missing that a problem already speaks of.
    fn resolve(&mut self, declared: &[Declared]) -> Option<Config> {
        let cloud = self.cloud();
        let limits = Limits {
            budget_window: self.budget_window()?,
            max_boots_per_hour: Some(self.max_boots_per_hour()?),
            ..limits(&self.file)
        };
        // Every vehicle, also after one that failed: all problems are told at once.
        let resolved: Vec<Option<Vehicle>> =
            declared.iter().map(|declared| self.vehicle(declared, cloud.as_ref())).collect();
        self.refuse_shared_belongings(declared);
        let tolerated_pods = self.tolerated(declared);
        for declared in declared {
            self.refuse_too_many_gpus(declared, &limits);
        }
        let reader = workload::Reader {
            file: &self.file,
            defaults: &self.defaults,
            folder: self.path.parent().unwrap_or(Path::new("/")),
            home: self.env.home(),
        };
        let workloads = reader.workloads(declared, &mut self.problems);
        let auto_arm = match self.shared("fuse.auto_arm_hours")?.value {
            Value::FuseHours(hours) => hours,
            _ => return None,
        };
        let receipt_days = match self.shared("fuse.receipt_days")?.value {
            Value::Whole(days) => days,
            _ => return None,
        };
        let keychain_account = text(self.file.get("keychain_account"));
        let cloud = cloud?;
        let warnings = self.warnings(&cloud, &limits, auto_arm);
        let vehicle_limits: BTreeMap<VehicleName, Limits> = declared
            .iter()
            .map(|vehicle| (VehicleName(vehicle.name.clone()), self::limits(&vehicle.section)))
            .filter(|(_, limits)| *limits != Limits::default())
            .collect();
        Some(Config {
            path: self.path.to_owned(),
            cloud,
            vehicles: resolved.into_iter().collect::<Option<Vec<_>>>()?,
            default_vehicle: VehicleName(String::new()),
            limits,
            vehicle_limits,
            tolerated_pods,
            auto_arm,
            receipts_last: Duration::from_secs(u64::from(receipt_days) * 86_400),
            keychain_account,
            labels: self.env.labels().or(&self.labels()),
            agent_of_env: self.env.labels().agent,
            notify: self.notify(),
            trainings: Vec::new(),
            workloads,
            warnings,
            not_yet: self.not_yet(),
        })
    }

    fn notify(&self) -> Notify {
        Notify {
            desktop: text(self.file.get("notify.desktop")).as_deref() == Some("true"),
            webhook: text(self.file.get("notify.webhook"))
                .and_then(|text| WebhookShape::parse(&text)),
        }
    }

    /// Of the file; each was checked.
    fn labels(&self) -> Labels {
        let label = |key| Label::parse(&text(self.file.get(key))?).ok();
        Labels { group: label("labels.group"), agent: label("labels.agent") }
    }

    fn budget_window(&self) -> Option<BudgetWindow> {
        BudgetWindow::parse(&text(self.shared("limits.budget_window"))?)
    }

    fn max_boots_per_hour(&self) -> Option<u32> {
        match self.shared("limits.max_boots_per_hour")?.value {
            Value::Whole(count) => Some(count),
            _ => None,
        }
    }

    fn shared(&self, name: &str) -> Option<&Entry> {
        self.file.get(name).or_else(|| self.defaults.get(name))
    }

    fn cloud(&mut self) -> Option<CloudChoice> {
        if text(self.shared("cloud"))? != "local" {
            return Some(CloudChoice::RunPod);
        }
        let state_dir = match self.file.get("local.state_dir").cloned() {
            Some(entry) => self.expanded(&entry)?,
            None => {
                let state_dir = self.env.state_dir().map(|state| state.join("local"));
                // Paths inside a pod are text, and a local pod's are inside this folder.
                let Some(state_dir) = state_dir.filter(|path| path.to_str().is_some()) else {
                    let what = "has no default: neither HOME nor PODTETHER_STATE_DIR is an absolute path in UTF-8";
                    self.problems.add(0, "local.state_dir", what, "set HOME or local.state_dir");
                    return None;
                };
                state_dir
            }
        };
        Some(CloudChoice::Local { state_dir })
    }

    fn expanded(&mut self, entry: &Entry) -> Option<PathBuf> {
        let Value::Path(written) = &entry.value else { return None };
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        paths::expand(written, folder, self.env.home())
            .map_err(|(what, fix)| self.problems.add(entry.line, &entry.path, what, fix))
            .ok()
    }

    fn vehicle(&mut self, declared: &Declared, cloud: Option<&CloudChoice>) -> Option<Vehicle> {
        let get = |name: &str| declared.section.get(name).or_else(|| self.shared(name)).cloned();
        let whole = |name: &str| match get(name)?.value {
            Value::Whole(number) => Some(number),
            _ => None,
        };
        let ceiling = |name: &str| Ceiling::from_secs(whole(name)?);
        let seconds = |name: &str| Some(Duration::from_secs(u64::from(whole(name)?)));
        let word = |name: &str| text(get(name).as_ref());
        let list = |name: &str| match get(name)?.value {
            Value::Texts(list) => Some(list),
            _ => None,
        };
        let ports = get("ports");
        let mount_path = word("volume_mount_path")?;
        let volume_mount_path = match cloud? {
            CloudChoice::RunPod => mount_path,
            CloudChoice::Local { state_dir } => {
                let base = local_base(state_dir, &declared.name);
                format!("{}{mount_path}", base.to_str()?)
            }
        };
        let timeouts = Timeouts {
            setup: ceiling("timeouts.setup_sec")?,
            training: ceiling("timeouts.training_sec")?,
            sweep: ceiling("timeouts.sweep_sec")?,
            job: ceiling("timeouts.job_sec")?,
            exec_max_sec: whole("timeouts.exec_max_sec")?,
        };
        let (known_hosts, logs, identity) =
            (get("known_hosts_file"), get("local_log_dir"), get("ssh_identity"));
        let vehicle = Vehicle {
            name: VehicleName(declared.name.clone()),
            pod_name: word("pod_name")?,
            network_volume_name: word("network_volume_name")?,
            datacenter_preference: list("datacenter_preference")?
                .into_iter()
                .map(DataCenterId)
                .collect(),
            cloud_type: CloudTier::from(word("cloud_type")?.as_str()),
            gpu_type_ids: list("gpu_type_ids")?.into_iter().map(GpuTypeId).collect(),
            gpu_count: whole("gpu_count")?,
            image_name: word("image_name")?,
            allowed_cuda_versions: list("allowed_cuda_versions")?,
            container_disk_gb: whole("container_disk_gb")?,
            volume_mount_path,
            network_volume_gb: whole("network_volume_gb")?,
            ports: list("ports")?,
            idle: Duration::from_secs(u64::from(whole("idle_minutes")?) * 60),
            timeouts,
            poll_budget: seconds("poll.budget_sec")?,
            poll_interval: seconds("poll.interval_sec")?,
            boot_max: seconds("boot_max_sec")?,
            min_driver_version: word("min_driver_version")?,
            known_hosts_file: self.expanded(&known_hosts?)?,
            local_log_dir: self.expanded(&logs?)?,
            ssh_identity: self.expanded(&identity?)?,
        };
        if let Some(ports) = ports.filter(|_| !vehicle.ports.iter().any(|port| port == "22/tcp")) {
            let fix = format!("write [\"22/tcp\", \"{}\"]", vehicle.ports.join("\", \""));
            self.problems.add(
                ports.line,
                ports.path,
                "has no 22/tcp, so there would be no SSH",
                fix,
            );
        }
        Some(vehicle)
    }

    /// Two vehicles must not share what is one per vehicle.
    fn refuse_shared_belongings(&mut self, declared: &[Declared]) {
        for name in ["pod_name", "network_volume_name", "known_hosts_file", "local_log_dir"] {
            let mut seen: Vec<(String, &Declared)> = Vec::new();
            for vehicle in declared {
                let Some(entry) = vehicle.section.get(name) else { continue };
                let belonging = match &entry.value {
                    Value::Text(text) => text.clone(),
                    // A Mac's file system takes `A` and `a` for one file.
                    Value::Path(_) => match self.expanded(entry) {
                        Some(path) => path.to_string_lossy().to_lowercase(),
                        None => continue,
                    },
                    _ => continue,
                };
                match seen.iter().find(|(other, _)| *other == belonging) {
                    Some((_, first)) => {
                        let what = format!("is the same as {}.{name}", first.path);
                        let fix = "give each vehicle its own";
                        self.problems.add(entry.line, &entry.path, what, fix);
                    }
                    None => seen.push((belonging, vehicle)),
                }
            }
        }
    }

    fn refuse_too_many_gpus(&mut self, declared: &Declared, shared: &Limits) {
        let limit = shared.tighter(&limits(&declared.section)).max_gpu_count;
        let Some(entry) = declared.section.get("gpu_count").or_else(|| self.shared("gpu_count"))
        else {
            return;
        };
        let (Value::Whole(count), Some(limit)) = (&entry.value, limit) else { return };
        if *count > limit {
            let what = format!("{count} is above limits.max_gpu_count {limit}");
            let (line, path) = (entry.line, entry.path.clone());
            self.problems.add(
                line,
                path,
                what,
                format!("write {limit} or less, or raise the limit"),
            );
        }
    }

    fn tolerated(&mut self, declared: &[Declared]) -> Vec<String> {
        let Some(Entry { line, value: Value::Tolerated(pods), .. }) = self.file.get("strangers")
        else {
            return Vec::new();
        };
        let (line, pods) = (*line, pods.clone());
        for pod in &pods {
            let owner = declared
                .iter()
                .find(|vehicle| text(vehicle.section.get("pod_name")).as_ref() == Some(pod));
            if let Some(owner) = owner {
                let what = format!("{pod} is the pod of vehicle {}, no stranger", owner.name);
                self.problems.add(line, "strangers.tolerate", what, "leave it out of the list");
            }
        }
        pods
    }

    fn warnings(&self, cloud: &CloudChoice, limits: &Limits, auto_arm: FuseHours) -> Vec<String> {
        let mut warnings = Vec::new();
        if *cloud == CloudChoice::RunPod {
            if limits.max_usd_per_hour.is_none() {
                warnings
                    .push("limits.max_usd_per_hour is not set: no price is too high".to_owned());
            }
            if limits.budget_usd.is_none() {
                warnings.push("limits.budget_usd is not set: no total is too high".to_owned());
            }
        }
        if auto_arm == FuseHours::Off {
            let text = "fuse.auto_arm_hours is off: no laptop fuse is armed by itself";
            warnings.push(text.to_owned());
        }
        warnings
    }

    fn not_yet(&self) -> Vec<&'static str> {
        NOT_YET
            .iter()
            .filter(|(key, _)| self.file.get(key).is_some())
            .map(|(_, meaning)| *meaning)
            .collect()
    }
}

/// What stands before the mount path of a local pod: it is a folder and cannot have one of its own.
pub(super) fn local_base(state_dir: &Path, vehicle: &str) -> PathBuf {
    state_dir.join("mnt").join(vehicle)
}

fn text(entry: Option<&Entry>) -> Option<String> {
    match &entry?.value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    }
}

fn limits(section: &Section) -> Limits {
    let money = |name: &str| -> Option<Usd> {
        match section.get(name)?.value {
            Value::Money(usd) => Some(usd),
            _ => None,
        }
    };
    let count = |name: &str| match section.get(name)?.value {
        Value::Whole(count) => Some(count),
        _ => None,
    };
    Limits {
        max_usd_per_hour: money("limits.max_usd_per_hour").map(UsdPerHour::new),
        budget_usd: money("limits.budget_usd"),
        budget_window: BudgetWindow::default(),
        max_usd_per_job: money("limits.max_usd_per_job"),
        max_gpu_count: count("limits.max_gpu_count"),
        max_boots_per_hour: None,
        require_proven_fuses: count("limits.require_proven_fuses"),
    }
}
