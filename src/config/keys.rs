//! Every key of the file in one table: its name, what it may hold and what it means. The reader,
//! the suggestions and the JSON Schema are all made from it.

mod campaign;
mod training;

use super::value::{self, Check};
pub(super) use campaign::{CAMPAIGN, LINK, PIN, WORK};
pub(super) use training::{CHECK, EDIT, LEVEL, TRAINING};

/// What a key may hold.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// One text that passes the check.
    Text(Check),
    /// A list of at least one text, each of which passes the check, none twice.
    Texts(Check),
    /// A path.
    Path,
    /// A whole number of `unit` from `min` to `max`.
    Whole { unit: Unit, min: u32, max: u32 },
    /// A positive amount of dollars.
    Money,
    /// Hours, or `off`.
    FuseHours,
    /// `refuse`, or `{tolerate: [names]}`.
    Strangers,
    /// A command: one text that is split into words, or a list of words.
    Words,
    /// Two numbers, `[lowest, highest]`; their texts are kept.
    Range,
    /// The same, or this word.
    RangeOr(&'static str),
    /// A list of mappings with these keys.
    Items(&'static [Key]),
    /// A mapping from names to mappings with these keys.
    Named(&'static [Key]),
    /// A mapping that has a reader of its own.
    Mapping,
}

/// The unit of a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Count,
    Seconds,
    Minutes,
    Gigabytes,
}

/// A key.
pub(super) struct Key {
    /// Its name; a dot stands for a nested mapping.
    pub name: &'static str,
    pub kind: Kind,
    /// A value that would do, as it is written in the file.
    pub example: &'static str,
    pub meaning: &'static str,
}

const fn key(name: &'static str, kind: Kind, example: &'static str, meaning: &'static str) -> Key {
    Key { name, kind, example, meaning }
}

const fn whole(unit: Unit, min: u32, max: u32) -> Kind {
    Kind::Whole { unit, min, max }
}

/// The longest of any ceiling, as in `domain::Ceiling`: a week.
const WEEK_SEC: u32 = crate::domain::Ceiling::MAX_SEC;
const CEILING: Kind = whole(Unit::Seconds, 1, WEEK_SEC);

/// Keys that stand at the top for all vehicles, or inside one to override it.
pub(super) const SHARED: &[Key] = &[
    key(
        "cloud_type",
        Kind::Text(value::cloud_type),
        "SECURE",
        "Cloud tier; only SECURE is allowed.",
    ),
    key(
        "gpu_type_ids",
        Kind::Texts(value::any),
        "[\"NVIDIA GeForce RTX 4090\"]",
        "Allowed GPU types, first choice first.",
    ),
    key("gpu_count", whole(Unit::Count, 1, 64), "1", "GPUs of the pod."),
    key(
        "image_name",
        Kind::Text(value::word),
        "runpod/pytorch:2.4.0-py3.11-cuda12.4.1-devel-ubuntu22.04",
        "Container image.",
    ),
    key(
        "allowed_cuda_versions",
        Kind::Texts(value::cuda_version),
        "[\"12.4\", \"12.8\"]",
        "CUDA versions that a host may have.",
    ),
    key(
        "container_disk_gb",
        whole(Unit::Gigabytes, 1, 10_000),
        "30",
        "Container disk in GB; wiped on every stop.",
    ),
    key(
        "volume_mount_path",
        Kind::Text(value::mount_path),
        "/workspace",
        "Where the network volume is mounted.",
    ),
    // The bounds are RunPod's (REST v2, schema CreateNetworkVolumeRequest).
    key(
        "network_volume_gb",
        whole(Unit::Gigabytes, 10, 4_096),
        "60",
        "Size of the network volume in GB, when it has to be created.",
    ),
    key(
        "ports",
        Kind::Texts(value::port),
        "[\"22/tcp\"]",
        "Ports to expose; 22/tcp must be among them.",
    ),
    key(
        "ssh_identity",
        Kind::Path,
        "~/.ssh/id_ed25519",
        "The private SSH key; its .pub neighbour is given to the pod.",
    ),
    key(
        "idle_minutes",
        whole(Unit::Minutes, 1, WEEK_SEC / 60),
        "60",
        "Quiet minutes after which the pod's watchdog stops it.",
    ),
    key("timeouts.setup_sec", CEILING, "5400", "Default ceiling of run_pod_setup, in seconds."),
    key(
        "timeouts.training_sec",
        CEILING,
        "3600",
        "Default ceiling of launch_training, in seconds.",
    ),
    key("timeouts.sweep_sec", CEILING, "3600", "Default ceiling of axis_sanity_sweep, in seconds."),
    key("timeouts.job_sec", CEILING, "3600", "Default ceiling of run_job, in seconds."),
    key(
        "timeouts.exec_max_sec",
        whole(Unit::Seconds, 1, 3_600),
        "600",
        "Longest timeout_sec of exec_on_pod, in seconds.",
    ),
    key(
        "poll.budget_sec",
        whole(Unit::Seconds, 1, 7_200),
        "300",
        "How long the CLIs wait for a pod, in seconds.",
    ),
    key(
        "poll.interval_sec",
        whole(Unit::Seconds, 1, 300),
        "10",
        "How often a wait looks again, in seconds.",
    ),
    key(
        "boot_max_sec",
        whole(Unit::Seconds, 1, 7_200),
        "900",
        "A boot that takes longer is stopped, in seconds.",
    ),
    key(
        "min_driver_version",
        Kind::Text(value::driver_version),
        "\"535.129.03\"",
        "Lowest NVIDIA driver version that will do.",
    ),
    key("setup.script", Kind::Path, "pod_setup.sh", "The script of run_pod_setup."),
    key(
        "setup.files",
        Kind::Texts(value::any),
        "[train.py]",
        "Files that are placed beside the setup script, in {files}.",
    ),
    key(
        "setup.command",
        Kind::Words,
        "[bash, \"{script}\"]",
        "The words that run the setup script; {script}, {files} and {mount} are filled in.",
    ),
];

/// Keys that a vehicle may have itself, and nothing else.
pub(super) const OWN_OPTIONAL: &[Key] = &[
    key(
        "patches.script",
        Kind::Path,
        "patch.py",
        "The script of apply_bluerov_patches; podtether's own when left out.",
    ),
    key(
        "patches.files",
        Kind::Texts(value::any),
        "[patches/thrusters.py]",
        "Files that are given to the patch script.",
    ),
    key(
        "patches.checkout",
        Kind::Text(value::any),
        "isaac-auv-env",
        "The checkout that is patched, on the volume.",
    ),
    key(
        "patches.commit",
        Kind::Text(value::commit),
        "7c5ebe7f7a08acd2570b5fba328e92b7f59f6794",
        "The commit that the checkout must be at.",
    ),
    key(
        "patches.marker",
        Kind::Text(value::any),
        "markers/bluerov2_patch_applied",
        "The marker of applied patches, on the volume.",
    ),
    key("sweep.script", Kind::Path, "axis_sweep.py", "The script of axis_sanity_sweep."),
    key(
        "sweep.files",
        Kind::Texts(value::any),
        "[config/vehicle.yaml]",
        "Files that are placed beside the sweep script, in {files}.",
    ),
    key(
        "sweep.command",
        Kind::Words,
        "[python3, \"{script}\", --marker, \"{marker}\"]",
        "The words that run the sweep; {script}, {files}, {mount} and {marker} are filled in.",
    ),
    key(
        "sweep.marker",
        Kind::Text(value::any),
        "markers/axis_sanity_PASS",
        "The marker of a sweep that passed, on the volume.",
    ),
];

/// Keys that a vehicle must have itself.
pub(super) const OWN: &[Key] = &[
    key("pod_name", Kind::Text(value::name), "my-pod", "Name of the vehicle's one pod."),
    key(
        "network_volume_name",
        Kind::Text(value::name),
        "my-volume",
        "Name of the vehicle's network volume.",
    ),
    key(
        "datacenter_preference",
        Kind::Texts(value::data_center),
        "[EU-RO-1, US-TX-3]",
        "Data centres for the volume, first choice first.",
    ),
    key(
        "known_hosts_file",
        Kind::Path,
        "~/.ssh/known_hosts_runpod",
        "Where the pod's host keys are pinned.",
    ),
    key("local_log_dir", Kind::Path, "logs/pod", "Where logs and results come to."),
];

/// Limits that hold for all vehicles or, inside one, for that one; the tighter of the two wins.
pub(super) const LIMITS: &[Key] = &[
    key(
        "limits.max_usd_per_hour",
        Kind::Money,
        "0.80",
        "Highest price of a whole pod for one hour, in USD.",
    ),
    key("limits.max_usd_per_job", Kind::Money, "5", "Highest worst-case cost of one job, in USD."),
    key("limits.max_gpu_count", whole(Unit::Count, 1, 64), "1", "Most GPUs of one pod."),
    key(
        "limits.require_proven_fuses",
        whole(Unit::Count, 0, 2),
        "2",
        "In how many failure domains (the pod, the laptop) `podtether drill` must have proven a fuse before a pod or a job is started; 0 asks for none.",
    ),
];

/// The rest of the file.
pub(super) const TOP: &[Key] = &[
    key(
        "cloud",
        Kind::Text(value::cloud),
        "runpod",
        "`runpod`, or `local` for the twin on this machine.",
    ),
    key(
        "default_vehicle",
        Kind::Text(value::any),
        "my-vehicle",
        "The vehicle that is meant when none is named; else the first.",
    ),
    key(
        "keychain_account",
        Kind::Text(value::account),
        "ann",
        "Account of the API key in the keychain; else the login name.",
    ),
    key(
        "labels.group",
        Kind::Text(value::label),
        "ablation-1",
        "What runs belong together with; `--group` and PODTETHER_GROUP go before it.",
    ),
    key(
        "labels.agent",
        Kind::Text(value::label),
        "ann",
        "Who launches runs; `--agent`, PODTETHER_AGENT and the name of an MCP client go before it.",
    ),
    key("strangers", Kind::Strangers, "refuse", "What to do about pods that no vehicle declares."),
    key(
        "limits.budget_usd",
        Kind::Money,
        "174",
        "Highest spend of the whole account in budget_window, in USD.",
    ),
    key(
        "limits.budget_window",
        Kind::Text(value::budget_window),
        "month",
        "What budget_usd counts: total, or the UTC calendar month or day.",
    ),
    key(
        "limits.max_boots_per_hour",
        whole(Unit::Count, 1, 1000),
        "6",
        "Most creates and starts of pods within an hour, over all vehicles.",
    ),
    key(
        "fuse.auto_arm_hours",
        Kind::FuseHours,
        "3.0",
        "Hours until the laptop's fuse stops a pod, or `off`.",
    ),
    key(
        "fuse.receipt_days",
        whole(Unit::Count, 1, 365),
        "30",
        "Days for which what `podtether drill` has proven counts.",
    ),
    key(
        "local.state_dir",
        Kind::Path,
        "~/podtether-local",
        "Where the local cloud keeps its pods and volumes.",
    ),
    key(
        "vehicles",
        Kind::Mapping,
        "{my-vehicle: {pod_name: my-pod, …}}",
        "Name to settings of each vehicle.",
    ),
    key(
        "trainings",
        Kind::Named(TRAINING),
        "{my-training: {vehicle: my-vehicle}}",
        "Name to settings of each training.",
    ),
    key(
        "notify.desktop",
        Kind::Text(value::true_or_false),
        "true",
        "Show notices on this computer's screen, by osascript or notify-send.",
    ),
    key(
        "notify.webhook",
        Kind::Text(value::webhook),
        "ntfy",
        "Send notices to a webhook of this kind, ntfy or slack; its address is a secret and is kept in the keychain or in PODTETHER_WEBHOOK_URL, never here.",
    ),
];

/// Keys of `strangers`, when it is not the word `refuse`.
pub(super) const STRANGERS: &[Key] =
    &[key("tolerate", Kind::Texts(value::name), "[my-other-pod]", "Names of pods to put up with.")];

/// Every key of the file's top level.
pub(super) fn of_file() -> Vec<&'static Key> {
    [TOP, SHARED, LIMITS].into_iter().flatten().collect()
}

/// Every key of one vehicle.
pub(super) fn of_vehicle() -> Vec<&'static Key> {
    [OWN, OWN_OPTIONAL, SHARED, LIMITS].into_iter().flatten().collect()
}
