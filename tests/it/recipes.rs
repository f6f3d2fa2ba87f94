//! `trainings:` as its writer meets it: what the example holds, and what is refused, with file, line,
//! key and the nearest that would do.

use podtether::config::{self, Config, Environment, cross_check};
use podtether::domain::Recipe;
use podtether::training::level;
use std::path::Path;

const VEHICLE: &str = "\
vehicles:
  sub:
    pod_name: sub
    network_volume_name: sub
    datacenter_preference: [EU-RO-1]
    known_hosts_file: known_hosts
    local_log_dir: logs
trainings:
  walk:
";

/// A file whose only training has these keys; the first of them stands on line 10.
fn load(keys: &str) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("podtether.yaml");
    let keys: String = keys.lines().map(|line| format!("    {line}\n")).collect();
    std::fs::write(&path, format!("{VEHICLE}{keys}")).unwrap();
    let shown = format!("{}/", folder.path().display());
    config::load(&path, &Environment::isolated([("HOME", "/home/ann")]))
        .map_err(|error| error.to_string().replace(&shown, ""))
}

fn example() -> Config {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/learning-to-swim/podtether.yaml");
    config::load(&path, &Environment::isolated([("HOME", "/home/ann")])).unwrap()
}

/// The values of the table, to the letter: a computed one is another text.
#[test]
fn the_example_holds_the_levels_of_the_published_code_to_the_letter() {
    let config = example();
    let table: [(&str, &str, &str, &str); 8] = [
        ("curee", "none", "0", "[0.022747843530591776, 0.022747843530591776]"),
        ("curee", "small", "0.025", "[0.021247843530591776, 0.024247843530591776]"),
        ("curee", "shipped", "0.05", "[0.019747843530591773, 0.02574784353059178]"),
        ("curee", "3", "0.075", "[0.018247843530591775, 0.027247843530591776]"),
        ("curee", "DR_4", "0.1", "[0.016747843530591777, 0.028747843530591774]"),
        ("bluerov2", "no_dr", "0", "[0.0134, 0.0134]"),
        ("bluerov2", "1", "0.0164285714", "[0.0125164, 0.0142836]"),
        ("bluerov2", "large", "0.0328571429", "[0.0116328, 0.0151672]"),
    ];
    for (training, word, radius, range) in table {
        let recipe = config.training(training).unwrap();
        let level = level(recipe, Some(word), &config.trainings).unwrap().unwrap();
        assert_eq!(level.values["com_to_cob_offset_radius"], radius, "{training} {word}");
        assert_eq!(level.values["volume_range"], range, "{training} {word}");
    }
    let (curee, bluerov2) =
        (config.training("curee").unwrap(), config.training("bluerov2").unwrap());
    assert_eq!((curee.levels.len(), bluerov2.levels.len()), (5, 3));
    assert_eq!(
        (curee.vehicle.0.as_str(), bluerov2.vehicle.0.as_str()),
        ("hippocampus", "bluerov2")
    );
    let gates = |recipe: &Recipe| -> Vec<(String, bool)> {
        recipe.gates.iter().map(|gate| (gate.path.clone(), gate.must_exist)).collect()
    };
    assert_eq!(gates(curee), [("markers/bluerov2_patch_applied".to_owned(), false)]);
    assert_eq!(
        gates(bluerov2),
        [
            ("markers/bluerov2_patch_applied".to_owned(), true),
            ("markers/axis_sanity_PASS".to_owned(), true)
        ]
    );
    assert_ne!(curee.sha256, bluerov2.sha256);
}

#[test]
fn the_examples_recipe_and_the_vehicles_own_file_agree() {
    let config = example();
    let recipe = config.training("bluerov2").unwrap();
    assert_eq!(recipe.checks.len(), 5);
    for check in &recipe.checks {
        let level = recipe.levels.iter().find(|level| level.name == check.level).unwrap();
        assert_eq!(cross_check(&check.file, &check.key, &level.values[&check.field]), Ok(()));
    }
}

/// With quotes or without, a value is what stands in the file.
#[test]
fn a_levels_values_are_texts_to_the_letter() {
    let config = load(
        "vehicle: sub\nlevels:\n  a: {values: {x: \"0.10\", y: \"[1, 2]\", z: \"'t'\"}}\n  b: {values: {x: 0.10, y: [1,2.50 ,  3], z: True}}",
    )
    .unwrap();
    let levels = &config.trainings[0].levels;
    let texts =
        |at: usize| -> Vec<&str> { levels[at].values.values().map(String::as_str).collect() };
    assert_eq!(texts(0), ["0.10", "[1, 2]", "'t'"]);
    assert_eq!(texts(1), ["0.10", "[1,2.50 ,  3]", "True"]);
}

#[test]
fn a_command_is_words_and_a_path_may_be_absolute_below_the_mount() {
    let keys = "vehicle: sub\nworkdir: /workspace/lab\ncommand: \"./a 'b c' --s={seed} # $(x)\"";
    let config = load(keys).unwrap();
    let recipe = &config.trainings[0];
    let words: Vec<&str> = recipe.command.iter().map(podtether::domain::Template::source).collect();
    assert_eq!(words, ["./a", "b c", "--s={seed}", "#", "$(x)"]);
    assert_eq!(recipe.workdir, "lab");
    let list = load("vehicle: sub\ncommand: [./a, \"b c\", \"\"]").unwrap();
    assert_eq!(list.trainings[0].command.len(), 3);
    // What is written otherwise but means the same is the same recipe.
    let other = load(
        "vehicle: sub # x\nworkdir:   /workspace/lab\ncommand: './a ''b c'' --s={seed} # $(x)'",
    );
    assert_eq!(other.unwrap().trainings[0].sha256, recipe.sha256);
}

/// Bad input: told by line and key, with what would do, and nothing is resolved.
#[test]
fn a_recipe_that_will_not_do_is_refused_with_line_key_and_what_would() {
    let levels = "levels: {DR_0: {aliases: [none, 0], values: {x: 1}}, DR_1: {values: {x: 2}}}";
    let edit = "edits: [{file: a.py, fields: [x]}]";
    let with = |line: &str| format!("vehicle: sub\n{levels}\n{edit}\n{line}");
    for (line, says) in [
        (
            "command: t --seed {sed}",
            "13: trainings.walk.command: {sed} is not a placeholder; did you mean seed?",
        ),
        (
            "command: t {x} {y}",
            "13: trainings.walk.command: {y} is not a placeholder; did you mean x?",
        ),
        (
            "command: t {",
            "13: trainings.walk.command: \"{\" has a brace that belongs to no placeholder",
        ),
        ("command: it's", "13: trainings.walk.command: it's has an open quote; close the quote"),
        ("command: []", "13: trainings.walk.command: is empty"),
        ("comand: t", "13: trainings.walk.comand: unknown key; did you mean command?"),
        ("iterations: 4", "13: trainings.walk.iterations: unknown key; it belongs under expect"),
        (
            "expect: {iterations: 0}",
            "13: trainings.walk.expect.iterations: 0 is not a whole number from 1",
        ),
        (
            "expect: {reward: [100, 95]}",
            "13: trainings.walk.expect.reward: a list is not two numbers, the lower one first",
        ),
        (
            "default_level: DR_2",
            "13: trainings.walk.default_level: DR_2 is not a level; did you mean DR_0?",
        ),
        (
            "workdir: /root/x",
            "13: trainings.walk.workdir: /root/x is not below /workspace, and what lies elsewhere is gone at the first stop",
        ),
        ("workdir: ../x", "13: trainings.walk.workdir: ../x is not a plain relative path"),
        (
            "gates: {require: [/etc/x]}",
            "13: trainings.walk.gates.require: /etc/x is not below /workspace",
        ),
        (
            "gates: {requires: [x]}",
            "13: trainings.walk.gates.requires: unknown key; did you mean require?",
        ),
        (
            "artifacts: [\"model_{lst}.pt\"]",
            "13: trainings.walk.artifacts: {lst} is not a placeholder; did you mean last?",
        ),
        (
            "seed: {max: -1}",
            "13: trainings.walk.seed.max: -1 is not a whole number from 0 to 4294967295",
        ),
        (
            "checks: [{file: v.yaml, key: a, level: DR_7, field: x}]",
            "13: trainings.walk.checks[0].level: DR_7 is not a level; did you mean DR_0?",
        ),
        (
            "checks: [{file: v.yaml, key: a, level: none, field: z}]",
            "13: trainings.walk.checks[0].field: no level has z; did you mean x?",
        ),
        ("checks: [{file: v.yaml}]", "13: trainings.walk.checks[0].key: is missing"),
        ("edits: []", "13: trainings.walk.edits: given twice, first on line 12"),
        ("<<: {workdir: x}", "13: trainings.walk.<<: unknown key"),
    ] {
        let error = load(&with(line)).unwrap_err();
        assert!(error.starts_with(&format!("podtether.yaml:{says}")), "{line}\n{error}");
    }
    for (keys, says) in [
        (
            "vehicle: sub\nedits: [{file: a.py, fields: [y]}]",
            "11: trainings.walk.edits[0].fields: no level has a value for y; none is declared",
        ),
        ("vehicle: sub\nedits: [{fields: []}]", "trainings.walk.edits[0].file: is missing"),
        (
            "vehicle: sub\nlevels:\n  a: {values: {x: 1}}\n  b: {values: {y: 1}}",
            "13: trainings.walk.levels.b: has other values than a; give each level a value for: x",
        ),
        (
            "vehicle: sub\nlevels:\n  a: {aliases: [B], values: {x: 1}}\n  b: {values: {x: 1}}",
            "13: trainings.walk.levels.b: b means a already",
        ),
        (
            "vehicle: sub\ncommand: t --seed {seed}\nlevels: {a: {values: {x: 1, y: 2}}}\nedits: [{file: a, fields: [x]}]",
            "12: trainings.walk.levels: y is used nowhere, so no level would change it; write {y} into the command, or name it in edits.fields",
        ),
        (
            "vehicle: sub\nlevels:\n  a: {values: {x: {y: 1}}}",
            "12: trainings.walk.levels.a.values.x: is not a value of one line",
        ),
        (
            "vehicle: sub\nlevels:\n  a: {values: {seed: 1}}",
            "12: trainings.walk.levels.a.values.seed: is a placeholder of every command",
        ),
        (
            "vehicle: sub\nlevels:\n  a: {values: {x: [1,\n    2]}}",
            "12: trainings.walk.levels.a.values.x: is not a value of one line",
        ),
        (
            "vehicle: sub\nlevels:\n  a: {values: {x: 1, x: 2}}",
            "12: trainings.walk.levels.a.values.x: given twice",
        ),
        (
            "vehicle: sub\nlevels: {a: {values: {x: 1}}}\nedits: [{file: a, fields: [x], pattern: '{name}'}]",
            "12: trainings.walk.edits[0].pattern: '{name}' is not a pattern of a line",
        ),
        (
            "vehicle: sub\nlevels: {a: {values: {x: 1}}}\nedits: [{file: a, fields: [x]}, {file: /workspace/a, fields: [x]}]",
            "12: trainings.walk.edits[1]: a has an edit already",
        ),
        ("vehicle: sub\nlevels:\n\ta: 1", ":12:"),
        ("vehicle: sub\nlevels: &l {a: {values: *l}}", ""),
    ] {
        let error = load(keys).unwrap_err();
        assert!(error.starts_with("podtether.yaml:") && error.contains(says), "{keys}\n{error}");
    }
}
