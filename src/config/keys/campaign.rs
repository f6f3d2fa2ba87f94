//! The keys of a campaign's file.

use super::{CEILING, Key, Kind, key};
use crate::config::value;

/// Keys of the file.
pub(in crate::config) const CAMPAIGN: &[Key] = &[
    key(
        "campaign",
        Kind::Text(value::declared_name),
        "my-campaign",
        "Its name; part of the name of its record.",
    ),
    key(
        "vehicle",
        Kind::Text(value::any),
        "my-vehicle",
        "The vehicle that all links run on; the config's default when left out.",
    ),
    key("links", Kind::Items(LINK), "[{name: …, training: …, max_usd: …}]", "The links, in order."),
];

/// The keys of which a link has one: what it does.
pub(in crate::config) const WORK: [&str; 6] =
    ["setup", "patches", "training", "sweep", "command", "sync"];

/// Keys of one of `links`.
pub(in crate::config) const LINK: &[Key] = &[
    key("name", Kind::Text(value::declared_name), "train-s1", "Its name."),
    key("setup", Kind::Text(value::is_true), "true", "Runs the vehicle's setup script."),
    key("patches", Kind::Text(value::is_true), "true", "Applies the vehicle's patches."),
    key("training", Kind::Text(value::any), "walk", "Runs a training of the config."),
    key("sweep", Kind::Text(value::is_true), "true", "Runs the vehicle's sweep."),
    key("command", Kind::Text(value::script), "python eval.py", "Runs a command, by bash."),
    key(
        "sync",
        Kind::Text(value::relative),
        "my-code/logs",
        "Pulls a folder below the mount path.",
    ),
    key("dr", Kind::Text(value::any), "small", "Of a training: its level, by name or alias."),
    key("seed", Kind::Text(value::any), "1", "Of a training: its seed."),
    key(
        "extra_args",
        Kind::Text(value::any),
        "--iterations 12",
        "Of a training: more words for its command.",
    ),
    key(
        "workdir",
        Kind::Text(value::any),
        "my-code",
        "Of a command: the folder to run in, relative to the mount path or absolute; the mount path when left out.",
    ),
    key("max_runtime_sec", CEILING, "600", "Its ceiling in seconds; the config's when left out."),
    key(
        "pull",
        Kind::Text(value::relative),
        "my-code/out",
        "Of a job: a folder that comes home with it.",
    ),
    key("max_usd", Kind::Money, "1.50", "Its envelope: what it may cost at worst."),
    key("needs", Kind::Texts(value::any), "[setup]", "Links before it that it builds on."),
    key(
        "pins",
        Kind::Items(PIN),
        "[{pod: code/a.py, sha256: …}]",
        "Files that must be these very bytes before it.",
    ),
    key(
        "gates.before.require",
        Kind::Texts(value::pod_path),
        "[markers/done]",
        "Files on the pod that must be there before it.",
    ),
    key(
        "gates.before.forbid",
        Kind::Texts(value::pod_path),
        "[markers/patched]",
        "Files on the pod that must not be there before it.",
    ),
    key(
        "gates.after.require",
        Kind::Texts(value::pod_path),
        "[markers/done]",
        "Files on the pod that must be there after it.",
    ),
    key(
        "gates.after.forbid",
        Kind::Texts(value::pod_path),
        "[markers/failed]",
        "Files on the pod that must not be there after it.",
    ),
    key(
        "expect.artifacts",
        Kind::Texts(value::relative),
        "[\"model_*.pt\"]",
        "Files that it must leave, relative to its run's folder; * and ? stand for any letters.",
    ),
    key(
        "expect.reward_lines",
        Kind::Text(value::iterations_or_count),
        "iterations",
        "How often its log must tell a mean reward: a number, or one for each of the iterations.",
    ),
    key(
        "expect.reward",
        Kind::RangeOr("recipe"),
        "[95, 100]",
        "Within what its last mean reward must be; recipe takes the recipe's.",
    ),
    key(
        "pause",
        Kind::Text(value::pause),
        "stop",
        "A stop point after it: stop takes the pod off the bill, leave leaves it running.",
    ),
    key("stop", Kind::Text(value::is_true), "true", "Of the last link: it stops the pod."),
];

/// Keys of one of `pins`.
pub(in crate::config) const PIN: &[Key] = &[
    key(
        "here",
        Kind::Path,
        "train.py",
        "A file on this computer, relative to the campaign's file.",
    ),
    key(
        "pod",
        Kind::Text(value::pod_path),
        "my-code/train.py",
        "A file on the pod, below the mount path.",
    ),
    key("sha256", Kind::Text(value::sha256), "9f86d0…", "Its SHA-256: 64 hexadecimal digits."),
];
