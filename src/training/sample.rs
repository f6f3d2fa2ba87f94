//! Recipes for tests: the shape of the shipped example's, with its values.

use crate::domain::{
    Expected, Level, LinePattern, Recipe, RunLogs, SourceEdit, Template, VehicleName,
};

fn level(name: &str, aliases: &[&str], radius: &str, range: &str) -> Level {
    let values = [("com_to_cob_offset_radius", radius), ("volume_range", range)];
    Level {
        name: name.to_owned(),
        aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
        values: values.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
    }
}

fn recipe(name: &str, vehicle: &str, levels: Vec<Level>) -> Recipe {
    Recipe {
        name: name.to_owned(),
        vehicle: VehicleName(vehicle.to_owned()),
        workdir: "IsaacLab".to_owned(),
        command: ["./train.sh", "--seed", "{seed}"]
            .iter()
            .map(|word| Template::parse(word).unwrap())
            .collect(),
        seed_max: u32::MAX,
        seed_marker: None,
        levels,
        default_level: Some("large".to_owned()),
        edits: vec![SourceEdit {
            file: "code/env.py".to_owned(),
            fields: vec!["com_to_cob_offset_radius".to_owned(), "volume_range".to_owned()],
            pattern: LinePattern::parse("{name} = {value}").unwrap(),
            same_as: Vec::new(),
        }],
        gates: Vec::new(),
        expect: Expected {
            iterations: Some(400),
            iterations_option: Some("--max_iterations".to_owned()),
            startup_sec: Some(60),
            ms_per_iteration: Some(170),
            reward: None,
        },
        logs: RunLogs::default(),
        artifacts: Vec::new(),
        checks: Vec::new(),
        sha256: "0".repeat(64),
    }
}

/// Five levels.
pub fn curee() -> Recipe {
    let levels = vec![
        level("DR_0", &["none", "no_dr", "0"], "0", "[0.022747843530591776, 0.022747843530591776]"),
        level("DR_1", &["small", "1"], "0.025", "[0.021247843530591776, 0.024247843530591776]"),
        level(
            "DR_2",
            &["large", "shipped", "2"],
            "0.05",
            "[0.019747843530591773, 0.02574784353059178]",
        ),
        level("DR_3", &["3"], "0.075", "[0.018247843530591775, 0.027247843530591776]"),
        level("DR_4", &["4"], "0.1", "[0.016747843530591777, 0.028747843530591774]"),
    ];
    recipe("curee", "hippocampus", levels)
}

/// Three levels.
pub fn bluerov2() -> Recipe {
    let levels = vec![
        level("DR_0", &["none", "no_dr", "0"], "0", "[0.0134, 0.0134]"),
        level("DR_1", &["small", "1"], "0.0164285714", "[0.0125164, 0.0142836]"),
        level("DR_2", &["large", "shipped", "2"], "0.0328571429", "[0.0116328, 0.0151672]"),
    ];
    recipe("bluerov2", "bluerov2", levels)
}
