//! The keys of a training: its recipe.

use super::{CEILING, Key, Kind, Unit, key, whole};
use crate::config::value;

/// Keys of one training.
pub(in crate::config) const TRAINING: &[Key] = &[
    key("vehicle", Kind::Text(value::any), "my-vehicle", "The vehicle that it runs on."),
    key(
        "workdir",
        Kind::Text(value::pod_path),
        "my-code",
        "The folder on the pod to start it in, below the mount path; the mount path when left out.",
    ),
    key(
        "command",
        Kind::Words,
        "python3 train.py --seed {seed}",
        "The command, split into words and never given to a shell. Placeholders: {seed}, {level}, {training}, {vehicle}, {mount} and the names of the levels' values.",
    ),
    key("seed.max", whole(Unit::Count, 0, u32::MAX), "4294967295", "The highest seed."),
    key(
        "seed.marker",
        Kind::Text(value::pod_path),
        "markers/seed_respected",
        "A file that is there when the code respects the seed; noted with every run.",
    ),
    key(
        "expect.iterations",
        whole(Unit::Count, 1, u32::MAX),
        "400",
        "How many iterations a run has.",
    ),
    key(
        "expect.iterations_option",
        Kind::Text(value::word),
        "--max_iterations",
        "The option by which extra_args change that number.",
    ),
    key("expect.startup_sec", CEILING, "60", "Time until the first iteration, in seconds."),
    key(
        "expect.ms_per_iteration",
        whole(Unit::Count, 1, u32::MAX),
        "170",
        "Time of one iteration, in milliseconds.",
    ),
    key("expect.reward", Kind::Range, "[95, 100]", "Lowest and highest mean reward at the end."),
    key(
        "logs.root",
        Kind::Text(value::pod_path),
        "my-code/logs",
        "The folder on the pod, below the mount path, that has one folder for each run.",
    ),
    key(
        "logs.run_line",
        Kind::Text(value::any),
        "\"writing to\"",
        "What a line of the log begins with that goes on with the name of the run's folder.",
    ),
    key(
        "artifacts",
        Kind::Texts(value::relative),
        "[\"model_{last}.pt\"]",
        "Files of a run that must be there at its end, relative to its folder. Placeholders: {iterations}, {last}, {seed}.",
    ),
    key(
        "gates.require",
        Kind::Texts(value::pod_path),
        "[markers/checked]",
        "Files on the pod that must be there before a launch.",
    ),
    key(
        "gates.forbid",
        Kind::Texts(value::pod_path),
        "[markers/patched]",
        "Files on the pod that must not be there before a launch.",
    ),
    key(
        "edits",
        Kind::Items(EDIT),
        "[{file: …, fields: […]}]",
        "Files that a level is written to.",
    ),
    key(
        "levels",
        Kind::Named(LEVEL),
        "{small: {values: {noise: \"0.1\"}}}",
        "Name to values of each level.",
    ),
    key("default_level", Kind::Text(value::any), "small", "The level when none is named."),
    key(
        "checks",
        Kind::Items(CHECK),
        "[{file: …, key: …, level: …, field: …}]",
        "Values that YAML files on this computer hold too; a launch is refused when they differ.",
    ),
];

/// Keys of one of `edits`.
pub(in crate::config) const EDIT: &[Key] = &[
    key("file", Kind::Text(value::pod_path), "my-code/env.py", "The file on the pod."),
    key("fields", Kind::Texts(value::identifier), "[noise]", "The values that stand in it."),
    key(
        "pattern",
        Kind::Text(value::line_pattern),
        "\"{name} = {value}\"",
        "How a line looks that holds one; exactly one line must.",
    ),
    key(
        "same_as",
        Kind::Texts(value::pod_path),
        "[lib/env.py]",
        "Paths by which it is read; each must lead to this very file.",
    ),
];

/// Keys of one of `levels`.
pub(in crate::config) const LEVEL: &[Key] = &[
    key("aliases", Kind::Texts(value::any), "[none, 0]", "Other words for it."),
    key(
        "values",
        Kind::Mapping,
        "{noise: \"0.1\"}",
        "Field to value, written to the letter as it stands here.",
    ),
];

/// Keys of one of `checks`.
pub(in crate::config) const CHECK: &[Key] = &[
    key("file", Kind::Path, "config/vehicle.yaml", "The YAML file, relative to this one."),
    key("key", Kind::Text(value::any), "body.mass", "The path to the value, keys joined by dots."),
    key("level", Kind::Text(value::any), "small", "The level that it belongs to."),
    key("field", Kind::Text(value::identifier), "noise", "Its field."),
];
